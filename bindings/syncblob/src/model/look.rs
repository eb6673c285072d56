use std::borrow::Cow;
use std::path::PathBuf;

use syncblob_sys as sys;

use super::stored::{layer_code, stored_blobs};
use super::{text_bytes, BlobAt, BlobInfo, Format, Layer, Layers, Model, StoredBlob};
use crate::blob::reserve;
use crate::ffi::{as_given, check, fill, get, sized, to_i64, to_usize, MAX_I64};
use crate::io::with_callbacks;
use crate::{system, Blob, Context, Readable, Result};

/// Reading a model.
impl Model {
    /// Returns the format of the file.
    pub fn format(&self) -> Format {
        // SAFETY: the model is live.
        Format::from_code(unsafe { sys::sb_model_format(self.as_ptr()) })
    }

    /// Returns the net's name, which may be empty. Bytes that are not UTF-8 become U+FFFD;
    /// [`name_bytes`](Model::name_bytes) returns all bytes unchanged.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.name_bytes())
    }

    /// Returns the net's name as the file stores it.
    pub fn name_bytes(&self) -> &[u8] {
        // SAFETY: the model is live.
        let name = get(|out, err| unsafe { sys::sb_model_name(self.as_ptr(), out, err) });
        // SAFETY: the text lives until `set_name`, which needs `&mut self`.
        unsafe { text_bytes(name.expect("every model has a name, which may be empty")) }
    }

    /// Returns the number of layers, including layers without blobs.
    pub fn num_layers(&self) -> usize {
        // SAFETY: the model is live.
        to_usize(unsafe { sys::sb_model_num_layers(self.as_ptr()) })
    }

    /// Returns the layers in the file's order.
    pub fn layers(&self) -> Layers<'_> {
        Layers { model: self, left: 0..self.num_layers() }
    }

    /// Returns one layer.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange).
    pub fn layer(&self, index: usize) -> Result<Layer<'_>> {
        // SAFETY: the model is live; `out` contains its size.
        let info = fill(sized!(sb_layer_info), |out, err| unsafe {
            sys::sb_model_layer_info(self.as_ptr(), to_i64(index), out, err)
        })
        .map_err(|error| as_given(error, "layer", &[index], MAX_I64))?;
        Ok(Layer { model: self, index, info })
    }

    /// Returns the first layer with the given name.
    ///
    /// ```
    /// use syncblob::{Blob, ErrorKind, Format, Model, Payload};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// let layer = model.add_layer("ip1", "InnerProduct")?;
    /// model.add_blob(layer, &Blob::<f32>::full([2, 3], 0.5)?, Payload::Data)?;
    /// let weights = model.layer_by_name("ip1")?.load::<f32>(0)?;
    /// assert_eq!(weights.shape(), [2, 3]);
    /// assert_eq!(model.layer_by_name("ip2").unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound).
    pub fn layer_by_name(&self, name: impl AsRef<[u8]>) -> Result<Layer<'_>> {
        let name = name.as_ref();
        // SAFETY: `name` is valid for its length.
        let index = get(|out, err| unsafe {
            sys::sb_model_find_layer(self.as_ptr(), name.as_ptr().cast(), name.len(), out, err)
        })?;
        self.layer(to_usize(index))
    }

    /// Returns the blobs that belong to no layer: a solver state's history, or the blobs of a
    /// [`Format::Blob`] or [`Format::BlobVector`]. An item is an error if the file has become
    /// unreadable or has changed.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Result<StoredBlob<'_>>> {
        stored_blobs(self, None, self.num_loose_blobs())
    }

    /// Returns the blob at a position without loading its values.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange); [`Io`](crate::ErrorKind::Io) and
    /// [`Malformed`](crate::ErrorKind::Malformed) if the file has changed.
    pub fn blob(&self, at: impl Into<BlobAt>) -> Result<StoredBlob<'_>> {
        let at = at.into();
        let info = with_callbacks(|| {
            // SAFETY: the model is live; `out` contains its size.
            fill(sized!(sb_blob_info), |out, err| unsafe {
                sys::sb_model_blob_info(self.as_ptr(), at.layer_code(), to_i64(at.index), out, err)
            })
        })
        .map_err(|error| at.as_given(error))?;
        Ok(StoredBlob { model: self, at, info: BlobInfo::new(info)? })
    }

    /// Loads the blob at a position. Unlike [`blob`](Model::blob) and [`StoredBlob::load`], this
    /// method does not read a description of the blob first.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange); errors of [`StoredBlob::load`].
    pub fn load<T: Readable>(&self, at: impl Into<BlobAt>) -> Result<Blob<T>> {
        self.load_into(at.into(), &self.context)
    }

    pub(super) fn load_into<T: Readable>(&self, at: BlobAt, context: &Context) -> Result<Blob<T>> {
        let blob = Blob::in_context(context).empty()?;
        self.load_fresh(at, blob.raw())?;
        Ok(blob)
    }

    /// Loads into `blob`, which the caller has just made and has not shared.
    pub(super) fn load_fresh(&self, at: BlobAt, blob: *mut sys::sb_blob) -> Result<()> {
        let (layer, index) = (at.layer_code(), to_i64(at.index));
        with_callbacks(|| {
            // SAFETY: the model is live, and nothing else uses the blob.
            check(|err| unsafe { sys::sb_model_load_blob(self.as_ptr(), layer, index, blob, err) })
        })
        .map_err(|error| at.as_given(error))
    }

    /// Returns the model's message without layers and blobs. For a caffemodel this is a
    /// `NetParameter` with the net's name, inputs and state. See [`Layer::message`].
    ///
    /// # Errors
    /// Errors of [`Layer::message`]; [`Unsupported`](crate::ErrorKind::Unsupported) for blob files.
    pub fn message(&self) -> Result<Vec<u8>> {
        self.message_of(None)
    }

    pub(super) fn message_of(&self, layer: Option<usize>) -> Result<Vec<u8>> {
        let layer = layer_code(layer);
        let mut bytes = Vec::<u8>::new();
        loop {
            let mut size = 0;
            let written = with_callbacks(|| {
                let (buffer, capacity) = (bytes.as_mut_ptr().cast(), bytes.capacity());
                // SAFETY: `bytes` has room for `capacity` bytes.
                check(|err| unsafe {
                    let model = self.as_ptr();
                    sys::sb_model_layer_message(model, layer, buffer, capacity, &mut size, err)
                })
            });
            match written {
                // SAFETY: the library has written `size` bytes.
                Ok(()) => unsafe {
                    bytes.set_len(size);
                    return Ok(bytes);
                },
                Err(error) if error.kind() == crate::ErrorKind::BufferTooSmall => {
                    reserve(&mut bytes, size)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the number of blobs that belong to no layer.
    pub(super) fn num_loose_blobs(&self) -> usize {
        // SAFETY: the model is live.
        let blobs = get(|out, err| unsafe {
            sys::sb_model_num_blobs(self.as_ptr(), layer_code(None), out, err)
        });
        to_usize(blobs.expect("every model has a list of blobs without a layer"))
    }

    /// Returns the iteration at which a solver state was saved.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a format other than a solver state.
    pub fn iteration(&self) -> Result<i32> {
        Ok(self.solver_info()?.iteration)
    }

    /// Returns the fields of a solver state, except the history.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a format other than a solver state.
    pub fn solver_info(&self) -> Result<SolverInfo> {
        // SAFETY: the model is live; `out` contains its size.
        let info = fill(sized!(sb_solver_info), |out, err| unsafe {
            sys::sb_model_solver_info(self.as_ptr(), out, err)
        })?;
        // SAFETY: the text lives until a call replaces it, which needs `&mut self`.
        let learned_net = unsafe { text_bytes(info.learned_net) };
        Ok(SolverInfo {
            iteration: info.iter,
            current_step: info.current_step,
            learned_net: system::path_of(learned_net),
        })
    }
}

/// The fields of a solver state, except the history, which is stored in the model's blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SolverInfo {
    /// The iteration at which the state was saved.
    #[doc(alias = "iter")]
    pub iteration: i32,
    /// The current step of the learning-rate policy.
    pub current_step: i32,
    /// The file that holds the net; empty if the state names no file.
    pub learned_net: PathBuf,
}

impl SolverInfo {
    /// Makes a `SolverInfo` of this iteration, with step 0 and an empty `learned_net`.
    pub fn new(iteration: i32) -> Self {
        Self { iteration, ..Self::default() }
    }

    /// Sets the step of the learning-rate policy.
    #[must_use]
    pub fn current_step(self, current_step: i32) -> Self {
        Self { current_step, ..self }
    }

    /// Sets the file that holds the net.
    #[must_use]
    pub fn learned_net(self, learned_net: impl Into<PathBuf>) -> Self {
        Self { learned_net: learned_net.into(), ..self }
    }
}
