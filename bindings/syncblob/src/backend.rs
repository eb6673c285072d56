use std::path::Path;

use syncblob_sys as sys;

use crate::ffi::{get, static_text, with_path};
use crate::Result;

/// Opens a shared library that contains a backend for another accelerator. Returns the backend's
/// name: a [`Context`](crate::Context) may then have the device `"NAME:0"`, `"NAME:1"` and so on.
/// Loading the same library again changes nothing. The library stays open until the process ends.
///
/// A path without a folder names a file in the current folder. No other folder is searched.
///
/// ```no_run
/// use syncblob::{load_backend, Blob, Context};
///
/// # fn main() -> syncblob::Result<()> {
/// // SAFETY: the library is a backend that was made for this version of `backend.h`.
/// let name = unsafe { load_backend("/usr/lib/opencl-backend.so") }?;
/// let context = Context::builder().device(format!("{name}:0")).build()?;
/// let blob = Blob::<f32>::in_context(&context).zeros([64, 3, 11, 11])?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// - [`Io`](crate::ErrorKind::Io) if the file cannot be opened as a library.
/// - [`NotFound`](crate::ErrorKind::NotFound) if the library does not export `syncblob_backend`.
/// - [`Unsupported`](crate::ErrorKind::Unsupported) if the library has no backend for this machine.
/// - [`AbiMismatch`](crate::ErrorKind::AbiMismatch) for a backend of another version.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an incomplete backend, or for a
///   name that another backend has.
/// - [`OverLimit`](crate::ErrorKind::OverLimit) after 64 backends.
///
/// # Safety
/// Opening the library and using its devices runs the library's code. The caller promises that this
/// code is sound to run in this process. The backend must also fulfil the contract of `backend.h`.
pub unsafe fn load_backend(path: impl AsRef<Path>) -> Result<&'static str> {
    let backend = with_path(path.as_ref(), |path| {
        // SAFETY: the path ends in NUL. The caller promises that the library's code is sound.
        get(|out, err| unsafe { sys::sb_backend_load(path.as_ptr(), out, err) })
    })?;
    // SAFETY: the table and its name stay valid and unchanged until the process ends.
    Ok(unsafe { static_text((*backend).name) })
}
