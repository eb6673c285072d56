//! C callbacks that call the caller's readers, writers and progress functions.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use syncblob_sys as sys;

use crate::owner::{contain, give};
use crate::{system, Error, ErrorKind, Result};

/// Bytes that can be read at any offset, also by several threads at once. Examples are an object in
/// a store, a member of an archive, or a file that is decrypted during a read.
///
/// Files, bytes in memory, and pointers to a `ReadAt` implement this trait. A [`Mutex`] around a
/// reader with [`Read`] and [`Seek`] implements the trait, too, but its reads wait for each other.
///
/// ```
/// use std::io::Cursor;
/// use std::sync::Mutex;
/// use syncblob::{Format, Model};
///
/// # fn main() -> syncblob::Result<()> {
/// # let bytes = Model::create(Format::BlobVector)?.to_bytes()?;
/// let reader = Mutex::new(Cursor::new(bytes));
/// assert!(Model::open_reader(reader).is_err()); // an empty file is not a model
/// # Ok(())
/// # }
/// ```
pub trait ReadAt {
    /// Returns the number of bytes. The library calls this method once.
    ///
    /// # Errors
    /// Any failure.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes at `offset` into the beginning of `buffer`, and returns their number. If
    /// `offset` is below the size, reads at least one byte.
    ///
    /// The library reads fields other than values in pieces of up to 16 KiB, and more than once.
    /// Opening a model makes several passes over the file. Loading a blob makes one pass over the
    /// blob's message. Within a pass offsets increase, except in reads of names. Contiguous values
    /// of the blob's element type are read at once, or a MiB at a time if there is a [progress
    /// callback](crate::Model::set_progress). Other values are read 4 KiB at a time. A save copies
    /// 16 KiB at a time. A slow reader, such as a reader over a network, should cache the last
    /// piece that it has read.
    ///
    /// # Errors
    /// Any failure. The library's call returns the failure as [`ErrorKind::Io`],
    /// [`OutOfMemory`](ErrorKind::OutOfMemory) or [`Cancelled`](ErrorKind::Cancelled). After
    /// [`Interrupted`](io::ErrorKind::Interrupted) the read is retried.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns a number that differs after each change of the bytes, such as a hash of an ETag. If
    /// the number changes during a read, the read fails.
    ///
    /// # Errors
    /// Any failure.
    fn version(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// On Windows a read changes the file's offset.
impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|file| file.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        system::read_at(self, buffer, offset)
    }

    /// Returns a number computed from the modification time and the size. A change of the contents
    /// that keeps the time and the size is not detected. [`Model::open`](crate::Model::open) checks
    /// more properties.
    fn version(&self) -> io::Result<u64> {
        let file = self.metadata()?;
        let time = match file.modified()?.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => since.as_nanos() as u64,
            Err(before) => (before.duration().as_nanos() as u64).wrapping_neg(),
        };
        // If the times are equal, different sizes result in different numbers.
        Ok(time.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(file.len()))
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let rest = rest.unwrap_or_default();
        let size = rest.len().min(buffer.len());
        buffer[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }
}

impl<R: Read + Seek> ReadAt for Mutex<R> {
    fn size(&self) -> io::Result<u64> {
        self.lock().unwrap_or_else(PoisonError::into_inner).seek(SeekFrom::End(0))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // A poisoned lock does no harm, because every read sets the reader's position first.
        let mut reader = self.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read(buffer)
    }
}

macro_rules! read_through {
    ($($pointer:ty),*) => {$(
        impl<R: ReadAt + ?Sized> ReadAt for $pointer {
            fn size(&self) -> io::Result<u64> {
                (**self).size()
            }

            fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                (**self).read_at(buffer, offset)
            }

            fn version(&self) -> io::Result<u64> {
                (**self).version()
            }
        }
    )*};
}

read_through!(&R, Box<R>, Arc<R>);

/// Fills the buffer with as many reads as needed. Fails if the reader ends early, or returns a
/// number above the buffer's size.
fn read_exact_at<R: ReadAt>(reader: &R, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match reader.read_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) if size > buffer.len() => {
                return Err(io::Error::other("the reader returned more bytes than requested"));
            }
            Ok(size) => {
                buffer = &mut buffer[size..];
                offset += size as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

// --- failures ---------------------------------------------------------------------

enum Failure {
    Returned(io::Error),
    Panicked(Box<dyn Any + Send>),
}

thread_local! {
    /// The failure of a callback of this thread's current call, as a pointer to a boxed `Failure`,
    /// or null. The library runs the callbacks on the calling thread. A pointer has no destructor,
    /// so destructors of the thread's other local variables can still use this variable.
    static FAILURE: Cell<*mut Failure> = const { Cell::new(ptr::null_mut()) };
}

/// Replaces the stored failure and returns the previous one.
fn exchange(failure: Option<Failure>) -> Option<Failure> {
    let kept = FAILURE.replace(failure.map_or(ptr::null_mut(), |f| Box::into_raw(Box::new(f))));
    // SAFETY: the pointer is from `Box::into_raw` and has no other owner.
    (!kept.is_null()).then(|| *unsafe { Box::from_raw(kept) })
}

/// Stores a failure, which `with_callbacks` reads after C has returned. The last failure is kept,
/// because C reports the last failure, but an error does not replace a panic.
fn keep(failure: Failure) {
    let (kept, lost) = match exchange(None) {
        Some(Failure::Panicked(payload)) => (Failure::Panicked(payload), Some(failure)),
        earlier => (failure, earlier),
    };
    contain(|| drop(lost));
    exchange(Some(kept)); // FAILURE is empty, even if the drop of `lost` made calls
}

/// Makes a call that may run callbacks. An error of a callback becomes the source of the call's
/// error. If a callback has panicked, the panic continues after the call.
pub(crate) fn with_callbacks<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    // A callback of an outer call may have made this call: saves the outer call's failure.
    let outer = exchange(None);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let kept = exchange(outer);
    match (kept, result) {
        (kept, Err(payload)) => {
            contain(|| drop(kept));
            panic::resume_unwind(payload)
        }
        (Some(Failure::Panicked(payload)), _) => panic::resume_unwind(payload),
        (Some(Failure::Returned(source)), Ok(Err(error))) => Err(error.with_source(source)),
        (_, Ok(result)) => result,
    }
}

/// Runs a callback. Stores its failure for `with_callbacks` and reports it to C.
fn answer(err: *mut sys::sb_error, code: impl FnOnce() -> io::Result<()>) -> sys::sb_status {
    let (failure, status) = match panic::catch_unwind(AssertUnwindSafe(code)) {
        Ok(Ok(())) => return sys::SB_OK,
        Ok(Err(error)) => {
            let status = ErrorKind::of_io(&error).code();
            (Failure::Returned(error), status)
        }
        Err(payload) => (Failure::Panicked(payload), sys::SB_ERR_IO),
    };
    if let Failure::Returned(error) = &failure {
        let text = contain(|| error.to_string().replace('\0', " ")).unwrap_or_default();
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: `err` is valid for one error. The library copies the text.
        unsafe {
            sys::sb_error_fill(err, status, error.raw_os_error().unwrap_or(0), text.as_ptr());
        }
    }
    keep(failure);
    status
}

// --- readers ---------------------------------------------------------------------------

fn source_of<R: ReadAt>(reader: *const R, size: u64) -> sys::sb_source {
    sys::sb_source {
        struct_size: mem::size_of::<sys::sb_source>(),
        user: reader.cast_mut().cast(),
        size,
        read_at: Some(read_source::<R>),
        version: Some(ask_version::<R>),
        close: None,
    }
}

/// Makes a call that borrows a reader.
pub(crate) fn borrow_reader<R: ReadAt, T>(
    reader: &R,
    call: impl FnOnce(*const sys::sb_source) -> Result<T>,
) -> Result<T> {
    let source = source_of(reader, reader.size().map_err(Error::from_io)?);
    with_callbacks(|| call(&source))
}

/// Makes a call that keeps the reader: if the call succeeds, C owns the reader until C closes the
/// source.
pub(crate) fn lend_reader<R: ReadAt + Send + Sync + 'static, T>(
    reader: R,
    call: impl FnOnce(*const sys::sb_source) -> Result<T>,
) -> Result<T> {
    let size = reader.size().map_err(Error::from_io)?;
    with_callbacks(|| {
        give(Box::new(reader), |user| {
            let mut source = source_of::<R>(user.cast(), size);
            source.close = Some(close_reader::<R>);
            call(&source)
        })
    })
}

unsafe extern "C" fn read_source<R: ReadAt>(
    user: *mut c_void,
    offset: u64,
    buffer: *mut c_void,
    bytes: usize,
    err: *mut sys::sb_error,
) -> sys::sb_status {
    answer(err, || {
        // SAFETY: `user` is a reader that outlives the call. The library's buffer is valid for
        // `bytes` bytes. The buffer is filled with zeros first, because the reader may read the
        // buffer.
        let (reader, buffer) = unsafe {
            ptr::write_bytes(buffer.cast::<u8>(), 0, bytes);
            (&*user.cast::<R>(), slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes))
        };
        read_exact_at(reader, buffer, offset)
    })
}

unsafe extern "C" fn ask_version<R: ReadAt>(
    user: *mut c_void,
    out: *mut u64,
    err: *mut sys::sb_error,
) -> sys::sb_status {
    answer(err, || {
        // SAFETY: `user` is a reader that outlives the call. The library owns `out`.
        unsafe { *out = (*user.cast::<R>()).version()? };
        Ok(())
    })
}

unsafe extern "C" fn close_reader<R>(user: *mut c_void) {
    contain(|| {
        // SAFETY: `user` is the boxed reader, and the library closes it once.
        drop(unsafe { Box::from_raw(user.cast::<R>()) });
    });
}

// --- writers ---------------------------------------------------------------------------

/// Makes a call that writes to a writer, then flushes the writer.
pub(crate) fn lend_writer<W: Write>(
    mut writer: W,
    call: impl FnOnce(*const sys::sb_sink) -> Result<()>,
) -> Result<()> {
    let sink = sys::sb_sink {
        struct_size: mem::size_of::<sys::sb_sink>(),
        user: ptr::from_mut(&mut writer).cast(),
        write: Some(write_sink::<W>),
    };
    with_callbacks(|| call(&sink))?;
    writer.flush().map_err(Error::from_io)
}

unsafe extern "C" fn write_sink<W: Write>(
    user: *mut c_void,
    bytes: *const c_void,
    size: usize,
    err: *mut sys::sb_error,
) -> sys::sb_status {
    answer(err, || {
        // SAFETY: `user` points to the writer in `lend_writer`'s frame, and `lend_writer` has not
        // returned. The bytes are valid during the call.
        let (writer, bytes) =
            unsafe { (&mut *user.cast::<W>(), slice::from_raw_parts(bytes.cast::<u8>(), size)) };
        writer.write_all(bytes)
    })
}

// --- progress ---------------------------------------------------------------------------

type Report = Box<dyn Fn(u64, u64) -> ControlFlow<()> + Send + Sync>;

/// The progress callback, at an address that does not change.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Report>);

// A model is unchanged and usable after a panic of its progress callback.
impl UnwindSafe for Progress {}
impl RefUnwindSafe for Progress {}

impl Progress {
    pub(crate) fn new(
        report: impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Box::new(report)))
    }

    /// Returns the struct for C, which is valid as long as a clone of `self` lives.
    pub(crate) fn to_c(&self) -> sys::sb_progress {
        sys::sb_progress {
            struct_size: mem::size_of::<sys::sb_progress>(),
            user: Arc::as_ptr(&self.0).cast_mut().cast(),
            report: Some(report_progress),
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

unsafe extern "C" fn report_progress(user: *mut c_void, done: u64, total: u64) -> i32 {
    // SAFETY: `user` is from `Progress::to_c`, and its `Progress` is alive.
    let report = unsafe { &*user.cast::<Report>() };
    match panic::catch_unwind(AssertUnwindSafe(|| report(done, total))) {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(payload) => {
            keep(Failure::Panicked(payload));
            1
        }
    }
}
