pub use std::fs::canonicalize;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// Does nothing. On Windows a new file has the folder's access list, even if the new file replaces
/// an old file.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Always returns true, because Windows has no links that lead to a file without a path.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist(to).map_err(|failure| failure.error)
}

/// Renames `file` to `to`. Fails with `AlreadyExists` if `to` exists.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist_noclobber(to).map_err(|failure| failure.error)
}

/// Closes the file. Windows reports no errors when a file is closed.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

pub fn sync_file(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Does nothing, because Windows cannot sync a folder.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
