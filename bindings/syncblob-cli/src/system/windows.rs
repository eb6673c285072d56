pub use std::fs::canonicalize;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// A file has the access list that its folder gives, whether it replaces one or not.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Every link has a path here.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist(to).map_err(|failure| failure.error)
}

/// `AlreadyExists` where another file has the name.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    file.persist_noclobber(to).map_err(|failure| failure.error)
}

/// The system reports nothing here.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Brings the bytes to the disk.
pub fn sync_file(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// A folder cannot be brought to the disk.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
