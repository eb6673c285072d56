use std::fmt;
use std::str::FromStr;

use syncblob_sys as sys;

use crate::ffi::by_name;
use crate::{Error, Result};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Format {
    /// `BlobProto`, such as `mean.binaryproto`.
    Blob,
    /// `NetParameter`: `.caffemodel`.
    Caffemodel,
    /// `SolverState`: `.solverstate`.
    Solverstate,
    /// `BlobProtoVector`. A file without values in its first blob is not detected as this format.
    BlobVector,
    /// A format that only a newer library defines, as its number in C.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Other(i32),
}

impl Format {
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Blob => sys::SB_FORMAT_BLOB,
            Self::Caffemodel => sys::SB_FORMAT_CAFFEMODEL,
            Self::Solverstate => sys::SB_FORMAT_SOLVERSTATE,
            Self::BlobVector => sys::SB_FORMAT_BLOB_VECTOR,
            Self::Other(code) => code,
        }
    }

    const ALL: [Self; 4] = [Self::Blob, Self::Caffemodel, Self::Solverstate, Self::BlobVector];

    pub(super) fn from_code(code: i32) -> Self {
        match code {
            sys::SB_FORMAT_BLOB => Self::Blob,
            sys::SB_FORMAT_CAFFEMODEL => Self::Caffemodel,
            sys::SB_FORMAT_SOLVERSTATE => Self::Solverstate,
            sys::SB_FORMAT_BLOB_VECTOR => Self::BlobVector,
            other => Self::Other(other),
        }
    }

    /// Returns the short name: `"blob"`, `"caffemodel"`, `"solverstate"`, `"blobvector"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Caffemodel => "caffemodel",
            Self::Solverstate => "solverstate",
            Self::BlobVector => "blobvector",
            Self::Other(_) => "unknown",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses the short name.
impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        by_name(name, "format", &Self::ALL)
    }
}

/// The generation of Caffe's format in which a layer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Generation {
    /// `NetParameter.layers[i].layer`
    V0,
    /// `NetParameter.layers`
    V1,
    /// `NetParameter.layer`
    Current,
    /// A generation that only a newer library defines, as its number in C.
    Other(i32),
}
