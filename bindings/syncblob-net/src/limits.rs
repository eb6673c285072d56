/// How much of a stranger's text or bytes is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a prototxt, and of a model's messages without their blobs.
    pub size: usize,
    /// Messages inside each other.
    pub depth: usize,
    /// Layers of a net.
    pub layers: usize,
}

/// 16 MiB, 32 messages inside each other, 100,000 layers.
impl Default for Limits {
    fn default() -> Self {
        Self { size: 16 << 20, depth: 32, layers: 100_000 }
    }
}
