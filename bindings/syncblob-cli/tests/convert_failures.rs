//! `syncblob convert` with files that are not what they claim to be, and when it
//! is stopped or the disk is full: an error, and the old file as it was.

mod program;

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use program::{command, run, Files};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const PROGRAM: &str = env!("CARGO_BIN_EXE_syncblob");

/// What is said of a file that cannot be converted.
fn refusal(file: &Path) -> String {
    let out = file.with_extension("out");
    let arguments = command("convert", &["--to=npz"], &[file, &out]);
    let (status, told, err) = run(arguments);
    assert_eq!((status, told.as_str(), err.lines().count()), (1, "", 1), "{err}");
    assert!(!out.exists() && err.contains(file.to_str().unwrap()), "{err}");
    err
}

// --- malformed files ---------------------------------------------------------------

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
fn safetensors_that_lie_are_refused() {
    let files = Files::new();
    let cases = [
        (safetensors("{", 0), "header"),
        (safetensors("{}{}", 0), "header"),
        (safetensors("{\"a\":1}", 0), "header"),
        (safetensors(&tensor("F32", "[2]", 8), 4), "8 bytes in a file with 4"),
        (safetensors(&tensor("F32", "[2]", 8), 12), "8 bytes in a file with 12"),
        (safetensors(&tensor("F32", "[3]", 8), 8), "header"),
        (safetensors(&tensor("F32", "[-2]", 8), 8), "header"),
        (safetensors(&tensor("F32", "[4611686018427387904,4]", 0), 0), "header"),
        (safetensors(&tensor("F32", "[2]", u64::MAX), 8), "header"),
        (safetensors(&tensor("I64", "[1]", 8), 8), "type I64"),
        (safetensors(&tensor("F32", &format!("[1{}]", ",1".repeat(32)), 4), 4), "33 axes"),
        (safetensors(&tensor("F32", "[9223372036854775808,0]", 0), 0), "dimension of 9"),
        (safetensors(&tensor("Q7", "[1]", 8), 8), "header"),
        (safetensors(&format!("{{{}", "\"a\":{".repeat(100_000)), 0), "header"),
    ];
    for (bytes, part) in cases {
        let told = refusal(&files.write("lie.safetensors", &bytes));
        assert!(told.contains(part), "{part} is not in {told}");
    }
    // A header that would take 2^62 bytes, in a file that says what it is.
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

/// A header of version 2, whose length is 4 bytes, that claims 4 GiB.
const LONG_HEADER: &[u8] = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'";

#[test]
fn npy_arrays_that_lie_are_refused() {
    let files = Files::new();
    let cases = [
        (npy(&array("'<f4'", "(3,)"), 8), "12 bytes of values, 8 are there"),
        (npy(&array("'<f4'", "(1,)"), 8), "4 bytes of values, 8 are there"),
        (npy(&array("'|O'", "(1,)"), 30), "pickle"),
        (npy(&array("'<i8'", "(1,)"), 8), "<i8"),
        (npy(&array("[('a', '<f4')]", "(1,)"), 4), "a structure"),
        (npy(&array("'<f4'", "(9999999999, 9999999999)"), 8), "overflows"),
        (npy(&array("'<f4'", "(1, [)"), 4), "npy header"),
        (npy("", 0), "npy header"),
        (b"\x93NUMPY\x09\x00\x01\x00 ".to_vec(), "version 9"),
        (b"\x93NUMPY\x01".to_vec(), "ends too early"),
        (LONG_HEADER.to_vec(), "header of 4294967295 bytes"),
    ];
    for (bytes, part) in cases {
        let told = refusal(&files.write("lie.npy", &bytes));
        assert!(told.contains(part), "{part} is not in {told}");
    }
}

fn zip(bytes: &[u8], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    archive.start_file("a.0.npy", options).unwrap();
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap().into_inner()
}

/// The archive of one member with another size told for what is in it.
fn with_size(mut archive: Vec<u8>, size: u32) -> Vec<u8> {
    let directory = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    for field in [22, directory + 24] {
        archive[field..field + 4].copy_from_slice(&size.to_le_bytes());
    }
    archive
}

#[test]
fn npz_archives_that_lie_are_refused() {
    let files = Files::new();
    let stored = |bytes: &[u8]| zip(bytes, CompressionMethod::Stored);
    let deflated = |bytes: &[u8]| zip(bytes, CompressionMethod::Deflated);
    let good = npy(&array("'<f4'", "(2,)"), 8);
    let path = files.write("good.npz", &deflated(&good));
    let (status, _, err) = run(command("convert", &[], &[&path, &files.path("ok.safetensors")]));
    assert_eq!((status, err.as_str()), (0, ""), "the archive made here is one");
    let whole = stored(&good);
    let mut spoiled = whole.clone();
    let directory = spoiled.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    spoiled[directory - 1] ^= 1; // the last value's last byte
    let huge = npy(&array("'<f4'", "(1073741824, 4096)"), 8);
    let bomb = npy(&array("'<f4'", "(2,)"), 100_000_000);
    let large = npy(&array("'<f4'", "(600000000,)"), 8);
    let large_size = u32::try_from(large.len() - 8).unwrap() + 2_400_000_000;
    let cases = [
        (whole[..whole.len() - 30].to_vec(), "archive"),
        (whole[..40].to_vec(), "archive"),
        (spoiled, "checksum"),
        (stored(&huge), "its header says"),
        (deflated(&bomb), "its header says"),
        (stored(b"rubbish, and no array"), "array \"a.0\""),
        (stored(LONG_HEADER), "4294967295"),
        (with_size(deflated(&good), 1 << 30), "its header says"),
        (with_size(deflated(&large), large_size), "numpy.savez"),
    ];
    for (bytes, part) in cases {
        let told = refusal(&files.write("lie.npz", &bytes));
        assert!(told.to_lowercase().contains(part), "{part} is not in {told}");
    }
}

// --- stopped, and out of room ---------------------------------------------------------

/// A safetensors file of so many tensors of so many MiB, all 0, that takes no room
/// on the disk.
fn hole(files: &Files, tensors: u64, mib: u64) -> PathBuf {
    let bytes = mib << 20;
    let entry = |index: u64| {
        let (begin, end) = (index * bytes, (index + 1) * bytes);
        format!(
            "\"a.{index}\":{{\"dtype\":\"F32\",\"shape\":[{mib},{}],\
             \"data_offsets\":[{begin},{end}]}}",
            1 << 18
        )
    };
    let entries: Vec<_> = (0..tensors).map(entry).collect();
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let path = files.write("hole.safetensors", &safetensors(&header, 0));
    let file = File::options().append(true).open(&path).unwrap();
    file.set_len(8 + header.len() as u64 + tensors * bytes).unwrap();
    path
}

/// The hidden files beside it.
fn leftovers(file: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(file.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(".syncblob-") && name.ends_with(".tmp")
    };
    paths.filter(is_hidden).collect()
}

/// The program in the midst of writing `out`: some of it is on the disk.
fn started(from: &Path, out: &Path) -> Child {
    let mut program = Command::new(PROGRAM);
    program.args(command("convert", &["--force"], &[from, out]));
    let mut child = program.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    loop {
        let written = |path: &PathBuf| fs::metadata(path).is_ok_and(|info| info.len() > 0);
        if leftovers(out).iter().any(written) {
            return child;
        }
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended before it could be stopped: {ended:?}");
        sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

const TENSORS: u64 = 16;
const MIB: u64 = 12;

/// A signal as soon as some of `out` is written.
fn stopped(input: &Path, out: &Path) {
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        fs::write(out, b"old").unwrap();
        let mut child = started(input, out);
        send(signal, &child);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{}: {status:?}", out.display());
        assert_eq!(fs::read(out).unwrap(), b"old");
        assert_eq!(leftovers(out), [] as [PathBuf; 0], "{}", out.display());
    }
}

#[test]
fn a_signal_leaves_the_old_file_and_nothing_else() {
    let files = Files::new();
    let input = hole(&files, TENSORS, MIB);
    for name in ["x.npz", "x.safetensors", "x.caffemodel"] {
        stopped(&input, &files.path(name));
    }
}

/// One that comes within a tensor, too.
#[test]
fn a_signal_ends_the_writing_of_one_large_tensor() {
    let files = Files::new();
    let input = hole(&files, 1, TENSORS * MIB);
    for name in ["x.npy", "x.npz", "x.safetensors", "x.caffemodel", "x.binaryproto"] {
        stopped(&input, &files.path(name));
    }
}

#[test]
fn a_kill_leaves_the_old_file_and_a_hidden_one() {
    let files = Files::new();
    let input = hole(&files, TENSORS, MIB);
    for name in ["x.npz", "x.safetensors", "x.caffemodel"] {
        let out = files.write(name, b"old");
        let mut child = started(&input, &out);
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert_eq!(fs::read(&out).unwrap(), b"old");
        let left = leftovers(&out);
        assert!(!left.is_empty());
        // It is not in the way.
        let (status, _, err) = run(command("convert", &["--force"], &[&input, &out]));
        assert_eq!(status, 0, "{err}");
        assert!(fs::metadata(&out).unwrap().len() >= (TENSORS * MIB) << 20);
        left.iter().for_each(|path| fs::remove_file(path).unwrap());
        fs::remove_file(out).unwrap();
    }
}

/// What comes out on standard error, which is a terminal or a pipe.
#[test]
fn progress_is_shown_on_a_terminal_alone() {
    let files = Files::new();
    let (input, out) = (hole(&files, 10, 4), files.path("x.safetensors"));
    let (status, told, err) = run(command("convert", &[], &[&input, &out]));
    assert_eq!((status, told.as_str(), err.as_str()), (0, "", ""));
    let command_line =
        format!("stty cols 80; '{PROGRAM}' convert -f '{}' '{}'", input.display(), out.display());
    let Ok(output) = Command::new("script")
        .args(["--quiet", "--return", "--command", &command_line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
    else {
        return eprintln!("not tested: there is no script, which makes a terminal");
    };
    assert!(output.status.success());
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("/40.00 MiB"), "{shown:?}");
    assert!(shown.trim_end().ends_with("\u{1b}[2K"), "the bar is cleared: {shown:?}");
}

/// In a namespace of its own, where the folder is a file system of 1 MiB.
const ON_A_SMALL_DISK: &str = "
    mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 77
    cd \"$1\" && printf old > \"$3\"
    \"$0\" convert --force \"$2\" \"$3\"
    echo \"status $?, $(cat \"$3\"), $(ls -A)\"";

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let files = Files::new();
    let (input, folder) = (hole(&files, 1, 4), files.path("disk"));
    fs::create_dir(&folder).unwrap();
    for name in ["x.npz", "x.safetensors", "x.npy", "x.caffemodel"] {
        let mut script = Command::new("unshare");
        script.args(["--mount", "sh", "-c", ON_A_SMALL_DISK, PROGRAM]);
        let Ok(output) = script.arg(&folder).arg(&input).arg(name).output() else {
            return eprintln!("not tested: there is no unshare");
        };
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        if !output.status.success() {
            return eprintln!("not tested: no file system can be mounted here: {err}");
        }
        assert_eq!(out.trim_end(), format!("status 1, old, {name}"), "{err}");
        assert!(err.contains("No space left on device") && err.contains(name), "{err}");
    }
}
