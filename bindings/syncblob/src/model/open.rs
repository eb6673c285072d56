use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;

use syncblob_sys as sys;

use super::{Format, Model};
use crate::ffi::{get, with_path};
use crate::io::{lend_reader, Progress};
use crate::owner::lend_shared;
use crate::{Context, Limits, ReadAt, Result};

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

    /// The format of the bytes, instead of detecting it. Bytes that are recognised as another
    /// format are refused.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Limits for this model, instead of the context's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The progress callback of [`open_reader`](OpenOptions::open_reader) and of the model's later
    /// calls: see [`Model::set_progress`]. Opening skips the values: there `done` may increase by
    /// more than a MiB between reports.
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
    /// The file does not change while the model lives. If it shrinks, an access raises SIGBUS.
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

    /// Opens the bytes of a reader, which the model owns; see [`ReadAt`].
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
