//! libsyncblob-net: the functions and structs of `include/syncblob/net.h`. cbindgen generates this
//! header from the crate. The README describes how CMake links the library.
// Names, contracts and marks such as [borrowed] follow the conventions of the C headers.
#![allow(non_camel_case_types, clippy::missing_safety_doc, rustdoc::broken_intra_doc_links)]

mod failure;
mod names;
mod net;
mod onnx;
mod pointers;
mod sink;
mod types;

pub use net::*;
pub use onnx::*;
pub use types::*;
