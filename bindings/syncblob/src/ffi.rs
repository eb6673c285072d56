//! Helpers for calls of the C library.

use std::ffi::{c_char, CStr, CString};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::path::Path;

use syncblob_sys as sys;

use crate::{Error, ErrorKind, Result};

/// Calls a C function that returns a status. `call` passes its argument to C as `err`.
pub(crate) fn check(call: impl FnOnce(*mut sys::sb_error) -> sys::sb_status) -> Result<()> {
    let mut error = MaybeUninit::<sys::sb_error>::uninit();
    match call(error.as_mut_ptr()) {
        sys::SB_OK => Ok(()),
        // SAFETY: on failure the library has written the whole struct.
        _ => Err(Error::from_c(unsafe { error.assume_init_ref() })),
    }
}

/// Like `check`, for a call that writes one result through a pointer.
pub(crate) fn get<T>(call: impl FnOnce(*mut T, *mut sys::sb_error) -> sys::sb_status) -> Result<T> {
    let mut out = MaybeUninit::uninit();
    check(|err| call(out.as_mut_ptr(), err))?;
    // SAFETY: on success the library has written its result.
    Ok(unsafe { out.assume_init() })
}

/// Like `get`, for a struct that may grow in newer versions. The caller sets `struct_size` in
/// `out`, and leaves all other fields 0.
pub(crate) fn fill<T>(
    mut out: T,
    call: impl FnOnce(*mut T, *mut sys::sb_error) -> sys::sb_status,
) -> Result<T> {
    check(|err| call(&mut out, err))?;
    Ok(out)
}

/// Makes a C struct that may grow in newer versions. Sets its `struct_size`, and all other fields
/// to zero.
macro_rules! sized {
    ($name:ident) => {
        syncblob_sys::$name { struct_size: size_of::<syncblob_sys::$name>(), ..Default::default() }
    };
}
pub(crate) use sized;

/// # Safety
/// `text` is NUL-terminated, static UTF-8 (the library's texts are ASCII).
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: the caller fulfils the Safety section.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

/// Makes a C string. Refuses a NUL byte, because it would end the string in C.
pub(crate) fn c_text(what: &str, bytes: &[u8]) -> Result<CString> {
    let with_nul = |_| Error::new(ErrorKind::InvalidArgument, format!("{what} holds a NUL byte"));
    CString::new(bytes).map_err(with_nul)
}

/// Makes a call with a path. If the call fails, adds the path to the error.
pub(crate) fn with_path<T>(path: &Path, call: impl FnOnce(&CStr) -> Result<T>) -> Result<T> {
    c_path(path).and_then(|text| call(&text)).map_err(|error| error.of_file(path))
}

/// Makes a path for C. On Windows the text is UTF-8. The library refuses a path that is not valid
/// Unicode.
fn c_path(path: &Path) -> Result<CString> {
    c_text("the path", path.as_os_str().as_encoded_bytes())
}

/// Returns the value with the given name.
pub(crate) fn by_name<T: Copy + Display>(name: &str, what: &str, all: &[T]) -> Result<T> {
    let found = all.iter().copied().find(|known| known.to_string() == name);
    found.ok_or_else(|| {
        let known: Vec<_> = all.iter().map(T::to_string).collect();
        let message = format!("unknown {what} {name:?}: known are {}", known.join(", "));
        Error::new(ErrorKind::InvalidArgument, message)
    })
}

/// Converts a count or a dimension from C, which is never negative. A negative number would become
/// 0, because a panic here would make `data_mut` a third slower.
pub(crate) fn to_usize(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// Converts a number for C. A number above `i64::MAX` becomes `i64::MAX`, which C refuses:
/// `as_given` then corrects the number in C's message.
pub(crate) fn to_i64(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Corrects the error of a call to which the caller gave the numbers `given`. If a number is above
/// `most`, the largest value of C's type, returns an error whose message contains this number.
#[cold]
pub(crate) fn as_given(error: Error, what: &str, given: &[usize], most: usize) -> Error {
    match given.iter().find(|value| **value > most) {
        Some(value) => Error::new(error.kind(), format!("{what} {value} is out of range")),
        None => error,
    }
}

/// The largest value of C's `int64_t`.
pub(crate) const MAX_I64: usize = i64::MAX as usize;
