#!/usr/bin/env python3
"""The checks of this folder find what they are for: a small library that passes them all is built
again with one thing wrong, and the check says what.

    selftest.py [CC]
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import check_baseline
import check_exports
import check_hardening
import check_layouts
import declarations

CC = sys.argv.pop() if len(sys.argv) > 1 else "cc"
BASE = """
#include <stddef.h>
#define SB_API __attribute__((visibility("default")))
#define SB_VERSION_MAJOR 0
#define SB_VERSION_MINOR 1
"""
THING = """
#include <syncblob/base.h>
typedef struct sb_thing sb_thing;
typedef struct sb_size { size_t rows; size_t columns; } sb_size;
SB_API sb_thing *sb_thing_create(const sb_size *size);
SB_API size_t sb_thing_area(const sb_thing *thing, int unit);
#ifdef SB_EXPERIMENTAL
SB_API size_t sb_thing_guess(int from);
#endif
"""
BACKEND = """
#include <syncblob/base.h>
SB_API int sb_backend_fail(int status);
"""
PRIVATE = """
#include <syncblob/thing.h>
struct sb_thing { sb_size size; };
"""
SOURCE = """
#define SB_EXPERIMENTAL
#include <syncblob/backend.h>
#include "thing.h"
#include <stdlib.h>
#include <string.h>
sb_thing *sb_thing_create(const sb_size *size) {
    sb_thing *thing = malloc(sizeof *thing);
    if (thing) memcpy(&thing->size, size, sizeof *size);
    return thing;
}
size_t sb_thing_area(const sb_thing *thing, int unit) {
    return thing->size.rows * thing->size.columns * (size_t)unit;
}
size_t sb_thing_guess(int from) {
    char text[32];
    memcpy(text, "guess", (size_t)from);
    return strlen(text);
}
int sb_backend_fail(int status) { return status; }
"""
CALLER = """
#include <syncblob/thing.h>
size_t sb__thing_double_area(const sb_thing *thing) { return sb_thing_area(thing, 2); }
"""
MAP = """
SYNCBLOB_0.1 {
global:
    sb_thing_area;
    sb_thing_create;
local:
    *;
};
SYNCBLOB_BACKEND_0.1 {
global:
    sb_backend_fail;
};
SYNCBLOB_EXPERIMENTAL_0.1 {
global:
    sb_thing_guess;
};
"""
FILES = {"include/syncblob/base.h": BASE, "include/syncblob/thing.h": THING,
         "include/syncblob/backend.h": BACKEND, "c/src/thing.h": PRIVATE,
         "c/src/caller.c": CALLER, "c/src/thing.c": SOURCE, "thing.map": MAP}
HARD = ["-O2", "-fPIC", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
LINK = ["-Wl,-z,relro,-z,now,-z,noexecstack"]
IS_X86_64 = os.uname().machine == "x86_64"
if IS_X86_64:
    HARD.append("-fcf-protection=full")
    LINK.append("-Wl,-z,ibt,-z,shstk")


class Library(unittest.TestCase):
    """A folder with the sources, and the library that is made of them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.include = self.root / "include"
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.lstrip())

    def replace(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        self.assertEqual(text.count(old), 1, old)
        path.write_text(text.replace(old, new))

    def compiler(self, *arguments):
        subprocess.run([CC, *map(str, arguments)], check=True, cwd=self.root)

    def build(self, flags=(), link=(), soname="libsyncblob.so.0.1", version_script="thing.map"):
        out = self.root / "libsyncblob.so"
        self.compiler("-g", f"-I{self.include}", *HARD, *flags, "-shared", "c/src/caller.c",
                      "c/src/thing.c", "-o", out, f"-Wl,-soname,{soname}", *LINK, *link,
                      *([f"-Wl,--version-script={version_script}"] if version_script else []))
        return out


class Exports(Library):
    def complaints(self, **how):
        library = self.build(**how)
        return "\n".join(check_exports.check(CC, self.include, self.root / "thing.map", library))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.complaints(), "")

    def test_a_function_of_the_headers_that_is_not_exported(self):
        self.replace("thing.map", "    sb_thing_area;\n", "")
        self.assertIn("sb_thing_area is stable in the headers, but not in the library",
                      self.complaints())

    def test_an_exported_function_that_is_in_no_header(self):
        self.replace("thing.map", "    sb_thing_area;\n",
                     "    sb_thing_area;\n    sb_thing_burn;\n")
        self.replace("c/src/thing.c", "int sb_backend_fail",
                     "SB_API void sb_thing_burn(void) {}\nint sb_backend_fail")
        self.assertIn("sb_thing_burn is stable in the library, but not in the headers",
                      self.complaints())

    def test_an_export_that_no_version_script_names(self):
        self.assertIn("the library has no version, which is no tier's",
                      self.complaints(version_script=None))

    def test_a_function_in_the_version_of_another_tier(self):
        self.replace("thing.map", "    sb_thing_guess;\n", "    sb_thing_area;\n")
        self.replace("thing.map", "global:\n    sb_thing_area;\n    sb_thing_create;\n",
                     "global:\n    sb_thing_create;\n    sb_thing_guess;\n")
        self.assertIn("sb_thing_guess is experimental in the headers", self.complaints())

    def test_an_order_that_is_not_sorted(self):
        self.replace("thing.map", "    sb_thing_area;\n    sb_thing_create;\n",
                     "    sb_thing_create;\n    sb_thing_area;\n")
        self.assertIn("sb_thing_area comes after sb_thing_create", self.complaints())

    def test_a_backend_version_of_another_minor(self):
        self.replace("include/syncblob/base.h", "SB_VERSION_MINOR 1", "SB_VERSION_MINOR 2")
        self.assertIn("SYNCBLOB_BACKEND_0.1, which is no tier's", self.complaints())

    def set_version(self, major, minor, *tiers):
        """In the header, and in the nodes of these tiers."""
        self.replace("include/syncblob/base.h", "MAJOR 0", f"MAJOR {major}")
        self.replace("include/syncblob/base.h", "MINOR 1", f"MINOR {minor}")
        for tier in tiers:
            self.replace("thing.map", f"SYNCBLOB{tier}_0.1", f"SYNCBLOB{tier}_{major}.{minor}")

    def test_every_node_changes_with_the_number(self):
        self.set_version(0, 2, "_BACKEND", "_EXPERIMENTAL")
        self.assertIn("SYNCBLOB_0.1, which is no tier's of version 0.2",
                      self.complaints(soname="libsyncblob.so.0.2"))
        self.replace("thing.map", "SYNCBLOB_0.1", "SYNCBLOB_0.2")
        self.assertEqual(self.complaints(soname="libsyncblob.so.0.2"), "")

    def test_from_1_on_what_a_minor_version_adds_has_a_node_of_its_own(self):
        self.set_version(1, 1, "_BACKEND", "_EXPERIMENTAL")
        self.replace("thing.map", "    sb_thing_area;\n", "")
        self.replace("thing.map", "SYNCBLOB_0.1", "SYNCBLOB_1.0")
        self.replace("thing.map", "SYNCBLOB_BACKEND_1.1",
                     "SYNCBLOB_1.2 { global: sb_thing_area; } SYNCBLOB_1.0;\nSYNCBLOB_BACKEND_1.1")
        self.assertIn("SYNCBLOB_1.2, which is no tier's of version 1.1", self.complaints())
        self.replace("thing.map", "SYNCBLOB_1.2", "SYNCBLOB_1.1")
        self.assertEqual(self.complaints(soname="libsyncblob.so.1"), "")

    def test_a_deprecated_function_is_still_one(self):
        self.replace("include/syncblob/thing.h", "SB_API size_t sb_thing_area",
                     'SB_API __attribute__((deprecated("use none"))) size_t sb_thing_area')
        self.assertEqual(self.complaints(flags=["-Wno-deprecated-declarations"]), "")

    def test_another_soname(self):
        for other in ("libblob.so.0.1", "libsyncblob.so.0", "libsyncblob.so.0.2"):
            self.assertIn(f"the SONAME is {other}, not libsyncblob.so.0.1",
                          self.complaints(soname=other))

    def test_from_1_on_the_soname_has_the_major_version_alone(self):
        self.replace("include/syncblob/base.h", "SB_VERSION_MAJOR 0", "SB_VERSION_MAJOR 1")
        self.assertEqual(declarations.soname(self.include), "libsyncblob.so.1")


class Baseline(Library):
    def setUp(self):
        super().setUp()
        self.baseline = self.root / "libsyncblob-x86_64.abi"
        library = self.build()
        reason = check_baseline.why_not(library, self.baseline)
        if reason:
            self.skipTest(reason)
        self.baseline.write_text(self.record())

    def record(self, **how):
        return check_baseline.record(CC, self.include, self.build(**how))

    def report(self, **how):
        return check_baseline.difference(self.baseline, self.record(**how))

    def add_function(self):
        self.replace("include/syncblob/thing.h", "SB_API size_t sb_thing_area",
                     "SB_API void sb_thing_burn(void);\nSB_API size_t sb_thing_area")
        self.replace("c/src/thing.c", "int sb_backend_fail",
                     "void sb_thing_burn(void) {}\nint sb_backend_fail")
        self.replace("thing.map", "    sb_thing_area;\n",
                     "    sb_thing_area;\n    sb_thing_burn;\n")

    def test_the_same_library_however_it_is_compiled(self):
        self.assertEqual(self.report(), "")
        self.assertEqual(self.report(flags=["-O0", "-U_FORTIFY_SOURCE"]), "")

    def test_a_removed_function(self):
        self.replace("thing.map", "    sb_thing_area;\n", "")
        self.assertIn("1 Removed", self.report())

    def test_the_type_of_a_parameter(self):
        self.replace("include/syncblob/thing.h", "int unit", "long unit")
        self.replace("c/src/thing.c", "int unit", "long unit")
        self.assertIn("parameter 2 of type 'int' changed", self.report())

    def test_a_member_put_into_a_struct(self):
        self.replace("include/syncblob/thing.h", "size_t rows;", "size_t planes; size_t rows;")
        self.assertIn("planes", self.report())

    def test_a_member_put_at_the_end_of_a_struct(self):
        self.replace("include/syncblob/thing.h", "columns; }", "columns; size_t planes; }")
        self.assertIn("planes", self.report())

    def test_an_addition_that_is_not_recorded(self):
        self.add_function()
        self.assertIn("sb_thing_burn", self.report())

    def test_an_experimental_function_may_change(self):
        self.replace("include/syncblob/thing.h", "guess(int from)", "guess(long from)")
        self.replace("c/src/thing.c", "guess(int from)", "guess(long from)")
        self.assertEqual(self.report(), "")

    def test_an_opaque_struct_may_grow(self):
        self.replace("c/src/thing.h", "struct sb_thing { sb_size size; };",
                     "struct sb_thing { void *first; sb_size size; double more[9]; };")
        self.assertEqual(self.report(), "")

    def test_an_update_records_new_functions_and_wants_a_review_of_all_else(self):
        def update(reviewed):
            return check_baseline.update(self.baseline, self.record(), reviewed) == 0

        self.add_function()
        self.assertTrue(update(reviewed=False))
        self.assertEqual(self.report(), "")
        self.replace("thing.map", "    sb_thing_burn;\n", "")
        self.assertFalse(update(reviewed=False))
        self.assertIn("1 Removed", self.report())
        self.assertTrue(update(reviewed=True))
        self.assertEqual(self.report(), "")


class Layouts(Library):
    def test_structs_and_members_that_are_not_stated(self):
        self.replace("include/syncblob/thing.h", "size_t rows;",
                     "int (*fit)(int a, int b); struct sb_size *next, *last; char name[8];")
        structs = declarations.structs(CC, self.include)
        self.assertEqual(structs, {"sb_size": ["fit", "next", "last", "name", "columns"]})
        text = "STRUCT(sb_size, 16, 8);\nMEMBER(sb_size, next, 0, 8);\n"
        self.assertEqual(list(check_layouts.missing_layouts(structs, text)),
                         ["sb_size.fit", "sb_size.last", "sb_size.name", "sb_size.columns"])
        self.assertEqual(list(check_layouts.missing_layouts({"sb_size": []}, "")), ["sb_size"])
        self.replace("include/syncblob/thing.h", "char name[8];", "union { int a; long b; } u;")
        with self.assertRaisesRegex(ValueError, "sb_size has a part that is not understood"):
            declarations.structs(CC, self.include)


    def test_constants_that_are_not_stated(self):
        self.replace("include/syncblob/thing.h", "SB_API sb_thing *",
                     "enum { SB_RED = 1, SB_GREEN };\n#define SB_BLUE (-3)\nSB_API sb_thing *")
        constants = declarations.constants(CC, self.include)
        self.assertEqual(constants, {"SB_VERSION_MAJOR", "SB_VERSION_MINOR", "SB_RED", "SB_GREEN",
                                     "SB_BLUE"})
        self.assertEqual(check_layouts.missing_numbers(constants, "    ROW(SB_GREEN, 2),"),
                         ["SB_BLUE", "SB_RED"])

    def test_functions_that_no_test_gives_flags(self):
        self.replace("include/syncblob/thing.h", "sb_thing_area(const sb_thing *thing, int unit)",
                     "sb_thing_area(const sb_thing *thing,\n    uint32_t flags)")
        self.replace("include/syncblob/thing.h", "SB_API sb_thing *", "typedef void sb_take(int a,"
                     " uint32_t flags);\nSB_API sb_thing *")
        flagged = declarations.functions_with_flags(CC, self.include)
        self.assertEqual(flagged, {"sb_thing_area"})
        self.assertEqual(check_layouts.missing_flags(flagged, "ROW(sb_thing_area, SB_RED)"), [])
        self.assertEqual(check_layouts.missing_flags(flagged, "ROW(sb_other, SB_RED)"),
                         ["sb_thing_area"])


class Hardening(Library):
    def complaints(self, **how):
        return "\n".join(check_hardening.check_library(self.build(**how), [], fortified=True))

    def archive(self, *flags):
        self.compiler("-c", f"-I{self.include}", *HARD, *flags, "c/src/thing.c", "-o", "thing.o")
        out = self.root / "libsyncblob.a"
        subprocess.run(["ar", "rcs", out, self.root / "thing.o"], check=True)
        return "\n".join(check_hardening.check_archive(out, [], True))

    def program(self, *flags):
        source, out = self.root / "main.c", self.root / "main"
        source.write_text("int main(void) { return 0; }\n")
        self.compiler(*LINK, source, "-o", out, *flags)
        return "\n".join(check_hardening.check_program(out, [], True))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.complaints(), "")
        self.assertEqual(self.archive(), "")
        self.assertEqual(self.program("-fPIE", "-pie"), "")

    @unittest.skipUnless(IS_X86_64, "CET is a feature of x86_64")
    def test_code_of_another_compiler_that_is_marked(self):
        complaints = "\n".join(check_hardening.check_foreign(self.build(), [], True))
        self.assertIn("marked for IBT", complaints)
        self.assertNotIn("stack protector", complaints)

    def test_each_missing_flag_of_the_linker(self):
        for flag, complaint in (("-Wl,-z,norelro", "no RELRO"),
                                ("-Wl,-z,lazy", "resolved lazily"),
                                ("-Wl,-z,execstack", "stack is executable"),
                                ("-Wl,-rpath,/opt/lib", "has the folder '/opt/lib'"),
                                ("-Wl,-rpath,/lib:", "has the folder ''")):
            self.assertIn(complaint, self.complaints(link=[flag]))

    def test_each_missing_flag_of_the_compiler(self):
        for flag, complaint in (("-fno-stack-protector", "no stack protector"),
                                ("-U_FORTIFY_SOURCE", "_FORTIFY_SOURCE")):
            self.assertIn(complaint, self.complaints(flags=[flag]))
            self.assertIn(complaint, self.archive(flag))

    def commands(self, *flags, target="syncblob_objects"):
        out = self.root / "compile_commands.json"
        out.write_text(json.dumps([{"file": file, "command": shlex.join(
            ["cc", *HARD, *more, "-o", f"c/CMakeFiles/{target}.dir/{file}.o", "-c", file])}
            for file, more in (("blob.c", ()), ("shape.c", flags))]))
        return list(check_hardening.check_commands(out, [], True))

    def test_one_object_that_is_compiled_without_a_flag(self):
        self.assertEqual(self.commands(), [])
        for flag in ("-fno-stack-protector", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0"):
            complaint, = self.commands(flag)
            self.assertIn("shape.c is compiled without", complaint)
        self.assertEqual(self.commands(target="others"), ["it has no object of the library"])

    def test_a_program_at_a_fixed_address(self):
        self.assertIn("fixed address", self.program("-fno-pie", "-no-pie"))

    @unittest.skipUnless(IS_X86_64, "code for x86_64")
    def test_text_relocations(self):
        self.assertIn("text relocations", self.complaints(
            flags=["-fno-pic", "-mcmodel=large"], link=["-Wl,-z,notext"]))

    @unittest.skipUnless(IS_X86_64, "CET is a feature of x86_64")
    def test_code_without_cet(self):
        self.assertIn("not compiled for IBT", self.archive("-fcf-protection=none"))
        self.assertIn("not compiled for SHSTK", self.archive("-fcf-protection=branch"))
        global LINK
        kept, LINK = LINK, LINK[:1]
        try:
            self.assertIn("not marked for SHSTK", self.complaints(flags=["-fcf-protection=none"]))
        finally:
            LINK = kept


if __name__ == "__main__":
    unittest.main()
