//! A net: layers joined by named blobs.

use crate::message::Message;

/// The shape of a blob.
pub type Shape = Vec<i64>;

/// A layer of a [`Net`](crate::Net).
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub(crate) name: String,
    pub(crate) layer_type: String,
    pub(crate) bottoms: Vec<String>,
    pub(crate) tops: Vec<String>,
    /// Caffe's `LayerParameter`, in its current form.
    pub(crate) message: Message,
}

impl Layer {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type, such as `"Convolution"`.
    pub fn layer_type(&self) -> &str {
        &self.layer_type
    }

    /// The blobs that it reads.
    pub fn bottoms(&self) -> &[String] {
        &self.bottoms
    }

    /// The blobs that it writes; one of its bottoms, if it works in place.
    pub fn tops(&self) -> &[String] {
        &self.tops
    }

    /// Its parameters: Caffe's `LayerParameter`.
    pub fn message(&self) -> &Message {
        &self.message
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "layer '{}' ({})", self.name.escape_default(), self.layer_type.escape_default())
    }
}

// Draft of what the net's own files bring.
pub struct Net {
    pub(crate) name: String,
    pub(crate) inputs: Vec<(String, Shape)>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) outputs: Vec<String>,
    pub(crate) model: Option<std::sync::Arc<syncblob::Model>>,
    pub(crate) blobs: Vec<Vec<syncblob::BlobAt>>,
}

impl Net {
    pub(crate) fn infer(
        &self,
        _inputs: &[Shape],
    ) -> crate::Result<Vec<crate::shapes::LayerShapes>> {
        todo!()
    }

    pub(crate) fn weights(&self, layer: usize) -> Option<crate::onnx::Weights<'_>> {
        let model = self.model.as_deref()?;
        Some(crate::onnx::Weights { model, blobs: &self.blobs[layer] })
    }
}
