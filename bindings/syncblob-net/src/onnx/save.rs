//! Saves a file either completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Onnx;
use crate::Result;

const BUFFER: usize = 256 << 10;

/// The number of temporary names that are tried before saving fails.
const TRIES: usize = 100;

impl Onnx {
    /// Writes the file. An existing file is either replaced completely or left unchanged. Weights
    /// of more than 2 GiB are stored in a second file in the same folder. The name of the second
    /// file is the first file's name and `.data`. The second file is complete before the first file
    /// appears.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io); [`Weights`](crate::ErrorKind::Weights) if the model's file
    /// cannot be read.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut file = named(Fresh::new(path), path)?;
        if !self.needs_external() {
            self.write(&mut file.out)?;
            return named(file.publish(), path);
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".data");
        let values_path = path.with_file_name(&name);
        let mut values = named(Fresh::new(&values_path), &values_path)?;
        self.write_external(&name.to_string_lossy(), &mut file.out, &mut values.out)?;
        named(values.publish(), &values_path)?;
        named(file.publish(), path)
    }
}

/// Prepends the file's path to an error.
fn named<T>(result: io::Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| crate::Error::from(error).within(format_args!("{path:?}")))
}

/// A file that is written under a temporary name in the folder of its final path. Dropping the
/// object removes the file, unless `publish` has renamed it.
struct Fresh {
    out: BufWriter<File>,
    temporary: PathBuf,
    place: PathBuf,
}

impl Fresh {
    fn new(path: &Path) -> io::Result<Self> {
        let place = match fs::canonicalize(path) {
            Ok(place) => place, // replaces the target of a symbolic link
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        let old = fs::metadata(&place).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::Error::other("it is not a regular file"));
        }
        let (file, temporary) = create_beside(&place)?;
        let fresh = Self { out: BufWriter::with_capacity(BUFFER, file), temporary, place };
        if let Some(old) = old {
            fresh.out.get_ref().set_permissions(old.permissions())?;
        }
        Ok(fresh)
    }

    /// Flushes the bytes to the disk and renames the file to its final path.
    fn publish(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.place)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.temporary); // the file may already be missing
        }
    }
}

/// Creates a file with a new temporary name in the folder of `place`.
fn create_beside(place: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".syncblob-{}-{number}.tmp", std::process::id());
        let path = place.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests;
