use syncblob_sys as sys;

use crate::{Error, ErrorKind, Result, Shape};

/// Bounds on one read of untrusted bytes. 0 means the default, which each method documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Limits {
    max_memory: usize,
    max_layers: usize,
    max_blobs: usize,
    max_name_bytes: usize,
    max_axes: usize,
}

impl Limits {
    /// Returns the default limits.
    ///
    /// ```
    /// use syncblob::Limits;
    /// let limits = Limits::new().max_memory(1).max_layers(2).max_blobs(3);
    /// let limits = limits.max_name_bytes(4).max_axes(5);
    /// assert_eq!([limits.memory(), limits.layers(), limits.blobs()], [1, 2, 3]);
    /// assert_eq!([limits.name_bytes(), limits.axes()], [4, 5]);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of bytes that one read may keep allocated. The limit includes the
    /// index, the payload, the library's objects, and the rounding of page-locked memory (up to an
    /// eighth). If the read must copy a blob to the host, the limit includes the blob's whole
    /// memory. Default: only the context's cap applies.
    #[must_use]
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = bytes;
        self
    }

    /// Sets the maximum number of layers in a model. Default: 100,000.
    #[must_use]
    pub fn max_layers(mut self, layers: usize) -> Self {
        self.max_layers = layers;
        self
    }

    /// Sets the maximum number of blobs in a model. Default: 1,000,000.
    #[must_use]
    pub fn max_blobs(mut self, blobs: usize) -> Self {
        self.max_blobs = blobs;
        self
    }

    /// Sets the maximum number of bytes in one name or type. Default: 65,536.
    #[must_use]
    pub fn max_name_bytes(mut self, bytes: usize) -> Self {
        self.max_name_bytes = bytes;
        self
    }

    /// Sets the maximum number of axes of a blob, up to 32. Default: 32.
    #[must_use]
    pub fn max_axes(mut self, axes: usize) -> Self {
        self.max_axes = axes;
        self
    }

    /// Returns the bound that is set by [`max_memory`](Limits::max_memory).
    pub fn memory(&self) -> usize {
        self.max_memory
    }

    /// Returns the bound that is set by [`max_layers`](Limits::max_layers).
    pub fn layers(&self) -> usize {
        self.max_layers
    }

    /// Returns the bound that is set by [`max_blobs`](Limits::max_blobs).
    pub fn blobs(&self) -> usize {
        self.max_blobs
    }

    /// Returns the bound that is set by [`max_name_bytes`](Limits::max_name_bytes).
    pub fn name_bytes(&self) -> usize {
        self.max_name_bytes
    }

    /// Returns the bound that is set by [`max_axes`](Limits::max_axes).
    pub fn axes(&self) -> usize {
        self.max_axes
    }

    pub(crate) fn to_c(self) -> Result<sys::sb_limits> {
        // Only a large `max_axes` is an error. Any other bound that C's type cannot hold becomes
        // the type's largest value, which no file reaches.
        let max_axes = i64::try_from(self.max_axes).map_err(|_| {
            let message = format!("max_axes is {}, more than {}", self.max_axes, Shape::MAX_AXES);
            Error::new(ErrorKind::InvalidArgument, message)
        })?;
        Ok(sys::sb_limits {
            struct_size: size_of::<sys::sb_limits>(),
            max_memory: self.max_memory,
            max_layers: crate::ffi::to_i64(self.max_layers),
            max_blobs: crate::ffi::to_i64(self.max_blobs),
            max_name_bytes: self.max_name_bytes,
            max_axes,
        })
    }
}
