use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use syncblob_sys as sys;

use crate::dims::Dims;
use crate::element::sealed::Sealed;
use crate::ffi::get;
use crate::{Context, Dtype, Element, Error, ErrorKind, Head, Result, Shape};

mod axes;
mod elements;
mod external;
#[cfg(feature = "ndarray")]
mod nd;
mod proto;
#[cfg(feature = "serde")]
mod serial;
mod sharing;
mod whole;

pub(crate) use proto::reserve;
pub use proto::Payload;

/// An n-dimensional array with two memories, data and diff, each on the host,
/// on the device of its [`Context`], or both.
///
/// The first use of a memory allocates the memory and fills it with zeros. Elements lie in
/// row-major order. A program can move or share a blob. To copy the blob, call
/// [`try_clone`](Blob::try_clone).
#[doc(alias("Tensor", "Array"))]
pub struct Blob<T: Element> {
    raw: NonNull<sys::sb_blob>,
    /// True if the blob ever shared a memory or exposed its C handle: C code can share a memory
    /// through the handle. If false, a write need not check for other owners.
    may_share: AtomicBool,
    /// Allows writes to the blob although its memories have other owners.
    writes_shared: bool,
    dims: Dims,
    elements: PhantomData<T>,
}

// SAFETY: the C library has no per-thread state. A blob may be used and destroyed on any thread,
// and its elements are plain numbers. The owners of the caller's memory are `Send` and `Sync`.
unsafe impl<T: Element> Send for Blob<T> {}
// SAFETY: `&self` methods make only calls that take a const blob and may run concurrently.
unsafe impl<T: Element> Sync for Blob<T> {}

/// One of a blob's two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The values.
    Data,
    /// The gradients of the values.
    Diff,
}

impl Part {
    #[inline]
    pub(crate) fn code(self) -> sys::sb_part {
        match self {
            Self::Data => sys::SB_DATA,
            Self::Diff => sys::SB_DIFF,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Diff => "diff",
        })
    }
}

/// Reports which memories a call has replaced. Only [`Blob::shrink_to_fit`] copies the old elements
/// to the new memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

/// Makes blobs in a context: see [`Blob::in_context`].
#[derive(Clone, Copy, Debug)]
pub struct BlobBuilder<'a, T> {
    pub(crate) context: &'a Context,
    elements: PhantomData<T>,
}

/// Creating blobs. Functions without a parameter for a context use the built-in host-only context.
/// [`from_vec`](Blob::from_vec) and similar functions use the caller's memory without a copy.
impl<T: Element> Blob<T> {
    /// Returns a builder that makes blobs in a context.
    ///
    /// ```
    /// use syncblob::{Blob, Context};
    /// # fn main() -> syncblob::Result<()> {
    /// let context = Context::builder().device("sim:0").build()?;
    /// let blob = Blob::<f32>::in_context(&context).full([2, 3], 1.0)?;
    /// assert_eq!(blob.context().device(), "sim:0");
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_context(context: &Context) -> BlobBuilder<'_, T> {
        BlobBuilder { context, elements: PhantomData }
    }

    /// Makes an empty blob, which has no shape yet and a count of 0.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new() -> Result<Self> {
        Self::in_context(&Context::host()).empty()
    }

    /// Makes a blob of zeros. The first use allocates the memory. [`update`](Blob::update) returns
    /// an error until [`data_mut`](Blob::data_mut) or another call has written the data.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for a negative dimension,
    /// [`OverLimit`](ErrorKind::OverLimit) for more than 32 axes,
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) when the bytes do not fit the address space.
    pub fn zeros(shape: impl Into<Shape>) -> Result<Self> {
        Self::in_context(&Context::host()).zeros(shape)
    }

    /// Makes a blob whose elements all have one value.
    ///
    /// # Errors
    /// Errors of [`zeros`](Blob::zeros); out of memory.
    pub fn full(shape: impl Into<Shape>, value: T) -> Result<Self> {
        Self::in_context(&Context::host()).full(shape, value)
    }

    /// Makes a blob whose element at linear index `i` is `value(i)`.
    ///
    /// ```
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<i32>::from_fn([2, 3], |i| i as i32 * 10)?;
    /// assert_eq!(blob.at(Part::Data, [1, 2])?, 50);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`full`](Blob::full).
    pub fn from_fn(shape: impl Into<Shape>, value: impl FnMut(usize) -> T) -> Result<Self> {
        Self::in_context(&Context::host()).from_fn(shape, value)
    }

    /// Makes a blob whose data is a copy of the values.
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the shape's number of elements is not the
    /// slice's length; errors of [`full`](Blob::full).
    pub fn from_slice(shape: impl Into<Shape>, values: &[T]) -> Result<Self> {
        Self::in_context(&Context::host()).from_slice(shape, values)
    }

    fn need_count(&self, values: usize) -> Result<()> {
        if self.count() == values {
            return Ok(());
        }
        let message = format!("{values} values for a blob of shape {self}");
        Err(Error::new(ErrorKind::ShapeMismatch, message))
    }

    /// Returns the host memory of a fresh blob, with unspecified contents. The caller must write
    /// every element before the caller returns the blob.
    fn unfilled(&self) -> Result<*mut T> {
        // SAFETY: the blob is live, and not shared yet.
        let data = get(|out, err| unsafe {
            sys::sb_blob_overwrite_cpu(self.raw(), sys::SB_DATA, out, err)
        })?;
        Ok(data.cast())
    }

    /// Copies shape, data and diff to a new blob in the same context. Capacity beyond the shape's
    /// elements is not copied.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::in_context(&self.context()).empty()?;
        copy.take_written(self, Part::Data)?;
        copy.take_written(self, Part::Diff)?;
        Ok(copy)
    }

    /// Copies the source's shape, and the bytes of data or diff. Skips a memory that was never
    /// written, so that the new blob does not allocate memory for zeros.
    pub(crate) fn take_written(&mut self, source: &Self, part: Part) -> Result<()> {
        if source.head(part)? != Head::Uninitialized {
            return self.copy_from_reshape(part, source);
        }
        if source.is_shaped() {
            self.reshape_like(source)?;
        }
        Ok(())
    }

    /// Waits for queued copies, drops the blob, and returns an error if a copy failed.
    ///
    /// # Errors
    /// Errors of the copies.
    pub fn close(self) -> Result<()> {
        self.memory(Part::Data)?.synchronize()?;
        self.memory(Part::Diff)?.synchronize()
    }

    /// Takes ownership of a blob of elements `T` whose memories were never shared.
    pub(crate) fn fresh(raw: *mut sys::sb_blob) -> Self {
        Self::with(raw, false)
    }

    /// Takes ownership of a blob of elements `T` whose memories may be shared.
    pub(crate) fn own(raw: *mut sys::sb_blob) -> Self {
        Self::with(raw, true)
    }

    fn with(raw: *mut sys::sb_blob, may_share: bool) -> Self {
        let raw = NonNull::new(raw).expect("the library returned neither a blob nor an error");
        let may_share = AtomicBool::new(may_share);
        Self { raw, may_share, writes_shared: false, dims: Dims::default(), elements: PhantomData }
    }

    /// Takes ownership of a blob that C code made. ([`BlobAny::from_raw`](crate::BlobAny::from_raw)
    /// accepts a blob of any element type.)
    ///
    /// # Safety
    /// `raw` is a live blob of elements `T` without another owner. C code that shares the blob's
    /// memories must obey this crate's rule: only the sole owner of a memory writes the memory.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_blob>) -> Self {
        Self::own(raw.as_ptr())
    }

    /// Passes ownership of the blob to C code, which must destroy it with `sb_blob_destroy`.
    pub fn into_raw(self) -> NonNull<sys::sb_blob> {
        let mut blob = ManuallyDrop::new(self);
        blob.dims = Dims::default(); // frees a copy of the dimensions
        blob.raw
    }

    /// Returns the C handle, for code that also calls the C library. The handle lives as long as
    /// `self`. C calls on the handle must follow the rules of the crate's Safety section.
    pub fn as_ptr(&self) -> *mut sys::sb_blob {
        self.note_share();
        self.raw()
    }

    /// Records that a memory may be shared. From now on, methods that write check for sharers.
    pub(crate) fn note_share(&self) {
        // Relaxed suffices: a writer has `&mut self`, so the writer's load is ordered after this
        // store.
        self.may_share.store(true, Ordering::Relaxed);
    }

    /// Returns the C handle, for calls that do not share a memory.
    #[inline]
    pub(crate) fn raw(&self) -> *mut sys::sb_blob {
        self.raw.as_ptr()
    }

    /// Returns the context that the blob was made in.
    pub fn context(&self) -> Context {
        // SAFETY: the blob keeps its context alive.
        unsafe { Context::retain(sys::sb_blob_context(self.raw())) }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> Dtype {
        T::DTYPE
    }
}

impl<T: Element> Drop for Blob<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the blob and is being dropped.
        unsafe { sys::sb_blob_destroy(self.raw()) }
    }
}

/// Writes the shape in Caffe's form: `2 3 4 (24)`.
impl<T: Element> fmt::Display for Blob<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dim in self.shape() {
            write!(f, "{dim} ")?;
        }
        write!(f, "({})", self.count())
    }
}

/// Writes the shape and the heads. Also writes the first values of each memory whose newest bytes
/// are only on the host.
impl<T: Element> fmt::Debug for Blob<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Blob");
        out.field("dtype", &T::DTYPE).field("shape", &self.shape());
        for (part, values) in [(Part::Data, Self::data as Values<T>), (Part::Diff, Self::diff)] {
            let Ok(head) = self.head(part) else { continue };
            out.field(&format!("{part}_head"), &head);
            // If the head is SYNCED, omits the values: an access could wait for a queued copy to
            // the host.
            let shown = (head == Head::AtCpu).then(|| values(self));
            if let Some(Ok(values)) = shown {
                out.field(&part.to_string(), &First(values));
            }
        }
        out.finish_non_exhaustive()
    }
}

type Values<T> = fn(&Blob<T>) -> Result<&[T]>;

/// Values of which `Debug` writes only the first eight.
struct First<'a, T>(&'a [T]);

impl<T: fmt::Debug> fmt::Debug for First<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let mut list = f.debug_list();
        list.entries(self.0.iter().take(SHOWN));
        match self.0.len() {
            0..=SHOWN => list.finish(),
            _ => list.finish_non_exhaustive(),
        }
    }
}

/// Making blobs in a context.
impl<T: Element> BlobBuilder<'_, T> {
    /// Does the same as [`Blob::new`] in the builder's context.
    ///
    /// # Errors
    /// Out of memory, a cap that is reached.
    pub fn empty(self) -> Result<Blob<T>> {
        // SAFETY: the context is live. The blob retains the context.
        let raw = get(|out, err| unsafe {
            sys::sb_blob_create(self.context.as_ptr(), <T as Sealed>::CODE, out, err)
        })?;
        Ok(Blob::fresh(raw))
    }

    /// Does the same as [`Blob::zeros`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`zeros`](Blob::zeros).
    pub fn zeros(self, shape: impl Into<Shape>) -> Result<Blob<T>> {
        let shape = shape.into();
        let dims = shape.dims()?;
        // SAFETY: `dims` is valid for its length, at most 32.
        let raw = get(|out, err| unsafe {
            let (ptr, axes) = (dims.as_ptr(), dims.len() as i32);
            let code = <T as Sealed>::CODE;
            sys::sb_blob_create_shaped(self.context.as_ptr(), code, ptr, axes, out, err)
        })?;
        Ok(Blob::fresh(raw))
    }

    /// Does the same as [`Blob::full`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`full`](Blob::full).
    pub fn full(self, shape: impl Into<Shape>, value: T) -> Result<Blob<T>> {
        self.from_fn(shape, |_| value)
    }

    /// Does the same as [`Blob::from_fn`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`full`](Blob::full).
    pub fn from_fn(
        self,
        shape: impl Into<Shape>,
        mut value: impl FnMut(usize) -> T,
    ) -> Result<Blob<T>> {
        let blob = self.zeros(shape)?;
        let elements = blob.unfilled()?;
        for i in 0..blob.count() {
            // SAFETY: `unfilled` has returned memory for `count` elements.
            unsafe { elements.add(i).write(value(i)) };
        }
        Ok(blob)
    }

    /// Does the same as [`Blob::from_slice`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`from_slice`](Blob::from_slice).
    pub fn from_slice(self, shape: impl Into<Shape>, values: &[T]) -> Result<Blob<T>> {
        let blob = self.zeros(shape)?;
        blob.need_count(values.len())?;
        let elements = blob.unfilled()?;
        // SAFETY: `unfilled` has returned fresh memory for `count` elements, which `values` cannot
        // overlap.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), elements, values.len()) };
        Ok(blob)
    }
}
