use std::ffi::CStr;
use std::fmt;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use syncblob_sys as sys;

use crate::ffi;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:ident,)*) => {
        /// The kind of an [`Error`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
            /// A status that only a newer library defines, as its number in C.
            Other(i32),
        }

        impl ErrorKind {
            fn from_code(code: i32) -> Self {
                match code {
                    $(sys::$code => Self::$kind,)*
                    other => Self::Other(other),
                }
            }

            pub(crate) fn code(self) -> i32 {
                match self {
                    $(Self::$kind => sys::$code,)*
                    Self::Other(code) => code,
                }
            }
        }
    };
}

error_kinds! {
    /// An argument that can never be valid.
    InvalidArgument = SB_ERR_INVALID_ARGUMENT,
    /// An index, axis, layer or blob that does not exist.
    IndexOutOfRange = SB_ERR_INDEX_OUT_OF_RANGE,
    /// Element types differ.
    DtypeMismatch = SB_ERR_DTYPE_MISMATCH,
    /// Shapes or counts differ.
    ShapeMismatch = SB_ERR_SHAPE_MISMATCH,
    /// Memory that was never written, or whose bytes were lost: with the device, or because queued
    /// work failed.
    Uninitialized = SB_ERR_UNINITIALIZED,
    /// Not supported for this type, file or device.
    Unsupported = SB_ERR_UNSUPPORTED,
    /// A memory, blob or stream that belongs to a different context or device.
    WrongDevice = SB_ERR_WRONG_DEVICE,
    /// The memory to be written is shared.
    Shared = SB_ERR_SHARED,
    /// A size that does not fit the address space.
    SizeOverflow = SB_ERR_SIZE_OVERFLOW,
    /// An argument over a limit.
    OverLimit = SB_ERR_OVER_LIMIT,
    /// A buffer that is too small.
    BufferTooSmall = SB_ERR_BUFFER_TOO_SMALL,
    /// No object has the given name.
    NotFound = SB_ERR_NOT_FOUND,
    /// Malformed bytes.
    Malformed = SB_ERR_MALFORMED,
    /// A payload whose length differs from the number of elements of the shape.
    LengthMismatch = SB_ERR_LENGTH_MISMATCH,
    /// A shape in the bytes that no blob can have.
    BadShape = SB_ERR_BAD_SHAPE,
    /// A number in the bytes that does not fit its type.
    DataOverflow = SB_ERR_DATA_OVERFLOW,
    /// Bytes that exceed a limit.
    DataLimit = SB_ERR_DATA_LIMIT,
    /// Out of memory.
    OutOfMemory = SB_ERR_OUT_OF_MEMORY,
    /// The context's memory cap is reached.
    CapReached = SB_ERR_CAP_REACHED,
    /// The device does not exist, or the context has no device.
    NoDevice = SB_ERR_NO_DEVICE,
    /// The device failed.
    DeviceFailure = SB_ERR_DEVICE_FAILURE,
    /// The device is lost.
    DeviceLost = SB_ERR_DEVICE_LOST,
    /// The device was used in a forked child process.
    Forked = SB_ERR_FORKED,
    /// Input or output failed.
    Io = SB_ERR_IO,
    /// A version of the library or of DLPack that this crate does not support.
    AbiMismatch = SB_ERR_ABI_MISMATCH,
    /// A progress callback, a reader or a writer ended the call. To end the call, a reader or a
    /// writer returns an [`io::Error`]. That error holds an [`Error`] of this kind, or the kind
    /// itself (`io::Error::other(ErrorKind::Cancelled)`).
    Cancelled = SB_ERR_CANCELLED,
    /// The communicator failed.
    CommFailure = SB_ERR_COMM_FAILURE,
    /// A bug in the library.
    Internal = SB_ERR_INTERNAL,
}

/// A failure, with the library's message. If the caller's reader or writer failed, its error is the
/// [source](std::error::Error::source). Comparisons of errors ignore the source.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    code: i32,
    device_code: i32,
    offset: Option<u64>,
    message: String,
    path: Option<PathBuf>,
    source: Option<Arc<io::Error>>,
}

impl ErrorKind {
    /// Returns the kind of an error of the caller's reader or writer.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        let inner = error.get_ref();
        let own = inner.and_then(|inner| match inner.downcast_ref::<Error>() {
            Some(error) => Some(error.kind),
            None => inner.downcast_ref::<Self>().copied(),
        });
        match (own, error.kind()) {
            (Some(Self::Cancelled), _) => Self::Cancelled,
            (_, io::ErrorKind::OutOfMemory) => Self::OutOfMemory,
            _ => Self::Io,
        }
    }
}

/// Allows a [reader](crate::ReadAt) or a writer to return `io::Error::other(ErrorKind::Cancelled)`.
impl std::error::Error for ErrorKind {}

// An error and its source never change.
impl UnwindSafe for Error {}
impl RefUnwindSafe for Error {}

/// Writes the status's name, such as `SB_ERR_MALFORMED`.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function takes any number and returns static text.
        f.write_str(unsafe { ffi::static_text(sys::sb_status_name(self.code())) })
    }
}

impl Error {
    /// Makes an error that this crate, not the library, has detected.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_message(kind, kind.code(), message.into())
    }

    /// Makes the error for a C function that returns only a status.
    pub(crate) fn from_code(code: i32) -> Self {
        // SAFETY: the function takes any number and returns static text.
        let text = unsafe { ffi::static_text(sys::sb_status_text(code)) };
        let kind = ErrorKind::from_code(code);
        Self::with_message(kind, code, text.into())
    }

    fn with_message(kind: ErrorKind, code: i32, message: String) -> Self {
        Self { kind, code, device_code: 0, offset: None, message, path: None, source: None }
    }

    /// Converts the error that a call of the C library has written, for code that also calls the C
    /// library.
    #[cold]
    pub fn from_c(error: &sys::sb_error) -> Self {
        let bytes = error.message.map(|c| c.to_ne_bytes()[0]);
        let message = match CStr::from_bytes_until_nul(&bytes) {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Self {
            kind: ErrorKind::from_code(error.code),
            code: error.code,
            device_code: error.device_code,
            offset: u64::try_from(error.offset).ok(),
            message,
            path: None,
            source: None,
        }
    }

    /// Converts an error of a reader or writer that this crate, not the library, has called.
    pub(crate) fn from_io(error: io::Error) -> Self {
        let kind = ErrorKind::of_io(&error);
        let device_code = error.raw_os_error().unwrap_or(0);
        Self { device_code, ..Self::new(kind, error.to_string()) }.with_source(error)
    }

    pub(crate) fn with_source(self, source: io::Error) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the status of the C library, `SB_ERR_*`.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// Returns the status's name, such as `"SB_ERR_MALFORMED"`.
    pub fn code_name(&self) -> &'static str {
        // SAFETY: the function takes any number and returns static text.
        unsafe { ffi::static_text(sys::sb_status_name(self.code)) }
    }

    /// Returns the device driver's error number, or `errno` for [`ErrorKind::Io`].
    pub fn device_code(&self) -> Option<i32> {
        (self.device_code != 0).then_some(self.device_code)
    }

    /// Returns the offset of the failure in the bytes or the file, if it is known.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns a text that describes the request, the failure and its position. Text from a file is
    /// escaped. If the file cannot be opened, written or replaced, the message begins with the
    /// file's name in quotes. For every other message, `Display` writes the [path](Error::path)
    /// first.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the path of the file, if the call was given a path.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns whether the library's message begins with the file's name.
    fn names_file(&self) -> bool {
        matches!(self.kind, ErrorKind::Io | ErrorKind::NotFound)
            && self.source.is_none()
            && self.message.starts_with('"')
    }

    pub(crate) fn of_file(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) if !self.names_file() => write!(f, "{path:?}: {}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.code_name())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        let parts = |error: &Self| (error.kind, error.code, error.device_code, error.offset);
        parts(self) == parts(other) && self.message == other.message && self.path == other.path
    }
}

impl Eq for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Io => match (&error.source, error.device_code()) {
                (Some(source), _) => source.kind(),
                (None, Some(errno)) => io::Error::from_raw_os_error(errno).kind(),
                (None, None) => io::ErrorKind::Other,
            },
            ErrorKind::OutOfMemory | ErrorKind::CapReached => io::ErrorKind::OutOfMemory,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            _ if (-99..0).contains(&error.code) => io::ErrorKind::InvalidInput,
            _ if (-199..=-100).contains(&error.code) => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c_error(code: i32, offset: i64, text: &[u8]) -> sys::sb_error {
        let mut message = [0; 240];
        for (to, from) in message.iter_mut().zip(text) {
            *to = std::ffi::c_char::from_ne_bytes([*from]);
        }
        sys::sb_error { code, device_code: 0, offset, message }
    }

    #[test]
    fn an_error_of_c_keeps_code_offset_and_message() {
        let error =
            Error::from_c(&c_error(sys::SB_ERR_MALFORMED, 17, b"field 7 is cut off at offset 17"));
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(error.code(), -100);
        assert_eq!(error.code_name(), "SB_ERR_MALFORMED");
        assert_eq!(error.offset(), Some(17));
        assert_eq!(error.to_string(), "field 7 is cut off at offset 17");
        assert_eq!(format!("{error:?}"), "SB_ERR_MALFORMED: field 7 is cut off at offset 17");
    }

    #[test]
    fn an_unknown_code_and_a_message_without_nul_are_kept() {
        let error = Error::from_c(&c_error(-77, -1, &[b'x'; 240]));
        assert_eq!(error.kind(), ErrorKind::Other(-77));
        assert_eq!(error.kind().to_string(), "SB_ERR_UNKNOWN");
        assert_eq!((error.code(), error.offset()), (-77, None));
        assert_eq!(error.message().len(), 240);
    }

    #[test]
    fn io_errors_keep_the_meaning() {
        let mut missing = c_error(sys::SB_ERR_IO, -1, b"no such file");
        missing.device_code = 2; // ENOENT
        let kind = |error: &sys::sb_error| io::Error::from(Error::from_c(error)).kind();
        assert_eq!(kind(&missing), io::ErrorKind::NotFound);
        assert_eq!(kind(&c_error(sys::SB_ERR_BAD_SHAPE, 3, b"")), io::ErrorKind::InvalidData);
        assert_eq!(kind(&c_error(sys::SB_ERR_SHARED, -1, b"")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&c_error(sys::SB_ERR_CAP_REACHED, -1, b"")), io::ErrorKind::OutOfMemory);
    }
}
