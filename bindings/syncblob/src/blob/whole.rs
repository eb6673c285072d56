use std::ptr;

use syncblob_sys as sys;

use super::elements::MutAccess;
use super::{Blob, Part};
use crate::any::both;
use crate::ffi::{check, get};
use crate::{Element, Result, Stream};

both! {
    /// Whole-blob operations, done where the head is, on the device if it is synced. Of
    /// [`BlobAny`](crate::BlobAny)s, two that hold other types are a [`DtypeMismatch`](crate::ErrorKind::DtypeMismatch).
    impl Element {
        /// Sets data or diff to zeros.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared); a device that fails.
        pub fn clear(&mut self, part: Part) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: the blob is live, and the written memory unique.
            check(|err| unsafe { sys::sb_blob_clear(self.raw(), part.code(), err) })
        }

        /// Copies data or diff of a blob of the same shape, through the host if its context is
        /// another. Data that was never written is copied as zeros, so that
        /// [`update`](Blob::update) works.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared);
        /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch); out of memory, a device
        /// that fails.
        #[doc(alias = "CopyFrom")]
        pub fn copy_from(&mut self, part: Part, source: &Self) -> Result<()> {
            self.copy(source, part, 0)
        }

        /// The same, taking the source's shape first.
        ///
        /// # Errors
        /// As [`copy_from`](Blob::copy_from), without the mismatch.
        #[doc(alias = "CopyFrom")]
        pub fn copy_from_reshape(&mut self, part: Part, source: &Self) -> Result<()> {
            self.copy(source, part, sys::SB_COPY_RESHAPE)
        }

        fn copy(&mut self, source: &Self, part: Part, flags: u32) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: both blobs are live; the written memory is unique.
            check(|err| unsafe {
                sys::sb_blob_copy_from(self.raw(), part.code(), source.raw(), flags, err)
            })
        }

        /// Brings data or diff to the device, queued on `stream`, and makes the stream wait for the
        /// bytes: work that is queued there from now on finds them, and arithmetic `_on` the stream
        /// runs on the device.
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
        /// stream, [`Unsupported`](crate::ErrorKind::Unsupported) for one that is being captured;
        /// out of memory; a device that fails.
        #[doc(alias = "sb_blob_mutable_gpu_on")]
        pub fn to_device(&mut self, part: Part, stream: Stream<'_>) -> Result<()> {
            self.need_unique(part)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, what moves its head unique.
            get(|out, err| unsafe {
                sys::sb_blob_mutable_gpu_on(self.raw(), part.code(), stream, out, err)
            })
            .map(drop)
        }
    }
}

/// Values from the host, for every element.
impl<T: Element> Blob<T> {
    /// Sets every element of data or diff on the host, without bringing old ones there.
    /// [`initialize`](Blob::initialize) is for Caffe's fillers.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); out of memory, a cap that is reached.
    pub fn fill(&mut self, part: Part, value: T) -> Result<()> {
        let elements = self.overwritable(part)?;
        for i in 0..self.count() {
            // SAFETY: valid for `count` elements.
            unsafe { elements.add(i).write(value) };
        }
        Ok(())
    }

    /// Replaces the elements of data or diff by a copy of `values`, without bringing old
    /// ones to the host.
    ///
    /// # Errors
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) when there are not
    /// [`count`](Blob::count) values; else as [`fill`](Blob::fill).
    #[doc(alias = "sb_blob_overwrite_cpu")]
    pub fn overwrite(&mut self, part: Part, values: &[T]) -> Result<()> {
        self.need_count(values.len())?;
        let elements = self.overwritable(part)?;
        // SAFETY: valid for `count` elements, of a memory that this blob has
        // alone, so that `values` is elsewhere.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), elements, values.len()) };
        Ok(())
    }

    /// Host memory of which the caller writes every element. Memory that holds
    /// more than those has to keep the rest, as for any write.
    fn overwritable(&mut self, part: Part) -> Result<*mut T> {
        let is_whole = self.memory(part)?.size() == self.count() * size_of::<T>();
        let call: MutAccess =
            if is_whole { sys::sb_blob_overwrite_cpu } else { sys::sb_blob_mutable_cpu };
        self.pointer_mut(part, call)
    }
}

both! {
    /// Arithmetic, done where the head is, on the device if it is synced; sums are `f64` for every
    /// type. A [`BlobAny`](crate::BlobAny) of neither `f32` nor `f64` is
    /// [`Unsupported`](crate::ErrorKind::Unsupported).
    impl Float {
        /// The sum of the absolute values of data or diff.
        ///
        /// # Errors
        /// Out of memory, a device that fails.
        pub fn asum(&self, part: Part) -> Result<f64> {
            // SAFETY: the blob is live.
            get(|out, err| unsafe { sys::sb_blob_asum(self.raw(), part.code(), out, err) })
        }

        /// The sum of the squares of data or diff.
        ///
        /// # Errors
        /// As [`asum`](Blob::asum).
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
        /// As [`update`](Blob::update), but memory that was never written is fine.
        pub fn scale(&mut self, part: Part, factor: f64) -> Result<()> {
            self.need_unique(part)?;
            // SAFETY: the blob is live, and the written memory unique.
            check(|err| unsafe { sys::sb_blob_scale(self.raw(), part.code(), factor, err) })
        }

        /// The same; on a device it is queued on `stream`, and later calls are ordered after it.
        ///
        /// # Errors
        /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
        /// [`Unsupported`](crate::ErrorKind::Unsupported) for one that is being captured; else as
        /// [`scale`](Blob::scale).
        pub fn scale_on(&mut self, part: Part, factor: f64, stream: Stream<'_>) -> Result<()> {
            self.need_unique(part)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, and the written memory unique.
            check(|err| unsafe {
                sys::sb_blob_scale_on(self.raw(), part.code(), factor, stream, err)
            })
        }

        /// `data -= diff`: a solver's step. On a device it is queued; a call that needs the data
        /// waits, and returns a failure.
        ///
        /// # Errors
        /// [`Shared`](crate::ErrorKind::Shared);
        /// [`Uninitialized`](crate::ErrorKind::Uninitialized) when data was never written;
        /// out of memory; a device that fails.
        #[doc(alias = "Update")]
        #[inline]
        pub fn update(&mut self) -> Result<()> {
            self.need_unique(Part::Data)?;
            // SAFETY: the blob is live, its data unique.
            check(|err| unsafe { sys::sb_blob_update(self.raw(), err) })
        }

        /// The same on the side of the head of data: on the device it is queued on `stream`, and
        /// later calls are ordered after it. **With the head on the host it runs there, at once**,
        /// and the stream is ignored: see [`to_device`](Blob::to_device). If the queued work fails,
        /// the first call that needs the data fails, and the data is [`Lost`](crate::Head::Lost).
        ///
        /// # Errors
        /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
        /// [`Unsupported`](crate::ErrorKind::Unsupported) for one that is being captured; else as
        /// [`update`](Blob::update).
        pub fn update_on(&mut self, stream: Stream<'_>) -> Result<()> {
            self.need_unique(Part::Data)?;
            let stream = stream.for_use_in(&self.context())?;
            // SAFETY: the blob and the stream are live, its data unique.
            check(|err| unsafe { sys::sb_blob_update_on(self.raw(), stream, err) })
        }
    }
}
