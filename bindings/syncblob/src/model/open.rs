use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;

use syncblob_sys as sys;

use super::{Format, Model};
use crate::ffi::{get, with_path};
use crate::io::{lend_reader, Progress};
use crate::owner::lend_shared;
use crate::{Context, Limits, ReadAt, Result};

/// Options for opening a [`Model`].
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
    /// Returns the default options: the built-in context and its limits. The format is detected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the context in which blobs are loaded. The limits of this context apply.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = context.clone();
        self
    }

    /// Sets the format of the bytes instead of detecting it. Opening fails if the library
    /// recognises a different format.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the limits for this model, instead of the context's limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the progress callback of [`open_reader`](OpenOptions::open_reader) and of the model's
    /// later calls: see [`Model::set_progress`]. `open_reader` skips values, so the number of bytes
    /// done may increase by more than a MiB between two reports.
    pub fn progress(
        mut self,
        report: impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Some(Progress::new(report));
        self
    }

    /// Opens a file, which stays open until the model is dropped.
    ///
    /// # Errors
    /// Errors of [`Model::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.open_file(path.as_ref(), 0)
    }

    /// Opens a file by mapping it into memory, which makes many small loads faster.
    ///
    /// # Errors
    /// Errors of [`Model::open`].
    ///
    /// # Safety
    /// The file does not change while the model lives. After the file shrinks, an access may raise
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

    /// Opens bytes: a `Vec<u8>`, a `&'static [u8]`, or another owner of bytes. The model takes
    /// ownership and does not copy the bytes.
    ///
    /// # Errors
    /// Errors of [`Model::from_bytes`].
    pub fn from_bytes<B>(&self, bytes: B) -> Result<Model>
    where
        B: AsRef<[u8]> + Send + Sync + 'static,
    {
        lend_shared(bytes, |bytes: &[u8], deleter, user| {
            let (data, size) = (bytes.as_ptr().cast(), bytes.len());
            self.make(|context, format, limits, out, err| {
                // SAFETY: the bytes live until the deleter drops their owner.
                unsafe {
                    sys::sb_model_open_bytes(
                        context, format, data, size, limits, deleter, user, out, err,
                    )
                }
            })
        })
    }

    /// Opens the bytes of a reader, which the model owns. See [`ReadAt`].
    ///
    /// # Errors
    /// Errors of [`Model::open_reader`].
    ///
    /// # Panics
    /// When the reader or the progress callback panics.
    pub fn open_reader(&self, reader: impl ReadAt + Send + Sync + 'static) -> Result<Model> {
        let progress = self.progress.as_ref().map(Progress::to_c);
        let progress = progress.as_ref().map_or(ptr::null(), ptr::from_ref);
        lend_reader(reader, |source| {
            self.make(|context, format, limits, out, err| {
                // SAFETY: the reader lives until the source is closed, and `progress` lives through
                // the call.
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

    /// Makes an empty model. See [`Model::create`].
    ///
    /// # Errors
    /// Out of memory; a reached memory cap.
    pub fn create(&self, format: Format) -> Result<Model> {
        // SAFETY: the context is live.
        let raw = get(|out, err| unsafe {
            sys::sb_model_create(self.context.as_ptr(), format.code(), out, err)
        })?;
        Ok(Model::own(raw, &self.context))
    }
}
