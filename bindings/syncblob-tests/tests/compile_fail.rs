//! Every way to hold a slice that would be stale or aliased, and every way
//! around what a type promises, does not compile: `//~ E0502` in a file says
//! which error its line must give. Compilers differ in words, not in these.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

/// Lines and the codes of their errors.
type Errors = BTreeSet<(usize, String)>;

fn expected(source: &str) -> Errors {
    let marked = source
        .lines()
        .enumerate()
        .filter_map(|(i, line)| Some((i + 1, line.split_once("//~ ")?.1)));
    marked.flat_map(|(line, codes)| codes.split(' ').map(move |code| (line, code.into()))).collect()
}

/// From what the compiler wrote: `error[E0502]: ...`, then ` --> file:line:column`.
fn found(written: &str) -> Errors {
    let mut lines = written.lines();
    let mut errors = Errors::new();
    while let Some(line) = lines.next() {
        let Some(code) = line.strip_prefix("error[") else { continue };
        let code = code.split(']').next().unwrap_or_default();
        let place =
            lines.find_map(|line| line.trim_start().strip_prefix("--> ")).unwrap_or_default();
        let number = place.rsplit(':').nth(1).and_then(|number| number.parse().ok());
        errors.insert((number.unwrap_or(0), code.into()));
    }
    errors
}

#[test]
fn what_would_be_unsound_does_not_compile() {
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let _ = fs::remove_dir_all(&copies);
    fs::create_dir_all(&copies).unwrap();
    let files = fs::read_dir("tests/compile_fail").unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.collect();
    assert!(files.len() > 5, "{files:?}");
    for file in &files {
        fs::copy(file, copies.join(file.file_name().unwrap())).unwrap();
    }
    // Each must fail to compile; what the compiler says is written beside the copy.
    env::set_var("TRYBUILD", "overwrite");
    {
        let cases = trybuild::TestCases::new();
        cases.compile_fail(copies.join("*.rs"));
    } // runs them
    for file in &files {
        let copy = copies.join(file.file_name().unwrap());
        let written = fs::read_to_string(copy.with_extension("stderr")).unwrap();
        let expected = expected(&fs::read_to_string(file).unwrap());
        assert!(!expected.is_empty(), "{}", file.display());
        assert_eq!(found(&written), expected, "{}:\n{written}", file.display());
    }
}
