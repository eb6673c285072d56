//! Texts that the library owns and C code borrows.

use std::collections::HashMap;

use syncblob_net::{BlobShapes, Net, Shape};
use syncblob_sys::sb_text;

/// Texts that share a buffer. A NUL follows each text.
pub struct Texts {
    texts: Box<[sb_text]>,
    /// The buffer that `texts` points into.
    _bytes: Box<[u8]>,
}

impl Texts {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            let begin = bytes.len();
            bytes.extend_from_slice(text.as_bytes());
            ends.push((begin, text.len()));
            bytes.push(0);
        }
        let bytes = bytes.into_boxed_slice();
        let text =
            |(begin, size): (usize, usize)| sb_text { bytes: bytes[begin..].as_ptr().cast(), size };
        Self { texts: ends.into_iter().map(text).collect(), _bytes: bytes }
    }

    pub fn all(&self) -> &[sb_text] {
        &self.texts
    }
}

/// Returns a list as a pointer and a count, for two members of a C struct.
pub fn list(texts: &[sb_text]) -> (*const sb_text, i64) {
    (texts.as_ptr(), texts.len() as i64)
}

/// The texts of a net.
pub struct NetTexts {
    /// The net's name, inputs, outputs and warnings, in this order.
    pub own: Texts,
    /// The name, type, bottoms and tops of each layer, in this order.
    pub layers: Vec<Texts>,
}

impl NetTexts {
    pub fn new(net: &Net) -> Self {
        let inputs = net.inputs().iter().map(|input| input.0.as_str());
        let rest = net.outputs().iter().chain(net.warnings()).map(String::as_str);
        let layers = net.layers().iter().map(|layer| {
            let blobs = layer.bottoms().iter().chain(layer.tops()).map(String::as_str);
            Texts::new([layer.name(), layer.layer_type()].into_iter().chain(blobs))
        });
        Self {
            own: Texts::new([net.name()].into_iter().chain(inputs).chain(rest)),
            layers: layers.collect(),
        }
    }
}

/// The shapes of a net's blobs.
pub struct Shapes {
    known: HashMap<String, Shape>,
    /// The reason why no other blob of the net has a known shape.
    reason: String,
}

impl Shapes {
    pub fn new(net: &Net) -> Self {
        let BlobShapes { known, problems, .. } = net.shapes();
        let reason = problems.first().map_or_else(String::new, ToString::to_string);
        Self { known: known.into_iter().collect(), reason }
    }

    /// Returns the blob's shape, or the reason why the shape is not known.
    pub fn get(&self, name: &str) -> Result<&[i64], &str> {
        self.known.get(name).map(Vec::as_slice).ok_or(&self.reason)
    }
}
