use std::fmt;

use crate::net::Layer;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text or the bytes are not a valid message that describes a net.
    Malformed,
    /// The net exceeds a [limit](crate::Limits).
    Limit,
    /// The net contradicts itself, breaks Caffe's rules or does not fit its weights.
    Invalid,
    /// An option does not fit the net; for example, it names an unknown blob.
    Argument,
    /// The net is valid in Caffe or in a fork of Caffe, but this crate does not convert it.
    Unsupported,
    /// The weights cannot be read; [`Error::source`](std::error::Error::source) returns the reason.
    Weights,
    /// A file cannot be read or written.
    Io,
}

/// A layer that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The layer's name.
    pub layer: String,
    /// The layer's type.
    pub layer_type: String,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The reason.
    pub reason: String,
    /// The index of the layer; `None` if the problem is about an input of the net.
    pub(crate) at: Option<usize>,
}

impl Problem {
    pub(crate) fn new(at: usize, layer: &Layer, error: &Error) -> Self {
        let (layer, layer_type) = (layer.name.clone(), layer.layer_type.clone());
        let (kind, reason) = (error.kind, error.to_string());
        Self { layer, layer_type, kind, reason, at: Some(at) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, layer_type) = (self.layer.escape_default(), self.layer_type.escape_default());
        write!(f, "layer '{name}' ({layer_type}): {}", self.reason)
    }
}

/// The reason why a net cannot be read or converted. The message names the layer, or the position
/// in the text.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    problems: Vec<Problem>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), problems: Vec::new(), source: None }
    }

    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn argument(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Argument, message)
    }

    pub(crate) fn unsupported(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Makes one error from all problems. The error's message has a line per problem, in the
    /// layers' order.
    pub(crate) fn of_problems(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.at);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        Self { problems, ..Self::unsupported(lines.join("\n")) }
    }

    /// Returns all layers that cannot be converted, or an empty slice for another kind of error.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Prepends a context to the message, such as `layer 'conv1' (Convolution): …`.
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
        Self {
            kind: ErrorKind::Weights,
            message,
            problems: Vec::new(),
            source: Some(Box::new(error)),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let message = error.to_string();
        Self { kind: ErrorKind::Io, message, problems: Vec::new(), source: Some(Box::new(error)) }
    }
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
