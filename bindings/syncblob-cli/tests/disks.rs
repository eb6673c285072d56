//! Tests writing to file systems on which system calls fail or are missing.
#![cfg(target_os = "linux")]

mod program;

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{disk_library, Files};

/// The command, its options, the output's name, and whether the C library writes the output.
const SAVES: [(&str, &[&str], &str, bool); 7] = [
    ("convert", &[], "x.npz", false),
    ("convert", &[], "x.npy", false),
    ("convert", &[], "x.safetensors", false),
    ("convert", &[], "x.binaryproto", true),
    ("convert", &[], "x.onnx", false),
    ("report", &["-o"], "x.html", false),
    ("show", &["-o"], "x.png", false),
];

struct Run {
    status: Option<i32>,
    err: String,
    /// Lists the system calls that failed, or at which a signal was raised.
    log: String,
}

struct Disk {
    files: Files,
    folder: PathBuf,
    input: PathBuf,
    net: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let files = Files::new();
        let folder = files.path("disk");
        fs::create_dir(&folder).unwrap();
        let values: Vec<_> = (0..48).map(|i| i as f32).collect();
        let input = files.mean("in.binaryproto", &[1, 3, 4, 4], &values);
        let folder = fs::canonicalize(folder).unwrap();
        let net = files.carrying_net("in.caffemodel", 3, 2);
        Self { files, folder, input, net }
    }

    fn run(&self, save: usize, force: bool, variables: &[(&str, &str)]) -> Run {
        let (command, option, name, _) = SAVES[save];
        let log = self.files.path("log");
        let mut words: Vec<&OsStr> = vec![OsStr::new(command)];
        if force {
            words.push(OsStr::new("--force"));
        }
        let out = self.out(save);
        let input = if name == "x.onnx" { &self.net } else { &self.input };
        words.push(input.as_os_str());
        words.extend(option.iter().map(OsStr::new));
        words.push(out.as_os_str());
        let mut program = Command::new(env!("CARGO_BIN_EXE_syncblob"));
        program
            .args(words)
            .env("LD_PRELOAD", disk_library().unwrap())
            .envs(variables.iter().copied());
        program.env("DISK_FOLDER", &self.folder).env("DISK_LOG", &log);
        let output = program.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.stdout.is_empty() && output.status.code() != Some(101), "{name}: {err}");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        assert!(output.status.signal().is_none(), "{name}: {:?} {text}", output.status);
        Run { status: output.status.code(), err, log: text }
    }

    fn out(&self, save: usize) -> PathBuf {
        self.folder.join(SAVES[save].2)
    }

    /// Returns the bytes that the program writes if no call fails. Removes the output.
    fn expected(&self, save: usize) -> Vec<u8> {
        let run = self.run(save, false, &[]);
        assert_eq!((run.status, &*run.err), (Some(0), ""));
        let bytes = fs::read(self.out(save)).unwrap();
        fs::remove_file(self.out(save)).unwrap();
        bytes
    }

    fn is_empty_but_for(&self, save: usize, there: bool) -> bool {
        let names: Vec<OsString> =
            fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names == (if there { vec![OsString::from(SAVES[save].2)] } else { vec![] })
    }

    fn old(&self, save: usize, mode: u32) -> PathBuf {
        let out = self.out(save);
        fs::write(&out, b"old").unwrap();
        fs::set_permissions(&out, Permissions::from_mode(mode)).unwrap();
        out
    }
}

/// Returns None if the program is linked statically or runs in an emulator, where preloading fails.
fn disk() -> Option<Disk> {
    disk_library()?;
    let disk = Disk::new();
    let run = disk.run(0, false, &[("DISK_FAIL", "write:28:1")]);
    if run.log.is_empty() {
        eprintln!("skipped: the program does not load tests/support/disk/disk.c");
        let _ = fs::remove_file(disk.out(0));
        return None;
    }
    assert_eq!(run.status, Some(1), "{}", run.err);
    Some(disk)
}

#[test]
fn a_new_file_needs_neither_links_nor_an_exclusive_rename() {
    let Some(disk) = disk() else { return };
    let lacking = ("DISK_LACKS", "links noreplace");
    for (save, (_, _, name, _)) in SAVES.iter().enumerate() {
        let expected = disk.expected(save);
        let run = disk.run(save, false, &[lacking]);
        assert_eq!((run.status, &*run.err), (Some(0), ""), "{name}");
        assert!(run.log.contains("noreplace") && run.log.contains("link"), "{}", run.log);
        assert!(fs::read(disk.out(save)).unwrap() == expected, "{name}");
        assert!(disk.is_empty_but_for(save, true));
        let again = disk.run(save, false, &[lacking]);
        assert!(again.status == Some(1) && again.err.contains("--force"), "{}", again.err);
        assert!(fs::read(disk.out(save)).unwrap() == expected, "{name}");
        fs::remove_file(disk.out(save)).unwrap();
    }
}

#[test]
fn a_name_that_was_reserved_for_a_new_file_is_released() {
    let Some(disk) = disk() else { return };
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        let fail = if *is_librarys { "rename:5:2" } else { "rename:5:1" };
        let run = disk.run(save, false, &[("DISK_LACKS", "links noreplace"), ("DISK_FAIL", fail)]);
        assert!(run.log.contains("rename 5"), "{name}: {}", run.log);
        assert_eq!(run.status, Some(1), "{name}");
        assert!(run.err.contains("Input/output error"), "{name}: {}", run.err);
        assert!(disk.is_empty_but_for(save, false), "{name}");
    }
}

#[test]
fn a_failure_after_the_rename_is_a_note() {
    let Some(disk) = disk() else { return };
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        let expected = disk.expected(save);
        let sync = if *is_librarys { "syncfolder:5:2" } else { "syncfolder:5:1" };
        for (variable, call) in
            [(("DISK_FAIL", sync), "syncfolder"), (("DISK_LACKS", "folders"), "open")]
        {
            if *is_librarys && call == "open" {
                continue; // the library opens the folder before it writes
            }
            disk.old(save, 0o644);
            let run = disk.run(save, true, &[variable]);
            assert!(run.log.contains(call), "{name}: {}", run.log);
            assert_eq!(run.status, Some(0), "{name}: {}", run.err);
            assert!(run.err.contains("note: ") && run.err.contains("power failure"), "{}", run.err);
            assert!(fs::read(disk.out(save)).unwrap() == expected, "{name}");
            assert!(disk.is_empty_but_for(save, true), "{name}");
        }
        fs::remove_file(disk.out(save)).unwrap();
    }
}

#[test]
fn a_signal_after_the_last_check_does_not_end_the_program() {
    let Some(disk) = disk() else { return };
    for (save, (command, _, name, is_librarys)) in SAVES.iter().enumerate() {
        if *command == "show" || *is_librarys {
            continue; // a signal ends `show` at once, and the library renames its own files
        }
        let expected = disk.expected(save);
        for call in ["rename:15", "syncfolder:2"] {
            disk.old(save, 0o644);
            let run = disk.run(save, true, &[("DISK_SIGNAL", call)]);
            assert!(!run.log.is_empty(), "{name}: no signal came");
            assert_eq!((run.status, &*run.err), (Some(0), ""), "{name}, {call}");
            assert!(fs::read(disk.out(save)).unwrap() == expected, "{name}, {call}");
        }
        fs::remove_file(disk.out(save)).unwrap();
    }
}

#[test]
fn bytes_that_are_lost_on_close_are_an_error() {
    let Some(disk) = disk() else { return };
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        let fail = if *is_librarys { "close:28:2" } else { "close:28:1" };
        disk.old(save, 0o644);
        let run = disk.run(save, true, &[("DISK_FAIL", fail)]);
        assert!(run.log.contains("close 28"), "{name}: {}", run.log);
        assert_eq!(run.status, Some(1), "{name}");
        assert!(run.err.contains("No space left"), "{name}: {}", run.err);
        assert_eq!(fs::read(disk.out(save)).unwrap(), b"old", "{name}");
        assert!(disk.is_empty_but_for(save, true), "{name}");
        fs::remove_file(disk.out(save)).unwrap();
    }
}

#[test]
fn a_correct_mode_need_not_be_changed() {
    let Some(disk) = disk() else { return };
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        if *is_librarys {
            continue; // the library preserves permissions
        }
        for (mode, status) in [(0o600, 0), (0o644, 1)] {
            disk.old(save, mode);
            let run = disk.run(save, true, &[("DISK_LACKS", "modes sync lists")]);
            assert!(run.log.contains("chmod"), "{name}: {}", run.log);
            assert_eq!(run.status, Some(status), "{name}: {}", run.err);
            let is_old = fs::read(disk.out(save)).unwrap() == b"old";
            assert_eq!(is_old, status == 1, "{name}");
            assert_eq!(fs::metadata(disk.out(save)).unwrap().mode() & 0o777, mode);
            assert!(disk.is_empty_but_for(save, true), "{name}");
        }
        fs::remove_file(disk.out(save)).unwrap();
    }
}

#[test]
fn calls_that_fail_at_random_leave_the_old_file_or_the_new_one() {
    let Some(disk) = disk() else { return };
    let runs = if std::env::var_os("SYNCBLOB_TEST_FULL").is_some() { 600 } else { 20 };
    let (mut failed, mut written, mut refused) = (0, 0, 0);
    for (save, (_, _, name, _)) in SAVES.iter().enumerate() {
        let expected = disk.expected(save);
        for seed in 0..runs {
            let force = seed % 2 == 0;
            if force {
                disk.old(save, 0o640);
            }
            let lacks = ["", "links", "noreplace", "links noreplace", "sync", "lists"][seed % 6];
            let (seed, one_in) = (seed.to_string(), (seed % 7 + 4).to_string());
            let run = disk.run(
                save,
                force,
                &[("DISK_SEED", &seed), ("DISK_ONE_IN", &one_in), ("DISK_LACKS", lacks)],
            );
            let details = format!("{name}, seed {seed}: {}{}", run.err, run.log);
            failed += run.log.lines().count();
            match run.status {
                Some(0) => {
                    written += 1;
                    assert!(fs::read(disk.out(save)).unwrap() == expected, "{details}");
                    let mode = fs::metadata(disk.out(save)).unwrap().mode() & 0o777;
                    assert!(!force || mode == 0o640, "{mode:o}: {details}");
                    assert!(disk.is_empty_but_for(save, true), "{details}");
                }
                Some(1) => {
                    refused += 1;
                    assert!(!run.err.is_empty(), "{details}");
                    assert!(disk.is_empty_but_for(save, force), "{details}");
                    if force {
                        assert_eq!(fs::read(disk.out(save)).unwrap(), b"old", "{details}");
                    }
                }
                _ => panic!("{:?}: {details}", run.status),
            }
            let _ = fs::remove_file(disk.out(save));
        }
    }
    assert!(
        failed > 4 * runs && written > runs && refused > runs,
        "{failed}, {written}, {refused}"
    );
}

// --- access control lists ---------------------------------------------------------------

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Returns an access control list in the kernel's format: tags, rights and user numbers.
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, number) in entries {
        list.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        list.extend(number.to_le_bytes());
    }
    list
}

/// `user::rw-, user:1002:rw-, group::---, mask::rw-, other::---`
fn for_one_user() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    list(&[
        (USER_OBJ, 6, NOBODY),
        (USER, 6, 1002),
        (GROUP_OBJ, 0, NOBODY),
        (MASK, 6, NOBODY),
        (OTHER, 0, NOBODY),
    ])
}

fn path_of(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// If the file system does not support access lists, prints the error and returns false.
fn set_list(path: &Path, name: &std::ffi::CStr, list: &[u8]) -> bool {
    let path = path_of(path);
    // SAFETY: the texts end in NUL, and the list has `list.len()` bytes.
    let status = unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), list.as_ptr().cast(), list.len(), 0)
    };
    if status != 0 {
        let error = std::io::Error::last_os_error();
        eprintln!("skipped: no access list can be set here: {error}");
    }
    status == 0
}

fn list_of(path: &Path) -> Option<Vec<u8>> {
    let (path, mut list) = (path_of(path), vec![0; 1024]);
    let name = c"system.posix_acl_access";
    // SAFETY: the texts end in NUL, and the list has `list.len()` bytes.
    let size = unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), list.as_mut_ptr().cast(), list.len())
    };
    list.truncate(usize::try_from(size).ok()?);
    Some(list)
}

/// Calls `check` after each kind of output has replaced a file that has an access list.
fn over_a_list(variables: &[(&str, &str)], check: impl Fn(&Path)) {
    let Some(disk) = disk() else { return };
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        if *is_librarys {
            continue; // the library preserves permissions
        }
        let out = disk.old(save, 0o600);
        if !set_list(&out, c"system.posix_acl_access", &for_one_user()) {
            return;
        }
        let run = disk.run(save, true, variables);
        assert_eq!((run.status, &*run.err), (Some(0), ""), "{name}");
        assert_ne!(fs::read(&out).unwrap(), b"old");
        check(&out);
        fs::remove_file(out).unwrap();
    }
}

#[test]
fn the_access_list_of_the_old_file_is_kept() {
    over_a_list(&[], |out| {
        assert_eq!(list_of(out), Some(for_one_user()));
        assert_eq!(fs::metadata(out).unwrap().mode() & 0o777, 0o660);
    });
}

/// The group bits of the old file's mode are the list's mask, which may exceed the group's rights.
#[test]
fn without_the_old_list_the_group_has_no_rights() {
    over_a_list(&[("DISK_FAIL", "setlist:1:1")], |out| {
        assert_eq!(list_of(out), None);
        assert_eq!(fs::metadata(out).unwrap().mode() & 0o777, 0o600);
    });
}

#[test]
fn a_default_list_of_a_folder_grants_no_rights_to_a_replaced_file() {
    let Some(disk) = disk() else { return };
    if !set_list(&disk.folder, c"system.posix_acl_default", &for_one_user()) {
        return;
    }
    for (save, (_, _, name, is_librarys)) in SAVES.iter().enumerate() {
        if *is_librarys {
            continue; // the library preserves permissions
        }
        let out = disk.old(save, 0o600);
        let path = path_of(&out);
        // SAFETY: the texts end in NUL.
        unsafe { libc::removexattr(path.as_ptr(), c"system.posix_acl_access".as_ptr()) };
        fs::set_permissions(&out, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(list_of(&out), None);
        assert_eq!(disk.run(save, true, &[]).status, Some(0), "{name}");
        assert_eq!(list_of(&out), None, "{name}");
        assert_eq!(fs::metadata(&out).unwrap().mode() & 0o777, 0o640, "{name}");
        fs::remove_file(&out).unwrap();
        // A new file gets the default list of its folder.
        assert_eq!(disk.run(save, false, &[]).status, Some(0), "{name}");
        assert!(list_of(&out).is_some(), "{name}");
        fs::remove_file(&out).unwrap();
    }
}
