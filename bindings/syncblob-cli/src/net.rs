//! Lists the layers of a net, and the blobs between them with their known shapes.

mod print;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use syncblob::Model;
use syncblob_net::{Layer, Net, NetOptions, Shape};

use crate::convert::onnx::failure;
use crate::source::Result;

pub use self::print::{write, write_ends};

/// A net in phase TEST, without its weights.
pub struct Listing {
    net: Net,
    shapes: HashMap<String, Shape>,
    /// One text for each layer whose tops have unknown shapes: the layer and the reason.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy)]
pub struct Blob<'a> {
    pub name: &'a str,
    pub shape: Option<&'a Shape>,
}

impl fmt::Display for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            None => f.write_str("?"),
            Some(dims) if dims.is_empty() => f.write_str("scalar"),
            Some(dims) => {
                f.write_str(&dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x"))
            }
        }
    }
}

impl Listing {
    pub fn read(path: &Path) -> Result<Self> {
        let options = options();
        let text = options.limits.read_prototxt(path)?;
        Net::from_prototxt(&text, &options).map(Self::new).map_err(failure)
    }

    /// Returns None if the model's layers have no connections or do not form a net.
    pub fn of_model(model: &Arc<Model>) -> Option<Self> {
        let mut options = options();
        // With these limits, the net needs little memory compared with the layers of a large model.
        let limits = &mut options.limits;
        (limits.size, limits.fields, limits.layers) = (1 << 20, 50_000, 10_000);
        if model.num_layers() > limits.layers {
            return None;
        }
        let net = Net::from_model(model.clone(), &options).ok()?;
        let is_net = net.layers().iter().any(|layer| !layer.bottoms().is_empty());
        is_net.then(|| Self::new(net))
    }

    fn new(net: Net) -> Self {
        let shapes = net.shapes();
        let problems = shapes.problems.iter().map(ToString::to_string).collect();
        Self { shapes: shapes.known.into_iter().collect(), problems, net }
    }

    pub fn name(&self) -> &str {
        self.net.name()
    }

    pub fn layers(&self) -> &[Layer] {
        self.net.layers()
    }

    pub fn inputs(&self) -> impl Iterator<Item = Blob<'_>> {
        let known = self.net.inputs().iter().map(|input| &input.0);
        known.chain(self.net.open_inputs()).map(|name| self.blob(name))
    }

    pub fn outputs(&self) -> impl Iterator<Item = Blob<'_>> {
        self.net.outputs().iter().map(|name| self.blob(name))
    }

    pub fn blob<'a>(&'a self, name: &'a str) -> Blob<'a> {
        Blob { name, shape: self.shapes.get(name) }
    }
}

fn options() -> NetOptions {
    let mut options = NetOptions::default();
    options.open_inputs = true;
    options
}

// The JSON form has the fields of schema/info-v1.schema.json, in the same order.

/// The line of JSON that `info --json` prints for a prototxt.
#[derive(serde::Serialize)]
pub struct Line<'a> {
    schema: u32,
    file: &'a str,
    format: &'a str,
    name: &'a str,
    net: &'a Listing,
}

impl<'a> Line<'a> {
    pub fn new(file: &'a str, net: &'a Listing) -> Self {
        Self { schema: 1, file, format: "prototxt", name: net.name(), net }
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Net", 3)?;
        fields.serialize_field("inputs", &self.inputs().collect::<Vec<_>>())?;
        fields.serialize_field("outputs", &self.outputs().collect::<Vec<_>>())?;
        fields.serialize_field("layers", &Layers(self))?;
        fields.end()
    }
}

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Blob", 2)?;
        fields.serialize_field("name", self.name)?;
        fields.serialize_field("shape", &self.shape)?;
        fields.end()
    }
}

struct Layers<'a>(&'a Listing);

impl Serialize for Layers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.layers().iter().map(|layer| OneLayer(self.0, layer)))
    }
}

struct OneLayer<'a>(&'a Listing, &'a Layer);

impl Serialize for OneLayer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(net, layer) = self;
        let tops: Vec<_> = layer.tops().iter().map(|name| net.blob(name)).collect();
        let mut fields = serializer.serialize_struct("Layer", 4)?;
        fields.serialize_field("name", layer.name())?;
        fields.serialize_field("type", layer.layer_type())?;
        fields.serialize_field("bottoms", layer.bottoms())?;
        fields.serialize_field("tops", &tops)?;
        fields.end()
    }
}
