//! Tests the messages about files that are not Caffe's.

#[path = "../../syncblob/tests/foreign/kinds.rs"]
mod kinds;
mod program;

use std::fs::{self, File};

use kinds::kinds;
use program::run;

/// Returns the foreign files that `info` cannot read: all except prototxts.
fn unreadable() -> impl Iterator<Item = (Vec<u8>, String)> {
    kinds().into_iter().filter(|(_, words)| !words.contains(".prototxt"))
}

#[test]
fn messages_contain_the_kind_of_the_file_without_a_guess() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, words) in unreadable() {
        let path = folder.path().join("net.caffemodel");
        fs::write(&path, &bytes).unwrap();
        let (status, out, err) = run(["info".as_ref(), path.as_os_str()]);
        let lines = if words.contains("HDF5") { 5 } else { 1 }; // a Python program follows
        assert_eq!((status, out.as_str(), err.lines().count()), (1, "", lines), "{err}");
        let (_, text) = err.split_once(": this is ").unwrap_or_else(|| panic!("{words}: {err}"));
        assert!(text.starts_with(&words), "{words}: {err}");
        assert!(!err.contains("was it cut off"), "{err}");
    }
}

#[cfg(unix)]
#[test]
fn messages_contain_the_kind_of_a_file_on_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    for (bytes, words) in unreadable() {
        fs::write(&path, bytes).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_syncblob"))
            .args(["info", "/dev/stdin"])
            .stdin(File::open(&path).unwrap())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!(": this is {words}")), "{words}: {err}");
    }
}

#[test]
fn a_refusal_of_an_unknown_kind_asks_whether_the_file_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    fs::write(&path, b"\x0b\x01\x02").unwrap();
    let (status, _, err) = run(["info".as_ref(), path.as_os_str()]);
    assert_eq!(status, 1);
    assert!(!err.contains(": this is ") && err.contains("; was it cut off"), "{err}");
}

/// `number` is from 1 to 15.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

/// Exporters write all nodes before the name of the graph.
fn onnx(nodes: usize, exporter: &str) -> Vec<u8> {
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"Relu")].concat();
    let graph = [field(1, &node).repeat(nodes), field(2, b"main_graph")].concat();
    let by = [field(2, exporter.as_bytes()), field(3, b"2.1.0")].concat();
    let by = if exporter.is_empty() { Vec::new() } else { by };
    [vec![8, 7], by, field(7, &graph), field(8, &[0x10, 17])].concat()
}

#[test]
fn every_command_reports_onnx_models_of_every_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.onnx");
    let (file, out) = (path.to_str().unwrap(), folder.path().join("out.npz"));
    let to = out.to_str().unwrap();
    for (nodes, exporter) in [(1, ""), (63, ""), (64, ""), (500, ""), (500, "pytorch")] {
        fs::write(&path, onnx(nodes, exporter)).unwrap();
        for arguments in [
            &["info", file][..],
            &["info", "--as", "solverstate", file],
            &["info", "--as", "blob", file],
            &["verify", file],
            &["show", file],
            &["report", file, "-o", to],
            &["diff", file, file],
            &["convert", file, to],
            &["convert", "--from", "solverstate", file, to],
            &["convert", "--from", "caffemodel", "--dry-run", file, to],
        ] {
            let (status, printed, err) = run(arguments);
            let text = printed + &err;
            assert!(
                status != 0 && text.contains(": this is an ONNX model"),
                "{arguments:?}: {text}"
            );
            assert!(!out.exists());
        }
    }
}

#[test]
fn a_file_without_a_blob_is_not_converted() {
    use syncblob::{Format, Model};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    Model::create(Format::Solverstate).unwrap().save(path("empty.solverstate")).unwrap();
    let mut net = Model::create(Format::Caffemodel).unwrap();
    net.add_layer("data", "Input").unwrap();
    net.save(path("empty.caffemodel")).unwrap();
    fs::write(path("iter.solverstate"), b"\x08\x07\x12\x03net").unwrap();
    fs::write(path("empty.safetensors"), b"\x02\0\0\0\0\0\0\0{}").unwrap();
    zip::ZipWriter::new(File::create(path("empty.npz")).unwrap()).finish().unwrap();
    for from in [
        "empty.caffemodel",
        "empty.solverstate",
        "iter.solverstate",
        "empty.safetensors",
        "empty.npz",
    ] {
        for to in ["x.npz", "x.safetensors", "x.caffemodel", "x.solverstate", "x.npy"] {
            for options in [&[][..], &["--dry-run"]] {
                let files = [path(from), path(to)];
                let files = files.each_ref().map(|file| file.as_path());
                let (status, out, err) = run(program::command("convert", options, &files));
                assert!(status == 1 && out.is_empty() && err.contains(from), "{from}, {to}: {err}");
                assert!(!path(to).exists());
            }
        }
    }
}

#[test]
fn a_file_of_another_format_is_refused_by_the_reader_of_that_format() {
    let folder = tempfile::tempdir().unwrap();
    let good = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let with = |length: u64, header: &[u8]| [&length.to_le_bytes()[..], header, &[0; 4]].concat();
    let length = good.len() as u64;
    let cases = [
        ("a.safetensors", with(length + 1000, good), "header of 1054 bytes in a file of 66"),
        ("a.bin", with(length + 1000, good), "header of 1054 bytes in a file of 66"),
        ("a.safetensors", with(1 << 40, good), "header of 1099511627776 bytes"),
        ("a.safetensors", with(length ^ 1 << 63, good), "safetensors header of"),
        ("a.safetensors", with(length, &[b"[", &good[1..]].concat()), "the safetensors header: "),
        (
            "a.safetensors",
            with(length, &[b"\x0a", &good[1..]].concat()),
            "the safetensors header: ",
        ),
        ("a.safetensors", with(length, &[b"{", &good[2..]].concat()), "the safetensors header: "),
        ("a.safetensors", with(length, good)[..30].to_vec(), "header of 54 bytes in a file of 30"),
        ("a.npz", b"PK\x03\x05 no archive".to_vec(), "archive: "),
        ("a.npy", b"\x93NUMPX\x01\0".to_vec(), "npy"),
    ];
    for (name, bytes, words) in cases {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let (file, out) = (path.to_str().unwrap(), folder.path().join("x.npz"));
        let to = out.to_str().unwrap();
        for arguments in [
            &["info", file][..],
            &["verify", file],
            &["show", file],
            &["report", file, "-o", to],
            &["diff", file, file],
            &["convert", file, to],
        ] {
            let (status, printed, err) = run(arguments);
            let text = printed + &err;
            if arguments[0] == "info" && text.contains(": this is a safetensors file") {
                continue;
            }
            assert!(status != 0 && text.contains(words), "{arguments:?}, {bytes:?}: {text}");
            assert!(!text.contains("Caffe") && !text.contains("MALFORMED"), "{text}");
        }
    }
    let path = folder.path().join("pointer.safetensors");
    fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n")
        .unwrap();
    let (_, _, err) = run(["show".as_ref(), path.as_os_str()]);
    assert!(err.contains(": this is a Git LFS pointer to 12 bytes"), "{err}");
}

#[test]
fn messages_about_too_large_files_contain_the_kind_and_no_suspicion() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    let (unknown, hdf5) = (b"\x0b\x01\x02".to_vec(), b"\x89HDF\r\n\x1a\n".to_vec());
    let gzip = b"\x1f\x8b\x08".to_vec();
    for (bytes, words) in
        [(hdf5, ": this is an HDF5 file"), (gzip, ": this is gzip"), (unknown, "")]
    {
        fs::write(&path, bytes).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5 << 30).unwrap();
        for command in ["info", "verify", "show"] {
            let (status, out, err) = run([command.as_ref(), path.as_os_str()]);
            let text = out + &err;
            assert!(status == 1 && text.contains("5368709120 bytes are more than"), "{text}");
            assert!(text.contains(words) && !text.contains("trust"), "{text}");
        }
    }
}

#[test]
fn an_archive_without_arrays_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("net.pth"), folder.path().join("net.safetensors"));
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    archive.start_file("archive/data.pkl", stored).unwrap();
    archive.finish().unwrap();
    let (status, _, err) = run(["convert".as_ref(), path.as_os_str(), out.as_os_str()]);
    assert!(status == 1 && err.contains(": this is a PyTorch file"), "{status}: {err}");
    assert!(!out.exists());
}
