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
    pub(super) model: &'m Model,
    pub(super) at: BlobAt,
    pub(super) info: BlobInfo,
}

impl StoredBlob<'_> {
    /// Where it is in the model.
    pub fn at(&self) -> BlobAt {
        self.at
    }

    /// The name of its layer, empty for a blob of no layer; see [`Layer::name`](super::Layer::name).
    pub fn layer_name(&self) -> Cow<'_, str> {
        let layer = self.at.layer.map(|layer| Layers::get(self.model, layer));
        layer.map_or_else(Cow::default, |layer| layer.name())
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
    /// [`DataOverflow`](ErrorKind::DataOverflow) for a value that the integer type cannot hold,
    /// such as a fraction, [`DtypeMismatch`](ErrorKind::DtypeMismatch) for values other than halves
    /// as `half::f16`, [`Unsupported`](ErrorKind::Unsupported) for an
    /// [announced](Model::announce_blob) blob; [`DataLimit`](ErrorKind::DataLimit);
    /// [`Io`](ErrorKind::Io) and [`Malformed`](ErrorKind::Malformed) if the file has changed;
    /// [`Cancelled`](ErrorKind::Cancelled) by a progress callback; out of memory, a cap that is
    /// reached.
    #[doc(alias("take_blob", "CopyTrainedLayersFrom"))]
    pub fn load<T: Readable>(&self) -> Result<Blob<T>> {
        self.model.load_into(self.at, &self.model.context)
    }

    /// Reads a range of its values, by linear index, without loading all.
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
    /// [`IndexOutOfRange`](ErrorKind::IndexOutOfRange) if there are fewer values; else as
    /// [`load`](StoredBlob::load).
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
            // SAFETY: the model is live; any bytes are values, of which there is room for `count`.
            check(|err| unsafe {
                let (model, part, dtype) = (self.model.as_ptr(), part.code(), T::CODE);
                sys::sb_model_read_values(
                    model, layer, index, part, first, count, dtype, buffer, capacity, err,
                )
            })
        })
    }

    /// Loads the blob with its stored element type; integers as `f64`, which is exact. Halves are
    /// `half::f16` with the feature `half`; without it, or if the diff has another type, they are
    /// `f32`, which is exact.
    ///
    /// # Errors
    /// As [`load`](StoredBlob::load).
    pub fn load_any(&self) -> Result<BlobAny> {
        match self.info.dtype() {
            #[cfg(feature = "half")]
            Dtype::F16 if self.info.diff_dtype() == Dtype::F16 => {
                self.load::<half::f16>().map(BlobAny::from)
            }
            dtype => self.load_as(&self.model.context, dtype.exact_float().unwrap_or(dtype)),
        }
    }

    /// Loads it in a context with an element type that is known at run time.
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
    /// `half`; else as [`load`](StoredBlob::load).
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

/// A description of a stored blob that is not loaded.
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

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..to_usize(self.info.num_axes.into()).min(self.shape.len())]
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        to_usize(self.info.count)
    }

    /// The element type that its data (without data, its diff) is stored in. What
    /// NVCaffe wrote may be half precision or integers.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The element type that its diff is stored in; without one, [`dtype`](Self::dtype).
    pub fn diff_dtype(&self) -> Dtype {
        self.diff_dtype
    }

    /// The number of data values present.
    pub fn data_count(&self) -> usize {
        to_usize(self.info.data_count)
    }

    /// The number of diff values present.
    pub fn diff_count(&self) -> usize {
        to_usize(self.info.diff_count)
    }

    /// Whether the shape came from num, channels, height and width.
    pub fn is_legacy(&self) -> bool {
        self.info.legacy != 0
    }

    /// Where the values of data or diff lie in the file, if they are there one after the other,
    /// little-endian, so that they may be copied as they are: the offset of the first.
    pub fn values_offset(&self, part: Part) -> Option<u64> {
        let offset = match part {
            Part::Data => self.info.data_offset,
            Part::Diff => self.info.diff_offset,
        };
        u64::try_from(offset).ok()
    }

    /// Where its message begins in the file, if it is from one.
    pub fn offset(&self) -> Option<u64> {
        u64::try_from(self.info.offset).ok()
    }

    /// The bytes of its message in the file, 0 if it is not from one.
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

/// Blobs of one place, of which there are `count`.
pub(super) fn stored_blobs(
    model: &Model,
    layer: Option<usize>,
    count: usize,
) -> impl ExactSizeIterator<Item = Result<StoredBlob<'_>>> {
    (0..count).map(move |index| model.blob(BlobAt { layer, index }))
}

/// All blobs.
impl Model {
    /// All blobs, layer by layer and then those of no layer, without loading one.
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

    /// All blobs in the same order, each loaded when the iterator comes to it; the model ends
    /// with the iterator.
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

/// The iterator of [`Model::into_blobs`].
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedBlob<T: Element> {
    /// Where it is in the model.
    pub at: BlobAt,
    /// The name of its layer, bytes that are not UTF-8 replaced; empty for a blob of no layer.
    pub layer_name: String,
    /// The blob.
    pub blob: Blob<T>,
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
