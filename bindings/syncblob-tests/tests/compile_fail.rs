//! Tests that the compiler refuses the marked lines of the files in `compile_fail`.
//!
//! The test compares only the codes of errors, such as `E0502` in the mark `//~ E0502`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

type Errors = BTreeSet<(usize, String)>;

fn expected(source: &str) -> Errors {
    let marked = source
        .lines()
        .enumerate()
        .filter_map(|(i, line)| Some((i + 1, line.split_once("//~ ")?.1)));
    marked.flat_map(|(line, codes)| codes.split(' ').map(move |code| (line, code.into()))).collect()
}

/// Parses lines such as `file.rs:12:5: error[E0502]: ...`.
fn found(written: &str) -> Errors {
    let parse = |line: &str| {
        let (place, code) = line.split_once(": error[")?;
        let number = place.rsplit(':').nth(1)?.parse().ok()?;
        Some((number, code.split(']').next()?.to_owned()))
    };
    written.lines().filter_map(parse).collect()
}

fn check(file: &Path, library: &Path) -> (bool, String) {
    let ran = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2021", "--crate-type=bin", "--emit=metadata", "--error-format=short"])
        .arg("--out-dir")
        .arg(env!("CARGO_TARGET_TMPDIR"))
        .arg("-L")
        .arg(format!("dependency={}", library.parent().unwrap().display()))
        .arg("--extern")
        .arg(format!("syncblob={}", library.display()))
        .arg(file)
        .output()
        .unwrap();
    (ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// Returns the build of the crate that has all features: only with it does `works` compile.
fn library(works: &Path) -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    let mut kept: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("libsyncblob-") && name.ends_with(".rlib")
        })
        .collect();
    kept.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let mut messages = String::new();
    for library in kept.into_iter().rev() {
        let (compiles, written) = check(works, &library);
        if compiles {
            return library;
        }
        messages += &written;
    }
    panic!("no library compiles {}:\n{messages}", works.display());
}

#[test]
fn code_that_the_types_forbid_does_not_compile() {
    let folder = Path::new("tests/compile_fail");
    let library = library(&folder.join("works.rs"));
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let expected = expected(&fs::read_to_string(&file).unwrap());
        let (compiles, written) = check(&file, &library);
        assert_eq!(compiles, expected.is_empty(), "{}:\n{written}", file.display());
        assert_eq!(found(&written), expected, "{}:\n{written}", file.display());
    }
}
