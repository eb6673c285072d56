use std::io::Write;
use std::path::Path;
use std::ptr;

use syncblob_sys as sys;

use super::{Blob, BlobBuilder, Part, Reallocated};
use crate::ffi::{check, get, with_path};
use crate::io::{borrow_reader, lend_writer};
use crate::{Context, Element, Error, ErrorKind, Float, ReadAt, Readable, Result};

/// The parts of a blob that a message contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Only the data.
    #[default]
    Data,
    /// The data and the diff.
    DataAndDiff,
}

impl Payload {
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::Data => 0,
            Self::DataAndDiff => sys::SB_PROTO_WRITE_DIFF,
        }
    }
}

/// Caffe's `BlobProto` messages, and files of one message, such as `mean.binaryproto`. The bytes
/// may be untrusted: each call first checks them against the context's limits. An error contains
/// the offset of the invalid bytes. If an integer blob cannot hold a value, such as a fraction, the
/// error is [`DataOverflow`](ErrorKind::DataOverflow). A blob of `half::f16` accepts only NVCaffe's
/// half-precision values. For other values, the error is
/// [`DtypeMismatch`](ErrorKind::DtypeMismatch).
impl<T: Readable> Blob<T> {
    /// Makes a blob from a `BlobProto` message.
    ///
    /// ```
    /// use syncblob::{Blob, Payload};
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<f64>::from_slice([3], &[0.5, 1.0, 2.0])?;
    /// let bytes = blob.to_proto(Payload::Data)?;
    /// let again = Blob::<f32>::from_proto(&bytes)?;
    /// assert_eq!(again.data()?, [0.5, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors in the data ([`Malformed`](ErrorKind::Malformed),
    /// [`LengthMismatch`](ErrorKind::LengthMismatch), [`BadShape`](ErrorKind::BadShape),
    /// [`DataOverflow`](ErrorKind::DataOverflow), [`DataLimit`](ErrorKind::DataLimit)) and out of
    /// memory.
    #[doc(alias = "FromProto")]
    pub fn from_proto(bytes: &[u8]) -> Result<Self> {
        Self::in_context(&Context::host()).from_proto(bytes)
    }

    /// Reads a `BlobProto` message, which must have this blob's shape, into this blob.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared) when data or diff is shared;
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch); errors of [`from_proto`](Blob::from_proto).
    #[doc(alias = "FromProto")]
    pub fn read_proto(&mut self, bytes: &[u8]) -> Result<()> {
        self.replace(bytes, 0)
    }

    /// Reads a `BlobProto` message into this blob, and changes the shape to the message's shape. A
    /// memory that has room for the values is not replaced.
    ///
    /// # Errors
    /// Errors of [`read_proto`](Blob::read_proto), without `ShapeMismatch`.
    #[doc(alias = "FromProto")]
    pub fn read_proto_reshape(&mut self, bytes: &[u8]) -> Result<()> {
        self.replace(bytes, sys::SB_PROTO_RESHAPE)
    }

    fn replace(&mut self, bytes: &[u8], flags: u32) -> Result<()> {
        self.need_unique(Part::Data)?;
        self.need_unique(Part::Diff)?;
        // SAFETY: data and diff have one owner, and the blob is mutably borrowed.
        unsafe { self.parse(bytes, flags) }
    }

    /// # Safety
    /// No other code uses the blob or its memories.
    unsafe fn parse(&self, bytes: &[u8], flags: u32) -> Result<()> {
        let (start, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: `bytes` is valid for its length. The caller promises that nothing uses the blob.
        check(|err| unsafe {
            sys::sb_blob_from_proto(self.raw(), start, len, flags, ptr::null(), err)
        })
    }

    /// Reads a file of one `BlobProto`, such as `mean.binaryproto`.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); errors of [`from_proto`](Blob::from_proto).
    #[doc(alias = "ReadProtoFromBinaryFile")]
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::in_context(&Context::host()).read_file(path)
    }

    /// Reads one `BlobProto` from a reader. See [`ReadAt`].
    ///
    /// ```
    /// use syncblob::{Blob, Payload};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut bytes = Vec::new();
    /// Blob::<f32>::from_slice([2], &[0.5, 1.0])?.write_to(&mut bytes, Payload::Data)?;
    /// assert_eq!(Blob::<f64>::read_from(bytes)?.data()?, [0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`read_file`](Blob::read_file). An error of the reader is the
    /// [source](std::error::Error::source) of the returned error.
    ///
    /// # Panics
    /// When the reader panics.
    pub fn read_from(reader: impl ReadAt) -> Result<Self> {
        Self::in_context(&Context::host()).read_from(reader)
    }
}

/// Writing messages as Caffe does.
impl<T: Float> Blob<T> {
    /// Returns the blob as a `BlobProto` message.
    ///
    /// # Errors
    /// [`OverLimit`](ErrorKind::OverLimit) above 2 GiB − 1, protobuf's limit; errors of
    /// [`data`](Blob::data).
    #[doc(alias = "ToProto")]
    pub fn to_proto(&self, payload: Payload) -> Result<Vec<u8>> {
        let flags = payload.flags();
        // SAFETY: the blob is live.
        let size = get(|out, err| unsafe { sys::sb_blob_proto_size(self.raw(), flags, out, err) })?;
        let mut bytes = Vec::<u8>::new();
        reserve(&mut bytes, size)?;
        // SAFETY: `bytes` has room for `capacity` bytes.
        let written = get(|out, err| unsafe {
            let (buffer, capacity) = (bytes.as_mut_ptr().cast(), bytes.capacity());
            sys::sb_blob_to_proto(self.raw(), flags, buffer, capacity, out, err)
        })?;
        // SAFETY: the library has written `written` bytes.
        unsafe { bytes.set_len(written) };
        Ok(bytes)
    }

    /// Writes the blob's `BlobProto` to a file, atomically: the path names either the old file or
    /// the complete new file.
    ///
    /// A symbolic link stays and is followed, even if its target does not exist. A link to an open
    /// file, such as `/dev/stdout`, is refused. The new file has the permissions of the old file
    /// without set-user-ID and set-group-ID. If the process may set the old owner and group, the
    /// new file has them, too. If the process may not set the group, the new group and other users
    /// get only permissions that the old file gave both to its group and to other users. On Linux
    /// the new file has the old file's POSIX access control list. If the list cannot be kept, all
    /// users except the owner get only the permissions that every entry of the list grants.
    /// Extended attributes are lost, and other hard links refer to the old file.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); errors of [`to_proto`](Blob::to_proto).
    #[doc(alias = "WriteProtoToBinaryFile")]
    pub fn write_file(&self, path: impl AsRef<Path>, payload: Payload) -> Result<()> {
        with_path(path.as_ref(), |path| {
            // SAFETY: `path` ends in NUL.
            check(|err| unsafe {
                sys::sb_blob_save_file(self.raw(), path.as_ptr(), payload.flags(), err)
            })
        })
    }

    /// Writes the blob's `BlobProto` to a writer and flushes it. After a failure the writer may
    /// have received some of the bytes.
    ///
    /// # Errors
    /// Errors of [`write_file`](Blob::write_file). An error of the writer is the
    /// [source](std::error::Error::source) of the returned error.
    ///
    /// # Panics
    /// When the writer panics.
    pub fn write_to(&self, writer: impl Write, payload: Payload) -> Result<()> {
        lend_writer(writer, |sink| {
            // SAFETY: the sink is borrowed.
            check(|err| unsafe {
                let flags = payload.flags();
                sys::sb_blob_save_sink(self.raw(), sink, flags, ptr::null(), err)
            })
        })
    }
}

/// Shapes of Caffe's messages.
impl<T: Element> Blob<T> {
    /// Returns whether the blob has the shape of a `BlobProto` message. Legacy dimensions in the
    /// message must equal the blob's last four axes. Missing axes have the dimension 1.
    ///
    /// # Errors
    /// Errors of [`from_proto`](Blob::from_proto).
    #[doc(alias = "ShapeEquals")]
    pub fn has_shape_of_proto(&self, bytes: &[u8]) -> Result<bool> {
        let (start, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: `bytes` is valid for its length.
        get(|out, err| unsafe { sys::sb_blob_shape_equals_proto(self.raw(), start, len, out, err) })
            .map(|equal| equal != 0)
    }

    /// Changes the shape to the shape in a `BlobShape` message. See [`reshape`](Blob::reshape).
    ///
    /// # Errors
    /// Errors of [`from_proto`](Blob::from_proto).
    #[doc(alias = "Reshape")]
    pub fn reshape_proto(&mut self, bytes: &[u8]) -> Result<Reallocated> {
        let (start, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: `bytes` is valid for its length.
        get(|out, err| unsafe { sys::sb_blob_reshape_proto(self.raw(), start, len, out, err) })
            .map(Reallocated::from_bits)
    }
}

/// Makes room for `count` more values. Returns an error if the allocation fails.
pub(crate) fn reserve<T>(values: &mut Vec<T>, count: usize) -> Result<()> {
    values.try_reserve_exact(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<T>());
        Error::new(ErrorKind::OutOfMemory, format!("{bytes} bytes cannot be allocated"))
    })
}

/// Making blobs in a context.
impl<T: Readable> BlobBuilder<'_, T> {
    /// Does the same as [`Blob::from_proto`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`Blob::from_proto`].
    pub fn from_proto(self, bytes: &[u8]) -> Result<Blob<T>> {
        let blob = self.empty()?;
        // SAFETY: the blob is not shared yet.
        unsafe { blob.parse(bytes, sys::SB_PROTO_RESHAPE) }?;
        Ok(blob)
    }

    /// Does the same as [`Blob::read_file`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`Blob::read_file`].
    pub fn read_file(self, path: impl AsRef<Path>) -> Result<Blob<T>> {
        let blob = self.empty()?;
        with_path(path.as_ref(), |path| {
            // SAFETY: `path` ends in NUL; the blob is fresh.
            check(|err| unsafe {
                let (blob, path) = (blob.raw(), path.as_ptr());
                sys::sb_blob_load_file(blob, path, sys::SB_PROTO_RESHAPE, ptr::null(), err)
            })
        })?;
        Ok(blob)
    }

    /// Does the same as [`Blob::read_from`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`Blob::read_from`].
    ///
    /// # Panics
    /// When the reader panics.
    pub fn read_from(self, reader: impl ReadAt) -> Result<Blob<T>> {
        let blob = self.empty()?;
        let (limits, progress) = (ptr::null(), ptr::null());
        let read = borrow_reader(&reader, |source| {
            // SAFETY: the source is borrowed; the blob is fresh.
            check(|err| unsafe {
                let flags = sys::SB_PROTO_RESHAPE;
                sys::sb_blob_load_source(blob.raw(), source, flags, limits, progress, err)
            })
        });
        // Drop the reader before the blob becomes the result: rustc leaks a result if a later drop
        // panics.
        drop(reader);
        read?;
        Ok(blob)
    }
}
