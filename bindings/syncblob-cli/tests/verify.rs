//! Tests `syncblob verify`.

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{command, json_lines, real_files, run, Files};
use serde_json::Value;
use syncblob::{Blob, Format, Model, Payload};

fn verify(options: &[&str], files: &[&Path]) -> (i32, String, String) {
    run(command("verify", options, files))
}

fn findings(file: &Path) -> Vec<Value> {
    let (status, out, err) = verify(&["--json"], &[file]);
    let findings = json_lines(&out);
    assert_eq!((status, err.as_str()), (i32::from(!findings.is_empty()), ""));
    assert!(findings.iter().all(|finding| finding["file"] == file.to_str().unwrap()));
    findings
}

fn kinds(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

#[test]
fn files_that_caffe_wrote_have_no_findings() {
    for file in real_files() {
        let (status, out, err) = verify(&[], &[&file]);
        assert_eq!((status, err.as_str(), out.lines().count()), (0, "", 1), "{out}");
        assert!(out.contains("nothing found"), "{out}");
        assert_eq!(findings(&file), [] as [Value; 0]);
    }
}

#[test]
fn values_are_found_with_their_layer_blob_and_place() {
    let files = Files::new();
    let values = [1.0, f64::NAN, 1e39, f64::INFINITY, f64::NAN, f64::from(f32::MAX)];
    let net = files.net("net", &[("fine", "A", &[1], &[0.5]), ("ip", "B", &[2, 3], &values)]);
    let found = findings(&net);
    assert_eq!(kinds(&found), ["nan", "infinite", "beyond-float"]);
    let places = [(2, [0, 1]), (1, [1, 0]), (1, [0, 2])];
    for (finding, (count, at)) in found.iter().zip(places) {
        assert_eq!((&finding["layer"], &finding["blob"]), (&"ip".into(), &0.into()));
        assert_eq!((&finding["part"], &finding["count"]), (&"data".into(), &count.into()));
        assert_eq!(finding["at"], serde_json::json!(at));
    }
    let offset = usize::try_from(found[0]["offset"].as_u64().unwrap()).unwrap();
    let message = Blob::<f64>::from_slice([2, 3], &values).unwrap();
    let message = message.to_proto(Payload::Data).unwrap();
    assert_eq!(fs::read(&net).unwrap()[offset..][..message.len()], message);

    let (_, text, _) = verify(&[], &[&net]);
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.contains("layer ip, blob 0, data: 2 values are NaN, the first at [0, 1]"),
        "{text}"
    );
}

#[test]
fn diffs_are_checked() {
    let files = Files::new();
    let mut blob = Blob::<f32>::from_slice([2], &[1.0, 2.0]).unwrap();
    blob.diff_mut().unwrap()[1] = f32::NAN;
    let file = files.write("diff", &blob.to_proto(Payload::DataAndDiff).unwrap());
    let found = findings(&file);
    assert_eq!(kinds(&found), ["nan"]);
    assert_eq!((&found[0]["part"], &found[0]["layer"]), (&"diff".into(), &Value::Null));
}

#[test]
fn misleading_names_are_found() {
    let files = Files::new();
    let one: &[f32] = &[1.0];
    let twice =
        files.net("twice", &[("a", "T", &[1], one), ("a", "T", &[1], one), ("a", "T", &[1], one)]);
    assert_eq!(kinds(&findings(&twice)), ["duplicate-name"]);
    let hostile = files.net("hostile", &[("\u{1b}[2J", "T", &[1], one)]);
    assert_eq!(kinds(&findings(&hostile)), ["unsafe-name"]);
    let (_, text, _) = verify(&[], &[&hostile]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    // NetParameter { layer { name: "\xff" blobs { shape {} data: 0 } } }
    let bytes = b"\xa2\x06\x0d\x0a\x01\xff\x3a\x08\x3a\x00\x2a\x04\0\0\0\0";
    assert_eq!(kinds(&findings(&files.write("latin", bytes))), ["unsafe-name"]);
}

#[test]
fn incomplete_files_are_found() {
    let files = Files::new();
    let short = findings(&files.short());
    assert_eq!(kinds(&short), ["unreadable"]);
    assert_eq!(short[0]["status"], "SB_ERR_LENGTH_MISMATCH");

    let mut empty = Model::create(Format::Caffemodel).unwrap();
    empty.add_layer("data", "Input").unwrap();
    let empty = files.write("empty", &empty.to_bytes().unwrap());
    assert_eq!(kinds(&findings(&empty)), ["no-values"]);

    let net = files.net("net", &[("ip", "InnerProduct", &[64], &[0.5_f32; 64])]);
    let whole = fs::read(net).unwrap();
    for length in 0..whole.len() {
        let found = findings(&files.write("cut", &whole[..length]));
        assert!(!found.is_empty(), "cut at byte {length}");
    }
}

#[test]
fn each_file_is_checked_whatever_the_other_files_are() {
    let files = Files::new();
    let good = files.mean("good", &[1, 2], &[1.0, 2.0]);
    let missing = files.path("missing");
    let (status, out, err) =
        verify(&[], &[&missing, &files.short(), files.path("").as_path(), &good]);
    assert_eq!((status, err.as_str(), out.lines().count()), (1, "", 5), "{out}");
    for part in ["No such file", "SB_ERR_LENGTH_MISMATCH", "it is a folder", "nothing found"] {
        assert!(out.contains(part), "{part} is not in {out}");
    }
    assert_eq!(verify(&["--json"], &[&good]), (0, String::new(), String::new()));
    assert_eq!(verify(&[], &[]).0, 2);
    assert_eq!(verify(&["--as", "zip"], &[&good]).0, 2);
}

#[test]
fn other_formats_are_detected_unless_a_format_is_set() {
    let files = Files::new();
    let header = br#"{"w":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header, b"\x00\x3c\x00\x7e"].concat();
    let file = files.write("w.safetensors", &bytes);
    let found = findings(&file);
    assert_eq!((kinds(&found), &found[0]["tensor"]), (vec!["nan"], &"w".into()));
    assert_eq!(found[0]["at"], serde_json::json!([0, 1]));
    assert_eq!(kinds(&findings(&files.write("cut", &bytes[..bytes.len() - 1]))), ["unreadable"]);
    let (_, out, _) = verify(&["--json", "--as", "caffemodel"], &[&file]);
    assert_eq!(json_lines(&out)[0]["status"], "SB_ERR_MALFORMED");
}

/// If Python is not installed, returns only the stored inputs.
fn corpora(files: &Files) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let made = files.path("made");
    let _ = Command::new("python3").arg(fuzz.join("seeds/make_seeds.py")).arg(&made).status();
    let mut files = Vec::new();
    for kind in [made.join("seeds"), fuzz.join("corpus"), fuzz.join("regressions")] {
        for folder in fs::read_dir(kind).into_iter().flatten() {
            let folder = fs::read_dir(folder.unwrap().path()).unwrap();
            files.extend(folder.map(|entry| entry.unwrap().path()));
        }
    }
    files.sort();
    files
}

#[test]
fn no_byte_string_ends_the_program() {
    let files = Files::new();
    let corpora = corpora(&files);
    if corpora.is_empty() {
        eprintln!("not tested: the crate was copied without the folder of the fuzzers' inputs");
        return;
    }
    assert!(corpora.len() > 250, "{} files", corpora.len());
    let inputs: Vec<&Path> = corpora.iter().map(PathBuf::as_path).collect();
    for format in ["", "--as=blob", "--as=caffemodel", "--as=solverstate"] {
        let options: Vec<&str> = ["--json", format].into_iter().filter(|o| !o.is_empty()).collect();
        let (status, out, err) = verify(&options, &inputs);
        assert_eq!((status, err.as_str()), (1, ""));
        let found = json_lines(&out);
        let is_there = |kind: &str| found.iter().any(|finding| finding["kind"] == kind);
        assert!(is_there("unreadable"), "{format}");
        if format.is_empty() {
            assert!(is_there("nan") && is_there("unsafe-name"));
        }
    }
}

#[test]
fn no_byte_string_ends_the_other_commands() {
    let files = Files::new();
    let output = files.path("output");
    let to = ["--force", "-o", output.to_str().unwrap()];
    for file in corpora(&files).iter().step_by(11) {
        let commands = [
            command("diff", &[], &[file, file]),
            command("show", &[], &[file]),
            command("show", &to, &[file]),
            command("report", &to, &[file]),
        ];
        for arguments in commands {
            let (status, _, err) = run(&arguments);
            assert!((0..=2).contains(&status) && !err.contains("panicked"), "{arguments:?}: {err}");
        }
    }
}

#[cfg(unix)]
#[test]
fn output_that_cannot_be_printed_is_status_2() {
    let files = Files::new();
    let (clean, nan) = (files.mean("clean", &[1], &[1.0]), files.mean("nan", &[1], &[f32::NAN]));
    for (options, file) in [(&[][..], &clean), (&[], &nan), (&["--json"], &nan)] {
        let [full, broken] = program::unheard(&command("verify", options, &[file]));
        assert!(full.0 == 2 && full.1.contains("standard output: No space"), "{full:?}");
        assert_eq!(broken, (2, String::new()));
    }
}
