//! Tests `syncblob convert` with malformed files.

mod program;

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use program::{command, run, Files};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn refusal(file: &Path) -> String {
    let out = file.with_extension("out");
    let arguments = command("convert", &["--to=npz"], &[file, &out]);
    let (status, reason, err) = run(arguments);
    assert_eq!((status, reason.as_str(), err.lines().count()), (1, "", 1), "{err}");
    assert!(!out.exists() && err.contains(file.to_str().unwrap()), "{err}");
    err
}

fn safetensors(header: &str, payload: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + payload, 0);
    bytes
}

fn tensor(dtype: &str, shape: &str, end: u64) -> String {
    format!("{{\"a.0\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[0,{end}]}}}}")
}

#[test]
fn inconsistent_safetensors_files_are_refused() {
    let files = Files::new();
    let cases = [
        (safetensors("{", 0), "header"),
        (safetensors("{}{}", 0), "header"),
        (safetensors("{\"a\":1}", 0), "header"),
        (safetensors(&tensor("F32", "[2]", 8), 4), "need 8 bytes, but the file has 4"),
        (safetensors(&tensor("F32", "[2]", 8), 12), "need 8 bytes, but the file has 12"),
        (safetensors(&tensor("F32", "[3]", 8), 8), "header"),
        (safetensors(&tensor("F32", "[-2]", 8), 8), "header"),
        (safetensors(&tensor("F32", "[4611686018427387904,4]", 0), 0), "header"),
        (safetensors(&tensor("F32", "[2]", u64::MAX), 8), "header"),
        (safetensors(&tensor("C64", "[1]", 8), 8), "type C64"),
        (safetensors(&tensor("F32", &format!("[1{}]", ",1".repeat(32)), 4), 4), "more axes"),
        (safetensors(&tensor("F32", "[9223372036854775808,0]", 0), 0), "dimension 9"),
        (safetensors(&tensor("Q7", "[1]", 8), 8), "header"),
        (safetensors(&format!("{{{}", "\"a\":{".repeat(100_000)), 0), "header"),
    ];
    for (bytes, part) in cases {
        let reason = refusal(&files.write("lie.safetensors", &bytes));
        assert!(reason.contains(part), "{part} is not in {reason}");
    }
    // The file claims a header of 2^62 bytes.
    let mut bytes = (1_u64 << 62).to_le_bytes().to_vec();
    bytes.extend(b"{\"a\":");
    let bomb = files.write("bomb.safetensors", &bytes);
    let (status, _, err) =
        run(command("convert", &["--from=safetensors"], &[&bomb, &files.path("out.npz")]));
    assert!(status == 1 && err.contains("header of 4611686018427387904 bytes"), "{err}");
}

fn npy(header: &str, payload: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + payload, 0);
    bytes
}

fn array(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
}

/// The length field claims a header of 4 GiB.
const LONG_HEADER: &[u8] = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'";

#[test]
fn inconsistent_npy_files_are_refused() {
    let files = Files::new();
    let cases = [
        (npy(&array("'<f4'", "(3,)"), 8), "12 bytes of values, not 8"),
        (npy(&array("'<f4'", "(1,)"), 8), "4 bytes of values, not 8"),
        (npy(&array("'|O'", "(1,)"), 30), "pickle"),
        (npy(&array("'<c8'", "(1,)"), 8), "<c8"),
        (npy(&array("[('a', '<f4')]", "(1,)"), 4), "a structure"),
        (npy(&array("'<f4'", "(4294967295, 4294967295)"), 8), "overflows"),
        (npy(&array("'<f4'", "(1, [)"), 4), "npy header"),
        (npy("", 0), "npy header"),
        (b"\x93NUMPY\x09\x00\x01\x00 ".to_vec(), "version 9"),
        (b"\x93NUMPY\x01".to_vec(), "ends too early"),
        (LONG_HEADER.to_vec(), "header of 4294967295 bytes"),
    ];
    for (bytes, part) in cases {
        let reason = refusal(&files.write("lie.npy", &bytes));
        assert!(reason.contains(part), "{part} is not in {reason}");
    }
}

fn zip(bytes: &[u8], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    archive.start_file("a.0.npy", options).unwrap();
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap().into_inner()
}

fn with_size(mut archive: Vec<u8>, size: u32) -> Vec<u8> {
    let directory = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    for field in [22, directory + 24] {
        archive[field..field + 4].copy_from_slice(&size.to_le_bytes());
    }
    archive
}

#[test]
fn inconsistent_npz_archives_are_refused() {
    let files = Files::new();
    let stored = |bytes: &[u8]| zip(bytes, CompressionMethod::Stored);
    let deflated = |bytes: &[u8]| zip(bytes, CompressionMethod::Deflated);
    let good = npy(&array("'<f4'", "(2,)"), 8);
    let path = files.write("good.npz", &deflated(&good));
    let (status, _, err) = run(command("convert", &[], &[&path, &files.path("ok.safetensors")]));
    assert_eq!((status, err.as_str()), (0, ""), "the archive is valid");
    let whole = stored(&good);
    let mut damaged = whole.clone();
    let directory = damaged.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    damaged[directory - 1] ^= 1; // the last byte of the last value
    let huge = npy(&array("'<f4'", "(1073741824, 4096)"), 8);
    let bomb = npy(&array("'<f4'", "(2,)"), 100_000_000);
    let large = npy(&array("'<f4'", "(600000000,)"), 8);
    let large_size = u32::try_from(large.len() - 8).unwrap() + 2_400_000_000;
    let cases = [
        (whole[..whole.len() - 30].to_vec(), "archive"),
        (whole[..40].to_vec(), "archive"),
        (damaged, "checksum"),
        (stored(&huge), "its header requires"),
        (deflated(&bomb), "its header requires"),
        (stored(b"rubbish, and no array"), "array \"a.0\""),
        (stored(LONG_HEADER), "4294967295"),
        (with_size(deflated(&good), 1 << 30), "its header requires"),
        (with_size(deflated(&large), large_size), "numpy.savez"),
    ];
    for (bytes, part) in cases {
        let reason = refusal(&files.write("lie.npz", &bytes));
        assert!(reason.to_lowercase().contains(part), "{part} is not in {reason}");
    }
}

/// Linux appends " (deleted)" to the link of a removed file, and shows a socket's number as a link.
#[test]
#[cfg(target_os = "linux")]
fn an_open_file_without_a_name_is_refused_as_out() {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};
    use std::process::{Command, Stdio};
    let files = Files::new();
    let input = files.mean("in.binaryproto", &[2], &[1.0, 2.0]);
    let gone = files.write("gone.npy", b"old");
    let open = fs::File::options().read(true).write(true).open(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let named = fs::File::open(files.write("named.npy", b"old")).unwrap();
    let (reader, _writer) = UnixStream::pair().unwrap();
    let cases: [(Stdio, i32, &str); 3] = [
        (open.into(), 1, "not a name"),
        (OwnedFd::from(reader).into(), 1, "not a regular file"),
        (named.into(), 0, ""),
    ];
    for (stdin, status, part) in cases {
        let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
        let words = ["convert", "--force", "--to=npy"];
        program.args(words).arg(&input).arg("/dev/stdin").stdin(stdin);
        let output = program.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{err}");
        assert!(err.contains(part), "{err}");
    }
    assert_ne!(fs::read(files.path("named.npy")).unwrap(), b"old");
    let mut names: Vec<_> = fs::read_dir(gone.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["in.binaryproto", "named.npy"]);
}
