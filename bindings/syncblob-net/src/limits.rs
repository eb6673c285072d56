use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::message::Place;
use crate::schema::MessageInfo;
use crate::{Error, ErrorKind, Result};

/// Limits for reading an untrusted prototxt or model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size in bytes of a prototxt, and of a model's messages without their blobs.
    pub size: usize,
    /// The maximum depth of nested messages.
    pub depth: usize,
    /// The maximum number of layers of a net.
    pub layers: usize,
    /// The maximum total number of values in all fields. A value of two bytes of text may need some
    /// 100 bytes of memory. With the default limits, the worst text of 16 MiB needs about 15 times
    /// its size in memory, and the worst binary message about 20 times its size.
    pub fields: usize,
}

impl Limits {
    /// Reads a prototxt file. Reads at most one byte more than [`size`](Limits::size), so that the
    /// parser refuses a larger file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or read.
    pub fn read_prototxt(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let most = (self.size as u64).saturating_add(1);
        let mut text = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// The defaults: 16 MiB, 32 nested messages, 100,000 layers, 2,000,000 fields.
impl Default for Limits {
    fn default() -> Self {
        Self { size: 16 << 20, depth: 32, layers: 100_000, fields: 2_000_000 }
    }
}

/// Counts bytes, layers and fields of one text, or of one model's messages; checks the [`Limits`].
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

    /// Counts bytes before they are read. Refuses bytes above the limit.
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

    /// Counts a value of a field.
    pub fn field(&mut self, place: Place) -> Result<()> {
        self.fields += 1;
        within(self.fields, self.limits.fields, "fields", place)
    }

    /// Counts a message that is nested in `depth` messages.
    pub fn message(&mut self, info: &MessageInfo, depth: usize, place: Place) -> Result<()> {
        if matches!(info.name, "LayerParameter" | "V1LayerParameter") {
            self.layers += 1;
            within(self.layers, self.limits.layers, "layers", place)?;
        }
        self.depth(depth, place)
    }

    /// Checks the depth of a message, before the message is read.
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
