use std::ptr;

use syncblob_sys as sys;

use super::elements::MutAccess;
use super::{Blob, Part};
use crate::any::both;
use crate::ffi::{check, get};
use crate::{Element, Result, Stream};

both! {
    /// Whole-blob operations, which run on the side with the newest bytes, or on the device if both
    /// sides are current. For two [`BlobAny`](crate::BlobAny)s of different element types, the
    /// operations return [`DtypeMismatch`](crate::ErrorKind::DtypeMismatch).
    impl Element {
        /// Sets data or diff to zeros.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared); a device that fails.
        pub fn clear(&mut self, part: Part) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: the blob is live, and the written memory has one owner.
            check(|err| unsafe { sys::sb_blob_clear(self.raw(), part.code(), err) })
        }

        /// Copies data or diff from a blob of the same shape. If the blobs have different contexts,
        /// the bytes pass through the host. Data that was never written is copied as zeros; the
        /// copy counts as written, so [`update`](Blob::update) accepts it.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared);
        /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch); out of memory, a device
        /// that fails.
        #[doc(alias = "CopyFrom")]
        pub fn copy_from(&mut self, part: Part, source: &Self) -> Result<()> {
            self.copy(source, part, 0)
        }

        /// Changes the shape to the source's shape, then calls [`copy_from`](Blob::copy_from).
        ///
        /// # Errors
        /// Errors of [`copy_from`](Blob::copy_from), without `ShapeMismatch`.
        #[doc(alias = "CopyFrom")]
        pub fn copy_from_reshape(&mut self, part: Part, source: &Self) -> Result<()> {
            self.copy(source, part, sys::SB_COPY_RESHAPE)
        }

        fn copy(&mut self, source: &Self, part: Part, flags: u32) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: both blobs are live; the written memory has one owner.
            check(|err| unsafe {
                sys::sb_blob_copy_from(self.raw(), part.code(), source.raw(), flags, err)
            })
        }

        /// Copies data or diff to the device if needed, and moves the [head](crate::Head) to the
        /// device. The copy is queued, and `stream` waits for the copy: later work on the stream
        /// reads the copied bytes, and later methods that end in `_on` run on the device.
        ///
        /// ```
        /// use syncblob::{Blob, Context, Head, Part};
        /// # fn main() -> syncblob::Result<()> {
        /// let context = Context::builder().device("sim:0").build()?;
        /// let mut blob = Blob::<f32>::in_context(&context).full([1000], 1.0)?;
        /// let stream = context.stream()?;
        /// blob.to_device(Part::Data, stream)?;
        /// blob.scale_on(Part::Data, 2.0, stream)?;
        /// assert_eq!(blob.head(Part::Data)?, Head::AtGpu);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared); [`NoDevice`](crate::ErrorKind::NoDevice) in a
        /// host-only context; [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's
        /// stream, [`Unsupported`](crate::ErrorKind::Unsupported) for a stream that is being
        /// captured; out of memory; a device that fails.
        #[doc(alias = "sb_blob_mutable_gpu_on")]
        pub fn to_device(&mut self, part: Part, stream: Stream<'_>) -> Result<()> {
            self.need_unique(part)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, and the memory has one owner.
            get(|out, err| unsafe {
                sys::sb_blob_mutable_gpu_on(self.raw(), part.code(), stream, out, err)
            })
            .map(drop)
        }
    }
}

/// Setting all elements from the host.
impl<T: Element> Blob<T> {
    /// Sets every element of data or diff on the host, without copying old elements to the host.
    /// [`initialize`](Blob::initialize) is for Caffe's fillers.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); out of memory, a cap that is reached.
    pub fn fill(&mut self, part: Part, value: T) -> Result<()> {
        let elements = self.overwritable(part)?;
        for i in 0..self.count() {
            // SAFETY: `elements` is valid for `count` elements.
            unsafe { elements.add(i).write(value) };
        }
        Ok(())
    }

    /// Replaces the elements of data or diff with a copy of `values`, without copying old elements
    /// to the host.
    ///
    /// # Errors
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) when there are not [`count`](Blob::count)
    /// values; errors of [`fill`](Blob::fill).
    #[doc(alias = "sb_blob_overwrite_cpu")]
    pub fn overwrite(&mut self, part: Part, values: &[T]) -> Result<()> {
        self.need_count(values.len())?;
        let elements = self.overwritable(part)?;
        // SAFETY: `elements` is valid for `count` elements of a memory whose only owner is this
        // blob, so `values` does not overlap it.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), elements, values.len()) };
        Ok(())
    }

    /// Returns host memory whose elements the caller must overwrite. If the memory has spare
    /// capacity, all old bytes are kept, because the bytes of the spare capacity must not change.
    fn overwritable(&mut self, part: Part) -> Result<*mut T> {
        let is_whole = self.memory(part)?.size() == self.count() * size_of::<T>();
        let call: MutAccess =
            if is_whole { sys::sb_blob_overwrite_cpu } else { sys::sb_blob_mutable_cpu };
        self.pointer_mut(part, call)
    }
}

both! {
    /// Arithmetic, which runs on the side with the newest bytes, or on the device if both sides are
    /// current. Sums are `f64` for every type. [`BlobAny`](crate::BlobAny) returns
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for types other than `f32` and `f64`.
    impl Float {
        /// Returns the sum of the absolute values of data or diff.
        ///
        /// # Errors
        /// Out of memory, a device that fails.
        pub fn asum(&self, part: Part) -> Result<f64> {
            // SAFETY: the blob is live.
            get(|out, err| unsafe { sys::sb_blob_asum(self.raw(), part.code(), out, err) })
        }

        /// Returns the sum of the squares of data or diff.
        ///
        /// # Errors
        /// Errors of [`asum`](Blob::asum).
        pub fn sumsq(&self, part: Part) -> Result<f64> {
            // SAFETY: the blob is live.
            get(|out, err| unsafe { sys::sb_blob_sumsq(self.raw(), part.code(), out, err) })
        }

        /// Multiplies data or diff by a factor.
        ///
        /// ```
        /// use syncblob::{Blob, BlobAny, ErrorKind, Part};
        /// # fn main() -> syncblob::Result<()> {
        /// let mut blob = BlobAny::from(Blob::<f32>::full([3], 1.5)?);
        /// blob.scale(Part::Data, -2.0)?;
        /// assert_eq!(blob.asum(Part::Data)?, 9.0);
        /// let mut integers = BlobAny::from(Blob::<i64>::zeros([3])?);
        /// assert_eq!(integers.update().unwrap_err().kind(), ErrorKind::Unsupported);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// Errors of [`update`](Blob::update), but memory that was never written is allowed.
        pub fn scale(&mut self, part: Part, factor: f64) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: the blob is live, and the written memory has one owner.
            check(|err| unsafe { sys::sb_blob_scale(self.raw(), part.code(), factor, err) })
        }

        /// Like [`scale`](Blob::scale), but a device queues the work on `stream`, and later calls
        /// take effect after the work.
        ///
        /// # Errors
        /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
        /// [`Unsupported`](crate::ErrorKind::Unsupported) for a stream that is being captured;
        /// errors of [`scale`](Blob::scale).
        pub fn scale_on(&mut self, part: Part, factor: f64, stream: Stream<'_>) -> Result<()> {
            self.need_unique(part)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, and the written memory has one owner.
            check(|err| unsafe {
                sys::sb_blob_scale_on(self.raw(), part.code(), factor, stream, err)
            })
        }

        /// Computes `data -= diff`, a solver's step. On a device the work is queued; a call that
        /// needs the data waits for the work and returns its failure.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared);
        /// [`Uninitialized`](crate::ErrorKind::Uninitialized) when data was never written;
        /// out of memory; a device that fails.
        #[doc(alias = "Update")]
        #[inline]
        pub fn update(&mut self) -> Result<()> {
            self.need_unique(Part::Data)?;
            // SAFETY: the blob is live, and its data has one owner.
            check(|err| unsafe { sys::sb_blob_update(self.raw(), err) })
        }

        /// Does the same as [`update`](Blob::update). A device queues the work on `stream`, and
        /// later calls take effect after the work. **If the newest data is only on the host, the
        /// work runs on the host at once**, and the stream is ignored: see
        /// [`to_device`](Blob::to_device). If the queued work fails, the first call that needs the
        /// data fails, and the data is [`Lost`](crate::Head::Lost).
        ///
        /// # Errors
        /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
        /// [`Unsupported`](crate::ErrorKind::Unsupported) for a stream that is being captured;
        /// errors of [`update`](Blob::update).
        pub fn update_on(&mut self, stream: Stream<'_>) -> Result<()> {
            self.need_unique(Part::Data)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, and the data has one owner.
            check(|err| unsafe { sys::sb_blob_update_on(self.raw(), stream, err) })
        }
    }
}
