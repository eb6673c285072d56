mod change;
mod format;
mod layers;
mod look;
mod open;
mod save;
mod stored;

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use syncblob_sys as sys;

pub use change::AnyBlob;
pub use format::{Format, Generation};
pub use layers::{Layer, Layers};
pub use look::SolverInfo;
pub use open::OpenOptions;
pub use stored::{BlobAt, BlobInfo, LoadedBlob, StoredBlob};

use crate::ffi::check;
use crate::io::Progress;
use crate::{Context, ReadAt, Result};

/// An opened `.caffemodel`, `.solverstate` or blob file: named layers with blobs, which are loaded
/// on request. A program can replace blobs and save the model; a save copies all other bytes
/// unchanged.
///
/// ```no_run
/// use syncblob::{Model, Part, Payload};
///
/// # fn main() -> syncblob::Result<()> {
/// let mut model = Model::open("resnet.caffemodel")?;
/// for layer in model.layers() {
///     for blob in layer.blobs() {
///         println!("{} {:?}", layer.name(), blob?.info().shape());
///     }
/// }
/// let mut weights = model.layer(1)?.blob(0)?.load::<f32>()?;
/// weights.scale(Part::Data, 0.5)?;
/// model.set_blob((1, 0), &weights, Payload::Data)?;
/// model.save("halved.caffemodel")?;
/// # Ok(())
/// # }
/// ```
#[doc(alias("NetParameter", "SolverState", "BlobProtoVector"))]
pub struct Model {
    raw: NonNull<sys::sb_model>,
    context: Context,
    /// The progress callback, if any.
    progress: Option<Progress>,
    /// Whether C code owns the model.
    borrowed: bool,
}

// SAFETY: a model has no state per thread, and the owner of its bytes is `Send + Sync`.
unsafe impl Send for Model {}
// SAFETY: `&self` methods make only calls that take a const model and may run concurrently.
unsafe impl Sync for Model {}

/// Opening, making, saving.
impl Model {
    /// Opens a file and detects its format.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io); errors in the data
    /// ([`Malformed`](crate::ErrorKind::Malformed),
    /// [`LengthMismatch`](crate::ErrorKind::LengthMismatch),
    /// [`BadShape`](crate::ErrorKind::BadShape), [`DataOverflow`](crate::ErrorKind::DataOverflow),
    /// [`DataLimit`](crate::ErrorKind::DataLimit)); out of memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens bytes. The model takes ownership of the bytes and does not copy them.
    ///
    /// # Errors
    /// Errors of [`open`](Model::open).
    pub fn from_bytes<B>(bytes: B) -> Result<Self>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        OpenOptions::new().from_bytes(bytes)
    }

    /// Opens the bytes of a reader and detects their format. The model owns the reader, and several
    /// threads may call the reader at the same time.
    ///
    /// ```no_run
    /// use std::io;
    /// use syncblob::{Model, ReadAt};
    ///
    /// struct Object; // in a remote store
    ///
    /// impl ReadAt for Object {
    ///     fn size(&self) -> io::Result<u64> {
    ///         todo!("a request for the object's size")
    ///     }
    ///     fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    ///         todo!("a request for {} bytes at {offset}", buffer.len())
    ///     }
    /// }
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let model = Model::open_reader(Object)?;
    /// let weights = model.layer_by_name("conv1").unwrap().blob(0)?.load::<f32>()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`open`](Model::open). An error of the reader is the
    /// [source](std::error::Error::source) of the returned error.
    ///
    /// # Panics
    /// When the reader panics, in this call or in a later call of the model. A call that panics
    /// changes nothing.
    pub fn open_reader(reader: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        OpenOptions::new().open_reader(reader)
    }

    /// Sets the progress callback of this model. During a load, a read of values or a save, the
    /// callback gets the number of bytes done and the total (0 while the total is unknown). The
    /// callback runs on the calling thread, at least once a MiB. If the callback returns
    /// [`ControlFlow::Break`], the call returns [`Cancelled`](crate::ErrorKind::Cancelled) and
    /// changes nothing.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use syncblob::{ErrorKind, Format, Model};
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// model.set_progress(|done, total| {
    ///     println!("{done} of {total}");
    ///     ControlFlow::Break(()) // the button was pressed
    /// });
    /// assert_eq!(model.to_bytes().unwrap_err().kind(), ErrorKind::Cancelled);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// A panic of `report` ends the load, read or save and resumes in the caller of that method.
    pub fn set_progress(
        &mut self,
        report: impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) {
        self.take_progress(Some(Progress::new(report)));
    }

    /// Removes the progress callback.
    pub fn clear_progress(&mut self) {
        self.take_progress(None);
    }

    fn take_progress(&mut self, progress: Option<Progress>) {
        let raw = progress.as_ref().map(Progress::to_c);
        let raw = raw.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the struct points to the progress callback, which stays alive as long as C may
        // call it.
        check(|err| unsafe { sys::sb_model_set_progress(self.as_ptr(), raw, err) })
            .expect("C accepts a struct of this version");
        self.progress = progress;
    }

    /// Makes an empty model. A program adds layers and blobs, then saves the model.
    ///
    /// ```
    /// use syncblob::{Blob, Format, Model, Payload};
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// model.set_name("tiny")?;
    /// let layer = model.add_layer("ip1", "InnerProduct")?;
    /// model.add_blob(layer, &Blob::<f32>::full([2, 3], 0.1)?, Payload::Data)?;
    ///
    /// let again = Model::from_bytes(model.to_bytes()?)?;
    /// assert_eq!(again.layer(0)?.name(), "ip1");
    /// assert_eq!(again.layer(0)?.blob(0)?.info().shape(), [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    pub fn create(format: Format) -> Result<Self> {
        OpenOptions::new().create(format)
    }

    fn own(raw: *mut sys::sb_model, context: &Context) -> Self {
        let raw = NonNull::new(raw).expect("the library returned neither a model nor an error");
        Self { raw, context: context.clone(), progress: None, borrowed: false }
    }

    /// Takes ownership of a model that C code made in `context`, and removes its progress callback.
    ///
    /// # Safety
    /// `raw` is a live model that was made in `context`, and nothing else owns it. If the model was
    /// opened from bytes or from a source, these outlive the model.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_model>, context: &Context) -> Self {
        let mut model = Self::own(raw.as_ptr(), context);
        model.clear_progress();
        model
    }

    /// Makes a handle for a model that C code owns. Dropping the handle does not destroy the model,
    /// and the model keeps its progress callback.
    ///
    /// # Safety
    /// `raw` is a live model of `context`. The model and its bytes or source outlive the handle.
    /// While the handle lives, no code changes the model: neither C code nor a method of the
    /// handle.
    pub unsafe fn borrow_raw(raw: NonNull<sys::sb_model>, context: &Context) -> Self {
        let mut model = Self::own(raw.as_ptr(), context);
        model.borrowed = true;
        model
    }

    /// Passes ownership to C code, which must call `sb_model_destroy`. The progress callback is
    /// removed.
    pub fn into_raw(mut self) -> NonNull<sys::sb_model> {
        self.clear_progress();
        let mut model = ManuallyDrop::new(self);
        model.context = Context::host(); // releases the share of the context
        model.raw
    }

    /// Returns the C handle, for code that also calls the C library. The handle lives as long as
    /// `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_model {
        self.raw.as_ptr()
    }

    /// Returns the context in which blobs are loaded.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if !self.borrowed {
            // SAFETY: `self` owns the model and is being dropped.
            unsafe { sys::sb_model_destroy(self.as_ptr()) }
        }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("format", &self.format())
            .field("name", &self.name())
            .field("layers", &self.num_layers())
            .finish_non_exhaustive()
    }
}

/// # Safety
/// `text` is a text of the library that lives for `'a`.
unsafe fn text_bytes<'a>(text: sys::sb_text) -> &'a [u8] {
    if text.size == 0 {
        return &[];
    }
    // SAFETY: the caller ensures that the text lives.
    unsafe { slice::from_raw_parts(text.bytes.cast(), text.size) }
}
