//! Caffe's `Blob` and `SyncedMemory` for Rust: n-dimensional arrays whose
//! elements live in host memory, on a device, or both, and move only when
//! someone needs them; and Caffe's model files, read and written.
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
//! The same with a device: make the blob in a [`Context`] that has one. The
//! simulated device `"sim:0"` is always there, so that code for host and device
//! can be tested without a GPU.
//!
//! ```
//! use syncblob::{Blob, Context, Head};
//!
//! # fn main() -> syncblob::Result<()> {
//! let context = Context::builder().device("sim:0").build()?;
//! let blob = Blob::<f32>::from_slice_in(&context, [4], &[1.0, 2.0, 3.0, 4.0])?;
//! let on_device = blob.gpu_data_ptr()?; // copied to the device, once
//! assert!(!on_device.is_null());
//! assert_eq!(blob.data_head()?, Head::Synced);
//! assert_eq!(context.stats()?.uploads, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Sharing
//!
//! [`Blob::share_data`] lets several blobs use one memory, as Caffe does.
//! Reading a shared memory is always fine. Writing follows the rule of
//! [`Arc::get_mut`](std::sync::Arc::get_mut): every method that writes elements
//! takes `&mut self` and needs the memory to be this blob's alone, else it
//! returns an error of kind [`ErrorKind::Shared`] and changes nothing.
//!
//! # Safety
//!
//! Why the safe interface is sound, in terms of what the C library promises:
//!
//! * *Slices stay valid.* [`Blob::data`] and its kin borrow the blob. A pointer
//!   into a memory stays allocated until a set, an evict, a reallocating
//!   reshape or shrink, a detach of read-only storage, or the last release; in
//!   this crate each of these needs `&mut Blob` or the blob's end, both of which
//!   the borrow forbids. A blob that shares the memory may do them to itself,
//!   but then it only gives up its own share.
//! * *Slices do not alias writers.* `data_mut` needs `&mut Blob` and a memory
//!   with one owner. While its slice lives, nobody can add an owner, since
//!   sharing borrows the very blob that is mutably borrowed. All other writers
//!   have the same two needs. Const calls of the C library never change bytes
//!   that are current: they only allocate, or fill the side that is stale.
//! * *Slices are initialised.* First touch is zero-filled by the library, and
//!   this crate writes every element where it asks for unfilled memory.
//! * *`Send` and `Sync`.* The library keeps no state per thread; contexts,
//!   memories and blobs may be used from any thread. Calls on a const blob or
//!   model are safe beside each other, and `&self` methods make no others.
//!   Reference counts are atomic, and a memory that is found unique is ordered
//!   after all that its former sharers did.
//! * *Element types.* [`Element`] is sealed; each is a plain number for which
//!   any bytes are a value, and the blob's C dtype is checked when one is made
//!   and never changes.
//!
//! What would go wrong does not compile: a slice that a reshape would leave
//! stale, and sharing a memory while it is written.
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
//! # use syncblob::Blob;
//! let mut a = Blob::<f32>::zeros([2]).unwrap();
//! let mut b = Blob::<f32>::zeros([2]).unwrap();
//! let written = a.data_mut().unwrap();
//! b.share_data(&a).unwrap();
//! written[0] = 1.0;
//! ```
//!
//! Device pointers are handed out as raw pointers; to use one is the caller's
//! `unsafe` code.
#![deny(missing_docs)]

mod any;
mod blob;
mod context;
mod element;
mod error;
mod ffi;
mod model;
mod shape;

pub use any::BlobAny;
pub use blob::{Blob, Head, Part, Payload, Reallocated};
pub use context::{Context, ContextBuilder, Limits, Stats};
pub use element::{Dtype, Element, Float};
pub use error::{Error, ErrorKind, Result};
pub use model::{BlobAt, BlobInfo, Format, Generation, Layer, Model, OpenOptions, StoredBlob};
pub use shape::Shape;

#[cfg(feature = "half")]
pub use half;

/// The version of the C library, as `major.minor.patch`.
pub fn version() -> &'static str {
    // SAFETY: takes nothing; the text is static.
    unsafe { ffi::static_text(syncblob_sys::sb_version_string()) }
}
