//! Detects the format of a file.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use syncblob::{ErrorKind, Format, ReadAt};

use super::{npz, Failure, Result};
use crate::advice;

/// The formats of files that contain tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFormat {
    /// One of Caffe's formats. For an input, `None` means that the library detects the format. For
    /// an output, `None` means a .caffemodel.
    Caffe(Option<Format>),
    /// A safetensors file.
    Safetensors,
    /// A NumPy archive of arrays (.npz).
    Npz,
    /// A NumPy file with one array (.npy).
    Npy,
}

impl FileFormat {
    /// Detects the format from the first bytes. For unknown bytes, returns `Caffe(None)`, so that
    /// the library reads the file or reports the file's kind.
    pub(crate) fn of_file(file: &File) -> Result<Self> {
        let mut start = [0; 9];
        let found = read_start(file, &mut start)?;
        let length = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| start[i]));
        Ok(match &start[..found] {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Self::Npy,
            // An archive begins with its first member (3, 4). An empty archive has only the end
            // record (5, 6).
            [b'P', b'K', 3, 4, ..] if npz::is_of_others(file)? => Self::Caffe(None),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Npz,
            [.., b'{'] if found == start.len() && length < file.metadata()?.len() => {
                Self::Safetensors
            }
            _ => Self::Caffe(None),
        })
    }

    /// Returns the format that belongs to a path's extension.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "caffemodel" => Self::Caffe(Some(Format::Caffemodel)),
            "solverstate" => Self::Caffe(Some(Format::Solverstate)),
            "binaryproto" => Self::Caffe(Some(Format::Blob)),
            "safetensors" => Self::Safetensors,
            "npz" => Self::Npz,
            "npy" => Self::Npy,
            _ => return None,
        })
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caffe(format) => format.map_or("caffe", Format::name),
            Self::Safetensors => "safetensors",
            Self::Npz => "npz",
            Self::Npy => "npy",
        })
    }
}

/// Returns the probable format of a file that the library refused. Returns None for Caffe's
/// formats, or if the format is unknown.
pub fn meant(path: &Path, failure: &Failure) -> Option<FileFormat> {
    let Failure::Library(error) = failure else { return None };
    let is_of_bytes = !matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::OutOfMemory | ErrorKind::CapReached | ErrorKind::Cancelled
    );
    if !is_of_bytes || !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    match advice::known(error) {
        Some("a safetensors file") => Some(FileFormat::Safetensors), // a truncated safetensors file
        Some(_) => None,
        None => FileFormat::of_path(path).filter(|format| !matches!(format, FileFormat::Caffe(_))),
    }
}

fn read_start(file: &File, start: &mut [u8]) -> Result<usize> {
    let mut found = 0;
    while found < start.len() {
        match file.read_at(&mut start[found..], found as u64) {
            Ok(0) => break,
            Ok(n) => found += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Io(error)),
        }
    }
    Ok(found)
}
