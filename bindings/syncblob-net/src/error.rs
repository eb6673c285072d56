use std::fmt;

/// What [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text or the bytes are not a net's message.
    Malformed,
    /// More than a [limit](crate::Limits) allows.
    Limit,
    /// The net contradicts itself, its rules or its weights.
    Invalid,
    /// Right for Caffe, or for a fork of it, but not converted here.
    Unsupported,
    /// The weights cannot be read; [`Error::source`](std::error::Error::source) says why.
    Weights,
    /// A file cannot be read or written.
    Io,
}

/// Why a net cannot be read or converted: what is wrong, and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), source: None }
    }

    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn unsupported(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The kind, to decide by.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same, with what it happened in before it: `layer 'conv1' (Convolution): …`.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<syncblob::Error> for Error {
    fn from(error: syncblob::Error) -> Self {
        let message = error.to_string();
        Self { kind: ErrorKind::Weights, message, source: Some(Box::new(error)) }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let message = error.to_string();
        Self { kind: ErrorKind::Io, message, source: Some(Box::new(error)) }
    }
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;
