#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "access_list.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "no_access_list.rs")]
mod access_list;
mod mode;
mod place;

pub use std::fs::canonicalize;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{fchown, MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

pub use place::{put_new, replace};

/// Creates a hidden file. If the file will replace an old file, only the owner has access until
/// `keep_permissions` is called.
pub fn create(names: &mut Builder, folder: &Path, replaces: bool) -> io::Result<NamedTempFile> {
    let mode = if replaces { 0o600 } else { 0o666 }; // the umask removes bits
    names.permissions(Permissions::from_mode(mode)).tempfile_in(folder)
}

/// Copies the old file's permissions and access list, and the owner and group if the process may
/// set them. No user gains permissions. Does not copy the set-user-ID and set-group-ID bits. The
/// library follows the same rules when it replaces a file.
pub fn keep_permissions(file: &File, path: &Path, old: &Metadata) -> io::Result<()> {
    let (made, list) = (file.metadata()?, retried(|| access_list::of(path))?);
    let change_group = || retried(|| fchown(file, None, Some(old.gid())));
    let has_group = made.gid() == old.gid() || change_group().is_ok();
    let has_list = match &list {
        Some(list) if has_group => retried(|| access_list::set(file, list)).is_ok(),
        _ => false,
    };
    if !has_list {
        let mode = match (&list, old.mode() & 0o777) {
            (Some(list), mode) => mode::without_list(mode, list),
            (None, mode) if !has_group => mode::without_group(mode),
            (None, mode) => mode,
        };
        // Removes the list that the new file may have inherited from its folder.
        retried(|| access_list::remove(file))?;
        set_mode(file, mode)?;
    }
    if made.uid() != old.uid() {
        let _ours_then = fchown(file, Some(old.uid()), None);
    }
    Ok(())
}

pub fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Sets the mode. If the mode is already correct, ignores an error, because some file systems
/// cannot change modes.
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    match file.set_permissions(Permissions::from_mode(mode)) {
        Err(error) if file.metadata()?.mode() & 0o777 != mode => Err(error),
        _ => Ok(()),
    }
}

/// Closes a written file. Returns the error of the close, because a network file system may report
/// lost bytes only when the file is closed.
#[allow(unsafe_code)]
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor has no other owner.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(()), // the call has closed the file
            error => Err(error),
        },
    }
}

/// Writes the bytes to the disk, if the file system supports it.
pub fn sync_file(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if !cannot(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Writes the names in a folder to the disk, so that a new name survives a power failure.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    sync_file(&File::open(folder)?)
}

/// Returns whether the error means that the file system does not support the call.
fn cannot(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP))
}

/// Retries `call` for as long as signals interrupt the call.
fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
