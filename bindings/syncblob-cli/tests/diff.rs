//! Tests `syncblob diff`.

mod program;

use std::path::Path;

use program::{command, json_lines, real_files, run, Files};
use serde_json::{json, Value};
use syncblob::{Blob, Format, Model, Payload};

fn diff(options: &[&str], a: &Path, b: &Path) -> (i32, String, String) {
    run(command("diff", options, &[a, b]))
}

fn json(options: &[&str], a: &Path, b: &Path) -> (Vec<Value>, Value) {
    let options: Vec<&str> = ["--json"].into_iter().chain(options.iter().copied()).collect();
    let (status, out, err) = diff(&options, a, b);
    let mut lines = json_lines(&out);
    let summary = lines.pop().expect("a summary");
    assert_eq!((summary["kind"].as_str(), summary["schema"].as_u64()), (Some("summary"), Some(1)));
    assert_eq!(summary["differences"], lines.len());
    assert_eq!(summary["equal"], lines.is_empty());
    assert_eq!((status, err.as_str()), (i32::from(!lines.is_empty()), ""));
    (lines, summary)
}

#[test]
fn a_file_equals_itself() {
    for file in real_files() {
        let (differences, summary) = json(&[], &file, &file);
        assert_eq!(differences, [] as [Value; 0]);
        assert_eq!(summary["max_abs"], 0.0);
        assert!(summary["values"].as_u64() > Some(0));
        let (status, out, err) = diff(&[], &file, &file);
        assert_eq!((status, err.as_str(), out.lines().count()), (0, "", 1));
        assert!(out.contains("no difference"), "{out}");
    }
}

#[test]
fn differing_values_are_counted_and_the_largest_difference_is_shown() {
    let files = Files::new();
    let net = |name, values: &[f32]| {
        files.net(name, &[("same", "T", &[1], &[7.0]), ("ip", "InnerProduct", &[2, 3], values)])
    };
    let a = net("a", &[1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0]);
    let b = net("b", &[1.0, 2.5, 3.0, 2.0, f32::NAN, 6.25]);
    let (differences, summary) = json(&[], &a, &b);
    let wanted = json!({
        "kind": "values", "tensor": "ip.0", "part": "data", "count": 6, "differing": 3,
        "nan_only_a": 0, "nan_only_b": 0, "max_abs": 2.0, "max_rel": 0.5, "at": [1, 0],
        "a": 4.0, "b": 2.0,
    });
    assert_eq!(differences, [wanted]);
    assert_eq!((&summary["tensors"], &summary["values"]), (&2.into(), &7.into()));
    assert_eq!((&summary["max_abs"], &summary["max_rel"]), (&2.0.into(), &0.5.into()));

    let (status, out, _) = diff(&[], &a, &b);
    assert_eq!((status, out.lines().count()), (1, 3), "{out}");
    assert!(out.contains("4.000000 and 2.000000 at [1, 0]") && !out.contains("same"), "{out}");
}

#[test]
fn a_tolerance_is_absolute_or_relative_or_both() {
    let files = Files::new();
    let a = files.mean("a", &[2], &[100.0, 1.0]);
    let b = files.mean("b", &[2], &[104.0, 1.5]);
    let cases: [(&[&str], u64); 6] = [
        (&[], 2),
        (&["--tolerance", "0.5"], 1),
        (&["--rtol", "0.05"], 1),
        (&["--tolerance", "0.5", "--rtol", "0.05"], 0),
        (&["--tolerance", "4"], 0),
        (&["--tolerance", "3.999"], 1),
    ];
    for (options, differing) in cases {
        let (differences, summary) = json(options, &a, &b);
        let found = differences.first().map_or(0, |found| found["differing"].as_u64().unwrap());
        assert_eq!((found, &summary["max_abs"]), (differing, &4.0.into()), "{options:?}");
        assert_eq!(summary["max_rel"], 0.5 / 1.5);
    }
    let (_, out, _) = diff(&["--tolerance", "4"], &a, &b);
    assert!(out.contains("within the tolerance (max abs 4.000000"), "{out}");
}

#[test]
fn nan_in_only_one_file_differs_whatever_the_tolerance() {
    let files = Files::new();
    let a = files.mean("a", &[3], &[f32::NAN, 1.0, f32::INFINITY]);
    let b = files.mean("b", &[3], &[1.0, f32::NAN, f32::INFINITY]);
    let (differences, _) = json(&["--tolerance", "inf", "--rtol", "inf"], &a, &b);
    let found = &differences[0];
    let counts = ["differing", "nan_only_a", "nan_only_b"].map(|key| found[key].as_u64().unwrap());
    assert_eq!((counts, &found["at"]), ([2, 1, 1], &json!([0])));
}

#[test]
fn names_types_shapes_dtypes_and_diffs_are_compared() {
    let files = Files::new();
    let one: &[f32] = &[1.0];
    let a = files.net(
        "a",
        &[("x", "Scale", &[1], one), ("only_a", "T", &[1], one), ("s", "T", &[2, 3], &[0.0; 6])],
    );
    let b = files.net(
        "b",
        &[
            ("s", "T", &[3, 2], &[0.0; 6]),
            ("in_b", "T", &[1], one),
            ("x", "Bias", &[1], one),
            ("only_b", "T", &[1], one),
        ],
    );
    let (differences, _) = json(&[], &a, &b);
    let wanted = [
        json!({ "kind": "type", "tensor": "x.0", "a": "Scale", "b": "Bias" }),
        json!({ "kind": "only", "tensor": "only_a.0", "in": "a" }),
        json!({ "kind": "shape", "tensor": "s.0", "a": "2x3", "b": "3x2" }),
        json!({ "kind": "only", "tensor": "in_b.0", "in": "b" }),
        json!({ "kind": "only", "tensor": "only_b.0", "in": "b" }),
    ];
    assert_eq!(differences, wanted);
    assert_eq!(json(&["--ignore", "type"], &a, &b).0.len(), 4);

    let mut blob = Blob::<f64>::from_slice([1, 1, 1, 2], &[1.0, 2.0]).unwrap();
    blob.diff_mut().unwrap();
    let double = files.write("f64", &blob.to_proto(Payload::DataAndDiff).unwrap());
    let single = files.mean("f32", &[2], &[1.0, 2.0]);
    let kinds = |options: &[&str]| {
        let (differences, _) = json(options, &single, &double);
        differences.iter().map(|d| d["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[]), ["shape", "dtype", "only_diff"]);
    assert_eq!(kinds(&["--ignore", "dtype,diff"]), ["shape"]);
}

#[test]
fn diffs_are_compared_like_data() {
    let files = Files::new();
    let with_diff = |name: &str, diff: f32| {
        let mut blob = Blob::<f32>::from_slice([1], &[1.0]).unwrap();
        blob.diff_mut().unwrap()[0] = diff;
        files.write(name, &blob.to_proto(Payload::DataAndDiff).unwrap())
    };
    let (a, b) = (with_diff("a", 1.0), with_diff("b", 3.0));
    let (differences, summary) = json(&[], &a, &b);
    assert_eq!((differences[0]["part"].as_str(), differences.len()), (Some("diff"), 1));
    assert_eq!((&differences[0]["max_abs"], &summary["values"]), (&2.0.into(), &2.into()));
    assert_eq!(json(&["--ignore=diff"], &a, &b).0.len(), 0);
}

#[test]
fn legacy_shapes_equal_shapes_without_leading_ones() {
    let files = Files::new();
    // num 1, channels 1, height 1, width 2; data 1.0, 2.0
    let legacy = b"\x08\x01\x10\x01\x18\x01\x20\x02\x2a\x08\0\0\x80\x3f\0\0\0\x40";
    let legacy = files.write("legacy", legacy);
    let shape = |name, shape: &[usize]| files.mean(name, shape, &[1.0, 2.0]);
    assert_eq!(json(&[], &legacy, &shape("current", &[2])).0.len(), 0);
    assert_eq!(json(&[], &shape("padded", &[1, 2]), &legacy).0.len(), 0);
    assert_eq!(json(&[], &legacy, &shape("column", &[2, 1])).0.len(), 1);
    assert_eq!(json(&[], &shape("five", &[1, 1, 1, 1, 2]), &legacy).0.len(), 1);
}

#[test]
fn layers_of_the_same_name_are_paired_in_order() {
    let files = Files::new();
    let a = files.net("a", &[("x", "T", &[1], &[1.0_f32]), ("x", "T", &[1], &[2.0])]);
    let b = files.net("b", &[("x", "T", &[1], &[1.0_f32]), ("x", "T", &[1], &[5.0])]);
    let (differences, _) = json(&[], &a, &b);
    assert_eq!((differences.len(), &differences[0]["max_abs"]), (1, &3.0.into()));
    assert_eq!(differences[0]["tensor"], "x#2.0");
}

#[test]
fn other_formats_are_compared_by_names() {
    let files = Files::new();
    let net = files.net("net", &[("ip", "InnerProduct", &[2], &[1.0_f32, -2.0])]);
    let mut bytes = Vec::new();
    let header = br#"{"ip.0":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header);
    bytes.extend(b"\x00\x3c\x00\xc0"); // 1, -2
    let half = files.write("half.safetensors", &bytes);
    assert_eq!(json(&["--ignore", "dtype"], &net, &half).0.len(), 0);
    let (differences, _) = json(&[], &net, &half);
    assert_eq!(differences, [json!({"kind": "dtype", "tensor": "ip.0", "a": "f32", "b": "f16"})]);
}

#[test]
fn files_that_cannot_be_compared_are_status_2() {
    let files = Files::new();
    let good = files.mean("good", &[4], &[0.0; 4]);
    let cases: [(&[&str], &Path, &Path); 6] = [
        (&[], &good, &files.path("missing")),
        (&[], &files.write("rubbish", b"\xff\xff\xff"), &good),
        (&[], &good, &files.short()),
        (&["--tolerance", "-1"], &good, &good),
        (&["--rtol", "nan"], &good, &good),
        (&["--ignore", "values"], &good, &good),
    ];
    for (options, a, b) in cases {
        let (status, _, err) = diff(options, a, b);
        assert_eq!(status, 2, "{err}");
        assert!(!err.is_empty());
    }
    assert_eq!(run(command("diff", &[], &[&good])).0, 2);
}

#[test]
fn a_hostile_name_cannot_reach_the_terminal() {
    let files = Files::new();
    let net = |name, value| files.net(name, &[("\u{1b}[2J\u{202e}", "T", &[1], &[value])]);
    for options in [&[][..], &["--json"]] {
        let (status, out, _) = diff(options, &net("a", 1.0_f32), &net("b", 2.0));
        assert_eq!(status, 1);
        assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out:?}");
    }
}

#[test]
fn an_empty_net_equals_an_empty_net() {
    let files = Files::new();
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.add_layer("data", "Input").unwrap();
    let empty = files.write("empty", &model.to_bytes().unwrap());
    let (_, summary) = json(&[], &empty, &empty);
    assert_eq!(summary["tensors"], 0);
}

#[test]
fn too_many_blobs_are_refused() {
    let files = Files::new();
    let count: usize = (1 << 17) + 1;
    // NetParameter { layer { blobs {} blobs {} ... } }; `size` is the layer's size as a varint.
    let size = [0, 7, 14].map(|shift| ((2 * count) >> shift) as u8 & 0x7f);
    let start = [0xa2, 0x06, size[0] | 0x80, size[1] | 0x80, size[2]];
    let many = files.write("many", &[&start[..], &b"\x3a\x00".repeat(count)].concat());
    let (status, out, err) = diff(&[], &many, &many);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("131073 blobs") && err.contains("syncblob info"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting() {
    let files = Files::new();
    let pipe = files.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for command in ["diff", "verify", "show"] {
        let mut timed = std::process::Command::new("timeout");
        timed.args(["20", env!("CARGO_BIN_EXE_syncblob"), command]).arg(&pipe);
        if command == "diff" {
            timed.arg(&pipe);
        }
        let output = timed.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        assert_eq!(output.status.code(), Some(if command == "diff" { 2 } else { 1 }));
        assert!(String::from_utf8_lossy(&printed).contains("not a regular file"), "{command}");
    }
}

#[cfg(unix)]
#[test]
fn output_that_cannot_be_printed_is_status_2() {
    let files = Files::new();
    let (a, b) = (files.mean("a", &[1], &[1.0]), files.mean("b", &[1], &[2.0]));
    for (options, other) in [(&[][..], &a), (&[], &b), (&["--json"], &a), (&["--json"], &b)] {
        let [full, broken] = program::unheard(&command("diff", options, &[&a, other]));
        assert!(full.0 == 2 && full.1.contains("standard output: No space"), "{full:?}");
        assert_eq!(broken, (2, String::new()));
    }
}
