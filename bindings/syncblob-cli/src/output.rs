//! Writes a file under a hidden name in its folder, and renames the file when all bytes are
//! written.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::convert::Note;
use crate::interrupt::Interrupt;
use crate::source::{Failure, Result};
use crate::system;
use crate::text::printable;

const IS_THERE: &str = "the file exists already: --force replaces it";

/// The maximum number of symbolic links in a path on Linux.
const MAX_LINKS: usize = 40;

/// The path where a file will be written.
pub struct Target {
    /// The path with links resolved, so that saving through a link replaces the link's target.
    path: PathBuf,
    folder: PathBuf,
    /// The metadata of the existing file that will be replaced, if any.
    old: Option<Metadata>,
    force: bool,
}

impl Target {
    pub fn new(path: &Path, force: bool) -> Result<Self> {
        // `asked` is the file that the system would open. A link in /proc may lead to a file
        // without a name.
        let asked = fs::metadata(path).ok();
        if asked.as_ref().is_some_and(|asked| !asked.is_file()) {
            return Err(Failure::Unsupported("it is not a regular file".into()));
        }
        let path = resolve(path)?;
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new(".").to_owned(),
            Some(folder) => folder.to_owned(),
            None => return Err(Failure::Unsupported("it is not the path of a file".into())),
        };
        if !folder.is_dir() {
            let name = folder.to_string_lossy();
            let text = format!("there is no folder \"{}\": create it first", printable(&name));
            return Err(Failure::Unsupported(text));
        }
        let old = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
            Ok(_) if !force => {
                return Err(Failure::Unsupported(IS_THERE.into()));
            }
            Ok(info) => Some(info),
        };
        if asked.is_some_and(|asked| !old.as_ref().is_some_and(|old| system::is_same(&asked, old)))
        {
            return Err(Failure::Unsupported(
                "it is an open file, not a name: give the name of a file".into(),
            ));
        }
        Ok(Self { path, folder, old, force })
    }

    /// Writes a hidden file in the same folder, syncs the file and renames it. Fails if a signal
    /// arrives. After a failure, no new file remains. If the folder cannot be synced, calls `note`
    /// instead of failing, because the file already has its name.
    pub fn write(
        &self,
        interrupt: &Interrupt,
        note: Note,
        write: impl FnOnce(&mut NamedTempFile) -> Result<()>,
    ) -> Result<()> {
        self.put(interrupt, note, |mut temporary| {
            write(&mut temporary)?;
            synced(temporary)
        })
    }

    /// Writes two files. This file refers to `other`, so `other` gets its name first. If this file
    /// cannot be renamed, removes `other`, unless `other` has replaced an old file.
    pub fn write_with(
        &self,
        other: &Self,
        interrupt: &Interrupt,
        note: Note,
        write: impl FnOnce(&File, &File) -> Result<()>,
    ) -> Result<()> {
        let (own, others) = (self.temporary()?, other.temporary()?);
        write(own.as_file(), others.as_file())?;
        let (own, others) = (synced(own)?, synced(others)?);
        interrupt.check()?;
        other.place(others)?;
        if let Err(failure) = self.place(own) {
            if other.old.is_none() {
                let _ = fs::remove_file(&other.path); // the failure above is reported
            }
            return Err(failure);
        }
        interrupt.settle();
        self.outlast(note);
        Ok(())
    }

    /// Like `write`, but the library writes and syncs the file. Closes the temporary file first,
    /// because Windows cannot replace an open file.
    pub fn save(
        &self,
        interrupt: &Interrupt,
        note: Note,
        save: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        self.put(interrupt, note, |temporary| {
            let path = temporary.into_temp_path();
            save(&path)?;
            Ok(path)
        })
    }

    fn put(
        &self,
        interrupt: &Interrupt,
        note: Note,
        fill: impl FnOnce(NamedTempFile) -> Result<TempPath>,
    ) -> Result<()> {
        let whole = fill(self.temporary()?)?;
        interrupt.check()?;
        self.place(whole)?;
        interrupt.settle();
        self.outlast(note);
        Ok(())
    }

    /// Makes the hidden file, with the permissions of the file that it will replace, if any.
    fn temporary(&self) -> Result<NamedTempFile> {
        let mut names = Builder::new();
        names.prefix(".syncblob-").suffix(".tmp");
        let temporary = system::create(&mut names, &self.folder, self.old.is_some())?;
        if let Some(old) = &self.old {
            system::keep_permissions(temporary.as_file(), &self.path, old)?;
        }
        Ok(temporary)
    }

    fn place(&self, whole: TempPath) -> Result<()> {
        match self.force {
            true => Ok(system::replace(whole, &self.path)?),
            false => system::put_new(whole, &self.path).map_err(is_there),
        }
    }

    /// Syncs the folder, so that the file's name survives a power failure. Passes a failure only to
    /// `note`, because the file is already complete.
    fn outlast(&self, note: Note) {
        if let Err(error) = system::sync_folder(&self.folder) {
            let name = self.path.to_string_lossy();
            let name = printable(&name);
            note(&format_args!("{name} is written, but may not outlive a power failure: {error}"));
        }
    }
}

/// Syncs and closes a file. Returns its path.
fn synced(temporary: NamedTempFile) -> Result<TempPath> {
    let (file, path) = temporary.into_parts();
    system::sync_file(&file)?;
    system::close(file)?;
    Ok(path)
}

fn is_there(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Unsupported(IS_THERE.into()),
        _ => error.into(),
    }
}

/// Returns the real path of a file, even if a link names a missing file.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match system::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            resolved => return resolved,
        }
        path = match fs::read_link(&path) {
            Ok(link) => path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        };
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_signal_after_the_last_byte_keeps_the_old_file() {
        let (folder, interrupt) = (tempfile::tempdir().unwrap(), Interrupt::default());
        let path = folder.path().join("out");
        fs::write(&path, b"old").unwrap();
        let written = Target::new(&path, true).unwrap().write(&interrupt, &|_| {}, |out| {
            fs::write(out.path(), b"new")?;
            interrupt.arrive();
            Ok(())
        });
        assert!(matches!(written, Err(Failure::Interrupted)), "{written:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    fn pair(force: bool) -> (tempfile::TempDir, [Target; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let targets = ["out", "out.data"].map(|name| {
            let path = folder.path().join(name);
            if force {
                fs::write(&path, b"old").unwrap();
            }
            Target::new(&path, force).unwrap()
        });
        (folder, targets)
    }

    fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut found: Vec<_> = entries
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn two_files_are_written_together_or_not_at_all() {
        let both = |bytes: &[u8]| ["out", "out.data"].map(|name| (name.into(), bytes.to_vec()));
        for force in [false, true] {
            let before = if force { both(b"old").to_vec() } else { vec![] };
            for (stop, fail) in [(false, false), (true, false), (false, true)] {
                let (folder, [out, data]) = pair(force);
                let interrupt = Interrupt::default();
                let written = out.write_with(&data, &interrupt, &|_| {}, |mut out, mut data| {
                    data.write_all(b"new")?;
                    out.write_all(b"new")?;
                    if stop {
                        interrupt.arrive();
                    }
                    if fail {
                        return Err(Failure::Unsupported("no".into()));
                    }
                    Ok(())
                });
                let wanted = if stop || fail { before.clone() } else { both(b"new").to_vec() };
                assert_eq!(written.is_ok(), !stop && !fail);
                assert_eq!(contents(folder.path()), wanted, "{force} {stop} {fail}");
            }
        }
        // Another process creates the file `out` while the two files are written.
        let (folder, [out, data]) = pair(false);
        let path = folder.path().join("out");
        let written = out.write_with(&data, &Interrupt::default(), &|_| {}, |_, _| {
            Ok(fs::write(&path, b"theirs")?)
        });
        assert!(written.is_err());
        assert_eq!(contents(folder.path()), [("out".into(), b"theirs".to_vec())]);
    }
}
