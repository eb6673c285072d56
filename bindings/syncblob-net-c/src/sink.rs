//! Writes to a caller's sink.

use std::io::{self, Write};
use std::mem::MaybeUninit;

use syncblob_sys as sys;

use crate::failure::{Failure, Result};
use crate::pointers::{adopt, object};

pub struct Sink {
    sink: sys::sb_sink,
    failure: Option<Failure>,
}

impl Sink {
    /// # Safety
    /// `sink` is NULL or valid. The sink's `write` may be called while the result lives.
    pub unsafe fn new(sink: *const sys::sb_sink) -> Result<Self> {
        let none = sys::sb_sink {
            struct_size: size_of::<sys::sb_sink>(),
            user: std::ptr::null_mut(),
            write: None,
        };
        // SAFETY: the caller keeps this function's contract.
        let sink = unsafe {
            object(sink, "sink")?;
            adopt(sink, none)?
        };
        match sink.write {
            Some(_) => Ok(Self { sink, failure: None }),
            None => Err(Failure::null("write")),
        }
    }

    /// Returns the failure of the last write, if that write failed.
    pub fn failure(self) -> Option<Failure> {
        self.failure
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (Some(write), false) = (self.sink.write, bytes.is_empty()) else { return Ok(0) };
        let mut error = MaybeUninit::<sys::sb_error>::zeroed();
        // SAFETY: `new` requires that `write` may be called, and an error of zeros is valid.
        let (status, error) = unsafe {
            let (data, size) = (bytes.as_ptr().cast(), bytes.len());
            let status = write(self.sink.user, data, size, error.as_mut_ptr());
            (status, error.assume_init())
        };
        if status == sys::SB_OK {
            return Ok(bytes.len());
        }
        self.failure = Some(failure(status, &error));
        Err(io::Error::other("the sink failed"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failure(status: sys::sb_status, error: &sys::sb_error) -> Failure {
    let status = match status {
        sys::SB_ERR_OUT_OF_MEMORY | sys::SB_ERR_CANCELLED => status,
        _ => sys::SB_ERR_IO,
    };
    let reported = syncblob::Error::from_c(error);
    let message = match reported.message() {
        "" => "the sink failed and gave no reason",
        message => message,
    };
    Failure::of_callback(status, reported.device_code().unwrap_or(0), message)
}
