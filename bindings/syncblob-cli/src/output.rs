//! A file that is written beside its place and put there when it is whole.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::source::{Failure, Result};

/// Where a file is to be.
pub struct Target {
    /// Links resolved, so that a link to the file stays one.
    path: PathBuf,
    folder: PathBuf,
    /// The permissions of the file that is there.
    mode: Option<u32>,
    force: bool,
}

impl Target {
    pub fn new(path: &Path, force: bool) -> Result<Self> {
        let path = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            resolved => resolved?,
        };
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new(".").to_owned(),
            Some(folder) => folder.to_owned(),
            None => return Err(Failure::Unsupported("it is no place for a file".into())),
        };
        let mode = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
            Ok(info) if !info.is_file() => {
                return Err(Failure::Unsupported("it is no regular file".into()));
            }
            Ok(_) if !force => {
                return Err(Failure::Unsupported(
                    "it is there already: --force replaces it".into(),
                ));
            }
            Ok(info) => Some(info.permissions().mode() & 0o777),
        };
        Ok(Self { path, folder, mode, force })
    }

    /// Has the bytes written under a hidden name in the same folder, brings them
    /// to the disk and gives them their name. On failure nothing is left.
    pub fn write(&self, write: impl FnOnce(&mut NamedTempFile) -> Result<()>) -> Result<()> {
        let mut temporary = Builder::new()
            .prefix(".syncblob-")
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o666)) // the mask of the process applies
            .tempfile_in(&self.folder)?;
        if let Some(mode) = self.mode {
            temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
        }
        write(&mut temporary)?;
        temporary.as_file().sync_all()?;
        match self.force {
            true => temporary.persist(&self.path),
            false => temporary.persist_noclobber(&self.path),
        }
        .map_err(|failure| failure.error)?;
        sync_folder(&self.folder)
    }
}

/// So that the name outlives a power failure. Not every file system can: EINVAL.
fn sync_folder(folder: &Path) -> Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error.into()),
        _ => Ok(()),
    }
}
