use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use syncblob_sys as sys;

use super::stored::stored_blobs;
use super::{text_bytes, Generation, Model, StoredBlob};
use crate::ffi::to_usize;
use crate::{Blob, Readable, Result};

/// The layers of a [`Model`], in the file's order; see [`Model::layers`].
#[derive(Clone, Debug)]
pub struct Layers<'m> {
    pub(super) model: &'m Model,
    pub(super) left: Range<usize>,
}

impl<'m> Layers<'m> {
    /// Returns a layer; `index` must be less than the number of layers.
    pub(super) fn get(model: &'m Model, index: usize) -> Layer<'m> {
        model.layer(index).expect("the index is below the number of layers")
    }
}

impl<'m> Iterator for Layers<'m> {
    type Item = Layer<'m>;

    fn next(&mut self) -> Option<Layer<'m>> {
        self.left.next().map(|index| Self::get(self.model, index))
    }

    fn nth(&mut self, n: usize) -> Option<Layer<'m>> {
        self.left.nth(n).map(|index| Self::get(self.model, index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Layers<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|index| Self::get(self.model, index))
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
    pub(super) model: &'m Model,
    pub(super) index: usize,
    pub(super) info: sys::sb_layer_info,
}

// SAFETY: a layer is a reference to a model, which is `Sync`, and to texts that do not change while
// the model is borrowed.
unsafe impl Send for Layer<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Layer<'_> {}

impl<'m> Layer<'m> {
    /// Returns the layer's index in the model.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the layer's name, with U+FFFD in place of bytes that are not UTF-8;
    /// [`name_bytes`](Layer::name_bytes) returns all bytes unchanged.
    pub fn name(&self) -> Cow<'m, str> {
        String::from_utf8_lossy(self.name_bytes())
    }

    /// Returns the layer's name as the file stores it.
    pub fn name_bytes(&self) -> &'m [u8] {
        // SAFETY: the text lives as long as the model stays unchanged.
        unsafe { text_bytes(self.info.name) }
    }

    /// Returns the layer's type, such as `"Convolution"`; for a V1 layer, the type is the name of
    /// an enum value, such as `"CONVOLUTION"`. Bytes that are not UTF-8 become U+FFFD.
    pub fn layer_type(&self) -> Cow<'m, str> {
        String::from_utf8_lossy(self.layer_type_bytes())
    }

    /// Returns the layer's type as the file stores it.
    pub fn layer_type_bytes(&self) -> &'m [u8] {
        // SAFETY: the text lives as long as the model stays unchanged.
        unsafe { text_bytes(self.info.type_) }
    }

    /// Returns the generation of Caffe's format in which the layer is written.
    pub fn generation(&self) -> Generation {
        match self.info.generation {
            sys::SB_LAYER_V0 => Generation::V0,
            sys::SB_LAYER_V1 => Generation::V1,
            sys::SB_LAYER_CURRENT => Generation::Current,
            other => Generation::Other(other),
        }
    }

    /// Returns how many blobs the layer has.
    pub fn num_blobs(&self) -> usize {
        to_usize(self.info.num_blobs)
    }

    /// Returns the layer's blobs; see [`Model::blobs`].
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Result<StoredBlob<'m>>> {
        stored_blobs(self.model, Some(self.index), self.num_blobs())
    }

    /// Returns the layer's message without its blobs, for programs that need a net's topology:
    /// Caffe's `LayerParameter`, or `V1LayerParameter` for an older
    /// [`generation`](Layer::generation). The call reads little more of the file than this message.
    ///
    /// ```
    /// use syncblob::{Format, Model};
    /// # fn main() -> syncblob::Result<()> {
    /// let mut model = Model::create(Format::Caffemodel)?;
    /// model.add_layer("ip1", "InnerProduct")?;
    /// assert_eq!(model.layer(0)?.message()?, b"\x0a\x03ip1\x12\x0cInnerProduct");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io), [`Malformed`](crate::ErrorKind::Malformed) and
    /// [`DataLimit`](crate::ErrorKind::DataLimit) if the file has changed; out of memory.
    pub fn message(&self) -> Result<Vec<u8>> {
        self.model.message_of(Some(self.index))
    }

    /// Loads one of the layer's blobs; see [`StoredBlob::load`].
    ///
    /// # Errors
    /// Errors of [`Model::load`].
    pub fn load<T: Readable>(&self, index: usize) -> Result<Blob<T>> {
        self.model.load((self.index, index))
    }

    /// Returns one of the layer's blobs without loading its values.
    ///
    /// # Errors
    /// Errors of [`Model::blob`].
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
