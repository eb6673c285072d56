//! What the program says of files that are not Caffe's.

#[path = "../../syncblob/tests/foreign/kinds.rs"]
mod kinds;
mod program;

use std::fs::{self, File};

use kinds::kinds;
use program::run;

#[test]
fn each_kind_is_named_and_no_guess_follows() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, words) in kinds() {
        let path = folder.path().join("net.caffemodel");
        fs::write(&path, &bytes).unwrap();
        let (status, out, err) = run(["info".as_ref(), path.as_os_str()]);
        assert_eq!((status, out.as_str(), err.lines().count()), (1, "", 1), "{err}");
        let (_, said) = err.split_once("; this is ").unwrap_or_else(|| panic!("{words}: {err}"));
        assert!(said.starts_with(&words), "{words}: {err}");
        assert!(!err.contains("was it cut off"), "{err}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_on_standard_input_is_named_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    for (bytes, words) in kinds() {
        fs::write(&path, bytes).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_syncblob"))
            .args(["info", "/dev/stdin"])
            .stdin(File::open(&path).unwrap())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!("; this is {words}")), "{words}: {err}");
    }
}

#[test]
fn a_refusal_that_names_nothing_still_asks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    fs::write(&path, b"\x0b\x01\x02").unwrap();
    let (status, _, err) = run(["info".as_ref(), path.as_os_str()]);
    assert_eq!(status, 1);
    assert!(!err.contains("; this is ") && err.contains("; was it cut off"), "{err}");
}

#[test]
fn an_archive_without_arrays_is_no_npz() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("net.pth"), folder.path().join("net.safetensors"));
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    archive.start_file("archive/data.pkl", stored).unwrap();
    archive.finish().unwrap();
    let (status, _, err) = run(["convert".as_ref(), path.as_os_str(), out.as_os_str()]);
    assert!(status == 1 && err.contains("; this is a PyTorch file"), "{status}: {err}");
    assert!(!out.exists());
}
