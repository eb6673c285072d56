//! Caffe's `Blob` and `SyncedMemory` for Rust. A blob is an n-dimensional array whose elements live
//! in host memory, on a device, or in both. The elements are copied only when you need them on the
//! other side. The crate also reads and writes Caffe's model files.
//!
//! ```
//! use syncblob::Blob;
//!
//! # fn main() -> syncblob::Result<()> {
//! let mut weights = Blob::<f32>::from_slice([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! weights.diff_mut()?.fill(0.5);
//! weights.update()?; // data -= diff
//! assert_eq!(weights.data()?, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]);
//! assert_eq!(weights.to_string(), "2 3 (6)");
//! # Ok(())
//! # }
//! ```
//!
//! To use a device, make the blob in a [`Context`] with a device. The simulated device `"sim:0"` is
//! always available, so you can test code for host and device without a GPU.
//!
//! ```
//! use syncblob::{Blob, Context, Head, Part};
//!
//! # fn main() -> syncblob::Result<()> {
//! let context = Context::builder().device("sim:0").build()?;
//! let mut blob = Blob::<f32>::in_context(&context).from_slice([4], &[1.0, 2.0, 3.0, 4.0])?;
//! let on_device = blob.gpu_ptr(Part::Data)?; // copied to the device, once
//! assert!(!on_device.is_null());
//! assert_eq!(blob.head(Part::Data)?, Head::Synced);
//! blob.scale(Part::Data, 2.0)?; // on the device
//! assert_eq!(blob.data()?[3], 8.0); // copied back
//! let stats = context.stats()?;
//! assert_eq!((stats.uploads, stats.downloads), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Sharing
//!
//! [`Blob::share`] lets several blobs use one memory, as Caffe does. [`Blob::handle`] returns a
//! handle that shares a blob's memory. You may always read a shared memory. Writing follows the
//! rule of [`Arc::get_mut`](std::sync::Arc::get_mut). Every method that writes elements takes
//! `&mut self` and needs a memory with one owner. If the memory has more owners, the method returns
//! an error of kind [`ErrorKind::Shared`] and changes nothing. To write a shared memory, call
//! [`Blob::make_unique`], which gives the blob a private copy, or the `unsafe` method
//! [`Blob::shared_mut`].
//!
//! # Lending your memory
//!
//! A blob can use your memory without a copy. [`Blob::from_vec`] uses a vector, and
//! [`Blob::from_shared`] an `Arc<[T]>`. [`Blob::from_ne_bytes`] uses any value that owns bytes,
//! such as a mapped file. The library never writes memory that other code may read.
//!
//! # Bytes from and to anywhere
//!
//! [`Model::open_reader`] and [`Blob::read_from`] take a [`ReadAt`]. A file, bytes, or a `Mutex`
//! around any reader that can seek is a `ReadAt`. You can also define a type, such as an object in
//! a store. [`Model::write_to`] and [`Blob::write_to`] take any writer. [`Model::set_progress`]
//! sets a callback for a progress bar or a cancel button.
//!
//! # Tensors of other programs
//!
//! A blob can share memory with NumPy, PyTorch and every other program that supports DLPack:
//! [`Blob::to_dlpack`], [`Blob::into_dlpack`], [`Blob::from_dlpack`].
//!
//! # Safety
//!
//! This section argues why the safe interface is sound. The argument relies on the promises of the
//! C library.
//!
//! *Owners.* The blobs and [handles](MemoryHandle) that share a memory own it, and each share
//! counts as one owner. A `&`[`SyncedMemory`] is not an owner: it borrows an owner.
//!
//! *Slices stay valid.* A slice borrows its owner. The memory behind the slice stays allocated
//! until its last owner releases the memory, or until a call replaces the storage. A set, an evict,
//! and a write to read-only storage replace the storage.
//!
//! - The last release happens when the last owner ends. The slice's owner cannot end, because it is
//!   borrowed.
//! - The calls that replace storage need `&mut` of an owner, and a memory with one owner. None of
//!   these calls can happen while the slice lives: the only owner is borrowed, or the memory has
//!   more owners.
//! - A blob that reshapes, shrinks, shares or adopts another memory releases only its share of the
//!   old memory.
//! - A copy from the device also moves the bytes out of read-only storage. Such a copy is made only
//!   if the device has newer bytes than the host. The call that wrote those bytes needed `&mut`, so
//!   every earlier slice has ended.
//!
//! *Slices do not alias writers.* A mutable slice needs `&mut` of an owner and an owner count of
//! one. While the slice lives, no owner can be added. Every share is made from an owner, and the
//! only owner is mutably borrowed. All other writers also need `&mut` and a count of one. These two
//! conditions permit a write, as in `Arc`. A blob does not check the count if it never shared a
//! memory and never exposed its C handle. The reference that [`Blob::memory`] returns cannot add an
//! owner. Const calls of the library never change current bytes. These calls only allocate, or fill
//! the stale side. The count is reliable across threads: the library decrements it with release
//! ordering and reads it with acquire ordering. All accesses by former owners therefore happen
//! before a thread reads a count of 1.
//!
//! *Slices are initialised.* The library fills a memory with zeros at the first use of that memory.
//! This crate omits the fill only in functions that write every byte before they return, and in
//! [`SyncedMemory::overwrite_gpu_ptr`]. The caller of that method promises to write every byte of
//! the device memory.
//!
//! *The caller's memory.* The caller passes a value that owns the memory. This owner is boxed, and
//! is `Send + Sync + 'static`. The owner is borrowed once, until it is dropped, so Rust's borrow
//! rules keep its memory in place and unchanged. The library does not accept a `&mut [T]`. The
//! borrow of the slice would end when the blob is dropped *or forgotten*. The device may still
//! write the memory of a forgotten blob. The library writes the caller's memory only if the owner
//! is a vector. A vector that a blob owns has no other user. A [`SyncedMemory`] has no element
//! type, so memory that you pass to it directly must be aligned for every type. A blob that takes
//! another blob's memory checks the alignment of that memory ([`Blob::set_memory`]).
//!
//! *Tensors of DLPack.* A [`Dlpack`] made of a blob is an owner of the blob's memory. While the
//! tensor lives, this crate does not write the memory. The tensor is read-only, or its creation
//! consumed the blob. A tensor that consumed the blob is the memory's only owner. For a [`Dlpack`]
//! made of a pointer the caller promises that no other code writes the memory. Unless the tensor is
//! read-only, the caller also promises that no other code reads the memory. The library never
//! writes the memory of a read-only tensor.
//!
//! *Queued copies.* Until the device has reported the end of a queued copy, the library does not
//! free, replace, write or expose the copy's memory. The library does not drop the memory's owner
//! either. A failed wait or the loss of the device does not count as a report. Without a report the
//! memory stays in quarantine ([`Stats::quarantined_bytes`]), possibly forever. The parts of the
//! context that the memory needs also stay ([`Stats::leaked_bytes`]). The library also protects a
//! copy whose [`Pending`] a program forgets. A [`Stream`] borrows its owner and is used only with
//! memories of its context. The context forgets the stream before the stream is destroyed. For a
//! stream that is made from a raw handle the caller promises that every context forgets the stream
//! before the stream is destroyed.
//!
//! *`Send` and `Sync`.* The library keeps no state per thread. Contexts, memories, blobs and models
//! may be used and released on any thread. Calls on a const object may run concurrently, and
//! `&self` methods make only such calls.
//!
//! *Callbacks.* Your allocators, owners, readers, writers, progress callbacks and `parallel_for`
//! functions run under `catch_unwind`: no panic crosses a C frame. Even if a `parallel_for`
//! function is wrong, each task runs exactly once, and no task runs after the operation has ended.
//! A reader gets an initialised buffer and may leave it unchanged. The library does not trust the
//! bytes. The library calls readers, writers and progress callbacks on the thread of the call. The
//! library then holds no lock, so these callbacks may use this crate. The call borrows every object
//! that a callback could invalidate.
//!
//! *Element types.* [`Element`] is sealed. Each element type is a plain number: any bytes are a
//! valid value of the type. The C dtype of a blob always matches its `T`.
//!
//! Code that breaks these rules does not compile. The first example keeps a slice that a reshape
//! would leave stale. The second example shares a memory while the memory is written.
//!
//! ```compile_fail,E0502
//! # use syncblob::Blob;
//! let mut blob = Blob::<f32>::zeros([2]).unwrap();
//! let stale = blob.data().unwrap();
//! blob.reshape([1000]).unwrap();
//! println!("{stale:?}");
//! ```
//!
//! ```compile_fail,E0502
//! # use syncblob::{Blob, Part};
//! let mut a = Blob::<f32>::zeros([2]).unwrap();
//! let mut b = Blob::<f32>::zeros([2]).unwrap();
//! let written = a.data_mut().unwrap();
//! b.share(Part::Data, &a).unwrap();
//! written[0] = 1.0;
//! ```
//!
//! Device pointers are raw pointers. Only `unsafe` code can use raw pointers.
//!
//! # Features
//!
//! - `openblas`: host arithmetic uses OpenBLAS instead of plain loops.
//! - `protobuf-c`: the library protobuf-c writes files. The files' bytes are the same without this
//!   feature.
//! - `half`: blobs of `half::f16` and `half::bf16`.
//! - `comm`: communicators, sums over many devices and many machines (module `comm`).
//! - `mpi`: `comm::Comm::from_mpi` makes a communicator from a communicator of the crate `mpi`.
//! - `ndarray`: conversions of blobs from and to arrays: `Blob::view` and similar methods.
//! - `rayon`: `ContextBuilder::rayon` spreads large operations over threads.
//! - `safetensors`: `Blob::tensor_view`, and `Safetensors`, whose tensors are used in place as
//!   blobs.
//! - `serde`: serializes statistics, limits, names and blobs. A blob is written as its shape and
//!   data. Elements of `half` are written as their bits.
//! - `system`: uses the installed C library instead of the bundled sources.
//! - `testing`: control of the simulated device and of its failures (module `sim`).
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod any;
mod backend;
mod blob;
mod callbacks;
#[cfg(feature = "comm")]
pub mod comm;
mod context;
mod dims;
mod dlpack;
mod dtypes;
mod element;
mod error;
mod ffi;
mod filler;
mod io;
mod memory;
mod model;
mod owner;
mod shape;
#[cfg(feature = "testing")]
pub mod sim;
mod stream;
mod system;
#[cfg(feature = "safetensors")]
mod tensors;

pub use any::BlobAny;
pub use backend::load_backend;
pub use blob::{Blob, BlobBuilder, Part, Payload, Reallocated};
pub use callbacks::ParallelFor;
pub use context::{Context, ContextBuilder, Limits, Stats};
pub use dlpack::{Dlpack, LegacyDlpack, Tensor};
pub use element::{Dtype, Element, Float, Readable, Reduced};
pub use error::{Error, ErrorKind, Result};
pub use filler::{Filler, Variance};
pub use io::ReadAt;
pub use memory::{Head, MemoryHandle, Pending, Side, Storage, SyncedMemory};
pub use model::{
    AnyBlob, BlobAt, BlobInfo, Format, Generation, Layer, Layers, LoadedBlob, Model, OpenOptions,
    SolverInfo, StoredBlob,
};
pub use owner::Access;
pub use shape::Shape;
pub use stream::Stream;
#[cfg(feature = "safetensors")]
pub use tensors::Safetensors;

/// The raw bindings of the whole C library, for functions that this crate does not wrap.
pub use syncblob_sys as sys;

#[cfg(feature = "half")]
pub use half;
#[cfg(feature = "ndarray")]
pub use ndarray;
#[cfg(feature = "safetensors")]
pub use safetensors;

/// Returns the version of the C library, as `major.minor.patch`.
pub fn version() -> &'static str {
    // SAFETY: the function takes no argument and returns static text.
    unsafe { ffi::static_text(syncblob_sys::sb_version_string()) }
}

/// Optional parts of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildFeatures {
    /// Host arithmetic with OpenBLAS.
    pub openblas: bool,
    /// The simulated device.
    pub sim: bool,
    /// CUDA devices.
    pub cuda: bool,
}

/// Returns which optional parts the program's C library has.
pub fn build_features() -> BuildFeatures {
    // SAFETY: the function takes no argument.
    let bits = unsafe { syncblob_sys::sb_features() };
    BuildFeatures {
        openblas: bits & syncblob_sys::SB_FEATURE_OPENBLAS != 0,
        sim: bits & syncblob_sys::SB_FEATURE_SIM != 0,
        cuda: bits & syncblob_sys::SB_FEATURE_CUDA != 0,
    }
}
