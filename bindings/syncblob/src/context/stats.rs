use syncblob_sys as sys;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Statistics of a [`Context`](crate::Context).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            pub(super) fn from_c(raw: &sys::sb_stats) -> Self {
                Self { $($name: raw.$name,)* }
            }
        }
    };
}

stats! {
    /// Bytes of live host memory that is not page-locked, including the library's handles.
    host_bytes,
    /// The peak of `host_bytes`.
    host_peak,
    /// Bytes of live page-locked host memory.
    pinned_bytes,
    /// The peak of `pinned_bytes`.
    pinned_peak,
    /// Bytes of live device memory.
    device_bytes,
    /// The peak of `device_bytes`.
    device_peak,
    /// Bytes of callers' memory that this context's memories use, on host and device.
    borrowed_bytes,
    /// Bytes of host memory kept for reuse. These bytes are also counted in `host_bytes` or
    /// `pinned_bytes`.
    cached_bytes,
    /// Copies from the host to the device.
    uploads,
    /// The bytes that were copied from the host to the device.
    upload_bytes,
    /// Copies from the device to the host.
    downloads,
    /// The bytes that were copied from the device to the host.
    download_bytes,
    /// Copies within the device.
    device_copies,
    /// The bytes that were copied within the device.
    device_copy_bytes,
    /// Copies of whole buffers from host memory to host memory.
    host_copies,
    /// The bytes that were copied as whole buffers from host memory to host memory.
    host_copy_bytes,
    /// Bytes of retired storage that the device may still be using, or that the driver failed to
    /// free. Such bytes are also counted as live host, page-locked or device memory.
    quarantined_bytes,
    /// Quarantined bytes of contexts that have ended, and bytes that no driver can free any more.
    /// Counts the bytes of the whole process, not only of this context.
    leaked_bytes,
}
