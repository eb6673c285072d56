//! Raw bindings to [syncblob], Caffe's Blob and SyncedMemory as a C library.
//!
//! This crate declares the C interface of the headers. The headers document the effect, ownership
//! and errors of each function. The folder `c/include/syncblob` of this crate contains the headers:
//! for example [`sb_blob_update`] is in `blob.h`. The crate `syncblob` is the safe interface.
//!
//! # How the library is found
//!
//! By default the C sources are built and linked statically, which needs only a C compiler. The
//! features `openblas` and `protobuf-c` link OpenBLAS and protobuf-c, which pkg-config finds.
//! Without these features the library's own code gives the same results: sums differ only by
//! rounding, and files are identical. With the feature `system`, or with `SYNCBLOB_NO_VENDOR=1` in
//! the environment, the crate links the installed library of `pkg-config syncblob`; `sb_features`
//! returns that library's optional parts. The feature `testing` adds libsyncblob-testing (the
//! functions `sb_sim_*`), and `comm` adds libsyncblob-comm (the communicators), bundled or
//! installed.
//!
//! The build script of a crate that depends directly on this crate has these variables:
//! `DEP_SYNCBLOB_INCLUDE` (the folder of `syncblob/syncblob.h`), `DEP_SYNCBLOB_ROOT` (the prefix
//! that has `include` and `lib`), `DEP_SYNCBLOB_VERSION` and `DEP_SYNCBLOB_RUN_PATH` (the folder of
//! a serial OpenBLAS that a program should have in its run path, or an empty string).
//!
//! # Status codes
//!
//! Status codes are integers (`SB_OK`, `SB_ERR_*`), not a Rust enum, because a newer library may
//! return a number that these bindings do not define.
//!
//! ```
//! // SAFETY: the function takes any number and returns static text.
//! let name = unsafe { std::ffi::CStr::from_ptr(syncblob_sys::sb_status_name(-100)) };
//! assert_eq!(name.to_str(), Ok("SB_ERR_MALFORMED"));
//! ```
//!
//! [syncblob]: https://docs.rs/syncblob
// For the code that bindgen writes.
#![allow(non_camel_case_types, clippy::undocumented_unsafe_blocks)]

#[cfg(not(feature = "buildtime_bindgen"))]
include!("bindings.rs");

#[cfg(feature = "buildtime_bindgen")]
include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

#[cfg(feature = "testing")]
mod testing {
    #[cfg(not(feature = "buildtime_bindgen"))]
    include!("testing.rs");

    #[cfg(feature = "buildtime_bindgen")]
    include!(concat!(env!("OUT_DIR"), "/testing.rs"));
}

#[cfg(feature = "testing")]
pub use testing::*;

#[cfg(feature = "comm")]
mod comm {
    #[cfg(not(feature = "buildtime_bindgen"))]
    include!("comm.rs");

    #[cfg(feature = "buildtime_bindgen")]
    include!(concat!(env!("OUT_DIR"), "/comm.rs"));
}

#[cfg(feature = "comm")]
pub use comm::*;

#[cfg(feature = "mpi")]
extern "C" {
    /// Collective: makes a communicator from a duplicate of an MPI communicator; see the header
    /// `syncblob/mpi.h`.
    pub fn sb_mpi_comm_create(
        context: *mut sb_context,
        mpi_comm: mpi_sys::MPI_Comm,
        out: *mut *mut sb_comm,
        err: *mut sb_error,
    ) -> sb_status;
}
