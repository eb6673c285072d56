use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{fchown, MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// A hidden file: for its owner alone until it has the permissions of an old one.
pub fn create(names: &mut Builder, folder: &Path, replaces: bool) -> io::Result<NamedTempFile> {
    let mode = if replaces { 0o600 } else { 0o666 }; // the mask applies
    names.permissions(Permissions::from_mode(mode)).tempfile_in(folder)
}

/// Permissions, and owner and group where the process may, as the library's writer
/// keeps them: without a group that may not be kept, group and others get what both
/// had; the bits to run as another user are not kept.
pub fn keep_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    let (made, mut mode) = (file.metadata()?, old.mode() & 0o777);
    if made.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
        let both = mode >> 3 & mode & 0o7;
        mode = mode & 0o700 | both << 3 | both;
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    if made.uid() != old.uid() {
        let _ours_then = fchown(file, Some(old.uid()), None);
    }
    Ok(())
}

/// So that the name outlives a power failure. Not every file system can: EINVAL.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}
