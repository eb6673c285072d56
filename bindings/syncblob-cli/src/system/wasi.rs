use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

/// The path of a file that is there; a link is `NotFound`, and the caller reads it. The system
/// resolves no paths.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path)?.is_symlink() {
        true => Err(ErrorKind::NotFound.into()),
        false => Ok(path.to_owned()),
    }
}

pub fn create(names: &mut Builder, folder: &Path, _replaces: bool) -> io::Result<NamedTempFile> {
    names.tempfile_in(folder)
}

/// Files have no permissions.
pub fn keep_permissions(_: &File, _: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The numbers of files are not in the stable library: links were resolved by their texts.
pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn replace(file: TempPath, to: &Path) -> io::Result<()> {
    fs::rename(&file, to)?;
    let _no_longer_hidden = file.keep();
    Ok(())
}

/// `AlreadyExists` where another file has the name, unless that comes at the same moment: hosts
/// need not have links.
pub fn put_new(file: TempPath, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Err(_) => replace(file, to),
    }
}

/// The system reports nothing here.
pub fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Brings the bytes to the disk, if the host can.
pub fn sync_file(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// A folder is not brought to the disk.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
