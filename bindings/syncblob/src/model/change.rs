use syncblob_sys as sys;

use super::stored::layer_code;
use super::{BlobAt, Model, SolverInfo};
use crate::ffi::{check, get, to_i64, to_usize};
use crate::{Blob, BlobAny, Float, Payload, Result, Shape};

mod sealed {
    pub trait Sealed {
        fn handle(&self) -> *mut syncblob_sys::sb_blob;
    }
}

/// A blob that a model can store: a [`Blob`] of floats, or a [`BlobAny`], such as the result of
/// [`load_any`](super::StoredBlob::load_any).
pub trait AnyBlob: sealed::Sealed {}

impl<T: Float> sealed::Sealed for Blob<T> {
    fn handle(&self) -> *mut sys::sb_blob {
        self.raw()
    }
}

impl<T: Float> AnyBlob for Blob<T> {}

impl sealed::Sealed for BlobAny {
    fn handle(&self) -> *mut sys::sb_blob {
        self.raw()
    }
}

impl AnyBlob for BlobAny {}

/// Changing a model.
impl Model {
    /// Replaces a stored blob with a copy of `blob`, whose shape and type may differ.
    ///
    /// # Errors
    /// [`IndexOutOfRange`](crate::ErrorKind::IndexOutOfRange);
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a [`BlobAny`] whose elements are neither
    /// `f32` nor `f64`; [`OverLimit`](crate::ErrorKind::OverLimit); out of memory; errors of
    /// [`Blob::data`].
    pub fn set_blob(
        &mut self,
        at: impl Into<BlobAt>,
        blob: &impl AnyBlob,
        payload: Payload,
    ) -> Result<()> {
        let at = at.into();
        let (layer, index) = (at.layer_code(), to_i64(at.index));
        // SAFETY: model and blob are live.
        check(|err| unsafe {
            let flags = payload.flags();
            sys::sb_model_set_blob(self.as_ptr(), layer, index, blob.handle(), flags, err)
        })
        .map_err(|error| at.as_given(error))
    }

    /// Appends a blob to a layer's blobs or, for `None`, to the blobs that belong to no layer.
    ///
    /// # Errors
    /// Errors of [`set_blob`](Model::set_blob); [`Unsupported`](crate::ErrorKind::Unsupported) for
    /// a second blob in a blob file.
    pub fn add_blob(
        &mut self,
        layer: impl Into<Option<usize>>,
        blob: &impl AnyBlob,
        payload: Payload,
    ) -> Result<()> {
        let layer = layer_code(layer.into());
        // SAFETY: model and blob are live.
        check(|err| unsafe {
            sys::sb_model_add_blob(self.as_ptr(), layer, blob.handle(), payload.flags(), err)
        })
    }

    /// Adds a blob like [`add_blob`](Model::add_blob), but without values; the closure of a later
    /// [`save_from`](Model::save_from) provides the values.
    ///
    /// # Errors
    /// Errors of [`add_blob`](Model::add_blob); errors of [`Blob::zeros`] for the shape.
    pub fn announce_blob<T: Float>(
        &mut self,
        layer: impl Into<Option<usize>>,
        shape: impl Into<Shape>,
    ) -> Result<()> {
        let like = Blob::<T>::in_context(&self.context).zeros(shape)?;
        let layer = layer_code(layer.into());
        // SAFETY: model and blob are live.
        check(|err| unsafe { sys::sb_model_announce_blob(self.as_ptr(), layer, like.raw(), err) })
    }

    /// Adds a layer without blobs after the last layer; returns its index.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a format other than a caffemodel;
    /// [`OverLimit`](crate::ErrorKind::OverLimit) for a text above 2 GiB − 1; out of memory.
    pub fn add_layer(
        &mut self,
        name: impl AsRef<[u8]>,
        layer_type: impl AsRef<[u8]>,
    ) -> Result<usize> {
        let (name, layer_type) = (name.as_ref(), layer_type.as_ref());
        // SAFETY: both texts are valid for their lengths, and are copied.
        get(|out, err| unsafe {
            let (text, size) = (name.as_ptr().cast(), name.len());
            let (type_text, type_size) = (layer_type.as_ptr().cast(), layer_type.len());
            let model = self.as_ptr();
            sys::sb_model_add_layer(model, text, size, type_text, type_size, out, err)
        })
        .map(to_usize)
    }

    /// Removes the last layer and its blobs, if the program has added that layer. Use this method
    /// to undo `add_layer` when adding a blob fails.
    ///
    /// ```
    /// use syncblob::{ErrorKind, Format, Model};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// model.add_layer("ip1", "InnerProduct")?;
    /// model.pop_layer()?;
    /// assert!(model.layer_by_name("ip1").is_err());
    /// assert_eq!(model.pop_layer().unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the program has not added the last layer.
    pub fn pop_layer(&mut self) -> Result<()> {
        // SAFETY: the model is live, and no text of the layer is borrowed.
        check(|err| unsafe { sys::sb_model_pop_layer(self.as_ptr(), err) })
    }

    /// Sets all fields of a solver state except the history, which is stored in blobs.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a format other than a solver state; out
    /// of memory.
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

    /// Sets the net's name.
    ///
    /// # Errors
    /// Errors of [`add_layer`](Model::add_layer).
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        // SAFETY: the text is valid for its length, and is copied.
        check(|err| unsafe {
            sys::sb_model_set_name(self.as_ptr(), name.as_ptr().cast(), name.len(), err)
        })
    }
}
