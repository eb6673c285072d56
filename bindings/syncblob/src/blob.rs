use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use syncblob_sys as sys;

use crate::element::sealed::Sealed;
use crate::ffi::{c_path, check, get, to_i64, to_usize};
use crate::{Context, Dtype, Element, Error, ErrorKind, Float, Result, Shape};

/// An n-dimensional array with two memories, data and diff, each on the host,
/// on the device of its [`Context`], or both.
///
/// Memory is allocated when first used and then reads as zeros. Elements lie in
/// row-major order. A blob is moved or shared, never copied unasked;
/// [`try_clone`](Blob::try_clone) copies.
#[doc(alias("Tensor", "Array"))]
pub struct Blob<T: Element> {
    raw: NonNull<sys::sb_blob>,
    elements: PhantomData<T>,
}

// SAFETY: the C library keeps nothing per thread: a blob may be used and
// destroyed on any thread, and its elements are plain numbers.
unsafe impl<T: Element> Send for Blob<T> {}
// SAFETY: `&self` methods make only calls on a const blob, which are safe
// beside each other.
unsafe impl<T: Element> Sync for Blob<T> {}

/// Where the newest bytes of a memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Head {
    /// Nothing was written yet.
    Uninitialized,
    /// On the host.
    AtCpu,
    /// On the device.
    AtGpu,
    /// On both, or on one and on its way to the other.
    Synced,
    /// Gone with the device.
    Lost,
}

impl Head {
    fn from_code(code: i32) -> Self {
        match code {
            sys::SB_HEAD_UNINITIALIZED => Self::Uninitialized,
            sys::SB_HEAD_AT_CPU => Self::AtCpu,
            sys::SB_HEAD_AT_GPU => Self::AtGpu,
            sys::SB_HEAD_SYNCED => Self::Synced,
            _ => Self::Lost,
        }
    }
}

/// One of a blob's two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The values.
    Data,
    /// Their gradients.
    Diff,
}

/// What is written when a blob becomes bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Payload {
    /// The data alone.
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

/// Which memories a call replaced by fresh ones, their contents gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reallocated {
    /// The data.
    pub data: bool,
    /// The diff.
    pub diff: bool,
}

impl Reallocated {
    fn from_bits(bits: u32) -> Self {
        Self {
            data: bits & sys::SB_REALLOCATED_DATA != 0,
            diff: bits & sys::SB_REALLOCATED_DIFF != 0,
        }
    }
}

/// Making blobs. The short forms use the built-in host-only context.
impl<T: Element> Blob<T> {
    /// An empty blob: no shape yet, count 0.
    pub fn new() -> Result<Self> {
        Self::new_in(&Context::host())
    }

    /// An empty blob in a context.
    pub fn new_in(context: &Context) -> Result<Self> {
        // SAFETY: the context is live; the blob retains it.
        let raw = get(|out, err| unsafe {
            sys::sb_blob_create(context.as_ptr(), <T as Sealed>::CODE, out, err)
        })?;
        Ok(Self::from_raw(raw))
    }

    /// A blob of zeros. Nothing is allocated for them yet.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for a negative
    /// dimension, [`OverLimit`](ErrorKind::OverLimit) for a 33rd axis,
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) when the bytes do not fit.
    pub fn zeros(shape: impl Into<Shape>) -> Result<Self> {
        Self::zeros_in(&Context::host(), shape)
    }

    /// A blob of zeros in a context.
    pub fn zeros_in(context: &Context, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        let dims = shape.dims()?;
        // SAFETY: `dims` is valid for its length, at most 32.
        let raw = get(|out, err| unsafe {
            let (ptr, axes) = (dims.as_ptr(), dims.len() as i32);
            let code = <T as Sealed>::CODE;
            sys::sb_blob_create_shaped(context.as_ptr(), code, ptr, axes, out, err)
        })?;
        Ok(Self::from_raw(raw))
    }

    /// A blob of one value.
    pub fn full(shape: impl Into<Shape>, value: T) -> Result<Self> {
        Self::from_fn(shape, |_| value)
    }

    /// A blob whose element at linear index `i` is `value(i)`.
    ///
    /// ```
    /// use syncblob::Blob;
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<i32>::from_fn([2, 3], |i| i as i32 * 10)?;
    /// assert_eq!(blob.data_at([1, 2])?, 50);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_fn(shape: impl Into<Shape>, value: impl FnMut(usize) -> T) -> Result<Self> {
        Self::from_fn_in(&Context::host(), shape, value)
    }

    /// The same in a context.
    pub fn from_fn_in(
        context: &Context,
        shape: impl Into<Shape>,
        mut value: impl FnMut(usize) -> T,
    ) -> Result<Self> {
        let blob = Self::zeros_in(context, shape)?;
        let elements = blob.unfilled()?;
        for i in 0..blob.count() {
            // SAFETY: `unfilled` covers `count` elements.
            unsafe { elements.add(i).write(value(i)) };
        }
        Ok(blob)
    }

    /// A blob with a copy of the values.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the shape's count is
    /// not the slice's length; else as [`zeros`](Blob::zeros).
    pub fn from_slice(shape: impl Into<Shape>, values: &[T]) -> Result<Self> {
        Self::from_slice_in(&Context::host(), shape, values)
    }

    /// The same in a context.
    pub fn from_slice_in(context: &Context, shape: impl Into<Shape>, values: &[T]) -> Result<Self> {
        let blob = Self::zeros_in(context, shape)?;
        if blob.count() != values.len() {
            let message = format!("a shape of {blob} elements and a slice of {}", values.len());
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        let elements = blob.unfilled()?;
        // SAFETY: `unfilled` covers `count` elements, and they are of a fresh
        // memory that `values` cannot be in.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), elements, values.len()) };
        Ok(blob)
    }

    /// Host memory of a fresh blob whose every element the caller writes
    /// before the blob is let out: its contents are unspecified.
    fn unfilled(&self) -> Result<*mut T> {
        // SAFETY: the blob is live, and nobody else knows it yet.
        let data =
            get(|out, err| unsafe { sys::sb_blob_overwrite_cpu_data(self.as_ptr(), out, err) })?;
        Ok(data.cast())
    }

    /// A copy of shape, data and diff, in the same context.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::new_in(&self.context())?;
        if self.is_shaped() {
            copy.reshape_like(self)?;
            copy.copy_from(self, Part::Data)?;
            copy.copy_from(self, Part::Diff)?;
        }
        Ok(copy)
    }

    /// Takes over a blob of the element type `T`.
    fn from_raw(raw: *mut sys::sb_blob) -> Self {
        let raw = NonNull::new(raw).expect("the library gave no blob and no error");
        Self { raw, elements: PhantomData }
    }

    /// The C handle, for code that calls the C library too. Lives as long as
    /// `self`; what is done to it must keep the promises of this crate.
    pub fn as_ptr(&self) -> *mut sys::sb_blob {
        self.raw.as_ptr()
    }

    /// The context that the blob was made in.
    pub fn context(&self) -> Context {
        // SAFETY: the blob keeps its context alive.
        unsafe { Context::retain(sys::sb_blob_context(self.as_ptr())) }
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        T::DTYPE
    }
}

/// Shape and indices.
impl<T: Element> Blob<T> {
    /// Whether the blob ever got a shape.
    pub fn is_shaped(&self) -> bool {
        // SAFETY: the blob is live.
        unsafe { sys::sb_blob_is_shaped(self.as_ptr()) != 0 }
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        // SAFETY: the library gives num_axes dimensions that stay until the
        // next reshape, which needs `&mut self`. They are not negative, and
        // usize has the layout of i64 on the 64-bit hosts that the library is for.
        unsafe {
            let dims = sys::sb_blob_shape(self.as_ptr()).cast::<usize>();
            slice::from_raw_parts(dims, self.num_axes())
        }
    }

    /// The number of axes.
    pub fn num_axes(&self) -> usize {
        // SAFETY: the blob is live.
        to_usize(unsafe { sys::sb_blob_num_axes(self.as_ptr()) }.into())
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        // SAFETY: the blob is live.
        to_usize(unsafe { sys::sb_blob_count(self.as_ptr()) })
    }

    /// One dimension; a negative axis counts from the end.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange).
    #[doc(alias = "shape")]
    pub fn dim(&self, axis: i32) -> Result<usize> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_dim(self.as_ptr(), axis, out, err) }).map(to_usize)
    }

    /// The axis counted from the front, of one that may be negative.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange).
    #[doc(alias = "CanonicalAxisIndex")]
    pub fn canonical_axis(&self, axis: i32) -> Result<usize> {
        // SAFETY: the blob is live.
        let axis =
            get(|out, err| unsafe { sys::sb_blob_canonical_axis(self.as_ptr(), axis, out, err) })?;
        Ok(to_usize(axis.into()))
    }

    /// The product of the dimensions in a range of axes.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange);
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) for a part without the zero
    /// dimension that made the whole fit.
    #[doc(alias = "count")]
    pub fn count_range(&self, axes: std::ops::Range<usize>) -> Result<usize> {
        let axis = |axis| i32::try_from(axis).unwrap_or(i32::MAX);
        let (start, end) = (axis(axes.start), axis(axes.end));
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_count_range(self.as_ptr(), start, end, out, err) })
            .map(to_usize)
    }

    /// Caffe's four dimensions `[num, channels, height, width]`; missing ones are 1.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for more than 4 axes.
    #[doc(alias("LegacyShape", "num", "channels", "height", "width"))]
    pub fn legacy_shape(&self) -> Result<[usize; 4]> {
        let mut dims = [0; 4];
        for (index, dim) in (0..).zip(&mut dims) {
            // SAFETY: the blob is live.
            *dim = get(|out, err| unsafe {
                sys::sb_blob_legacy_shape(self.as_ptr(), index, out, err)
            })
            .map(to_usize)?;
        }
        Ok(dims)
    }

    /// Whether the other blob has the same axes.
    #[doc(alias = "ShapeEquals")]
    pub fn same_shape<U: Element>(&self, other: &Blob<U>) -> bool {
        // SAFETY: both blobs are live.
        unsafe { sys::sb_blob_shape_equals(self.as_ptr(), other.as_ptr()) != 0 }
    }

    /// Changes the shape. A memory is replaced, by a fresh one, only when the
    /// count outgrows it; otherwise its elements stay.
    ///
    /// # Errors
    /// As [`zeros`](Blob::zeros).
    #[doc(alias = "Reshape")]
    pub fn reshape(&mut self, shape: impl Into<Shape>) -> Result<Reallocated> {
        let shape = shape.into();
        let dims = shape.dims()?;
        // SAFETY: `dims` is valid for its length, at most 32.
        get(|out, err| unsafe {
            sys::sb_blob_reshape(self.as_ptr(), dims.as_ptr(), dims.len() as i32, out, err)
        })
        .map(Reallocated::from_bits)
    }

    /// Takes the shape of another blob.
    #[doc(alias = "ReshapeLike")]
    pub fn reshape_like<U: Element>(&mut self, other: &Blob<U>) -> Result<Reallocated> {
        // SAFETY: both blobs are live.
        get(|out, err| unsafe {
            sys::sb_blob_reshape_like(self.as_ptr(), other.as_ptr(), out, err)
        })
        .map(Reallocated::from_bits)
    }

    /// Replaces memories that are larger than the count needs; elements stay.
    pub fn shrink_to_fit(&mut self) -> Result<Reallocated> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_shrink_to_fit(self.as_ptr(), out, err) })
            .map(Reallocated::from_bits)
    }

    /// The linear index of an element; missing trailing indices are 0.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange).
    pub fn offset(&self, indices: impl AsRef<[usize]>) -> Result<usize> {
        with_indices(indices.as_ref(), |ptr, len| {
            // SAFETY: `ptr` is valid for `len` indices.
            get(|out, err| unsafe { sys::sb_blob_offset(self.as_ptr(), ptr, len, out, err) })
        })
        .map(to_usize)
    }

    /// One element of data; see [`offset`](Blob::offset).
    pub fn data_at(&self, indices: impl AsRef<[usize]>) -> Result<T> {
        Ok(self.data()?[self.offset(indices)?])
    }

    /// One element of diff; see [`offset`](Blob::offset).
    pub fn diff_at(&self, indices: impl AsRef<[usize]>) -> Result<T> {
        Ok(self.diff()?[self.offset(indices)?])
    }
}

/// Calls with indices as C takes them.
fn with_indices<R>(
    indices: &[usize],
    call: impl FnOnce(*const i64, i32) -> Result<R>,
) -> Result<R> {
    let mut numbers = [0_i64; sys::SB_MAX_AXES as usize];
    if indices.len() > numbers.len() {
        let message = format!("{} indices, a blob has 32 axes at most", indices.len());
        return Err(Error::new(ErrorKind::IndexOutOfRange, message));
    }
    for (to, &from) in numbers.iter_mut().zip(indices) {
        *to = to_i64(from);
    }
    call(numbers.as_ptr(), indices.len() as i32)
}

/// Elements. "Host" methods may copy from the device first, and the other way round.
impl<T: Element> Blob<T> {
    /// The data on the host, for reading.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    #[doc(alias = "cpu_data")]
    pub fn data(&self) -> Result<&[T]> {
        self.host(sys::sb_blob_cpu_data)
    }

    /// The diff on the host, for reading.
    #[doc(alias = "cpu_diff")]
    pub fn diff(&self) -> Result<&[T]> {
        self.host(sys::sb_blob_cpu_diff)
    }

    /// The data on the host, for writing; the head moves to the host.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared) when another blob uses the memory; else as
    /// [`data`](Blob::data).
    #[doc(alias = "mutable_cpu_data")]
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        self.host_mut(Part::Data, sys::sb_blob_mutable_cpu_data)
    }

    /// The diff on the host, for writing; see [`data_mut`](Blob::data_mut).
    #[doc(alias = "mutable_cpu_diff")]
    pub fn diff_mut(&mut self) -> Result<&mut [T]> {
        self.host_mut(Part::Diff, sys::sb_blob_mutable_cpu_diff)
    }

    /// The data on the device, for reading: a device pointer to
    /// [`count`](Blob::count) elements. It stays allocated until the blob is
    /// reshaped to outgrow it, shrunk or dropped, and current until the next
    /// writing call on the host.
    ///
    /// # Errors
    /// [`NoDevice`](ErrorKind::NoDevice) in a host-only context; out of memory,
    /// a device that fails.
    #[doc(alias = "gpu_data")]
    pub fn gpu_data_ptr(&self) -> Result<*const T> {
        self.pointer(sys::sb_blob_gpu_data)
    }

    /// The diff on the device; see [`gpu_data_ptr`](Blob::gpu_data_ptr).
    #[doc(alias = "gpu_diff")]
    pub fn gpu_diff_ptr(&self) -> Result<*const T> {
        self.pointer(sys::sb_blob_gpu_diff)
    }

    /// The data on the device, for writing; the head moves to the device. The
    /// pointer may be written until the next call that reads or writes the host
    /// side: then fetch it again.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); else as [`gpu_data_ptr`](Blob::gpu_data_ptr).
    #[doc(alias = "mutable_gpu_data")]
    pub fn gpu_data_mut_ptr(&mut self) -> Result<*mut T> {
        self.pointer_mut(Part::Data, sys::sb_blob_mutable_gpu_data)
    }

    /// The diff on the device, for writing; see
    /// [`gpu_data_mut_ptr`](Blob::gpu_data_mut_ptr).
    #[doc(alias = "mutable_gpu_diff")]
    pub fn gpu_diff_mut_ptr(&mut self) -> Result<*mut T> {
        self.pointer_mut(Part::Diff, sys::sb_blob_mutable_gpu_diff)
    }

    fn host(&self, call: ConstAccess) -> Result<&[T]> {
        let elements = self.pointer(call)?;
        // SAFETY: a host pointer, aligned, not null, to at least `count`
        // elements, zero-filled or written, that stays valid and unchanged while
        // the blob is borrowed (see the crate's Safety section).
        Ok(unsafe { slice::from_raw_parts(elements, self.count()) })
    }

    fn host_mut(&mut self, part: Part, call: MutAccess) -> Result<&mut [T]> {
        let elements = self.pointer_mut(part, call)?;
        // SAFETY: as in `host`; and the memory has one owner, this blob, which
        // is mutably borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(elements, self.count()) })
    }

    fn pointer(&self, call: ConstAccess) -> Result<*const T> {
        // SAFETY: `call` is an access of the library, and the blob is live.
        let elements = get(|out, err| unsafe { call(self.as_ptr(), out, err) })?;
        Ok(elements.cast())
    }

    fn pointer_mut(&mut self, part: Part, call: MutAccess) -> Result<*mut T> {
        self.need_unique(part)?;
        // SAFETY: `call` is an access of the library; the blob is live and
        // mutably borrowed.
        let elements = get(|out, err| unsafe { call(self.as_ptr(), out, err) })?;
        Ok(elements.cast())
    }

    /// Where the newest data is.
    #[doc(alias = "head")]
    pub fn data_head(&self) -> Result<Head> {
        self.head(Part::Data)
    }

    /// Where the newest diff is.
    pub fn diff_head(&self) -> Result<Head> {
        self.head(Part::Diff)
    }

    fn head(&self, part: Part) -> Result<Head> {
        let mem = self.mem(part)?;
        // SAFETY: the memory lives as long as the blob is not changed.
        Ok(Head::from_code(unsafe { sys::sb_mem_head(mem) }))
    }

    fn mem(&self, part: Part) -> Result<*mut sys::sb_mem> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe {
            match part {
                Part::Data => sys::sb_blob_data(self.as_ptr(), out, err),
                Part::Diff => sys::sb_blob_diff(self.as_ptr(), out, err),
            }
        })
    }
}

type ConstAccess = unsafe extern "C" fn(
    *const sys::sb_blob,
    *mut *const std::ffi::c_void,
    *mut sys::sb_error,
) -> sys::sb_status;

type MutAccess = unsafe extern "C" fn(
    *mut sys::sb_blob,
    *mut *mut std::ffi::c_void,
    *mut sys::sb_error,
) -> sys::sb_status;

/// Sharing; see the crate's section on it.
impl<T: Element> Blob<T> {
    /// Uses the data memory of `other` from now on. It lives as long as either.
    ///
    /// ```
    /// use syncblob::{Blob, ErrorKind};
    /// # fn main() -> syncblob::Result<()> {
    /// let a = Blob::<f32>::full([4], 1.0)?;
    /// let mut b = Blob::<f32>::zeros([2, 2])?;
    /// b.share_data(&a)?;
    /// assert_eq!(b.data()?.as_ptr(), a.data()?.as_ptr());
    /// assert_eq!(b.data_mut().unwrap_err().kind(), ErrorKind::Shared);
    /// drop(a);
    /// b.data_mut()?[0] = 2.0; // alone again
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the counts differ,
    /// [`WrongDevice`](ErrorKind::WrongDevice) for a blob of another context.
    #[doc(alias = "ShareData")]
    pub fn share_data(&mut self, other: &Self) -> Result<()> {
        // SAFETY: both blobs are live.
        check(|err| unsafe { sys::sb_blob_share_data(self.as_ptr(), other.as_ptr(), err) })
    }

    /// Uses the diff memory of `other` from now on; see
    /// [`share_data`](Blob::share_data).
    #[doc(alias = "ShareDiff")]
    pub fn share_diff(&mut self, other: &Self) -> Result<()> {
        // SAFETY: both blobs are live.
        check(|err| unsafe { sys::sb_blob_share_diff(self.as_ptr(), other.as_ptr(), err) })
    }

    /// Whether a memory is this blob's alone, so that it may be written.
    pub fn is_unique(&mut self, part: Part) -> Result<bool> {
        let mem = self.mem(part)?;
        // SAFETY: the memory is live.
        Ok(unsafe { sys::sb_mem_is_unique(mem) != 0 })
    }

    /// What every writer asks first.
    fn need_unique(&mut self, part: Part) -> Result<()> {
        if self.is_unique(part)? {
            return Ok(());
        }
        let name = match part {
            Part::Data => "data",
            Part::Diff => "diff",
        };
        let message = format!("{name} of a blob of shape {self} is shared and cannot be written");
        Err(Error::new(ErrorKind::Shared, message))
    }
}

/// Whole-blob operations, done where the head is.
impl<T: Element> Blob<T> {
    /// Sets the data to zeros.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared); a device that fails.
    pub fn clear_data(&mut self) -> Result<()> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob is live, its data unique.
        check(|err| unsafe { sys::sb_blob_clear_data(self.as_ptr(), err) })
    }

    /// Sets the diff to zeros.
    ///
    /// # Errors
    /// As [`clear_data`](Blob::clear_data).
    pub fn clear_diff(&mut self) -> Result<()> {
        self.need_unique(Part::Diff)?;
        // SAFETY: the blob is live, its diff unique.
        check(|err| unsafe { sys::sb_blob_clear_diff(self.as_ptr(), err) })
    }

    /// Copies data or diff of a blob of the same shape, through the host if its
    /// context is another.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared);
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch); out of memory, a device
    /// that fails.
    #[doc(alias = "CopyFrom")]
    pub fn copy_from(&mut self, source: &Self, part: Part) -> Result<()> {
        self.need_unique(part)?;
        let flags = match part {
            Part::Data => 0,
            Part::Diff => sys::SB_COPY_DIFF,
        };
        // SAFETY: both blobs are live; what is written is unique.
        check(|err| unsafe { sys::sb_blob_copy_from(self.as_ptr(), source.as_ptr(), flags, err) })
    }
}

/// Arithmetic, done where the head is; sums are `f64` for every type.
impl<T: Float> Blob<T> {
    /// The sum of the absolute values of data.
    pub fn asum_data(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_asum_data(self.as_ptr(), out, err) })
    }

    /// The sum of the absolute values of diff.
    pub fn asum_diff(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_asum_diff(self.as_ptr(), out, err) })
    }

    /// The sum of the squares of data.
    pub fn sumsq_data(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_sumsq_data(self.as_ptr(), out, err) })
    }

    /// The sum of the squares of diff.
    pub fn sumsq_diff(&self) -> Result<f64> {
        // SAFETY: the blob is live.
        get(|out, err| unsafe { sys::sb_blob_sumsq_diff(self.as_ptr(), out, err) })
    }

    /// Multiplies data by a factor.
    ///
    /// # Errors
    /// As [`update`](Blob::update), but memory that was never written is fine.
    pub fn scale_data(&mut self, factor: f64) -> Result<()> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob is live, its data unique.
        check(|err| unsafe { sys::sb_blob_scale_data(self.as_ptr(), factor, err) })
    }

    /// Multiplies diff by a factor.
    ///
    /// # Errors
    /// As [`scale_data`](Blob::scale_data).
    pub fn scale_diff(&mut self, factor: f64) -> Result<()> {
        self.need_unique(Part::Diff)?;
        // SAFETY: the blob is live, its diff unique.
        check(|err| unsafe { sys::sb_blob_scale_diff(self.as_ptr(), factor, err) })
    }

    /// `data -= diff`: a solver's step.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared);
    /// [`Uninitialized`](ErrorKind::Uninitialized) when data was never written;
    /// out of memory; a device that fails.
    #[doc(alias = "Update")]
    pub fn update(&mut self) -> Result<()> {
        self.need_unique(Part::Data)?;
        // SAFETY: the blob is live, its data unique.
        check(|err| unsafe { sys::sb_blob_update(self.as_ptr(), err) })
    }
}

/// Caffe's `BlobProto` messages, and files of one such as `mean.binaryproto`.
/// Bytes from strangers are fine: they are checked first, within the context's
/// limits, and an error says where.
impl<T: Float> Blob<T> {
    /// A blob from a `BlobProto` message.
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
    /// Kinds of the data ([`Malformed`](ErrorKind::Malformed),
    /// [`LengthMismatch`](ErrorKind::LengthMismatch),
    /// [`BadShape`](ErrorKind::BadShape),
    /// [`DataOverflow`](ErrorKind::DataOverflow),
    /// [`DataLimit`](ErrorKind::DataLimit)) and out of memory.
    #[doc(alias = "FromProto")]
    pub fn from_proto(bytes: &[u8]) -> Result<Self> {
        Self::from_proto_in(&Context::host(), bytes)
    }

    /// The same in a context.
    pub fn from_proto_in(context: &Context, bytes: &[u8]) -> Result<Self> {
        let blob = Self::new_in(context)?;
        // SAFETY: `bytes` is valid for its length; the blob is fresh.
        check(|err| unsafe {
            let (ptr, len) = (bytes.as_ptr().cast(), bytes.len());
            sys::sb_blob_from_proto(
                blob.as_ptr(),
                ptr,
                len,
                sys::SB_PROTO_RESHAPE,
                ptr::null(),
                err,
            )
        })?;
        Ok(blob)
    }

    /// Reads a `BlobProto` message into this blob, which keeps its shape.
    ///
    /// # Errors
    /// [`Shared`](ErrorKind::Shared) when data or diff is shared;
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch); else as
    /// [`from_proto`](Blob::from_proto).
    pub fn read_proto(&mut self, bytes: &[u8]) -> Result<()> {
        self.need_unique(Part::Data)?;
        self.need_unique(Part::Diff)?;
        // SAFETY: `bytes` is valid for its length; data and diff are unique.
        check(|err| unsafe {
            let (ptr, len) = (bytes.as_ptr().cast(), bytes.len());
            sys::sb_blob_from_proto(self.as_ptr(), ptr, len, 0, ptr::null(), err)
        })
    }

    /// The blob as a `BlobProto` message.
    ///
    /// # Errors
    /// [`OverLimit`](ErrorKind::OverLimit) above 2 GiB − 1, protobuf's limit;
    /// those of [`data`](Blob::data).
    #[doc(alias = "ToProto")]
    pub fn to_proto(&self, payload: Payload) -> Result<Vec<u8>> {
        let flags = payload.flags();
        // SAFETY: the blob is live.
        let size =
            get(|out, err| unsafe { sys::sb_blob_proto_size(self.as_ptr(), flags, out, err) })?;
        let mut bytes = Vec::<u8>::new();
        reserve(&mut bytes, size)?;
        // SAFETY: `bytes` has room for `capacity` bytes.
        let written = get(|out, err| unsafe {
            let (buffer, capacity) = (bytes.as_mut_ptr().cast(), bytes.capacity());
            sys::sb_blob_to_proto(self.as_ptr(), flags, buffer, capacity, out, err)
        })?;
        // SAFETY: the library wrote that many bytes.
        unsafe { bytes.set_len(written) };
        Ok(bytes)
    }

    /// Reads a file of one `BlobProto`, such as `mean.binaryproto`.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); else as [`from_proto`](Blob::from_proto).
    #[doc(alias = "ReadProtoFromBinaryFile")]
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_file_in(&Context::host(), path)
    }

    /// The same in a context.
    pub fn read_file_in(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        let blob = Self::new_in(context)?;
        // SAFETY: `path` ends in NUL; the blob is fresh.
        check(|err| unsafe {
            let (blob, path) = (blob.as_ptr(), path.as_ptr());
            sys::sb_blob_read_file(blob, path, sys::SB_PROTO_RESHAPE, ptr::null(), err)
        })?;
        Ok(blob)
    }

    /// Writes the blob's `BlobProto` to a file, atomically: the file is the old
    /// one or the whole new one.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); else as [`to_proto`](Blob::to_proto).
    #[doc(alias = "WriteProtoToBinaryFile")]
    pub fn write_file(&self, path: impl AsRef<Path>, payload: Payload) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: `path` ends in NUL.
        check(|err| unsafe {
            sys::sb_blob_write_file(self.as_ptr(), path.as_ptr(), payload.flags(), err)
        })
    }
}

/// Room for `size` more bytes, or an error where `Vec` would abort.
pub(crate) fn reserve(bytes: &mut Vec<u8>, size: usize) -> Result<()> {
    bytes.try_reserve_exact(size).map_err(|_| {
        Error::new(ErrorKind::OutOfMemory, format!("{size} bytes cannot be allocated"))
    })
}

impl<T: Element> Drop for Blob<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the blob and ends here.
        unsafe { sys::sb_blob_destroy(self.as_ptr()) }
    }
}

/// Caffe's form: `2 3 4 (24)`.
impl<T: Element> fmt::Display for Blob<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dim in self.shape() {
            write!(f, "{dim} ")?;
        }
        write!(f, "({})", self.count())
    }
}

/// Shape and heads, and a few values where that moves nothing.
impl<T: Element> fmt::Debug for Blob<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let mut out = f.debug_struct("Blob");
        out.field("dtype", &T::DTYPE).field("shape", &self.shape());
        if let Ok(head) = self.data_head() {
            out.field("data_head", &head);
            // SYNCED may still be on its way, so that looking would wait.
            let shown = (head == Head::AtCpu).then(|| self.data());
            if let Some(Ok(data)) = shown {
                out.field("data", &&data[..data.len().min(SHOWN)]);
            }
        }
        if let Ok(head) = self.diff_head() {
            out.field("diff_head", &head);
        }
        out.finish_non_exhaustive()
    }
}
