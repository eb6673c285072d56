//! Renames a hidden file to its final name.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempPath;

use super::retried;

/// Replaces an existing file at `to`.
pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    retried(|| fs::rename(&file, to))?;
    let _no_longer_hidden = file.keep();
    Ok(())
}

/// Renames `file` to `to`. Fails with `AlreadyExists` if `to` exists. Tries three methods, because
/// some file systems support neither the first nor the second.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    match retried(|| rename_to_free(&file, to)) {
        Ok(()) => {
            let _no_longer_hidden = file.keep();
            return Ok(());
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    match retried(|| fs::hard_link(&file, to)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => put_over_empty(file, to),
        linked => linked, // dropping `file` removes the hidden name
    }
}

/// Creates an empty file at `to`, or fails if `to` exists. Then replaces the empty file by `file`.
fn put_over_empty(file: TempPath, to: &Path) -> io::Result<()> {
    let empty = File::options().write(true).create_new(true).open(to)?;
    replace(file, to).inspect_err(|_| {
        // Removes the empty file, unless another program has replaced it.
        let is_ours = |found: Metadata| {
            let ours = empty.metadata();
            ours.is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino()))
        };
        if fs::symlink_metadata(to).is_ok_and(is_ours) {
            let _ = fs::remove_file(to);
        }
    })
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
#[allow(unsafe_code)]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    #[cfg(target_vendor = "apple")]
    // SAFETY: both paths end in NUL.
    let status = unsafe { libc::renamex_np(from.as_ptr(), to.as_ptr(), libc::RENAME_EXCL) };
    // Uses the system call's number, because older C libraries have no function for the call.
    #[cfg(not(target_vendor = "apple"))]
    // SAFETY: both paths end in NUL. All arguments have the width that the kernel reads.
    let status = unsafe {
        let (here, flags) = (libc::c_long::from(libc::AT_FDCWD), libc::RENAME_NOREPLACE);
        libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_to_free(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_not_replaced() {
        type Way = fn(TempPath, &Path) -> io::Result<()>;
        for (name, way) in [("all", put_new as Way), ("the last", put_over_empty)] {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("out");
            let file = || {
                let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
                fs::write(file.path(), b"new").unwrap();
                file.into_temp_path()
            };
            way(file(), &to).unwrap();
            assert_eq!(fs::read(&to).unwrap(), b"new", "{name}");
            fs::write(&to, b"theirs").unwrap();
            let error = way(file(), &to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}");
            assert_eq!(fs::read(&to).unwrap(), b"theirs", "{name}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}");
        }
    }
}
