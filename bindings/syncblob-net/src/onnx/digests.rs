//! Computes BLAKE3 digests of the files that a net was read from. Reading a model again takes as
//! long as writing its weights. So a second thread reads the files while the weights are written.
//! Therefore the digests are at the end of the ONNX file.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use prost::Message;

use super::proto::{ModelProto, StringStringEntryProto};
use crate::{Error, Result};

/// The number of bytes to read at a time.
const PIECE: usize = 64 << 10;

/// The number of hexadecimal digits of a digest.
const LENGTH: usize = 2 * blake3::OUT_LEN;

#[derive(Debug)]
pub(super) struct Digests(Vec<Digest>);

#[derive(Debug)]
struct Digest {
    key: String,
    path: PathBuf,
    file: Mutex<File>,
    text: OnceLock<String>,
}

impl Digests {
    /// Opens the regular files. A pipe has no digest, because it cannot be read again.
    pub fn new(sources: &[(&'static str, PathBuf)]) -> Self {
        let of_source = |(what, path): &(&str, PathBuf)| {
            let file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
            Some(Digest {
                key: format!("caffe.{what}.blake3"),
                path: path.clone(),
                file: Mutex::new(file.and_then(|_| File::open(path).ok())?),
                text: OnceLock::new(),
            })
        };
        Self(sources.iter().filter_map(of_source).collect())
    }

    /// Returns the size of the encoded metadata that `while_writing` returns.
    pub fn size(&self) -> u64 {
        self.metadata(|_| "0".repeat(LENGTH)).len() as u64
    }

    /// Calls `write` while a thread computes the digests. Returns the digests as encoded metadata
    /// of an ONNX model.
    pub fn while_writing(&self, write: impl FnOnce() -> Result<()>) -> Result<Vec<u8>> {
        let is_stopped = AtomicBool::new(false);
        thread::scope(|scope| {
            let is_needed = self.0.iter().any(|digest| digest.text.get().is_none());
            let start = || thread::Builder::new().spawn_scoped(scope, || self.compute(&is_stopped));
            let thread = is_needed.then(start).and_then(io::Result::ok);
            write().inspect_err(|_| is_stopped.store(true, Ordering::Relaxed))?;
            match thread.map(thread::ScopedJoinHandle::join) {
                Some(Ok(computed)) => computed,
                _ => self.compute(&is_stopped), // no thread has computed the digests
            }
        })?;
        Ok(self.metadata(|digest| digest.text.get().cloned().unwrap_or_default()))
    }

    fn compute(&self, is_stopped: &AtomicBool) -> Result<()> {
        self.0.iter().try_for_each(|digest| digest.compute(is_stopped))
    }

    fn metadata(&self, text: impl Fn(&Digest) -> String) -> Vec<u8> {
        let entry = |digest: &Digest| StringStringEntryProto {
            key: digest.key.clone(),
            value: text(digest),
        };
        let metadata_props = self.0.iter().map(entry).collect();
        ModelProto { metadata_props, ..ModelProto::default() }.encode_to_vec()
    }
}

impl Digest {
    fn compute(&self, is_stopped: &AtomicBool) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.text.get().is_some() {
            return Ok(());
        }
        let text = digest(&mut file, is_stopped)
            .map_err(|error| Error::from(error).within(format_args!("{:?}", self.path)))?;
        self.text.get_or_init(|| text);
        Ok(())
    }
}

fn digest(file: &mut File, is_stopped: &AtomicBool) -> io::Result<String> {
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    while !is_stopped.load(Ordering::Relaxed) {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize().to_string()),
            Ok(size) => hasher.update(&piece[..size]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
    Err(io::Error::other("stopped"))
}

#[cfg(test)]
mod tests;
