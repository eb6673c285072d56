use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;
use std::io::Write;
use std::iter::FusedIterator;
use std::mem::ManuallyDrop;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::slice;
use std::str::FromStr;

use syncblob_sys as sys;

use crate::blob::reserve;
use crate::callbacks::lend_blobs;
use crate::ffi::{
    as_given, by_name, check, fill, get, sized, to_i64, to_usize, with_path, MAX_I64,
};
use crate::io::{lend_reader, lend_writer, with_callbacks, Progress};
use crate::owner::lend_shared;
use crate::{
    system, Blob, BlobAny, BlobBuilder, Context, Dtype, Error, ErrorKind, Float, Limits, Payload,
    ReadAt, Readable, Result, Shape,
};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Format {
    /// `BlobProto`, such as `mean.binaryproto`.
    Blob,
    /// `NetParameter`: `.caffemodel`.
    Caffemodel,
    /// `SolverState`: `.solverstate`.
    Solverstate,
    /// `BlobProtoVector`; detected where its first blob has values.
    BlobVector,
}

impl Format {
    fn code(self) -> i32 {
        match self {
            Self::Blob => sys::SB_FORMAT_BLOB,
            Self::Caffemodel => sys::SB_FORMAT_CAFFEMODEL,
            Self::Solverstate => sys::SB_FORMAT_SOLVERSTATE,
            Self::BlobVector => sys::SB_FORMAT_BLOB_VECTOR,
        }
    }

    const ALL: [Self; 4] = [Self::Blob, Self::Caffemodel, Self::Solverstate, Self::BlobVector];

    fn from_code(code: i32) -> Self {
        match code {
            sys::SB_FORMAT_BLOB => Self::Blob,
            sys::SB_FORMAT_SOLVERSTATE => Self::Solverstate,
            sys::SB_FORMAT_BLOB_VECTOR => Self::BlobVector,
            _ => Self::Caffemodel,
        }
    }

    /// The short name: `"blob"`, `"caffemodel"`, `"solverstate"`, `"blobvector"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Caffemodel => "caffemodel",
            Self::Solverstate => "solverstate",
            Self::BlobVector => "blobvector",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By its short name.
impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        by_name(name, "format", &Self::ALL)
    }
}

/// Which of Caffe's generations a layer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Generation {
    /// `NetParameter.layers[i].layer`
    V0,
    /// `NetParameter.layers`
    V1,
    /// `NetParameter.layer`
    Current,
}

/// An opened `.caffemodel`, `.solverstate` or blob file: named layers with
/// blobs, none of them loaded until asked for. Blobs can be replaced and the
/// model saved, every other byte kept as it was.
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
    /// What the library calls, if anything.
    progress: Option<Progress>,
}

// SAFETY: the C library keeps nothing per thread, and bytes that the model was
// opened from are owned by a `Send + Sync` owner.
unsafe impl Send for Model {}
// SAFETY: `&self` methods make only calls on a const model, which are safe
// beside each other.
unsafe impl Sync for Model {}

/// How a [`Model`] is opened.
///
/// ```
/// use syncblob::{Format, Limits, OpenOptions};
///
/// let limits = Limits::new().max_memory(64 << 20);
/// let options = OpenOptions::new().format(Format::Caffemodel).limits(limits);
/// assert!(options.from_bytes(b"not a model").is_err());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open` or `from_bytes`"]
pub struct OpenOptions {
    context: Context,
    format: Option<Format>,
    limits: Option<Limits>,
    progress: Option<Progress>,
}

impl OpenOptions {
    /// The built-in context and its limits, the format found out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where blobs are loaded, and whose limits hold.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = context.clone();
        self
    }

    /// What the bytes are, instead of finding it out. What is certainly another format is refused.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Limits for this model, instead of the context's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Who is told how far [`open_reader`](OpenOptions::open_reader) has come, and
    /// then of the model's long calls: see [`Model::set_progress`]. Opening skips the
    /// values, which are then done at once: there reports may be further apart than a
    /// MiB.
    pub fn progress(
        mut self,
        report: impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Some(Progress::new(report));
        self
    }

    /// Opens a file; it stays open until the model is dropped.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.open_file(path.as_ref(), 0)
    }

    /// Opens a file by mapping it: faster for many small loads.
    ///
    /// # Errors
    /// As [`Model::open`].
    ///
    /// # Safety
    /// Nobody changes the file while the model lives. One that shrinks raises
    /// SIGBUS.
    pub unsafe fn open_mapped(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.open_file(path.as_ref(), sys::SB_OPEN_MAPPED)
    }

    fn open_file(&self, path: &Path, flags: u32) -> Result<Model> {
        with_path(path, |path| {
            self.make(|context, format, limits, out, err| {
                let path = path.as_ptr();
                // SAFETY: `path` ends in NUL; `limits` is NULL or valid.
                unsafe { sys::sb_model_open_file(context, format, path, flags, limits, out, err) }
            })
        })
    }

    /// Opens bytes, which the model keeps: a `Vec<u8>`, a `&'static [u8]`, or
    /// anything else that owns bytes. They are not copied.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn from_bytes<B>(&self, bytes: B) -> Result<Model>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        lend_shared(bytes, |bytes: &[u8], deleter, user| {
            let (data, size) = (bytes.as_ptr().cast(), bytes.len());
            self.make(|context, format, limits, out, err| {
                // SAFETY: the bytes stay until the deleter drops their owner.
                unsafe {
                    sys::sb_model_open_bytes(
                        context, format, data, size, limits, deleter, user, out, err,
                    )
                }
            })
        })
    }

    /// Opens what a reader reads, which the model keeps; see [`ReadAt`].
    ///
    /// # Errors
    /// As [`Model::open_reader`].
    ///
    /// # Panics
    /// When the reader or the progress does.
    pub fn open_reader(&self, reader: impl ReadAt + Send + Sync + 'static) -> Result<Model> {
        let progress = self.progress.as_ref().map(Progress::to_c);
        let progress = progress.as_ref().map_or(ptr::null(), ptr::from_ref);
        lend_reader(reader, |source| {
            self.make(|context, format, limits, out, err| {
                // SAFETY: the source stays until it is closed; the progress through the call.
                unsafe {
                    sys::sb_model_open_source(context, format, source, limits, progress, out, err)
                }
            })
        })
    }

    fn make(
        &self,
        open: impl FnOnce(
            *mut sys::sb_context,
            i32,
            *const sys::sb_limits,
            *mut *mut sys::sb_model,
            *mut sys::sb_error,
        ) -> sys::sb_status,
    ) -> Result<Model> {
        let format = self.format.map_or(sys::SB_FORMAT_AUTO, Format::code);
        let limits = self.limits.map(Limits::to_c).transpose()?;
        let limits = limits.as_ref().map_or(ptr::null(), ptr::from_ref);
        let raw = get(|out, err| open(self.context.as_ptr(), format, limits, out, err))?;
        let mut model = Model::own(raw, &self.context);
        model.take_progress(self.progress.clone());
        Ok(model)
    }

    /// An empty model, to be built in memory and saved; see [`Model::create`].
    ///
    /// # Errors
    /// Out of memory, a cap that is reached.
    pub fn create(&self, format: Format) -> Result<Model> {
        // SAFETY: the context is live.
        let raw = get(|out, err| unsafe {
            sys::sb_model_create(self.context.as_ptr(), format.code(), out, err)
        })?;
        Ok(Model::own(raw, &self.context))
    }
}

/// Opening, making, saving.
impl Model {
    /// Opens a file, its format found out from the bytes.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); kinds of the data
    /// ([`Malformed`](ErrorKind::Malformed),
    /// [`LengthMismatch`](ErrorKind::LengthMismatch),
    /// [`BadShape`](ErrorKind::BadShape),
    /// [`DataOverflow`](ErrorKind::DataOverflow),
    /// [`DataLimit`](ErrorKind::DataLimit)); out of memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens bytes, which the model keeps and does not copy.
    ///
    /// # Errors
    /// As [`open`](Model::open).
    pub fn from_bytes<B>(bytes: B) -> Result<Self>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        OpenOptions::new().from_bytes(bytes)
    }

    /// Opens what a reader reads, its format found out from the bytes. The reader is kept
    /// until the model is dropped, and may be read by several threads at once.
    ///
    /// ```no_run
    /// use std::io;
    /// use syncblob::{Model, ReadAt};
    ///
    /// struct Object; // in a store
    ///
    /// impl ReadAt for Object {
    ///     fn size(&self) -> io::Result<u64> {
    ///         todo!("what the store says")
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
    /// As [`open`](Model::open); what the reader returned is the error's
    /// [source](std::error::Error::source).
    ///
    /// # Panics
    /// When the reader does, here and in later calls; they end with it, and nothing else
    /// has changed.
    pub fn open_reader(reader: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        OpenOptions::new().open_reader(reader)
    }

    /// Who is told, with bytes done and bytes in all, how far each load and save of this
    /// model has come, from now on; the total is 0 while it is not known. It is told at
    /// least once for each MiB, on the thread of the call. [`ControlFlow::Break`] ends
    /// the call with [`Cancelled`](ErrorKind::Cancelled), and nothing has changed.
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
    /// A panic of `report` ends the call of the model and goes on from there.
    pub fn set_progress(
        &mut self,
        report: impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) {
        self.take_progress(Some(Progress::new(report)));
    }

    /// Nobody is told from now on.
    pub fn clear_progress(&mut self) {
        self.take_progress(None);
    }

    fn take_progress(&mut self, progress: Option<Progress>) {
        let raw = progress.as_ref().map(Progress::to_c);
        let raw = raw.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: what the struct points to lives in `self`, beside the model.
        check(|err| unsafe { sys::sb_model_set_progress(self.as_ptr(), raw, err) })
            .expect("a struct of this version is taken");
        self.progress = progress;
    }

    /// An empty model, to be built and saved.
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
        let raw = NonNull::new(raw).expect("the library gave no model and no error");
        Self { raw, context: context.clone(), progress: None }
    }

    /// Takes over a model that C code made in `context`. It calls nobody about its
    /// progress any more.
    ///
    /// # Safety
    /// `raw` is a live model of `context` that nobody else has, and what it was opened
    /// from (bytes, a source) outlives it.
    pub unsafe fn from_raw(raw: NonNull<sys::sb_model>, context: &Context) -> Self {
        let mut model = Self::own(raw.as_ptr(), context);
        model.clear_progress();
        model
    }

    /// Gives the model to C code, which is to end it by `sb_model_destroy`. It calls
    /// nobody about its progress any more.
    pub fn into_raw(mut self) -> NonNull<sys::sb_model> {
        self.clear_progress();
        let mut model = ManuallyDrop::new(self);
        model.context = Context::host(); // drops this one's share
        model.raw
    }

    /// The C handle, for code that calls the C library too. Lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::sb_model {
        self.raw.as_ptr()
    }

    /// The context that blobs are loaded in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Writes the model to a file, atomically: the file is the old one or the
    /// whole new one. It may be the one that the model was opened from. Links and
    /// permissions as in [`Blob::write_file`].
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`Unsupported`](ErrorKind::Unsupported) for an
    /// [announced](Model::announce_blob) blob, which [`save_from`](Model::save_from)
    /// saves; else as [`size`](Model::size).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        with_path(path.as_ref(), |path| {
            with_callbacks(|| {
                // SAFETY: `path` ends in NUL.
                check(|err| unsafe { sys::sb_model_save_file(self.as_ptr(), path.as_ptr(), err) })
            })
        })
    }

    /// Writes the model to a writer and flushes it. After a failure the writer has had
    /// some of the bytes.
    ///
    /// # Errors
    /// As [`save`](Model::save), also for announced blobs; what the writer returned is
    /// the error's [source](std::error::Error::source).
    ///
    /// # Panics
    /// When the writer does.
    pub fn write_to(&self, writer: impl Write) -> Result<()> {
        lend_writer(writer, |sink| {
            // SAFETY: the sink is borrowed.
            check(|err| unsafe { sys::sb_model_save_sink(self.as_ptr(), sink, err) })
        })
    }

    /// The same, the values of [announced](Model::announce_blob) blobs asked for
    /// one at a time: so a model can be saved that memory would not hold. Each
    /// blob is dropped before the next is asked for.
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
    /// Those of `values`, with which the file stays as it was; as
    /// [`save`](Model::save), but for announced blobs;
    /// [`DtypeMismatch`](ErrorKind::DtypeMismatch) and
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for a blob that is not what was
    /// announced; those of [`Blob::data`].
    ///
    /// # Panics
    /// When `values` does; the file stays as it was.
    pub fn save_from<E: From<Error>>(
        &self,
        path: impl AsRef<Path>,
        values: impl FnMut(BlobAt) -> Result<BlobAny, E>,
    ) -> Result<(), E> {
        let save = |path: &CStr, lender, user| {
            with_callbacks(|| {
                // SAFETY: `path` ends in NUL; `user` is what the lender expects.
                check(|err| unsafe {
                    sys::sb_model_save_file_from(self.as_ptr(), path.as_ptr(), lender, user, err)
                })
            })
        };
        lend_blobs(values, |lender, user| with_path(path.as_ref(), |path| save(path, lender, user)))
    }

    /// The bytes that the model takes when it is saved, announced blobs included.
    ///
    /// # Errors
    /// [`OverLimit`](ErrorKind::OverLimit) above 2 GiB − 1, protobuf's limit;
    /// [`Io`](ErrorKind::Io), [`Malformed`](ErrorKind::Malformed) and
    /// [`DataLimit`](ErrorKind::DataLimit) when the file is not what it was;
    /// [`Cancelled`](ErrorKind::Cancelled) by a progress; out of memory.
    pub fn size(&self) -> Result<usize> {
        // SAFETY: the model is live.
        with_callbacks(|| get(|out, err| unsafe { sys::sb_model_size(self.as_ptr(), out, err) }))
    }

    /// The model as bytes.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for an
    /// [announced](Model::announce_blob) blob, whose values are not here; else as
    /// [`size`](Model::size).
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
        // SAFETY: the library wrote that many bytes.
        unsafe { bytes.set_len(written) };
        Ok(bytes)
    }
}

/// Looking.
impl Model {
    /// What the file is.
    pub fn format(&self) -> Format {
        // SAFETY: the model is live.
        Format::from_code(unsafe { sys::sb_model_format(self.as_ptr()) })
    }

    /// The net's name, empty when there is none. Bytes that are not UTF-8 are
    /// replaced; [`name_bytes`](Model::name_bytes) has them.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.name_bytes())
    }

    /// The net's name as the file has it.
    pub fn name_bytes(&self) -> &[u8] {
        // SAFETY: the model is live, and a name there to be given.
        let name = get(|out, err| unsafe { sys::sb_model_name(self.as_ptr(), out, err) });
        // SAFETY: the text stays until `set_name`, which needs `&mut self`.
        name.map_or(&[], |text| unsafe { text_bytes(text) })
    }

    /// The number of layers, those without blobs included.
    pub fn num_layers(&self) -> usize {
        // SAFETY: the model is live.
        to_usize(unsafe { sys::sb_model_num_layers(self.as_ptr()) })
    }

    /// The layers in the file's order.
    pub fn layers(&self) -> Layers<'_> {
        Layers { model: self, left: 0..self.num_layers() }
    }

    /// One layer.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange).
    pub fn layer(&self, index: usize) -> Result<Layer<'_>> {
        // SAFETY: the model is live; `out` says its size.
        let info = fill(sized!(sb_layer_info), |out, err| unsafe {
            sys::sb_model_layer_info(self.as_ptr(), to_i64(index), out, err)
        })
        .map_err(|error| as_given(error, "layer", &[index], MAX_I64))?;
        Ok(Layer { model: self, index, info })
    }

    /// The first layer of a name.
    pub fn layer_by_name(&self, name: impl AsRef<[u8]>) -> Option<Layer<'_>> {
        let name = name.as_ref();
        // SAFETY: `name` is valid for its length.
        let index = get(|out, err| unsafe {
            sys::sb_model_find_layer(self.as_ptr(), name.as_ptr().cast(), name.len(), out, err)
        });
        self.layer(usize::try_from(index.ok()?).ok()?).ok()
    }

    /// The blobs of no layer: a solver state's history, the one blob of a blob
    /// file. An item is an error when the file can no longer be read, or is not
    /// what it was.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Result<StoredBlob<'_>>> {
        stored_blobs(self, None)
    }

    /// A blob by its place.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange); [`Io`](ErrorKind::Io) and
    /// [`Malformed`](ErrorKind::Malformed) when the file is not what it was.
    pub fn blob(&self, at: impl Into<BlobAt>) -> Result<StoredBlob<'_>> {
        let at = at.into();
        let info = with_callbacks(|| {
            // SAFETY: the model is live; `out` says its size.
            fill(sized!(sb_blob_info), |out, err| unsafe {
                sys::sb_model_blob_info(self.as_ptr(), at.layer_code(), to_i64(at.index), out, err)
            })
        })
        .map_err(|error| at.as_given(error))?;
        Ok(StoredBlob { model: self, at, info: BlobInfo(info) })
    }

    /// Loads a blob by its place, when there is nothing to be asked about it:
    /// otherwise as [`StoredBlob::load`].
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange); as [`StoredBlob::load`], also
    /// for an announced blob.
    pub fn load<T: Readable>(&self, at: impl Into<BlobAt>) -> Result<Blob<T>> {
        self.load_into(at.into(), &self.context)
    }

    fn load_into<T: Readable>(&self, at: BlobAt, context: &Context) -> Result<Blob<T>> {
        let blob = Blob::in_context(context).new()?;
        let (layer, index) = (at.layer_code(), to_i64(at.index));
        with_callbacks(|| {
            // SAFETY: the model is live, the blob fresh.
            check(|err| unsafe {
                sys::sb_model_load_blob(self.as_ptr(), layer, index, blob.raw(), err)
            })
        })
        .map_err(|error| at.as_given(error))?;
        Ok(blob)
    }

    fn num_blobs(&self, layer: Option<usize>) -> usize {
        // SAFETY: the model is live.
        to_usize(unsafe { sys::sb_model_num_blobs(self.as_ptr(), layer_code(layer)) })
    }

    /// The iteration that a solver state was saved at.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for anything but a solver state.
    pub fn iteration(&self) -> Result<i32> {
        Ok(self.solver_info()?.iteration)
    }

    /// What a solver state holds beside its history.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for anything but a solver state.
    pub fn solver_info(&self) -> Result<SolverInfo> {
        // SAFETY: the model is live; `out` says its size.
        let info = fill(sized!(sb_solver_info), |out, err| unsafe {
            sys::sb_model_solver_info(self.as_ptr(), out, err)
        })?;
        // SAFETY: the text stays until it is set, which needs `&mut self`.
        let learned_net = unsafe { text_bytes(info.learned_net) };
        Ok(SolverInfo {
            iteration: info.iter,
            current_step: info.current_step,
            learned_net: system::path_of(learned_net),
        })
    }
}

/// What a solver state holds beside its history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SolverInfo {
    /// The iteration that it was saved at.
    #[doc(alias = "iter")]
    pub iteration: i32,
    /// The step of the learning rate's policy.
    pub current_step: i32,
    /// The file that holds the net; empty where none is named.
    pub learned_net: PathBuf,
}

impl SolverInfo {
    /// That of an iteration, in step 0, without a file that holds the net.
    pub fn new(iteration: i32) -> Self {
        Self { iteration, ..Self::default() }
    }

    /// With another step of the learning rate's policy.
    #[must_use]
    pub fn current_step(self, current_step: i32) -> Self {
        Self { current_step, ..self }
    }

    /// With a file that holds the net.
    #[must_use]
    pub fn learned_net(self, learned_net: impl Into<PathBuf>) -> Self {
        Self { learned_net: learned_net.into(), ..self }
    }
}

/// Changing.
impl Model {
    /// Replaces a blob by a copy of `blob` as it is now.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange);
    /// [`OverLimit`](ErrorKind::OverLimit); out of memory; those of
    /// [`Blob::data`].
    pub fn set_blob<T: Float>(
        &mut self,
        at: impl Into<BlobAt>,
        blob: &Blob<T>,
        payload: Payload,
    ) -> Result<()> {
        let at = at.into();
        let (layer, index) = (at.layer_code(), to_i64(at.index));
        // SAFETY: model and blob are live.
        check(|err| unsafe {
            let flags = payload.flags();
            sys::sb_model_set_blob(self.as_ptr(), layer, index, blob.as_ptr(), flags, err)
        })
        .map_err(|error| at.as_given(error))
    }

    /// Adds a blob at the end of a layer's, or of those of no layer (`None`).
    ///
    /// # Errors
    /// As [`set_blob`](Model::set_blob); [`Unsupported`](ErrorKind::Unsupported)
    /// for a second blob in a blob file.
    pub fn add_blob<T: Float>(
        &mut self,
        layer: impl Into<Option<usize>>,
        blob: &Blob<T>,
        payload: Payload,
    ) -> Result<()> {
        let layer = layer_code(layer.into());
        // SAFETY: model and blob are live.
        check(|err| unsafe {
            sys::sb_model_add_blob(self.as_ptr(), layer, blob.as_ptr(), payload.flags(), err)
        })
    }

    /// Adds a blob like [`add_blob`](Model::add_blob), but without its values, which
    /// [`save_from`](Model::save_from) asks for.
    ///
    /// # Errors
    /// As [`add_blob`](Model::add_blob); as [`Blob::zeros`] for the shape.
    pub fn announce_blob<T: Float>(
        &mut self,
        layer: impl Into<Option<usize>>,
        shape: impl Into<Shape>,
    ) -> Result<()> {
        let like = Blob::<T>::in_context(&self.context).zeros(shape)?;
        let layer = layer_code(layer.into());
        // SAFETY: model and blob are live.
        check(|err| unsafe {
            sys::sb_model_announce_blob(self.as_ptr(), layer, like.as_ptr(), err)
        })
    }

    /// Adds a layer without blobs at the end; returns its index.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for anything but a caffemodel;
    /// [`OverLimit`](ErrorKind::OverLimit) above 2 GiB − 1; out of memory.
    pub fn add_layer(
        &mut self,
        name: impl AsRef<[u8]>,
        layer_type: impl AsRef<[u8]>,
    ) -> Result<usize> {
        let (name, layer_type) = (name.as_ref(), layer_type.as_ref());
        // SAFETY: both texts are valid for their length, and copied.
        get(|out, err| unsafe {
            let (text, size) = (name.as_ptr().cast(), name.len());
            let (type_text, type_size) = (layer_type.as_ptr().cast(), layer_type.len());
            let model = self.as_ptr();
            sys::sb_model_add_layer(model, text, size, type_text, type_size, out, err)
        })
        .map(to_usize)
    }

    /// Takes the last layer away again, with its blobs, if it was added and is not the
    /// file's: for whoever adds a layer and its blobs, and wants both or neither.
    ///
    /// ```
    /// use syncblob::{ErrorKind, Format, Model};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// model.add_layer("ip1", "InnerProduct")?;
    /// model.pop_layer()?;
    /// assert!(model.layer_by_name("ip1").is_none());
    /// assert_eq!(model.pop_layer().unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where no layer was added.
    pub fn pop_layer(&mut self) -> Result<()> {
        // SAFETY: the model is live, and no text of the layer is lent.
        check(|err| unsafe { sys::sb_model_pop_layer(self.as_ptr(), err) })
    }

    /// Sets what a solver state holds beside its history.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for anything but a solver state;
    /// out of memory.
    pub fn set_solver_info(&mut self, info: &SolverInfo) -> Result<()> {
        let net = info.learned_net.as_os_str().as_encoded_bytes();
        let info = sys::sb_solver_info {
            struct_size: size_of::<sys::sb_solver_info>(),
            learned_net: sys::sb_text { bytes: net.as_ptr().cast(), size: net.len() },
            iter: info.iteration,
            current_step: info.current_step,
        };
        // SAFETY: `info` and its text live through the call.
        check(|err| unsafe { sys::sb_model_set_solver_info(self.as_ptr(), &info, err) })
    }

    /// Names the net.
    ///
    /// # Errors
    /// As [`add_layer`](Model::add_layer).
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        // SAFETY: the text is valid for its length, and copied.
        check(|err| unsafe {
            sys::sb_model_set_name(self.as_ptr(), name.as_ptr().cast(), name.len(), err)
        })
    }
}

/// Loading all.
impl Model {
    /// All blobs, layer by layer and then those of no layer, each loaded when
    /// the iterator comes to it; the model ends with the iterator.
    ///
    /// ```no_run
    /// use syncblob::{Model, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// for blob in Model::open("resnet.caffemodel")?.into_blobs::<f32>() {
    ///     let (at, blob) = blob?;
    ///     println!("{at:?}: {}", blob.asum(Part::Data)?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_blobs<T: Readable>(self) -> impl Iterator<Item = Result<(BlobAt, Blob<T>)>> {
        let layers = (0..self.num_layers()).map(Some).chain([None]);
        let blobs = |model: &Self, layer| (0..model.num_blobs(layer)).map(move |i| (layer, i));
        let places: Vec<_> = layers.flat_map(|layer| blobs(&self, layer)).collect();
        places.into_iter().map(move |(layer, index)| {
            let at = BlobAt { layer, index };
            Ok((at, self.blob(at)?.load()?))
        })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: `self` owns the model and ends here.
        unsafe { sys::sb_model_destroy(self.as_ptr()) }
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

/// The layers of a [`Model`], in the file's order: [`Model::layers`].
#[derive(Clone, Debug)]
pub struct Layers<'m> {
    model: &'m Model,
    left: Range<usize>,
}

impl<'m> Layers<'m> {
    fn get(&self, index: usize) -> Layer<'m> {
        self.model.layer(index).expect("the index is below the number of layers")
    }
}

impl<'m> Iterator for Layers<'m> {
    type Item = Layer<'m>;

    fn next(&mut self) -> Option<Layer<'m>> {
        self.left.next().map(|index| self.get(index))
    }

    fn nth(&mut self, n: usize) -> Option<Layer<'m>> {
        self.left.nth(n).map(|index| self.get(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Layers<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|index| self.get(index))
    }
}

impl ExactSizeIterator for Layers<'_> {}
impl FusedIterator for Layers<'_> {}

impl<'m> IntoIterator for &'m Model {
    type Item = Layer<'m>;
    type IntoIter = Layers<'m>;

    fn into_iter(self) -> Layers<'m> {
        self.layers()
    }
}

/// A layer of a [`Model`].
#[derive(Clone, Copy)]
pub struct Layer<'m> {
    model: &'m Model,
    index: usize,
    info: sys::sb_layer_info,
}

// SAFETY: a layer is a reference to a model, which is `Sync`, and to texts that
// nobody changes while the model is borrowed.
unsafe impl Send for Layer<'_> {}
// SAFETY: as above.
unsafe impl Sync for Layer<'_> {}

impl<'m> Layer<'m> {
    /// Its index in the model.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name. Bytes that are not UTF-8 are replaced;
    /// [`name_bytes`](Layer::name_bytes) has them.
    pub fn name(&self) -> Cow<'m, str> {
        String::from_utf8_lossy(self.name_bytes())
    }

    /// Its name as the file has it.
    pub fn name_bytes(&self) -> &'m [u8] {
        // SAFETY: the text lives as long as the model stays unchanged.
        unsafe { text_bytes(self.info.name) }
    }

    /// Its type, such as `"Convolution"`; of a V1 layer the enum's name,
    /// `"CONVOLUTION"`. Bytes that are not UTF-8 are replaced.
    pub fn layer_type(&self) -> Cow<'m, str> {
        String::from_utf8_lossy(self.layer_type_bytes())
    }

    /// Its type as the file has it.
    pub fn layer_type_bytes(&self) -> &'m [u8] {
        // SAFETY: the text lives as long as the model stays unchanged.
        unsafe { text_bytes(self.info.type_) }
    }

    /// Which of Caffe's generations it is written in.
    pub fn generation(&self) -> Generation {
        match self.info.generation {
            sys::SB_LAYER_V0 => Generation::V0,
            sys::SB_LAYER_V1 => Generation::V1,
            _ => Generation::Current,
        }
    }

    /// The number of its blobs.
    pub fn num_blobs(&self) -> usize {
        to_usize(self.info.num_blobs)
    }

    /// Its blobs; see [`Model::blobs`].
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Result<StoredBlob<'m>>> {
        stored_blobs(self.model, Some(self.index))
    }

    /// One of its blobs.
    ///
    /// # Errors
    /// As [`Model::blob`].
    pub fn blob(&self, index: usize) -> Result<StoredBlob<'m>> {
        self.model.blob((self.index, index))
    }
}

impl fmt::Debug for Layer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("index", &self.index)
            .field("name", &self.name())
            .field("type", &self.layer_type())
            .field("blobs", &self.num_blobs())
            .finish()
    }
}

/// The place of a blob in a model: `(layer, index)`, or an index among the
/// blobs of no layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BlobAt {
    /// The layer; `None` for the blobs of no layer.
    pub layer: Option<usize>,
    /// Which of its blobs.
    pub index: usize,
}

impl BlobAt {
    pub(crate) fn from_c(layer: i64, index: i64) -> Self {
        Self { layer: usize::try_from(layer).ok(), index: to_usize(index) }
    }

    fn layer_code(self) -> i64 {
        layer_code(self.layer)
    }

    fn as_given(self, error: Error) -> Error {
        let error = as_given(error, "blob", &[self.index], MAX_I64);
        as_given(error, "layer", self.layer.as_slice(), MAX_I64)
    }
}

fn layer_code(layer: Option<usize>) -> i64 {
    layer.map_or(sys::SB_NO_LAYER.into(), to_i64)
}

/// `(layer, index)`
impl From<(usize, usize)> for BlobAt {
    fn from((layer, index): (usize, usize)) -> Self {
        Self { layer: Some(layer), index }
    }
}

/// An index among the blobs of no layer.
impl From<usize> for BlobAt {
    fn from(index: usize) -> Self {
        Self { layer: None, index }
    }
}

/// A blob in a [`Model`], not loaded.
#[derive(Clone, Copy)]
pub struct StoredBlob<'m> {
    model: &'m Model,
    at: BlobAt,
    info: BlobInfo,
}

impl StoredBlob<'_> {
    /// Where it is in the model.
    pub fn at(&self) -> BlobAt {
        self.at
    }

    /// What it is.
    pub fn info(&self) -> &BlobInfo {
        &self.info
    }

    /// Loads it in the model's context; the blob is the caller's own. The element
    /// type may differ from the stored one: what an `f32` cannot hold is rounded,
    /// beyond its range to infinity. An integer type takes whole numbers alone.
    ///
    /// # Errors
    /// [`LengthMismatch`](ErrorKind::LengthMismatch) for a blob without values,
    /// [`DataOverflow`](ErrorKind::DataOverflow) for a value that the integer type
    /// does not hold, such as one with a fraction, [`DtypeMismatch`](ErrorKind::DtypeMismatch) for values that are no
    /// halves as `half::f16`,
    /// [`Unsupported`](ErrorKind::Unsupported) for one that is
    /// [announced](Model::announce_blob); [`DataLimit`](ErrorKind::DataLimit);
    /// [`Io`](ErrorKind::Io) and [`Malformed`](ErrorKind::Malformed) when the file is
    /// not what it was; [`Cancelled`](ErrorKind::Cancelled) by a progress; out of
    /// memory, a cap that is reached.
    #[doc(alias("take_blob", "CopyTrainedLayersFrom"))]
    pub fn load<T: Readable>(&self) -> Result<Blob<T>> {
        self.model.load_into(self.at, &self.model.context)
    }

    /// Loads it with the element type that it is stored in, integers as `f64`, which holds
    /// them exactly. Halves stay `half::f16` with the feature `half`; they become `f32`,
    /// which holds them exactly, without it or where the diff is no halves.
    ///
    /// # Errors
    /// As [`load`](StoredBlob::load).
    pub fn load_any(&self) -> Result<BlobAny> {
        match self.info.dtype() {
            #[cfg(feature = "half")]
            Dtype::F16 if self.info.diff_dtype() == Dtype::F16 => {
                self.load::<half::f16>().map(BlobAny::from)
            }
            Dtype::F32 | Dtype::F16 => self.load::<f32>().map(BlobAny::from),
            Dtype::F64 | Dtype::I32 | Dtype::U32 => self.load::<f64>().map(BlobAny::from),
            other => Err(Error::new(
                ErrorKind::Unsupported,
                format!("a stored blob of {other} cannot be loaded"),
            )),
        }
    }
}

impl fmt::Debug for StoredBlob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredBlob").field("at", &self.at).field("info", &self.info).finish()
    }
}

/// What a stored blob is, known without loading it.
#[derive(Clone, Copy)]
pub struct BlobInfo(sys::sb_blob_info);

impl BlobInfo {
    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        let axes = to_usize(self.0.num_axes.into()).min(self.0.shape.len());
        // SAFETY: dimensions are not negative, and usize has the layout of i64
        // on the 64-bit hosts that the library is for.
        unsafe { slice::from_raw_parts(self.0.shape.as_ptr().cast(), axes) }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        to_usize(self.0.count)
    }

    /// The element type that its data (without data, its diff) is stored in. What
    /// NVCaffe wrote may be half precision or integers.
    pub fn dtype(&self) -> Dtype {
        Dtype::from_code(self.0.dtype).unwrap_or(Dtype::F32)
    }

    /// The element type that its diff is stored in; without one, [`dtype`](Self::dtype).
    pub fn diff_dtype(&self) -> Dtype {
        Dtype::from_code(self.0.diff_dtype).unwrap_or(Dtype::F32)
    }

    /// The number of data values present.
    pub fn data_count(&self) -> usize {
        to_usize(self.0.data_count)
    }

    /// The number of diff values present.
    pub fn diff_count(&self) -> usize {
        to_usize(self.0.diff_count)
    }

    /// Whether the shape came from num, channels, height and width.
    pub fn is_legacy(&self) -> bool {
        self.0.legacy != 0
    }

    /// Where its message begins in the file, if it is from one.
    pub fn offset(&self) -> Option<u64> {
        u64::try_from(self.0.offset).ok()
    }

    /// The bytes of its message in the file, 0 if it is not from one.
    pub fn size(&self) -> usize {
        self.0.size
    }
}

impl fmt::Debug for BlobInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobInfo")
            .field("shape", &self.shape())
            .field("dtype", &self.dtype())
            .field("data_count", &self.data_count())
            .field("diff_count", &self.diff_count())
            .finish_non_exhaustive()
    }
}

fn stored_blobs(
    model: &Model,
    layer: Option<usize>,
) -> impl ExactSizeIterator<Item = Result<StoredBlob<'_>>> {
    (0..model.num_blobs(layer)).map(move |index| model.blob(BlobAt { layer, index }))
}

/// # Safety
/// `text` is the library's and lives for `'a`.
unsafe fn text_bytes<'a>(text: sys::sb_text) -> &'a [u8] {
    if text.size == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(text.bytes.cast(), text.size) }
}

/// Loading into a context.
impl<T: Readable> BlobBuilder<'_, T> {
    /// [`StoredBlob::load`] into the context.
    ///
    /// # Errors
    /// As there.
    pub fn load(self, stored: &StoredBlob<'_>) -> Result<Blob<T>> {
        stored.model.load_into(stored.at, self.context)
    }
}
