//! Tests archives of NumPy arrays.

mod program;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use program::{command, json_lines, run, Files};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn archive(path: &Path, names: &[&str], write: impl Fn(&mut dyn Write)) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for name in names {
        archive.start_file(*name, options).unwrap();
        write(&mut archive);
    }
    archive.finish().unwrap();
}

fn header(out: &mut dyn Write, descr: &str, shape: &str, fortran: bool) {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}}}\n");
    out.write_all(b"\x93NUMPY\x01\0").unwrap();
    out.write_all(&u16::try_from(text.len()).unwrap().to_le_bytes()).unwrap();
    out.write_all(text.as_bytes()).unwrap();
}

/// Commands read this array in several parts. `others` lists offsets and the values at the offsets.
fn large(files: &Files, name: &str, others: &[(usize, f32)]) -> PathBuf {
    let mut values: Vec<f32> = (0..2_700_000).map(|n| (n % 7) as f32).collect();
    for &(at, value) in others {
        values[at] = value;
    }
    archive(&files.path(name), &["w.0.npy"], |out| {
        header(out, "<f4", "(3, 900000)", false);
        for values in values.chunks(10_000) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            out.write_all(&bytes).unwrap();
        }
    });
    files.path(name)
}

#[test]
fn values_in_every_part_have_the_correct_indices() {
    let files = Files::new();
    let a = large(&files, "a.npz", &[(2_000_001, f32::NAN), (2_699_999, 99.5), (5, -50.0)]);
    let (status, out, _) = run(command("verify", &["--json"], &[&a]));
    let findings = json_lines(&out);
    assert_eq!((status, findings.len()), (1, 1), "{out}");
    assert_eq!(findings[0]["kind"], "nan");
    assert_eq!(findings[0]["at"], serde_json::json!([2, 200_001]));

    let (status, out, err) = run(command("show", &[], &[&a]));
    assert_eq!((status, err.as_str()), (0, ""));
    let largest = "largest: 99.50000 at [2, 899999], -50.00000 at [0, 5], 6.000000 at [0, 6]";
    assert!(out.contains("1 not finite") && out.contains(largest), "{out}");

    let b = large(
        &files,
        "b.npz",
        &[(2_000_001, f32::NAN), (2_699_999, 99.5), (5, -50.0), (1_500_000, 8.0)],
    );
    let (status, out, _) = run(command("diff", &["--json"], &[&a, &b]));
    let lines = json_lines(&out);
    assert_eq!((status, lines.len()), (1, 2), "{out}");
    assert_eq!(lines[0]["at"], serde_json::json!([1, 600_000]));
    assert_eq!((&lines[0]["differing"], &lines[0]["count"]), (&1.into(), &2_700_000.into()));
}

#[test]
fn parts_are_compared_with_a_blob_that_is_loaded_as_a_whole() {
    let files = Files::new();
    let a = large(&files, "a.npz", &[(2_000_001, 8.5)]);
    let (whole, between) = (files.path("a.caffemodel"), files.path("a.safetensors"));
    for out in [&whole, &between] {
        let (status, _, err) = run(command("convert", &[], &[&a, out]));
        assert_eq!((status, err.as_str()), (0, ""));
    }
    let (status, out, _) = run(command("diff", &[], &[&between, &a]));
    assert!(status == 0 && out.contains("2,700,000 values"), "{out}");
    for pair in [[&a, &whole], [&whole, &a]] {
        let (_, out, _) = run(command("diff", &["--json"], &pair.map(PathBuf::as_path)));
        let kinds: Vec<_> = json_lines(&out).iter().map(|line| line["kind"].clone()).collect();
        assert!(!kinds.contains(&"values".into()), "{out}");
    }
}

#[test]
fn a_damaged_part_is_a_finding() {
    let files = Files::new();
    let good = large(&files, "a.npz", &[]);
    let mut bytes = std::fs::read(&good).unwrap();
    let directory = bytes.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    let local = 14; // the first member's checksum, with a copy at `directory + 16`
    for at in [local, directory + 16] {
        bytes[at] ^= 1;
    }
    let bad = files.write("bad.npz", &bytes);
    let (status, out, _) = run(command("verify", &[], &[&bad]));
    assert!(status == 1 && out.contains("checksum") && out.lines().count() == 1, "{out}");
    for arguments in [command("show", &[], &[&bad]), command("diff", &[], &[&good, &bad])] {
        let (status, _, err) = run(arguments);
        assert!(status != 0 && err.contains("bad.npz") && err.contains("checksum"), "{err}");
    }
}

/// Names that would be unpacked outside the chosen folder, or that would control a terminal.
const NAMES: [&str; 6] = ["../../a", "/abs", "a/../../b", "..\\a", "C:a", "\u{1b}[2Ja"];

fn safetensors(files: &Files, name: &str) -> PathBuf {
    let header = serde_json::json!({
        name: { "dtype": "F32", "shape": [1], "data_offsets": [0, 4] },
    });
    let header = header.to_string();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]];
    files.write("odd.safetensors", &bytes.concat())
}

#[test]
fn unsafe_names_are_not_written_into_an_archive() {
    let files = Files::new();
    for name in NAMES.iter().chain(&["a\0b"]) {
        let (from, out) = (safetensors(&files, name), files.path("out.npz"));
        for options in [&[][..], &["--dry-run"]] {
            let (status, printed, err) = run(command("convert", options, &[&from, &out]));
            assert!(status == 1 && printed.is_empty(), "{name:?}: {err}");
            assert!(err.contains(".safetensors file can have it"), "{err}");
            assert!(!out.exists());
        }
        let (status, ..) = run(command("convert", &["-f"], &[&from, &files.path("b.safetensors")]));
        assert_eq!(status, 0);
    }
    for name in ["conv1/7x7_s2.0", "a..b", "#3.0"] {
        let (from, out) = (safetensors(&files, name), files.path("out.npz"));
        let (status, _, err) = run(command("convert", &["-f"], &[&from, &out]));
        assert_eq!((status, err.as_str()), (0, ""), "{name}");
        let (status, out, _) = run(command("verify", &[], &[&out]));
        assert!(status == 0, "{name}: {out}");
    }
}

#[test]
fn names_that_are_too_long_for_an_archive_are_refused() {
    let files = Files::new();
    let out = files.path("out.npz");
    // A member's name may have 65,535 bytes. `convert` appends `.0` and `.npy` to a layer's name.
    let long = "n".repeat(65_530);
    let from = safetensors(&files, &format!("{long}."));
    let (status, _, err) = run(command("convert", &[], &[&from, &out]));
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(run(command("verify", &[], &[&out])).0, 0);
    std::fs::remove_file(&out).unwrap();
    let layers = files.net::<f32>("long.caffemodel", &[(&long, "Scale", &[1], &[0.0])]);
    for from in [safetensors(&files, &format!("{long}.0")), layers] {
        for options in [&[][..], &["--dry-run"]] {
            let (status, printed, err) = run(command("convert", options, &[&from, &out]));
            assert!(status == 1 && printed.is_empty() && err.lines().count() == 1, "{err}");
            assert!(
                err.contains("too long") && err.contains(".safetensors file can have it"),
                "{err}"
            );
            assert!(err.len() < 1000 && !out.exists(), "{err}");
        }
        let (status, ..) = run(command("convert", &["-f"], &[&from, &files.path("b.safetensors")]));
        assert_eq!(status, 0);
    }
}

#[test]
fn unsafe_names_are_findings() {
    let files = Files::new();
    let (path, one) = (files.path("odd.npz"), |out: &mut dyn Write| {
        header(out, "<f4", "(1,)", false);
        out.write_all(&[0; 4]).unwrap();
    });
    for name in NAMES {
        for (member, shown) in
            [(format!("{name}.npy"), name.into()), (name.into(), name.to_string())]
        {
            archive(&path, &["plain.npy", "folder/", &member], one);
            let (status, out, _) = run(command("verify", &["--json"], &[&path]));
            let findings = json_lines(&out);
            assert_eq!((status, findings.len()), (1, 1), "{member:?}: {out}");
            assert_eq!(findings[0]["kind"], "unsafe-name");
            assert_eq!(findings[0]["tensor"], shown);
        }
    }
    archive(&path, &["plain.npy", "folder/", "folder/readme.txt"], one);
    assert_eq!(run(command("verify", &[], &[&path])).0, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_unpacked_size() {
    use std::process::Command;
    let files = Files::new();
    let zeros = |name: &str, shape: &str, fortran| {
        archive(&files.path(name), &["w.0.npy"], |out| {
            header(out, "<f8", shape, fortran);
            (0..64).for_each(|_| out.write_all(&vec![0; 1 << 20]).unwrap());
        });
        files.path(name)
    };
    let bounded = |words: &[&str], file: &Path| {
        let output = Command::new("sh")
            .args(["-c", "ulimit -v 70000 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_syncblob")])
            .args(
                words
                    .iter()
                    .map(|word| if *word == "FILE" { file.as_os_str() } else { word.as_ref() }),
            )
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), text.concat())
    };
    let report = files.path("report.html");
    let report = ["report", "-f", "FILE", "-o", report.to_str().unwrap()];
    let file = zeros("zeros.npz", "(16, 524288)", false);
    assert!(file.metadata().unwrap().len() < 100_000);
    for words in [&["verify", "FILE"][..], &["show", "FILE"], &["diff", "FILE", "FILE"], &report] {
        let (status, text) = bounded(words, &file);
        assert_eq!(status, Some(0), "{words:?}: {text}");
    }
    // Commands do not read values in Fortran's order, because they would need memory for all
    // values.
    let file = zeros("fortran.npz", "(16, 524288)", true);
    for (words, refused) in [(&["verify", "FILE"][..], 1), (&["show", "FILE"], 0), (&report, 0)] {
        let (status, text) = bounded(words, &file);
        assert_eq!(status, Some(refused), "{words:?}: {text}");
        assert!(words.len() > 3 || text.contains("in Fortran's order"), "{text}");
    }
    let file = zeros("image.npz", "(2, 2048, 2048)", false);
    let picture = files.path("image.png");
    let (status, text) = bounded(&["show", "FILE", "-o", picture.to_str().unwrap()], &file);
    assert!(status == Some(1) && text.contains("pixels"), "{text}");
}

fn axes(count: usize) -> String {
    vec!["1"; count].join(",")
}

fn of_axes(files: &Files, count: usize) -> [PathBuf; 3] {
    let axes = axes(count);
    let header = format!(r#"{{"a.0":{{"dtype":"F32","shape":[{axes}],"data_offsets":[0,4]}}}}"#);
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]];
    let array = |out: &mut dyn Write| {
        self::header(out, "<f4", &format!("({axes})"), false);
        out.write_all(&[0; 4]).unwrap();
    };
    archive(&files.path("a.npz"), &["a.0.npy"], array);
    array(&mut File::create(files.path("a.npy")).unwrap());
    [files.write("a.safetensors", &bytes.concat()), files.path("a.npz"), files.path("a.npy")]
}

#[test]
fn too_many_axes_are_refused_before_anything_is_printed() {
    let files = Files::new();
    for file in of_axes(&files, 32) {
        assert_eq!(run(command("verify", &[], &[&file])).0, 0, "{file:?}");
    }
    for file in of_axes(&files, 33) {
        let (status, out, _) = run(command("verify", &[], &[&file]));
        assert!(status == 1 && out.contains("more axes than a blob's 32"), "{out}");
        assert!(out.contains("\"a.0\"") || file.ends_with("a.npy"), "{out}");
        for arguments in [command("show", &[], &[&file]), command("diff", &[], &[&file, &file])] {
            let (status, out, err) = run(arguments);
            assert!(status != 0 && out.is_empty(), "{out}");
            assert!(err.contains("more axes than a blob's 32"), "{err}");
        }
    }
}

fn renamed(files: &Files, from: &str, to: &str) -> PathBuf {
    let mut bytes = std::fs::read(files.path("two.npz")).unwrap();
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    files.write("same.npz", &bytes)
}

fn assert_refused(files: &Files, file: &Path, what: &str) {
    let (status, out, _) = run(command("verify", &["--json"], &[file]));
    let findings = json_lines(&out);
    assert_eq!((status, findings.len()), (1, 1), "{out}");
    assert_eq!(findings[0]["kind"], "unreadable");
    assert!(findings[0]["message"].as_str().unwrap().contains(what), "{out}");
    let to = files.path("never.safetensors");
    for (name, files) in [("show", &[file][..]), ("diff", &[file, file]), ("convert", &[file, &to])]
    {
        let (status, out, err) = run(command(name, &[], files));
        assert!(status != 0 && out.is_empty() && err.contains(what), "{name}: {out}{err}");
    }
    assert!(!to.exists());
}

#[test]
fn members_that_share_a_name_are_findings() {
    let files = Files::new();
    let one = |out: &mut dyn Write| {
        header(out, "<f4", "(1,)", false);
        out.write_all(&[0; 4]).unwrap();
    };
    archive(&files.path("two.npz"), &["a.0.npy", "b.0.npy", "read.me", "read.it"], one);
    assert_eq!(run(command("verify", &[], &[&files.path("two.npz")])).0, 0);
    let what = "two members of the archive are called";
    assert_refused(&files, &renamed(&files, "b.0.npy", "a.0.npy"), what);
    assert_refused(&files, &renamed(&files, "read.it", "read.me"), what);
    // Makes the end record count one member fewer than the directory contains.
    let mut bytes = std::fs::read(files.path("two.npz")).unwrap();
    let end = bytes.windows(4).rposition(|bytes| bytes == b"PK\x05\x06").unwrap();
    (bytes[end + 8], bytes[end + 10]) = (3, 3);
    assert_refused(&files, &files.write("hidden.npz", &bytes), "4 members, not 3");
}

#[test]
fn tensors_that_share_a_name_are_findings() {
    let entry = r#""a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}"#;
    let header = format!("{{{entry},{entry}}}");
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let files = Files::new();
    let file = files.write("same.safetensors", &bytes);
    assert_refused(&files, &file, "two tensors are called \"a\"");
}
