//! Tests that `convert` leaves the old file unchanged if a signal stops it or the disk is full.
#![cfg(unix)]

mod program;

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use program::{command, run, Files};

const PROGRAM: &str = env!("CARGO_BIN_EXE_syncblob");

/// The file is sparse: its values are 0 and use no disk space.
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
    let path = files.write(
        "hole.safetensors",
        &[&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat(),
    );
    let file = File::options().append(true).open(&path).unwrap();
    file.set_len(8 + header.len() as u64 + tensors * bytes).unwrap();
    path
}

fn leftovers(file: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(file.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(".syncblob-") && name.ends_with(".tmp")
    };
    paths.filter(is_hidden).collect()
}

/// Returns when a part of the output has been written to a hidden file.
fn started(from: &Path, out: &Path) -> Child {
    let mut program = Command::new(PROGRAM);
    program.args(command("convert", &["--force"], &[from, out]));
    // A background shell and nohup ignore these signals, so the child restores the default actions.
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        program.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = program.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    loop {
        let written = |path: &PathBuf| fs::metadata(path).is_ok_and(|info| info.len() > 0);
        if leftovers(out).iter().any(written) {
            return child;
        }
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "the command ended before its signal: {ended:?}");
        sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

const TENSORS: u64 = 16;
const MIB: u64 = 12;

fn stopped(input: &Path, out: &Path) {
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
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

#[test]
fn a_signal_stops_the_writing_of_one_large_tensor() {
    let files = Files::new();
    let input = hole(&files, 1, TENSORS * MIB);
    for name in ["x.npy", "x.npz", "x.safetensors", "x.caffemodel", "x.binaryproto"] {
        stopped(&input, &files.path(name));
    }
}

#[test]
fn a_signal_stops_the_writing_of_a_net() {
    let files = Files::new();
    let input = files.carrying_net("net.caffemodel", 1 << 18, TENSORS * MIB);
    stopped(&input, &files.path("x.onnx"));
}

#[test]
fn a_kill_leaves_the_old_file_and_a_hidden_file() {
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
        let (status, _, err) = run(command("convert", &["--force"], &[&input, &out]));
        assert_eq!(status, 0, "{err}");
        assert!(fs::metadata(&out).unwrap().len() >= (TENSORS * MIB) << 20);
        left.iter().for_each(|path| fs::remove_file(path).unwrap());
        fs::remove_file(out).unwrap();
    }
}

#[test]
fn progress_is_shown_only_on_a_terminal() {
    let files = Files::new();
    let (input, out) = (hole(&files, 10, 4), files.path("x.safetensors"));
    let (status, out_text, err) = run(command("convert", &[], &[&input, &out]));
    assert_eq!((status, out_text.as_str(), err.as_str()), (0, "", ""));
    let command_line =
        format!("stty cols 80; '{PROGRAM}' convert -f '{}' '{}'", input.display(), out.display());
    let Ok(output) = Command::new("script")
        .args(["--quiet", "--return", "--command", &command_line, "/dev/null"])
        .env("TERM", "xterm") // without TERM no bar is shown
        .stdin(Stdio::null())
        .output()
    else {
        return eprintln!("not tested: the program `script` is not installed");
    };
    assert!(output.status.success());
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("/40.00 MiB"), "{shown:?}");
    assert!(shown.trim_end().ends_with("\u{1b}[2K"), "the bar is cleared: {shown:?}");
}

/// The default action of SIGXFSZ would end the program.
#[test]
fn a_limit_of_file_sizes_leaves_the_old_file_and_nothing_else() {
    let files = Files::new();
    let input = hole(&files, 1, 4);
    let net = files.carrying_net("net.caffemodel", 1 << 18, 4);
    for name in ["x.npz", "x.safetensors", "x.npy", "x.caffemodel", "x.onnx"] {
        let out = files.write(name, b"old");
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 1024; exec \"$0\" \"$@\"", PROGRAM]);
        shell.args(command(
            "convert",
            &["--force"],
            &[if name == "x.onnx" { &net } else { &input }, &out],
        ));
        let output = shell.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {:?}, {err}", output.status);
        assert!(err.contains("File too large") && err.contains(name), "{err}");
        assert_eq!(fs::read(&out).unwrap(), b"old");
        assert_eq!(leftovers(&out), [] as [PathBuf; 0], "{name}");
    }
}

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
    let net = files.carrying_net("net.caffemodel", 1 << 18, 4);
    for name in ["x.npz", "x.safetensors", "x.npy", "x.caffemodel", "x.onnx"] {
        let input = if name == "x.onnx" { &net } else { &input };
        let mut script = Command::new("unshare");
        script.args(["--mount", "sh", "-c", ON_A_SMALL_DISK, PROGRAM]);
        let Ok(output) = script.arg(&folder).arg(input).arg(name).output() else {
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
