use std::ops::{Bound, RangeBounds};
use std::slice;

use syncblob_sys as sys;

use super::{Blob, Part, Reallocated};
use crate::dims::with_indices;
use crate::ffi::{as_given, get, to_i64, to_usize, MAX_I64};
use crate::{Element, Result, Shape};

/// Shape and indices.
impl<T: Element> Blob<T> {
    /// Returns whether the blob ever had a shape.
    pub fn is_shaped(&self) -> bool {
        // SAFETY: the blob is live.
        unsafe { sys::sb_blob_is_shaped(self.raw()) != 0 }
    }

    /// Returns the dimensions. The blob's `Display` writes the dimensions as Caffe does: `2 3 4
    /// (24)`.
    #[doc(alias = "shape_string")]
    #[inline]
    pub fn shape(&self) -> &[usize] {
        // SAFETY: the library returns num_axes dimensions, none of them negative. The dimensions
        // stay until the next reshape, which needs `&mut self`.
        unsafe {
            let dims = sys::sb_blob_shape(self.raw());
            self.dims.sizes(slice::from_raw_parts(dims, self.num_axes()))
        }
    }

    /// Returns the dimensions, or `[0]` if the blob has no shape: some formats cannot store a blob
    /// without a shape.
    #[cfg(any(feature = "ndarray", feature = "safetensors", feature = "serde"))]
    pub(crate) fn shape_or_empty(&self) -> &[usize] {
        if self.is_shaped() {
            self.shape()
        } else {
            &[0]
        }
    }

    /// Returns the number of axes.
    #[inline]
    pub fn num_axes(&self) -> usize {
        // SAFETY: the blob is live.
        to_usize(unsafe { sys::sb_blob_num_axes(self.raw()) }.into())
    }

    /// Returns the number of elements.
    #[inline]
    pub fn count(&self) -> usize {
        // SAFETY: the blob is live.
        to_usize(unsafe { sys::sb_blob_count(self.raw()) })
    }

    /// Returns the number of elements for which the memory of data or diff has room. A reshape up
    /// to this count keeps the memory. Returns 0 before the memory is allocated, and after a
    /// reshape beyond the capacity.
    pub fn capacity(&self, part: Part) -> usize {
        // SAFETY: the blob is live.
        to_usize(unsafe { sys::sb_blob_capacity(self.raw(), part.code()) })
    }

    /// Returns one dimension; a negative axis counts from the end.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange).
    #[doc(alias = "shape")]
    pub fn dim(&self, axis: i32) -> Result<usize> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_dim(self.raw(), axis, out, err) }).map(to_usize)
    }

    /// Converts an axis to its index from the front. A negative axis counts from the end.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange).
    #[doc(alias = "CanonicalAxisIndex")]
    pub fn canonical_axis(&self, axis: i32) -> Result<usize> {
        self.dim(axis)?;
        let from_end = if axis < 0 { self.num_axes() } else { 0 };
        Ok(from_end.wrapping_add_signed(axis as isize))
    }

    /// Returns the product of the dimensions in a range of axes, such as `1..` or `1..3`.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange);
    /// [`SizeOverflow`](crate::ErrorKind::SizeOverflow) when the product overflows, which can
    /// happen only if a dimension outside the range is 0.
    #[doc(alias = "count")]
    pub fn count_range(&self, axes: impl RangeBounds<usize>) -> Result<usize> {
        let start = match axes.start_bound() {
            Bound::Included(&axis) => axis,
            Bound::Excluded(&axis) => axis.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match axes.end_bound() {
            Bound::Included(&axis) => axis.saturating_add(1),
            Bound::Excluded(&axis) => axis,
            Bound::Unbounded => self.num_axes(),
        };
        let (given, most) = ([start, end], i32::MAX as usize);
        let [start, end] = given.map(|axis| i32::try_from(axis).unwrap_or(i32::MAX));
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_count_range(self.raw(), start, end, out, err) })
            .map(to_usize)
            .map_err(|error| as_given(error, "axis", &given, most))
    }

    /// Returns Caffe's four dimensions `[num, channels, height, width]`; missing dimensions are 1.
    ///
    /// # Errors
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) for more than 4 axes.
    #[doc(alias("LegacyShape", "num", "channels", "height", "width"))]
    pub fn legacy_shape(&self) -> Result<[usize; 4]> {
        let mut dims = [0; 4];
        for (index, dim) in (0..).zip(&mut dims) {
            // SAFETY: the blob is live.
            *dim =
                get(|out, err| unsafe { sys::sb_blob_legacy_shape(self.raw(), index, out, err) })
                    .map(to_usize)?;
        }
        Ok(dims)
    }

    /// Returns whether the other blob has the same dimensions.
    #[doc(alias = "ShapeEquals")]
    pub fn same_shape<U: Element>(&self, other: &Blob<U>) -> bool {
        self.is_shaped() == other.is_shaped() && self.shape() == other.shape()
    }

    /// Changes the shape. A memory that is too small for the new count is replaced by a fresh
    /// memory of zeros; any other memory keeps its elements.
    ///
    /// # Errors
    /// Errors of [`zeros`](Blob::zeros).
    #[doc(alias = "Reshape")]
    #[inline]
    pub fn reshape(&mut self, shape: impl Into<Shape>) -> Result<Reallocated> {
        let shape = shape.into();
        let dims = shape.dims()?;
        // SAFETY: `dims` is valid for its length, at most 32.
        get(|out, err| unsafe {
            sys::sb_blob_reshape(self.raw(), dims.as_ptr(), dims.len() as i32, out, err)
        })
        .map(Reallocated::from_bits)
    }

    /// Changes the shape to the shape of another blob. If the other blob never had a shape, this
    /// blob becomes a scalar, as in Caffe.
    ///
    /// # Errors
    /// [`SizeOverflow`](crate::ErrorKind::SizeOverflow) if the bytes of this blob would not fit the
    /// address space, because its elements are larger than the other blob's.
    #[doc(alias = "ReshapeLike")]
    pub fn reshape_like<U: Element>(&mut self, other: &Blob<U>) -> Result<Reallocated> {
        // SAFETY: both blobs are live; a blob's shape has `num_axes` dimensions.
        get(|out, err| unsafe {
            let axes = sys::sb_blob_num_axes(other.raw());
            sys::sb_blob_reshape(self.raw(), sys::sb_blob_shape(other.raw()), axes, out, err)
        })
        .map(Reallocated::from_bits)
    }

    /// Returns a device pointer to the dimensions as `i64`, valid until the next reshape.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice); out of memory, a device that fails.
    #[doc(alias = "gpu_shape")]
    pub fn gpu_shape_ptr(&self) -> Result<*const i64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_gpu_shape(self.raw(), out, err) })
    }

    /// Moves the elements of each memory that has spare capacity to a memory without spare
    /// capacity. Shared memories, and memory that the caller owns, are not replaced.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    pub fn shrink_to_fit(&mut self) -> Result<Reallocated> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_shrink_to_fit(self.raw(), out, err) })
            .map(Reallocated::from_bits)
    }

    /// Returns the linear index of an element; missing trailing indices are 0.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange).
    #[inline]
    pub fn offset(&self, indices: impl AsRef<[usize]>) -> Result<usize> {
        let indices = indices.as_ref();
        let len = indices.len().try_into().unwrap_or(i32::MAX);
        // SAFETY: `start` points to the indices. The library reads none of them if their number
        // exceeds the number of axes.
        let offset_of = |start| unsafe {
            get(|out, err| sys::sb_blob_offset(self.raw(), start, len, out, err))
        };
        with_indices(indices, offset_of)
            .map(|offset| offset as usize) // below the count
            .map_err(|error| as_given(error, "index", indices, MAX_I64))
    }

    /// Returns Caffe's `offset(n, c, h, w)` of a blob of at most 4 axes; missing axes have the
    /// dimension 1. As in Caffe, an index may be equal to its dimension, since layers compute
    /// strides as `offset(0, 1)` even if there is one channel. Therefore the result may be
    /// [`count`](Blob::count) or more.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange) for an index above its dimension;
    /// [`ShapeMismatch`](crate::ErrorKind::ShapeMismatch) for more than 4 axes;
    /// [`SizeOverflow`](crate::ErrorKind::SizeOverflow) when an offset beyond the elements does not
    /// fit 64 bits.
    #[doc(alias = "offset")]
    pub fn offset_legacy(&self, [n, c, h, w]: [usize; 4]) -> Result<usize> {
        let given = [n, c, h, w];
        let [n, c, h, w] = given.map(to_i64);
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_offset_legacy(self.raw(), n, c, h, w, out, err) })
            .map(to_usize)
            .map_err(|error| as_given(error, "index", &given, MAX_I64))
    }

    /// Returns one element of data or diff; see [`offset`](Blob::offset).
    ///
    /// # Errors
    /// Errors of [`offset`](Blob::offset) and [`data`](Blob::data).
    #[doc(alias("data_at", "diff_at"))]
    pub fn at(&self, part: Part, indices: impl AsRef<[usize]>) -> Result<T> {
        let offset = self.offset(indices)?;
        Ok(self.host(part)?[offset])
    }
}
