use std::ffi::CStr;
use std::io::Write;
use std::path::Path;

use syncblob_sys as sys;

use super::{BlobAt, Model};
use crate::blob::reserve;
use crate::callbacks::lend_blobs;
use crate::ffi::{check, get, with_path};
use crate::io::{lend_writer, with_callbacks};
use crate::{BlobAny, Error, Result};

/// Saving a model.
impl Model {
    /// Writes the model to a file, atomically: the path names either the old file or the complete
    /// new file. The old file may be the file that the model was opened from. For links and
    /// permissions see [`Blob::write_file`](crate::Blob::write_file).
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io); [`Unsupported`](crate::ErrorKind::Unsupported) for an
    /// [announced](Model::announce_blob) blob, which needs [`save_from`](Model::save_from); errors
    /// of [`size`](Model::size).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        with_path(path.as_ref(), |path| {
            with_callbacks(|| {
                // SAFETY: `path` ends in NUL.
                check(|err| unsafe { sys::sb_model_save_file(self.as_ptr(), path.as_ptr(), err) })
            })
        })
    }

    /// Writes the model to a writer and flushes it. After a failure the writer may have received
    /// some of the bytes.
    ///
    /// # Errors
    /// Errors of [`save`](Model::save). An error of the writer is the
    /// [source](std::error::Error::source) of the returned error.
    ///
    /// # Panics
    /// When the writer panics.
    pub fn write_to(&self, writer: impl Write) -> Result<()> {
        lend_writer(writer, |sink| {
            // SAFETY: the sink is borrowed.
            check(|err| unsafe { sys::sb_model_save_sink(self.as_ptr(), sink, err) })
        })
    }

    /// Writes the model to a file as [`save`](Model::save) does, for models that do not fit into
    /// memory. The library requests the [announced](Model::announce_blob) blobs one by one from
    /// `values`, and drops each before the next request.
    ///
    /// ```no_run
    /// use syncblob::{Blob, Error, Format, Model};
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// let layer = model.add_layer("fc", "InnerProduct")?;
    /// model.announce_blob::<f32>(layer, [4096, 25088])?;
    /// model.save_from("large.caffemodel", |at| {
    ///     Ok::<_, Error>(Blob::<f32>::full([4096, 25088], at.index as f32)?.into())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of `values`, after which the file is unchanged; errors of [`save`](Model::save),
    /// except the error for announced blobs; [`DtypeMismatch`](crate::ErrorKind::DtypeMismatch) and
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) for a blob that differs from the
    /// announced blob; errors of [`Blob::data`](crate::Blob::data).
    ///
    /// # Panics
    /// When `values` panics; the file is unchanged.
    pub fn save_from<E: From<Error>>(
        &self,
        path: impl AsRef<Path>,
        values: impl FnMut(BlobAt) -> Result<BlobAny, E>,
    ) -> Result<(), E> {
        let save = |path: &CStr, lender, user| {
            with_callbacks(|| {
                // SAFETY: `path` ends in NUL; `lender` accepts `user` as its argument.
                check(|err| unsafe {
                    sys::sb_model_save_file_from(self.as_ptr(), path.as_ptr(), lender, user, err)
                })
            })
        };
        lend_blobs(values, |lender, user| with_path(path.as_ref(), |path| save(path, lender, user)))
    }

    /// Returns the number of bytes of the saved model, including announced blobs.
    ///
    /// # Errors
    /// [`OverLimit`](crate::ErrorKind::OverLimit) above 2 GiB − 1, protobuf's limit;
    /// [`Io`](crate::ErrorKind::Io), [`Malformed`](crate::ErrorKind::Malformed) and
    /// [`DataLimit`](crate::ErrorKind::DataLimit) if the file has changed;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the progress callback cancels; out of memory.
    pub fn size(&self) -> Result<usize> {
        // SAFETY: the model is live.
        with_callbacks(|| get(|out, err| unsafe { sys::sb_model_size(self.as_ptr(), out, err) }))
    }

    /// Returns the model as bytes.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for an [announced](Model::announce_blob)
    /// blob, which has no values; errors of [`size`](Model::size).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let size = self.size()?;
        let mut bytes = Vec::<u8>::new();
        reserve(&mut bytes, size)?;
        let written = with_callbacks(|| {
            // SAFETY: `bytes` has room for `capacity` bytes.
            get(|out, err| unsafe {
                let (buffer, capacity) = (bytes.as_mut_ptr().cast(), bytes.capacity());
                sys::sb_model_save(self.as_ptr(), buffer, capacity, out, err)
            })
        })?;
        // SAFETY: the library has written `written` bytes.
        unsafe { bytes.set_len(written) };
        Ok(bytes)
    }
}
