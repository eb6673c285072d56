use std::ptr;

use syncblob_sys as sys;

use super::elements::MutAccess;
use super::{Blob, Part};
use crate::ffi::{check, get};
use crate::{Element, Float, Result, Stream};

/// Whole-blob operations, done where the head is.
impl<T: Element> Blob<T> {
    /// Sets the data to zeros.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); a device that fails.
    pub fn clear_data(&mut self) -> Result<()> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob is live, its data unique.
        check(|err| unsafe { sys::sb_blob_clear(self.raw(), sys::SB_DATA, err) })
    }

    /// Sets the diff to zeros.
    ///
    /// # Errors
    /// As [`clear_data`](Blob::clear_data).
    pub fn clear_diff(&mut self) -> Result<()> {
        self.need_unique(Part::Diff)?;
        // SAFETY: the blob is live, its diff unique.
        check(|err| unsafe { sys::sb_blob_clear(self.raw(), sys::SB_DIFF, err) })
    }

    /// Copies data or diff of a blob of the same shape, through the host if its
    /// context is another. Of what was never written it writes the zeros, so that
    /// [`update`](Blob::update) works.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared);
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch); out of memory, a device
    /// that fails.
    #[doc(alias = "CopyFrom")]
    pub fn copy_from(&mut self, source: &Self, part: Part) -> Result<()> {
        self.copy(source, part, 0)
    }

    /// The same, taking the source's shape first.
    ///
    /// # Errors
    /// As [`copy_from`](Blob::copy_from), without the mismatch.
    #[doc(alias = "CopyFrom")]
    pub fn copy_from_reshape(&mut self, source: &Self, part: Part) -> Result<()> {
        self.copy(source, part, sys::SB_COPY_RESHAPE)
    }

    fn copy(&mut self, source: &Self, part: Part, flags: u32) -> Result<()> {
        self.need_unique(part)?;
        // SAFETY: both blobs are live; what is written is unique.
        check(|err| unsafe {
            sys::sb_blob_copy_from(self.raw(), part.code(), source.raw(), flags, err)
        })
    }

    /// Sets every element of data on the host, without bringing old ones there.
    /// [`fill`](Blob::fill) is for Caffe's fillers.
    ///
    /// # Errors
    /// [`Shared`](crate::ErrorKind::Shared); out of memory, a cap that is reached.
    pub fn fill_data(&mut self, value: T) -> Result<()> {
        self.fill_part(Part::Data, value)
    }

    /// Sets every element of diff; see [`fill_data`](Blob::fill_data).
    ///
    /// # Errors
    /// As [`fill_data`](Blob::fill_data).
    pub fn fill_diff(&mut self, value: T) -> Result<()> {
        self.fill_part(Part::Diff, value)
    }

    fn fill_part(&mut self, part: Part, value: T) -> Result<()> {
        let elements = self.overwritable(part)?;
        for i in 0..self.count() {
            // SAFETY: valid for `count` elements.
            unsafe { elements.add(i).write(value) };
        }
        Ok(())
    }

    /// Replaces the elements of data by a copy of `values`, without bringing old
    /// ones to the host.
    ///
    /// # Errors
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) when there are not
    /// [`count`](Blob::count) values; else as [`fill_data`](Blob::fill_data).
    #[doc(alias = "sb_blob_overwrite_cpu")]
    pub fn overwrite_data(&mut self, values: &[T]) -> Result<()> {
        self.overwrite(Part::Data, values)
    }

    /// Replaces the elements of diff; see [`overwrite_data`](Blob::overwrite_data).
    ///
    /// # Errors
    /// As [`overwrite_data`](Blob::overwrite_data).
    pub fn overwrite_diff(&mut self, values: &[T]) -> Result<()> {
        self.overwrite(Part::Diff, values)
    }

    fn overwrite(&mut self, part: Part, values: &[T]) -> Result<()> {
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

/// Arithmetic, done where the head is; sums are `f64` for every type.
impl<T: Float> Blob<T> {
    /// The sum of the absolute values of data.
    ///
    /// # Errors
    /// Out of memory, a device that fails.
    pub fn asum_data(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_asum(self.raw(), sys::SB_DATA, out, err) })
    }

    /// The sum of the absolute values of diff.
    ///
    /// # Errors
    /// As [`asum_data`](Blob::asum_data).
    pub fn asum_diff(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_asum(self.raw(), sys::SB_DIFF, out, err) })
    }

    /// The sum of the squares of data.
    ///
    /// # Errors
    /// As [`asum_data`](Blob::asum_data).
    pub fn sumsq_data(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_sumsq(self.raw(), sys::SB_DATA, out, err) })
    }

    /// The sum of the squares of diff.
    ///
    /// # Errors
    /// As [`asum_data`](Blob::asum_data).
    pub fn sumsq_diff(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_sumsq(self.raw(), sys::SB_DIFF, out, err) })
    }

    /// Multiplies data by a factor.
    ///
    /// # Errors
    /// As [`update`](Blob::update), but memory that was never written is fine.
    pub fn scale_data(&mut self, factor: f64) -> Result<()> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob is live, its data unique.
        check(|err| unsafe { sys::sb_blob_scale(self.raw(), sys::SB_DATA, factor, err) })
    }

    /// The same; on a device it is queued on `stream`, and what is done later comes after it.
    ///
    /// # Errors
    /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for one that is being captured; else as
    /// [`scale_data`](Blob::scale_data).
    pub fn scale_data_on(&mut self, factor: f64, stream: Stream<'_>) -> Result<()> {
        self.need_unique(Part::Data)?;
        let stream = stream.for_use_in(&self.context())?;
        // SAFETY: the blob and the stream are live, its data unique.
        check(|err| unsafe { sys::sb_blob_scale_on(self.raw(), sys::SB_DATA, factor, stream, err) })
    }

    /// Multiplies diff by a factor.
    ///
    /// # Errors
    /// As [`scale_data`](Blob::scale_data).
    pub fn scale_diff(&mut self, factor: f64) -> Result<()> {
        self.need_unique(Part::Diff)?;
        // SAFETY: the blob is live, its diff unique.
        check(|err| unsafe { sys::sb_blob_scale(self.raw(), sys::SB_DIFF, factor, err) })
    }

    /// The same; on a device it is queued on `stream`, and what is done later comes after it.
    ///
    /// # Errors
    /// [`WrongDevice`](crate::ErrorKind::WrongDevice) for another context's stream,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for one that is being captured; else as
    /// [`scale_diff`](Blob::scale_diff).
    pub fn scale_diff_on(&mut self, factor: f64, stream: Stream<'_>) -> Result<()> {
        self.need_unique(Part::Diff)?;
        let stream = stream.for_use_in(&self.context())?;
        // SAFETY: the blob and the stream are live, its diff unique.
        check(|err| unsafe { sys::sb_blob_scale_on(self.raw(), sys::SB_DIFF, factor, stream, err) })
    }

    /// `data -= diff`: a solver's step. On a device it is queued, and whoever needs the data
    /// waits, and is told if it failed.
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

    /// The same; on a device it is queued on `stream`, and what is done later comes after it. If it
    /// fails in its turn, the first call that needs the data fails, and the data is
    /// [`Lost`](crate::Head::Lost).
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
