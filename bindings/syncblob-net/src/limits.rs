use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::message::Place;
use crate::schema::MessageInfo;
use crate::{Error, ErrorKind, Result};

/// Limits of reads from an untrusted prototxt or model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a prototxt, and of a model's messages without their blobs.
    pub size: usize,
    /// Messages inside each other.
    pub depth: usize,
    /// Layers of a net.
    pub layers: usize,
    /// Values of all fields. Each takes some hundred bytes of memory, and two of a text. With the
    /// default limits the worst text takes some 15 times the 16 MiB, the worst message some 20 times.
    pub fields: usize,
}

impl Limits {
    /// The bytes of a prototxt's file: no more are read than [`size`](Limits::size) and one, so that
    /// a larger file is refused when it is parsed.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_prototxt(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let most = (self.size as u64).saturating_add(1);
        let mut text = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// 16 MiB, 32 messages inside each other, 100,000 layers, 2,000,000 fields.
impl Default for Limits {
    fn default() -> Self {
        Self { size: 16 << 20, depth: 32, layers: 100_000, fields: 2_000_000 }
    }
}

/// The part of [`Limits`] that reading one text, or the messages of one model, has used.
#[derive(Debug)]
pub(crate) struct Used<'a> {
    limits: &'a Limits,
    size: usize,
    layers: usize,
    fields: usize,
}

impl<'a> Used<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, size: 0, layers: 0, fields: 0 }
    }

    /// Counts bytes that are about to be read. Refuses them above the limit.
    pub fn bytes(&mut self, size: usize) -> Result<()> {
        self.size += size;
        if self.size > self.limits.size {
            let (size, limit) = (self.size, self.limits.size);
            let text = format_args!("{size} bytes, more than the limit of {limit}");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        Ok(())
    }

    pub fn most_depth(&self) -> usize {
        self.limits.depth
    }

    /// One more value of a field.
    pub fn field(&mut self, place: Place) -> Result<()> {
        self.fields += 1;
        within(self.fields, self.limits.fields, "fields", place)
    }

    /// A message begins, `depth` messages inside the outermost.
    pub fn message(&mut self, info: &MessageInfo, depth: usize, place: Place) -> Result<()> {
        if matches!(info.name, "LayerParameter" | "V1LayerParameter") {
            self.layers += 1;
            within(self.layers, self.limits.layers, "layers", place)?;
        }
        self.depth(depth, place)
    }

    /// A bracket opens, `depth` brackets inside the text.
    pub fn depth(&self, depth: usize, place: Place) -> Result<()> {
        within(depth, self.limits.depth, "messages inside each other", place)
    }
}

fn within(count: usize, limit: usize, what: &str, place: Place) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Limit, format_args!("{place}: more than {limit} {what}")))
}
