use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

/// Returns `path` if a file exists there. Fails with `NotFound` for a link, because WASI cannot
/// resolve links: the caller then reads the link.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path)?.is_symlink() {
        true => Err(ErrorKind::NotFound.into()),
        false => Ok(path.to_owned()),
    }
}

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// Does nothing, because files have no permissions.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Always returns true, because stable Rust has no inode numbers for WASI. The caller has already
/// followed the links.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    fs::rename(&file, to)?;
    let _no_longer_hidden = file.keep();
    Ok(())
}

/// Renames `file` to `to`. Fails with `AlreadyExists` if `to` exists. If another process creates
/// `to` between the check and the rename, its file is lost. A hard link would prevent this loss,
/// but hosts need not support hard links.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) => replace(file, to),
    }
}

/// Closes the file. WASI reports no errors when a file is closed.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Writes the bytes to the disk, if the host supports it.
pub fn sync_file(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Does nothing, because folders are not synced.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
