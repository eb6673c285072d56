//! Checks arguments from C: pointers that may be NULL, counts that may be wrong, and structs of
//! other versions of the library.

use std::ffi::{c_char, CStr};
use std::path::Path;
use std::{ptr, slice};

use syncblob_sys as sys;

use crate::failure::{Failure, Result};
use crate::types::{sb_net_layer, sb_net_options, sb_net_summary, sb_onnx_options};

/// An upper bound for the size of a struct in any version.
const MAX_STRUCT_SIZE: usize = 4096;

/// A struct whose first member is its size.
///
/// # Safety
/// The struct is `repr(C)` and has no destructor. Each member is valid if all its bits are 0.
pub unsafe trait Grows: Copy {
    const NAME: &'static str;
    /// The size that the struct had in the first version of the library with this struct.
    const FIRST: usize;
}

// SAFETY: the members are numbers and pointers.
unsafe impl Grows for sb_net_options {
    const NAME: &'static str = "sb_net_options";
    const FIRST: usize = 80;
}

// SAFETY: the members are numbers and pointers.
unsafe impl Grows for sb_net_summary {
    const NAME: &'static str = "sb_net_summary";
    const FIRST: usize = 80;
}

// SAFETY: the members are numbers and pointers.
unsafe impl Grows for sb_net_layer {
    const NAME: &'static str = "sb_net_layer";
    const FIRST: usize = 72;
}

// SAFETY: the members are numbers, pointers and functions that may be NULL.
unsafe impl Grows for sb_onnx_options {
    const NAME: &'static str = "sb_onnx_options";
    const FIRST: usize = 144;
}

// SAFETY: the members are a number, a pointer and a function that may be NULL.
unsafe impl Grows for sys::sb_sink {
    const NAME: &'static str = "sb_sink";
    const FIRST: usize = 24;
}

// In this version, all structs still have the size of their first version.
const _: () = {
    assert!(size_of::<sb_net_options>() == sb_net_options::FIRST);
    assert!(size_of::<sb_net_summary>() == sb_net_summary::FIRST);
    assert!(size_of::<sb_net_layer>() == sb_net_layer::FIRST);
    assert!(size_of::<sb_onnx_options>() == sb_onnx_options::FIRST);
};

/// Reads and checks the first member, `struct_size`.
///
/// # Safety
/// `given` begins with a `usize`.
unsafe fn size_of_given<T: Grows>(given: *const T) -> Result<usize> {
    // SAFETY: the caller keeps this function's contract.
    let size = unsafe { given.cast::<usize>().read() };
    let wrong = |text| Err(Failure::new(sys::SB_ERR_ABI_MISMATCH, text));
    let (name, first) = (T::NAME, T::FIRST);
    if !(first..=MAX_STRUCT_SIZE).contains(&size) {
        return wrong(format!("{name} has at least {first} bytes, but struct_size is {size}"));
    }
    if size % size_of::<usize>() != 0 {
        return wrong(format!("struct_size is {size}, but {name} has no member that ends there"));
    }
    Ok(size)
}

/// Copies the caller's struct, which may have the size of any version. Missing members get the
/// values in `defaults`.
///
/// # Safety
/// `given` is NULL or points to a struct that begins with its size in bytes.
pub unsafe fn adopt<T: Grows>(given: *const T, defaults: T) -> Result<T> {
    let mut known = defaults;
    if given.is_null() {
        return Ok(known);
    }
    // SAFETY: the caller keeps this function's contract.
    let size = unsafe { size_of_given(given)? };
    let shared = size.min(size_of::<T>());
    // SAFETY: both structs have at least `shared` bytes, and every value of the bytes is valid.
    unsafe { ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut known).cast(), shared) };
    // SAFETY: the caller keeps this function's contract.
    let tail = unsafe { slice::from_raw_parts(given.cast::<u8>().add(shared), size - shared) };
    match tail.iter().position(|&byte| byte != 0) {
        None => Ok(known),
        Some(at) => Err(Failure::new(
            sys::SB_ERR_UNSUPPORTED,
            format!(
                "{} sets a member at byte {} that this version does not have",
                T::NAME,
                shared + at
            ),
        )),
    }
}

/// Fills the caller's struct, which may have the size of any version. Members that this version
/// lacks become 0.
///
/// # Safety
/// `out` is NULL or points to a struct that begins with its size in bytes.
pub unsafe fn give<T: Grows>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(Failure::null("out"));
    }
    // SAFETY: the caller keeps this function's contract.
    let size = unsafe { size_of_given(out)? };
    let shared = size.min(size_of::<T>());
    // SAFETY: `out` has `size` bytes.
    unsafe {
        ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), out.cast(), shared);
        ptr::write_bytes(out.cast::<u8>().add(shared), 0, size - shared);
        out.cast::<usize>().write(size);
    }
    Ok(())
}

/// Stores a result in `*out`. Does nothing if `out` is NULL.
///
/// # Safety
/// `out` is NULL or points to memory for the result.
pub unsafe fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller keeps this function's contract.
        unsafe { out.write(value) };
    }
}

/// # Safety
/// `pointer` is NULL or points to an object that lives as long as the result.
pub unsafe fn object<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller keeps this function's contract.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// # Safety
/// `pointer` is NULL or points to `count` elements that live as long as the result.
pub unsafe fn list<'a, T>(pointer: *const T, count: i64, what: &str) -> Result<&'a [T]> {
    let most = isize::MAX as usize / size_of::<T>().max(1);
    match usize::try_from(count).ok().filter(|&count| count <= most) {
        None => Err(Failure::argument(format!("invalid number of {what}: {count}"))),
        Some(0) => Ok(&[]),
        Some(_) if pointer.is_null() => Err(Failure::null(what)),
        // SAFETY: the caller keeps this function's contract.
        Some(count) => Ok(unsafe { slice::from_raw_parts(pointer, count) }),
    }
}

/// # Safety
/// `pointer` is NULL or points to `size` bytes that live as long as the result.
pub unsafe fn bytes<'a>(pointer: *const u8, size: usize, what: &str) -> Result<&'a [u8]> {
    let size = i64::try_from(size).unwrap_or(-1);
    // SAFETY: the caller keeps this function's contract.
    unsafe { list(pointer, size, what) }
}

/// Copies a text. If the text is not UTF-8, escapes it, as the crate `syncblob-net` does.
///
/// # Safety
/// The text's pointer is NULL or points to the text's bytes.
pub unsafe fn text(text: sys::sb_text, what: &str) -> Result<String> {
    // SAFETY: the caller keeps this function's contract.
    let bytes = unsafe { bytes(text.bytes.cast(), text.size, what)? };
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    })
}

/// # Safety
/// `pointer` is NULL or points to `count` texts, each as [`text`] requires.
pub unsafe fn texts(pointer: *const sys::sb_text, count: i64, what: &str) -> Result<Vec<String>> {
    // SAFETY: the caller keeps this function's contract.
    let texts = unsafe { list(pointer, count, what)? };
    // SAFETY: the caller keeps this function's contract.
    texts.iter().map(|&each| unsafe { text(each, what) }).collect()
}

/// # Safety
/// `path` is NULL, or ends in NUL and lives as long as the result.
pub unsafe fn path<'a>(path: *const c_char, what: &str) -> Result<&'a Path> {
    use std::os::unix::ffi::OsStrExt;
    if path.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller keeps this function's contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}
