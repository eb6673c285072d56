use std::borrow::Cow;
use std::fmt;

use syncblob_sys as sys;

use super::{Layers, Model};
use crate::any::unknown;
use crate::ffi::{as_given, check, to_i64, to_usize, MAX_I64};
use crate::io::with_callbacks;
#[cfg(doc)]
use crate::ErrorKind;
use crate::{
    Blob, BlobAny, BlobBuilder, Context, Dtype, Element, Error, Part, Readable, Result, Shape,
};

/// The position of a blob in a model: `(layer, index)`, or an index among blobs without a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BlobAt {
    /// The layer; `None` for a blob that belongs to no layer.
    pub layer: Option<usize>,
    /// The index among the layer's blobs, or among the blobs that belong to no layer.
    pub index: usize,
}

impl BlobAt {
    pub(crate) fn from_c(layer: i64, index: i64) -> Self {
        Self { layer: usize::try_from(layer).ok(), index: to_usize(index) }
    }

    pub(super) fn layer_code(self) -> i64 {
        layer_code(self.layer)
    }

    pub(super) fn as_given(self, error: Error) -> Error {
        let error = as_given(error, "blob", &[self.index], MAX_I64);
        as_given(error, "layer", self.layer.as_slice(), MAX_I64)
    }
}

pub(super) fn layer_code(layer: Option<usize>) -> i64 {
    layer.map_or(sys::SB_NO_LAYER.into(), to_i64)
}

/// Converts `(layer, index)`.
impl From<(usize, usize)> for BlobAt {
    fn from((layer, index): (usize, usize)) -> Self {
        Self { layer: Some(layer), index }
    }
}

/// Converts an index among the blobs that belong to no layer.
impl From<usize> for BlobAt {
    fn from(index: usize) -> Self {
        Self { layer: None, index }
    }
}

/// A blob in a [`Model`], whose values are not loaded.
#[derive(Clone, Copy)]
pub struct StoredBlob<'m> {
    pub(super) model: &'m Model,
    pub(super) at: BlobAt,
    pub(super) info: BlobInfo,
}

impl StoredBlob<'_> {
    /// Returns the blob's position in the model.
    pub fn at(&self) -> BlobAt {
        self.at
    }

    /// Returns the name of the blob's layer. The name is empty for a blob that belongs to no layer.
    /// See [`Layer::name`](super::Layer::name).
    pub fn layer_name(&self) -> Cow<'_, str> {
        let layer = self.at.layer.map(|layer| Layers::get(self.model, layer));
        layer.map_or_else(Cow::default, |layer| layer.name())
    }

    /// Returns the description of the blob.
    pub fn info(&self) -> &BlobInfo {
        &self.info
    }

    /// Loads the blob in the model's context. The caller owns the loaded blob. The element type may
    /// differ from the stored type: `f32` rounds values, and values beyond its range become
    /// infinite. An integer type accepts only whole numbers in its range.
    ///
    /// # Errors
    /// - [`LengthMismatch`](ErrorKind::LengthMismatch) for a blob without values.
    /// - [`DataOverflow`](ErrorKind::DataOverflow) for a value that the integer type cannot hold,
    ///   such as a fraction.
    /// - [`DtypeMismatch`](ErrorKind::DtypeMismatch) if `T` is `half::f16` and the stored values
    ///   are not halves.
    /// - [`Unsupported`](ErrorKind::Unsupported) for an [announced](Model::announce_blob) blob.
    /// - [`DataLimit`](ErrorKind::DataLimit).
    /// - [`Io`](ErrorKind::Io) and [`Malformed`](ErrorKind::Malformed) if the file has changed.
    /// - [`Cancelled`](ErrorKind::Cancelled) if the progress callback cancels.
    /// - Out of memory.
    /// - A reached memory cap.
    #[doc(alias("take_blob", "CopyTrainedLayersFrom"))]
    pub fn load<T: Readable>(&self) -> Result<Blob<T>> {
        self.model.load_into(self.at, &self.model.context)
    }

    /// Reads a range of the blob's values, by linear index, without loading the blob.
    ///
    /// ```
    /// use syncblob::{Blob, Format, Model, Part, Payload};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// let layer = model.add_layer("ip1", "InnerProduct")?;
    /// model.add_blob(layer, &Blob::<f32>::from_fn([2, 3], |i| i as f32)?, Payload::Data)?;
    /// let model = Model::from_bytes(model.to_bytes()?)?;
    /// let mut row = [0.0; 3];
    /// model.blob((layer, 0))?.read_values(Part::Data, 3, &mut row)?;
    /// assert_eq!(row, [3.0, 4.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange) if the range ends after the last value;
    /// errors of [`load`](StoredBlob::load).
    pub fn read_values<T: Readable>(
        &self,
        part: Part,
        first: usize,
        values: &mut [T],
    ) -> Result<()> {
        let (layer, index) = (self.at.layer_code(), to_i64(self.at.index));
        let (first, count) = (to_i64(first), to_i64(values.len()));
        let (buffer, capacity) = (values.as_mut_ptr().cast(), size_of_val(values));
        with_callbacks(|| {
            // SAFETY: the model is live. The buffer has room for `count` values, and any bytes are
            // valid values.
            check(|err| unsafe {
                let (model, part, dtype) = (self.model.as_ptr(), part.code(), T::CODE);
                sys::sb_model_read_values(
                    model, layer, index, part, first, count, dtype, buffer, capacity, err,
                )
            })
        })
    }

    /// Loads the blob as a type that holds the stored values exactly: `f32` and `f64` unchanged,
    /// integers as `f64`, and halves as `f32`. With the feature `half`, a blob that stores only
    /// halves is loaded as `half::f16`.
    ///
    /// # Errors
    /// Errors of [`load`](StoredBlob::load).
    pub fn load_any(&self) -> Result<BlobAny> {
        match self.info.dtype() {
            #[cfg(feature = "half")]
            Dtype::F16 if self.info.diff_dtype() == Dtype::F16 => {
                self.load::<half::f16>().map(BlobAny::from)
            }
            dtype => self.load_as(&self.model.context, dtype.exact_float().unwrap_or(dtype)),
        }
    }

    /// Loads the blob in a context, with an element type that is chosen at run time.
    ///
    /// ```
    /// use syncblob::{BlobAny, Dtype, Format, Model, Part, Payload};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Blob)?;
    /// model.add_blob(None, &syncblob::Blob::<f32>::full([2], 7.0)?, Payload::Data)?;
    /// let stored = model.blob(0)?;
    /// let blob: BlobAny = stored.load_as(&model.context(), Dtype::I64)?;
    /// assert_eq!(blob.downcast_ref::<i64>().unwrap().data()?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for `bf16`, and for `f16` without the feature
    /// `half`; errors of [`load`](StoredBlob::load).
    pub fn load_as(&self, context: &Context, dtype: Dtype) -> Result<BlobAny> {
        let blob = BlobAny::new(context, dtype)?;
        self.model.load_fresh(self.at, blob.raw())?;
        Ok(blob)
    }
}

impl fmt::Debug for StoredBlob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredBlob").field("at", &self.at).field("info", &self.info).finish()
    }
}

/// The description of a [`StoredBlob`].
#[derive(Clone, Copy)]
pub struct BlobInfo {
    info: sys::sb_blob_info,
    shape: [usize; Shape::MAX_AXES],
    dtype: Dtype,
    diff_dtype: Dtype,
}

impl BlobInfo {
    pub(super) fn new(info: sys::sb_blob_info) -> Result<Self> {
        let known = |code| Dtype::from_code(code).ok_or_else(|| unknown(None, code));
        let (dtype, diff_dtype) = (known(info.dtype)?, known(info.diff_dtype)?);
        Ok(Self { info, shape: info.shape.map(to_usize), dtype, diff_dtype })
    }

    /// Returns the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..to_usize(self.info.num_axes.into()).min(self.shape.len())]
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        to_usize(self.info.count)
    }

    /// Returns the stored element type of the data, or of the diff if the blob has no data. In
    /// NVCaffe's files the type may be a half or an integer.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the stored element type of the diff, or [`dtype`](Self::dtype) if there is no diff.
    pub fn diff_dtype(&self) -> Dtype {
        self.diff_dtype
    }

    /// Returns the number of stored data values.
    pub fn data_count(&self) -> usize {
        to_usize(self.info.data_count)
    }

    /// Returns the number of stored diff values.
    pub fn diff_count(&self) -> usize {
        to_usize(self.info.diff_count)
    }

    /// Returns whether the shape is stored as num, channels, height and width.
    pub fn is_legacy(&self) -> bool {
        self.info.legacy != 0
    }

    /// Returns the file offset of the first value of data or diff. Returns `None` unless the stored
    /// values are contiguous and little-endian, so that a program can copy them.
    pub fn values_offset(&self, part: Part) -> Option<u64> {
        let offset = match part {
            Part::Data => self.info.data_offset,
            Part::Diff => self.info.diff_offset,
        };
        u64::try_from(offset).ok()
    }

    /// Returns the offset of the blob's message in the file, if the blob is from a file.
    pub fn offset(&self) -> Option<u64> {
        u64::try_from(self.info.offset).ok()
    }

    /// Returns the size in bytes of the blob's message in the file, or 0 if the blob is not from a
    /// file.
    pub fn size(&self) -> usize {
        self.info.size
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

/// Returns the `count` blobs of a layer or, if `layer` is `None`, the blobs that belong to no
/// layer.
pub(super) fn stored_blobs(
    model: &Model,
    layer: Option<usize>,
    count: usize,
) -> impl ExactSizeIterator<Item = Result<StoredBlob<'_>>> {
    (0..count).map(move |index| model.blob(BlobAt { layer, index }))
}

/// Iterators over all blobs.
impl Model {
    /// Returns all blobs, without loading their values: first the blobs of layers, then blobs
    /// without a layer.
    ///
    /// ```no_run
    /// use syncblob::Model;
    /// # fn main() -> syncblob::Result<()> {
    /// let model = Model::open("resnet.caffemodel")?;
    /// for blob in model.all_blobs() {
    ///     let blob = blob?;
    ///     println!("{} {} {:?}", blob.layer_name(), blob.at().index, blob.info().shape());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_blobs(&self) -> impl Iterator<Item = Result<StoredBlob<'_>>> {
        self.layers().flat_map(|layer| layer.blobs()).chain(self.blobs())
    }

    /// Returns all blobs in the order of [`all_blobs`](Model::all_blobs), each loaded when the
    /// iterator reaches it. The iterator owns the model.
    ///
    /// ```no_run
    /// use syncblob::{Model, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// for loaded in Model::open("resnet.caffemodel")?.into_blobs::<f32>() {
    ///     let loaded = loaded?;
    ///     println!("{}: {}", loaded.layer_name, loaded.blob.asum(Part::Data)?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_blobs<T: Readable>(self) -> impl Iterator<Item = Result<LoadedBlob<T>>> {
        let layers = self.layers().map(|layer| (Some(layer.index), layer.num_blobs()));
        let counts = layers.chain([(None, self.num_loose_blobs())]);
        let at = |(layer, count)| (0..count).map(move |index| BlobAt { layer, index });
        let places: Vec<_> = counts.flat_map(at).collect();
        places.into_iter().map(move |at| {
            let stored = self.blob(at)?;
            let layer_name = stored.layer_name().into_owned();
            Ok(LoadedBlob { at, layer_name, blob: stored.load()? })
        })
    }
}

/// An item of [`Model::into_blobs`].
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedBlob<T: Element> {
    /// The blob's position in the model.
    pub at: BlobAt,
    /// The name of the blob's layer, with U+FFFD in place of bytes that are not UTF-8. Empty for a
    /// blob that belongs to no layer.
    pub layer_name: String,
    /// The blob.
    pub blob: Blob<T>,
}

/// Loading into a context.
impl<T: Readable> BlobBuilder<'_, T> {
    /// Does the same as [`StoredBlob::load`] in the builder's context.
    ///
    /// # Errors
    /// Errors of [`StoredBlob::load`].
    pub fn load(self, stored: &StoredBlob<'_>) -> Result<Blob<T>> {
        stored.model.load_into(stored.at, self.context)
    }
}
