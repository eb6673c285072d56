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
    /// Live ordinary host memory, the library's own handles included.
    host_bytes,
    /// The most that `host_bytes` has been.
    host_peak,
    /// Live page-locked host memory.
    pinned_bytes,
    /// The most that `pinned_bytes` has been.
    pinned_peak,
    /// Live device memory.
    device_bytes,
    /// The most that `device_bytes` has been.
    device_peak,
    /// Callers' memory in use, either side.
    borrowed_bytes,
    /// Host memory kept for reuse; also in `host_bytes` or `pinned_bytes`.
    cached_bytes,
    /// Copies from the host to the device.
    uploads,
    /// Their bytes.
    upload_bytes,
    /// Copies from the device to the host.
    downloads,
    /// Their bytes.
    download_bytes,
    /// Copies within the device.
    device_copies,
    /// Their bytes.
    device_copy_bytes,
    /// Copies of whole buffers within the host.
    host_copies,
    /// Their bytes.
    host_copy_bytes,
    /// Retired storage that the device may still be using, or that its driver failed to free; also
    /// in the live figures above.
    quarantined_bytes,
    /// Of the whole process: storage in quarantine of contexts that have ended, and storage that no
    /// driver can free any more.
    leaked_bytes,
}
