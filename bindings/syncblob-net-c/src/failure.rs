//! Converts failures to a status and an error of the C library.

use std::any::Any;
use std::ffi::CString;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use syncblob_net::ErrorKind;
use syncblob_sys as sys;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// How many characters of the first problem the message quotes, if an error has several problems.
const MOST_OF_FIRST: usize = 200;

#[derive(Debug)]
pub struct Failure {
    status: sys::sb_status,
    device_code: i32,
    offset: Option<u64>,
    message: String,
}

impl Failure {
    pub fn new(status: sys::sb_status, message: impl Into<String>) -> Self {
        Self { status, device_code: 0, offset: None, message: message.into() }
    }

    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(sys::SB_ERR_INVALID_ARGUMENT, message)
    }

    pub fn null(what: &str) -> Self {
        Self::argument(format!("{what} is NULL"))
    }

    /// Returns the failure for a file that cannot be read.
    pub fn file(path: &std::path::Path, error: &io::Error) -> Self {
        let device_code = error.raw_os_error().unwrap_or(0);
        let message = format!("{path:?}: {error}");
        Self { device_code, ..Self::new(sys::SB_ERR_IO, message) }
    }

    /// Returns the failure for a callback that returned `status`.
    pub fn of_callback(status: sys::sb_status, device_code: i32, message: &str) -> Self {
        Self { device_code, ..Self::new(status, message) }
    }

    fn bug(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = format!("a bug of libsyncblob-net: {}", text.unwrap_or("a panic"));
        Self::new(sys::SB_ERR_INTERNAL, message)
    }

    /// Fills the caller's error and returns the status.
    ///
    /// # Safety
    /// `err` is NULL or points to memory for an error.
    unsafe fn report(self, err: *mut sys::sb_error) -> sys::sb_status {
        let message = CString::new(printable(&self.message)).unwrap_or_default();
        // SAFETY: the message ends in NUL, and the caller promises that `err` is valid.
        let status =
            unsafe { sys::sb_error_fill(err, self.status, self.device_code, message.as_ptr()) };
        if let Some(offset) = self.offset.filter(|_| !err.is_null()) {
            // SAFETY: `err` is valid, and `sb_error_fill` has written the whole struct.
            unsafe { (*err).offset = i64::try_from(offset).unwrap_or(-1) };
        }
        status
    }
}

/// Converts a text to one line of printable ASCII, like the C library's messages. Escapes other
/// characters.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => printable.push_str("; "),
            ' '..='~' => printable.push(character),
            other => printable.extend(other.escape_default()),
        }
    }
    printable
}

impl From<syncblob::Error> for Failure {
    fn from(error: syncblob::Error) -> Self {
        let (status, message) = (error.code(), error.to_string());
        let device_code = error.device_code().unwrap_or(0);
        Self { status, device_code, offset: error.offset(), message }
    }
}

impl From<syncblob_net::Error> for Failure {
    fn from(error: syncblob_net::Error) -> Self {
        let source = std::error::Error::source(&error);
        if let Some(error) = source.and_then(|source| source.downcast_ref::<syncblob::Error>()) {
            return error.clone().into();
        }
        let errno = source.and_then(|source| source.downcast_ref::<io::Error>()?.raw_os_error());
        let device_code = errno.unwrap_or(0);
        Self { device_code, ..Self::new(status_of(error.kind()), message_of(&error)) }
    }
}

fn status_of(kind: ErrorKind) -> sys::sb_status {
    match kind {
        ErrorKind::Malformed | ErrorKind::Invalid => sys::SB_ERR_MALFORMED,
        ErrorKind::Limit => sys::SB_ERR_DATA_LIMIT,
        ErrorKind::Argument => sys::SB_ERR_INVALID_ARGUMENT,
        ErrorKind::Unsupported => sys::SB_ERR_UNSUPPORTED,
        ErrorKind::Io => sys::SB_ERR_IO,
        _ => sys::SB_ERR_INTERNAL,
    }
}

/// Returns the error's message, which quotes the first of several problems and counts the others.
fn message_of(error: &syncblob_net::Error) -> String {
    match error.problems() {
        [first, rest @ ..] if !rest.is_empty() => {
            let first: String = printable(&first.to_string()).chars().take(MOST_OF_FIRST).collect();
            format!("{first}; and {} more", rest.len())
        }
        _ => error.to_string(),
    }
}

/// Runs `work`, the body of an exported function. If it panics, returns INTERNAL.
///
/// # Safety
/// `err` is NULL or points to memory for an error.
pub unsafe fn guard(err: *mut sys::sb_error, work: impl FnOnce() -> Result<()>) -> sys::sb_status {
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    match done.unwrap_or_else(|payload| Err(Failure::bug(&*payload))) {
        Ok(()) => sys::SB_OK,
        // SAFETY: the caller promises that `err` is valid.
        Err(failure) => unsafe { failure.report(err) },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use super::*;

    fn guarded(work: impl FnOnce() -> Result<()>) -> (sys::sb_status, sys::sb_error) {
        let mut error = MaybeUninit::zeroed();
        // SAFETY: `error` has memory for an sb_error, and an sb_error of zeros is valid.
        unsafe { (guard(error.as_mut_ptr(), work), error.assume_init()) }
    }

    fn message(error: &sys::sb_error) -> &str {
        // SAFETY: the message ends in NUL.
        unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_str().unwrap()
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let (status, error) = guarded(|| panic!("planted by a test"));
        assert_eq!((status, error.code), (sys::SB_ERR_INTERNAL, sys::SB_ERR_INTERNAL));
        assert_eq!(message(&error), "a bug of libsyncblob-net: planted by a test");
    }

    #[test]
    fn success_does_not_change_the_error() {
        let (status, error) = guarded(|| Ok(()));
        assert_eq!((status, error.code, message(&error)), (sys::SB_OK, 0, ""));
    }

    #[test]
    fn messages_are_printable_and_on_one_line() {
        let (_, error) = guarded(|| Err(Failure::argument("two\nlines\u{1b}\u{e9}\0end")));
        assert_eq!(message(&error), "two; lines\\u{1b}\\u{e9}\\u{0}end");
        assert_eq!((error.offset, error.device_code), (-1, 0));
        let (_, error) = guarded(|| Err(Failure::argument("x".repeat(1000))));
        assert_eq!(message(&error).len(), 239);
    }
}
