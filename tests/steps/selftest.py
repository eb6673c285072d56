#!/usr/bin/env python3
"""What ./dev says of steps, held against planted ones: failures, skips, signals, names."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
START = """
set -euo pipefail; shopt -s inherit_errexit
build=$1/build jobs=2; cd "$2"; mkdir -p "$build"
die() { echo "dev: $*" >&2; exit 1; }
. tests/steps/step.sh; . tests/steps/build.sh; . tests/steps/valgrind.sh
. tests/steps/named.sh; . tests/steps/test.sh
"""
CMOCKA = "printf '%s\\n' '{0} != 1' '[  ERROR   ] --- {0}' '[   LINE   ] --- {0}.c:3: error: Failure!'"


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, script):
        # A background process ignores SIGINT, and so would bash that is started in one.
        run = subprocess.Popen(["bash", "-c", START + script, "steps", self.folder, ROOT], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(run.terminate)
        return run

    def run_steps(self, script):
        process = self.start(script)
        return process.communicate(timeout=60)[0]

    def plant(self, build, **tests):
        """Tests of ctest's, as shell commands."""
        folder = self.folder / "build" / build
        folder.mkdir(parents=True)
        lines = [f'add_test([=[{name.replace("_", ".")}]=] "sh" "-c" [=[{command}]=])\n'
                 f'set_tests_properties({name.replace("_", ".")} PROPERTIES SKIP_RETURN_CODE 77)'
                 for name, command in tests.items()]
        (folder / "CTestTestfile.cmake").write_text("\n".join(lines))

    def has(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def lacks(self, text, *parts):
        for part in parts:
            self.assertNotIn(part, text)


class Failures(Steps):
    def test_the_command_is_of_the_build_and_of_one_test(self):
        self.plant("asan", a_one="exit 0", a_two="exit 1")
        said = self.run_steps("step tests run_ctest A=1 asan; summary")
        self.has(said, f"alone:   cmake --build {self.folder}/build/asan && A=1 ctest --test-dir "
                 f"{self.folder}/build/asan " r"--output-on-failure -R '^a\.two$'")

    def test_the_assertion_is_of_the_test_that_the_command_runs(self):
        self.plant("asan", a_one=f"sleep 0.5; {CMOCKA.format('late')}; exit 1", a_two="exit 3")
        said = self.run_steps("step tests run_ctest asan; summary")
        self.has(said, r"-R '^a\.two$'", "a.two ....")
        self.lacks(said, "late")

    def test_what_fails_under_wine(self):
        said = self.run_steps("""
            . tests/steps/windows.sh; wineboot() { :; }; wineserver() { echo ended; }
            fails() { false; echo after; }; step x in_wine fails; cat "$build/log/x.txt"; summary""")
        self.has(said, "FAILED", "ended", "0 passed, 1 failed")
        self.lacks(said, "after")

    def test_cargo(self):
        (self.folder / "log").write_text(
            "thread '<unnamed>' panicked at other.rs:1:\nanother\n"
            "---- a::first stdout ----\nthread 'a::first' panicked at src/a.rs:5:\nmine\n\n"
            "---- b stdout ----\nthread 'b' panicked at src/a.rs:5:\nits\n\nfailures:\n    a::first\n"
            "error: test failed, to rerun pass `-p crate --test program`\n")
        said = self.run_steps('fails() { cat "$1"; return 1; }; step x fails "$1/log"; summary')
        self.has(said, "mine", "alone:   cargo test --locked --workspace --test program -- "
                 "--exact a::first")
        self.lacks(said, "another", "its")

    def test_valgrind(self):
        program = self.folder / "valgrind"
        program.write_text('#!/bin/sh\nfor last; do :; done\nexec "$last"\n')
        program.chmod(0o755)
        said = self.run_steps('valgrind_commands() { echo true; echo false; }; PATH=$1:$PATH; '
                              'step x run_valgrind debug; summary')
        self.has(said, "FAILED false", "alone:   valgrind --quiet ", "definite,possible false\n")

    def test_a_build(self):
        said = self.run_steps("build_it() { told false x; }; on it step tests true; summary")
        self.has(said, "FAILED", "build: it", "alone:   false x")
        said = self.run_steps("build_it() { false; }; on it step 'a b' true; summary")
        self.has(said, "alone:   ./dev test 'a b'")

    def test_what_was_told_of_a_command_that_passed_is_over(self):
        said = self.run_steps("two() { told true; false; }; step 'a b' two; summary")
        self.has(said, "alone:   ./dev test 'a b'")

    def test_the_commands_that_have_no_steps_of_this_name(self):
        said = self.run_steps("steps_of='./dev cuda'; step 'a b' false; summary")
        self.has(said, "alone:   ./dev cuda\n")

    def test_what_did_not_run(self):
        said = self.run_steps("build_no() { false; }; on no step one true; on no aside two true; summary")
        self.has(said.split("What failed:")[1], "build: no", "one\nnot run", "two\nnot run")

    def test_each_step_has_a_log(self):
        self.run_steps("step 'a b' echo 1; aside a:b echo 2; step a.b echo 3; step 'a b' echo 4; summary")
        logs = [f.read_text() for f in (self.folder / "build/log").glob("*.txt")]
        self.assertEqual(sorted(logs), ["2\n", "3\n", "4\n"])


def goes_on(process):
    """Also a process that has ended is there until somebody asks how."""
    try:
        return ") Z" not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


class Ends(Steps):
    """However a run ends, its steps end, too."""

    def start_lasting(self, script, count):
        """A run, and the processes of steps that last longer."""
        run = self.start("lasts() { sh -c 'echo $$ >\"$1\"; exec sleep 60' sh \"$build/$1.begun\"; }; "
                         + script)
        for _ in range(200):
            begun = [f.read_text() for f in (self.folder / "build").glob("*.begun")]
            if len(begun) == count and all(begun):
                return run, [int(text) for text in begun]
            time.sleep(0.02)
        run.kill()
        return self.fail("the steps do not begin")

    def all_end(self, run, processes, status):
        for _ in range(200):
            left = [process for process in processes if goes_on(process)]
            if not left:
                break
            time.sleep(0.02)
        for process in left:
            os.kill(process, signal.SIGKILL)
        run.communicate()
        self.assertEqual((run.returncode, left), (status, []))

    def test_signals(self):
        for number in signal.SIGTERM, signal.SIGINT:
            for script, count in ("aside a lasts a; aside b lasts b", 2), ("step a lasts a", 1):
                with self.subTest(number=number, script=script):
                    run, processes = self.start_lasting(f"{script}; summary", count)
                    run.send_signal(number)
                    self.all_end(run, processes, 128 + number)
                    for file in (self.folder / "build").glob("*.begun"):
                        file.unlink()

    def test_an_error(self):
        run, processes = self.start_lasting(
            'start a lasts a; until [ -s "$build/a.begun" ]; do sleep 0.1; done; die bad', 1)
        self.all_end(run, processes, 1)

    def test_one_run_at_a_time(self):
        first, processes = self.start_lasting("lock_build test x; step a lasts a", 1)
        second = self.start("lock_build test y; echo mine; summary")
        said = second.stdout.readline()
        self.assertRegex(said, rf"^waiting for ./dev test x, process {first.pid}, .* {self.folder}/build$")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(second.stdout.readline(), "mine\n")
        second.communicate()
        self.all_end(first, processes, 143)

    def test_a_step_that_leaves_a_process_leaves_no_lock(self):
        run, processes = self.start_lasting("lock_build; leaves() { setsid sleep 60 & "
                                            'echo $! >"$build/a.begun"; }; step a leaves', 1)
        run.wait(timeout=5)
        self.assertIn("mine", self.run_steps("lock_build; echo mine"))
        self.assertEqual(len(processes), 1)
        os.kill(processes[0], signal.SIGKILL)
        run.communicate()

    def test_many(self):
        said = self.run_steps("for i in {1..60}; do aside $i true; done; summary")
        self.has(said, "60 passed, 0 failed")


class Names(Steps):
    LISTS = """
need() { echo "need: $*"; }; build_names_of_tests() { true; }; run_c_tests() { echo run; }
rust_tests() { true; }
some_needs=some other_needs=other
test_steps() { on some_needs step 'step one' true; step two true; }
more_steps() { on other_needs aside three false; }
full_steps() { on other_needs step 'step four' true; }
"""

    def test_a_file_is_its_test(self):
        said = self.run_steps("for name in test_model_edit tests/behaviour/test_model_edit.c wire.c "
                              "bindings/x/tests/io.rs model.edit 'a/b c'; do test_name \"$name\"; done")
        self.assertEqual(said.splitlines(),
                         ["model_edit", "behaviour.model_edit", "wire", "io", "model.edit", "a/b c"])

    def test_what_is_needed_is_what_runs(self):
        self.plant("debug", x_one="true")
        said = self.run_steps(self.LISTS + "run_named one; summary")
        self.has(said, "need: some\n", "C tests: one", "step one")
        self.lacks(said, "other", "two", "three", "four")
        said = self.run_steps(self.LISTS + "run_named four; summary")
        self.has(said, "need: other\n", "step four")
        self.lacks(said, "some", "one")
        said = self.run_steps(self.LISTS + "run_lists test_steps more_steps; summary")
        self.has(said, "need: some other\n", "FAILED      0 s     0 s of CPU  three")
        self.lacks(said, "four")

    def test_an_unknown_name_fails_beside_the_others(self):
        self.plant("debug", x_one="true")
        said = self.run_steps(self.LISTS + "run_named nosuch two; summary")
        self.has(said, "nothing is named like 'nosuch'", "two", "1 passed, 1 failed")

    def test_names_are_literal(self):
        self.plant("debug", x_one="true")
        said = self.run_steps(self.LISTS + "run_named x.o 'x*o' 'one|two' '[o]ne'; summary")
        self.has(said, "C tests: x.o", "1 passed, 3 failed")
        self.has(self.run_steps(self.LISTS + "run_named .one xXone; summary"), "1 passed, 1 failed")

    def test_no_names_of_tests(self):
        said = self.run_steps(self.LISTS + "build_names_of_tests() { told false x; }; run_named x.one two; summary")
        self.has(said, "FAILED", "build: names of tests", "alone:   false x", "1 passed, 1 failed")
        self.lacks(said, "nothing is named")

    def test_rust(self):
        files = {
            "a/src/lib.rs": "#[test]\nfn plain_a() {\n}\n",
            "a/src/shape.rs": "mod tests {\n    #[test]\n    #[ignore]\n    fn inner() {\n}\n",
            "b/src/deep/main.rs": "#[test]\nfn of_b() {\n",
            "b/tests/whole.rs": "proptest! {\n    #[test]\n    fn indented(calls in x()) {\n}\n"
                                "fn no_test() {}\n"}
        for name, text in files.items():
            path = self.folder / "bindings" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        said = self.run_steps('cd "$1"; for name in plain shape inner of_b indented whole no_test n.d; do '
                              'echo "$name: $(rust_tests "$name")"; done')
        self.assertEqual(said.splitlines(), [
            "plain: a --lib plain", "shape: a --lib shape", "inner: a --lib inner", "of_b: b --bins of_b",
            "indented: b --test=whole indented", "whole: b --test=whole", "no_test: ", "n.d: "])


class Skips(Steps):
    def test_what_cannot_be_had(self):
        said = self.run_steps("""build_no() { echo skipped: no network; return 77; }
            step a true; on no step one false; on no aside two false; summary""")
        self.has(said, "skipped     0 s     0 s of CPU  build: no", "    1  no network", "1 passed, 0 failed")

    def test_each_reason_once_with_how_often(self):
        def cmocka(*words):
            return "printf '[ RUN      ] c\\n%s[  SKIPPED ] c\\n' " + "'" + "\n".join([*words, ""]) + "'"
        self.plant("debug", a_one=cmocka("skipped: 5 MiB are free"), a_two=cmocka("skipped: 17 MiB are free"),
                   a_three=cmocka("no words"), a_four="echo skipped: no device; exit 77", a_five="exit 77",
                   a_six="echo passed")
        said = self.run_steps("step tests run_ctest debug; step more echo skipped: no device; summary")
        self.assertRegex(said, "(?m)^    2  (5|17) MiB are free$") # as the tests end
        self.has(said, "    1  a.three: c does not say why", "    2  no device", "    1  a.five does not say why")
        self.lacks(said, "5 MiB" if "17 MiB" in said else "17 MiB", "a.six")


class Releases(Steps):
    """Of "./dev release --dry-run" all is planted but the order of its steps."""
    LISTS = """
. tests/steps/release.sh
need() { true; }; make_python() { true; }; find_cuda_headers() { true; }
build_needs= python_needs=; released_version() { echo 1.2.3; }
check_release() { echo 'not committed: ?? new.c' >&2; false; }
release_steps() { step 'packs' pack; step 'sums' sum_release; }
pack() { mkdir -p "$build/dist"; for file in $(released_files); do echo 1 >"$build/dist/$file"; done; }
"""

    def test_nothing_is_made_of_what_is_refused(self):
        said = self.run_steps(self.LISTS + "release --dry-run; echo after")
        self.has(said, "FAILED", "not committed: ?? new.c", "0 passed, 1 failed")
        self.lacks(said, "packs", "What a person does", "after")

    def test_what_was_not_made_is_named(self):
        accepted = self.LISTS + "check_release() { echo 1.2.3; echo first second; }\n"
        said = self.run_steps(accepted + "release --dry-run")
        self.has(said, "3 passed, 0 failed", "What a person does", "one by one: first second",
                 "syncblob-1.2.3.tar.gz", "SHA256SUMS")
        said = self.run_steps(accepted + """both() { pack; rm "$build/dist/second-1.2.3.crate"; }
            release_steps() { step 'packs' both; step 'sums' sum_release; }; release --dry-run""")
        self.has(said, "error: a release has second-1.2.3.crate, which no step made", "1 failed")
        self.lacks(said, "What a person does")


if __name__ == "__main__":
    unittest.main()
