//! Tests `syncblob info` as users run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use syncblob::{Blob, Format, Model, Payload, SolverInfo};
use tempfile::TempDir;

fn syncblob(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_syncblob");
    Command::new(program).args(arguments).output().expect("the program runs")
}

fn info(options: &[&str], files: &[&Path]) -> (i32, String, String) {
    let files = files.iter().map(|file| file.to_str().unwrap());
    let arguments: Vec<_> =
        ["info"].into_iter().chain(options.iter().copied()).chain(files).collect();
    let output = syncblob(&arguments);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn json(file: &Path) -> Value {
    let (status, out, err) = info(&["--json"], &[file]);
    assert_eq!((status, err.as_str(), out.lines().count()), (0, "", 1));
    serde_json::from_str(&out).unwrap()
}

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn mean(&self) -> PathBuf {
        let blob = Blob::<f32>::from_slice([1, 2], &[-1.0, 3.0]).unwrap();
        self.write("mean.binaryproto", &blob.to_proto(Payload::Data).unwrap())
    }

    fn net(&self, name: &str) -> PathBuf {
        let mut model = Model::create(Format::Caffemodel).unwrap();
        model.set_name(name).unwrap();
        model.add_layer("data", "Input").unwrap();
        let ip = model.add_layer(name, "InnerProduct").unwrap();
        let mut weights = Blob::<f64>::from_slice([2], &[0.5, f64::NAN]).unwrap();
        weights.diff_mut().unwrap().fill(f64::INFINITY);
        model.add_blob(ip, &weights, Payload::DataAndDiff).unwrap();
        model.add_blob(ip, &Blob::<f32>::zeros([0, 3]).unwrap(), Payload::Data).unwrap();
        model.save(self.path("net.caffemodel")).unwrap();
        self.path("net.caffemodel")
    }

    fn solver_state(&self) -> PathBuf {
        let mut model = Model::create(Format::Solverstate).unwrap();
        let learned_net = "n.model";
        let info = SolverInfo::new(4000).current_step(2).learned_net(learned_net);
        model.set_solver_info(&info).unwrap();
        model.add_blob(None, &Blob::<f32>::zeros([2]).unwrap(), Payload::Data).unwrap();
        model.save(self.path("n.solverstate")).unwrap();
        self.path("n.solverstate")
    }

    /// The blob has one value but 4 elements. Commands can list, but not load, the blob.
    fn short(&self) -> PathBuf {
        self.write("short.binaryproto", b"\x3a\x02\x08\x04\x2a\x04\0\0\0\0")
    }
}

#[test]
fn json_describes_a_net() {
    let files = Files::new();
    let net = json(&files.net("tiny"));
    assert_eq!(
        (&net["schema"], &net["format"], &net["name"]),
        (&1.into(), &"caffemodel".into(), &"tiny".into())
    );
    assert_eq!(net["layers"][0], serde_json::json!({"name": "data", "type": "Input", "blobs": []}));
    let blobs = &net["layers"][1]["blobs"];
    let (weights, empty) = (&blobs[0], &blobs[1]);
    assert_eq!((&weights["shape"], &weights["dtype"]), (&serde_json::json!([2]), &"f64".into()));
    let data = &weights["data"];
    assert_eq!(
        (&data["sum"], &data["sumsq"], &data["nonfinite"]),
        (&0.5.into(), &0.25.into(), &1.into())
    );
    assert_eq!((&data["min"], &data["max"]), (&0.5.into(), &0.5.into()));
    let diff = &weights["diff"];
    assert_eq!(
        (&diff["sum"], &diff["min"], &diff["nonfinite"]),
        (&0.0.into(), &Value::Null, &2.into())
    );
    let nothing = serde_json::json!(
        {"shape": [0, 3], "count": 0, "dtype": "f32", "data": null, "diff": null});
    assert_eq!(*empty, nothing);
}

#[test]
fn json_has_only_the_keys_of_the_format() {
    let files = Files::new();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json(&files.mean())), ["blob", "file", "format", "schema"]);
    assert_eq!(keys(&json(&files.net("n"))), ["file", "format", "layers", "name", "net", "schema"]);
    assert_eq!(
        keys(&json(&files.solver_state())),
        ["current_step", "file", "format", "history", "iter", "learned_net", "schema"]
    );
}

#[test]
fn a_solver_state_has_the_name_of_its_net() {
    let files = Files::new();
    let state = files.solver_state();
    let found = json(&state);
    assert_eq!((&found["iter"], &found["current_step"]), (&4000.into(), &2.into()));
    assert_eq!(
        (&found["learned_net"], &found["history"][0]["count"]),
        (&"n.model".into(), &2.into())
    );
    let (_, out, _) = info(&[], &[&state]);
    assert!(out.contains("solverstate, iteration 4000, step 2, net \"n.model\", 1 blob"), "{out}");
}

/// The digests are SHA-256 of 00 3c 00 c0 and of 03 00 00 00 ff ff ff ff, computed by sha256sum.
#[test]
fn raw_values_are_shown_as_they_are_stored() {
    let files = Files::new();
    let raw = files.write(
        "raw.binaryproto",
        b"\x3a\x03\x0a\x01\x02\x50\x02\x62\x04\x00\x3c\x00\xc0\
          \x58\x03\x6a\x08\x03\0\0\0\xff\xff\xff\xff",
    );
    let blob = &json(&raw)["blob"];
    assert_eq!((&blob["dtype"], &blob["count"]), (&"f16".into(), &2.into()));
    assert_eq!(
        (&blob["data"]["sum"], &blob["diff"]["sum"]),
        (&Value::from(-1.0), &Value::from(2.0))
    );
    let halves = "0c82e2008d4b1c37a2604f1dee0db584daf39b6ab140aaa834d3eac1df0b9458";
    let ints = "b8f6377ebbd47404c77f3e879018eb5d2315f5ab088525064ac64ac858617064";
    assert_eq!((&blob["data"]["sha256"], &blob["diff"]["sha256"]), (&halves.into(), &ints.into()));
    let (_, out, _) = info(&[], &[&raw]);
    assert!(out.contains(" f16 "), "{out}");
}

#[test]
fn the_table_has_a_row_for_each_layer_and_blob() {
    let files = Files::new();
    let (status, out, err) = info(&[], &[&files.net("tiny"), &files.mean()]);
    assert_eq!((status, err.as_str()), (0, ""));
    for part in
        ["caffemodel, \"tiny\", 2 layers, 2 blobs", "Input", "0 diff", "0x3", "1x2", "not finite"]
    {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
}

#[test]
fn a_bad_file_is_reported_and_does_not_stop_the_others() {
    let files = Files::new();
    let (rubbish, missing) = (files.write("rubbish", b"\xff\xff\xff"), files.path("missing"));
    let cases = [
        (&rubbish, "SB_ERR_MALFORMED", "offset"),
        (&files.short(), "SB_ERR_LENGTH_MISMATCH", "offset"),
        (&missing, "SB_ERR_IO", "No such file"),
        (&files.dir.path().to_path_buf(), "SB_ERR_IO", "directory"),
    ];
    for options in [&["--json"][..], &[]] {
        for (bad, status_name, part) in &cases {
            let (status, out, err) = info(options, &[bad]);
            assert_eq!((status, out.as_str(), err.lines().count()), (1, "", 1), "{err}");
            for part in [bad.to_str().unwrap(), status_name, part] {
                assert!(err.contains(part), "{part} is not in {err}");
            }
        }
        let alone = info(options, &[&files.mean()]);
        let (status, out, err) = info(options, &[&rubbish, &files.mean(), &missing]);
        assert_eq!((status, out, err.lines().count()), (1, alone.1, 2));
    }
}

#[test]
fn the_option_as_replaces_the_detection() {
    let files = Files::new();
    let mean = files.mean();
    let (status, out, _) = info(&["--json", "--as", "blob"], &[&mean]);
    assert_eq!((status, out), (0, info(&["--json"], &[&mean]).1));
    // A plain protobuf parser would accept a net as a solver's state.
    let (status, out, err) = info(&["--json", "--as", "solverstate"], &[&files.net("n")]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("SB_ERR_MALFORMED"), "{err}");
}

#[cfg(unix)]
fn info_into_nothing(
    file: &Path,
    redirect: fn(&mut Command, std::process::Stdio) -> &mut Command,
) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    redirect(program.arg("info").arg(file), full.into()).output().expect("the program runs")
}

#[cfg(unix)]
#[test]
fn streams_that_cannot_be_written_are_status_1() {
    let files = Files::new();
    let to_stdout = info_into_nothing(&files.mean(), Command::stdout);
    assert_eq!(to_stdout.status.code(), Some(1));
    assert!(String::from_utf8(to_stdout.stderr).unwrap().contains("standard output"));
    let to_stderr = info_into_nothing(&files.path("missing"), Command::stderr);
    assert_eq!((to_stderr.status.code(), to_stderr.stdout.len()), (Some(1), 0));
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf8_is_accepted() {
    use std::os::unix::ffi::OsStrExt;
    let files = Files::new();
    let path = files.dir.path().join(std::ffi::OsStr::from_bytes(b"m\xffean"));
    fs::copy(files.mean(), &path).unwrap();
    for option in ["--json", "--as=blob"] {
        let program = env!("CARGO_BIN_EXE_syncblob");
        let output = Command::new(program).args(["info", option]).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("m\u{fffd}ean"));
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in [
        &[][..],
        &["info"],
        &["info", "--as", "zip", "x"],
        &["inform", "x"],
        &["info", "--xml", "x"],
    ] {
        let output = syncblob(arguments);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(2), &b""[..]),
            "{arguments:?}"
        );
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn help_has_examples_and_is_status_0() {
    let output = syncblob(&["info", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("syncblob info --json"));
}

#[cfg(unix)]
#[test]
fn a_hostile_name_cannot_reach_the_terminal() {
    let files = Files::new();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\n\u{202e}x";
    let path = files.path("\u{1b}[31mred");
    fs::rename(files.net(hostile), &path).unwrap();
    for options in [&["--json"][..], &[]] {
        let (status, out, _) = info(options, &[&path]);
        assert_eq!(status, 0);
        let unsafe_one = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(unsafe_one), "{out:?}");
    }
    assert_eq!(json(&path)["name"], hostile);
    let (_, _, err) = info(&[], &[&files.path("\u{1b}[31mnone")]);
    assert!(!err.contains('\u{1b}') && err.contains("31mnone"), "{err:?}");
}
