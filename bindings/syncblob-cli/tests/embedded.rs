//! Tests `syncblob_cli::run`, which a program calls in its own process.
#![cfg(unix)]

mod program;

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use libc::{c_int, SIGINT, SIGTERM, SIG_IGN};

use program::{disk_library, Files};

/// The environment variable that selects a task for the child process, which runs this test again.
const TASK: &str = "SYNCBLOB_TEST_EMBEDDED";

/// The environment variable with the path of the file in which `disk_library` logs raised signals.
const LOG: &str = "DISK_LOG";

static SEEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn own(_: c_int) {
    SEEN.fetch_add(1, Ordering::Relaxed);
}

fn handle(number: c_int, action: libc::sighandler_t) {
    // SAFETY: the handler only changes a counter.
    unsafe { libc::signal(number, action) };
}

fn raise(number: c_int) {
    // SAFETY: the call takes no pointers.
    unsafe { libc::raise(number) };
}

fn convert(from: &Path, to: &Path) -> u8 {
    let words = ["syncblob", "convert", "--force"].map(OsString::from);
    let words = words.into_iter().chain([from.into(), to.into()]);
    syncblob_cli::run(words).code()
}

fn host(task: &str) -> ExitStatus {
    let name = "the_program_handles_its_signals_afterwards";
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(TASK, task);
    let files = Files::new();
    if task == "at the end" {
        let (library, folder) = (disk_library().unwrap(), std::env::temp_dir());
        program.env("LD_PRELOAD", library).env("DISK_FOLDER", folder);
        program.env("DISK_SIGNAL", "rename:15").env(LOG, files.path("log"));
    }
    program.status().unwrap()
}

fn as_host(task: &str) {
    let files = Files::new();
    let own: extern "C" fn(c_int) = own;
    let (action, number) = match task {
        "default TERM" => (libc::SIG_DFL, SIGTERM),
        "default INT" => (libc::SIG_DFL, SIGINT),
        "ignored" => (SIG_IGN, SIGTERM),
        _ => (own as libc::sighandler_t, SIGTERM),
    };
    handle(number, action);
    let input = match task {
        "during" => files.mean("in.binaryproto", &[1 << 24], &vec![0.0; 1 << 24]),
        _ => files.mean("in.binaryproto", &[2], &[1.0, 2.0]),
    };
    let output = files.path("out.npy");
    if task == "during" {
        let folder = output.parent().unwrap().to_owned();
        let writer = thread::spawn(move || convert(&input, &output));
        while fs::read_dir(&folder).unwrap().count() < 2 {
            assert!(!writer.is_finished(), "the command ended before its signal");
            thread::sleep(Duration::from_millis(1));
        }
        raise(number);
        assert_eq!(writer.join().unwrap(), 1);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left");
        wait_until_seen();
    } else if task == "at the end" {
        assert_eq!(convert(&input, &output), 0);
        match std::env::var_os(LOG).is_some_and(|log| Path::new(&log).exists()) {
            true => wait_until_seen(),
            false => eprintln!("skipped: this program does not load tests/support/disk/disk.c"),
        }
    } else {
        for _ in 0..2 {
            assert_eq!(convert(&input, &output), 0);
        }
        drop(files);
        raise(number);
        let seen = usize::from(task == "own");
        assert_eq!(SEEN.load(Ordering::Relaxed), seen);
    }
}

fn wait_until_seen() {
    while SEEN.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_program_handles_its_signals_afterwards() {
    if let Ok(task) = std::env::var(TASK) {
        return as_host(&task);
    }
    assert_eq!(host("default TERM").signal(), Some(SIGTERM));
    assert_eq!(host("default INT").signal(), Some(SIGINT));
    for task in ["own", "ignored", "during", "at the end"] {
        if task == "at the end" && disk_library().is_none() {
            continue; // `disk_library` has printed the reason
        }
        assert!(host(task).success(), "{task}");
    }
}
