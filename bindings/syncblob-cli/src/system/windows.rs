pub use std::fs::canonicalize;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// Does nothing: a new file has its folder's access list, even if it replaces an old file.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Always returns true, because on Windows every link contains a path.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist(to).map_err(|failure| failure.error)
}

/// Fails with `AlreadyExists` if another file has the name.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist_noclobber(to).map_err(|failure| failure.error)
}

/// Ignores errors, because Windows reports none here.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Writes the bytes to the disk.
pub fn sync_file(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Does nothing, because Windows cannot sync a folder.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
