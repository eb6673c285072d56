use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

/// Returns the path of an existing file. Fails with `NotFound` for a link, so that the caller reads
/// the link: WASI cannot resolve paths.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path)?.is_symlink() {
        true => Err(ErrorKind::NotFound.into()),
        false => Ok(path.to_owned()),
    }
}

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// Does nothing: files have no permissions.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Always true: Rust's stable library has no file numbers for WASI, and the caller has resolved
/// links by their text.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    fs::rename(&file, to)?;
    let _no_longer_hidden = file.keep();
    Ok(())
}

/// Fails with `AlreadyExists` if another file has the name. Replaces a file that is created between
/// the check and the rename: hosts need not support links.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) => replace(file, to),
    }
}

/// WASI reports no errors here.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Writes the bytes to the disk, if the host can.
pub fn sync_file(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Does nothing: folders are not synced.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
