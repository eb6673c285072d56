//! Calls functions of the C library that write to memory that Python arrays share.
//!
//! The crate `syncblob` refuses to write to memory that has another owner: that owner may hold a
//! slice of the memory. Here the other owners are tensors of Python arrays. Arrays access the
//! memory by pointer, and this crate makes no slices of exported memory. The blob's lock and the
//! lock of all sharers prevent two calls from writing one memory at the same time.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use syncblob::{BlobAny, Dlpack, Error, ErrorKind, LegacyDlpack, Model, Part, Result, Side};
use syncblob_sys as sys;

/// Makes a call of the C library. `call` passes its argument to C as `err`.
pub fn check(call: impl FnOnce(*mut sys::sb_error) -> sys::sb_status) -> Result<()> {
    let mut error = MaybeUninit::<sys::sb_error>::uninit();
    match call(error.as_mut_ptr()) {
        sys::SB_OK => Ok(()),
        // SAFETY: on failure the library has written the whole struct.
        _ => Err(Error::from_c(unsafe { error.assume_init_ref() })),
    }
}

pub fn get<T>(call: impl FnOnce(*mut T, *mut sys::sb_error) -> sys::sb_status) -> Result<T> {
    let mut out = MaybeUninit::uninit();
    check(|err| call(out.as_mut_ptr(), err))?;
    // SAFETY: on success the library has written its result.
    Ok(unsafe { out.assume_init() })
}

fn part_code(part: Part) -> sys::sb_part {
    match part {
        Part::Data => sys::SB_DATA,
        Part::Diff => sys::SB_DIFF,
    }
}

pub fn fill(blob: &mut BlobAny, filler: &sys::sb_filler, seed: u64) -> Result<()> {
    // SAFETY: the blob is live and locked, and the filler contains its struct's size.
    check(|err| unsafe { sys::sb_blob_fill(blob.as_ptr(), filler, seed, err) })
}

pub fn to_device(blob: &BlobAny) -> Result<()> {
    // SAFETY: the blob is live.
    get(|out, err| unsafe { sys::sb_blob_gpu(blob.as_ptr(), sys::SB_DATA, out, err) }).map(drop)
}

/// Copies data or diff into `room`. If the sizes differ, copies nothing and returns false.
pub fn copy_values(blob: &BlobAny, part: Part, room: &mut [MaybeUninit<u8>]) -> Result<bool> {
    if blob.count() * blob.dtype().size() != room.len() {
        return Ok(false);
    }
    // SAFETY: the blob is live.
    let values =
        get(|out, err| unsafe { sys::sb_blob_cpu(blob.as_ptr(), part_code(part), out, err) })?;
    // SAFETY: the memory has as many bytes as `room`, and the held lock excludes other writers.
    unsafe { values.cast::<u8>().copy_to_nonoverlapping(room.as_mut_ptr().cast(), room.len()) };
    Ok(true)
}

/// Checks that a model can store a copy of the blob, without allocating the copy.
pub fn check_added(blob: &BlobAny) -> Result<()> {
    // SAFETY: the blob is live.
    get(|out, err| unsafe { sys::sb_blob_proto_size(blob.as_ptr(), 0, out, err) })?;
    // SAFETY: the blob is live, and the pointer is not used.
    get(|out, err| unsafe { sys::sb_blob_cpu(blob.as_ptr(), sys::SB_DATA, out, err) }).map(drop)
}

/// Writes the model's bytes into `room`. Returns whether the bytes fill `room` exactly.
pub fn save(model: &Model, room: &mut [MaybeUninit<u8>]) -> Result<bool> {
    // SAFETY: the model is live, and the call writes at most `room.len()` bytes.
    let written = get(|out, err| unsafe {
        sys::sb_model_save(model.as_ptr(), room.as_mut_ptr().cast(), room.len(), out, err)
    });
    match written {
        Ok(written) => Ok(written == room.len()),
        Err(error) if error.kind() == ErrorKind::BufferTooSmall => Ok(false),
        Err(error) => Err(error),
    }
}

fn side_code(side: Side) -> sys::sb_side {
    match side {
        Side::Host => sys::SB_SIDE_CPU,
        Side::Device => sys::SB_SIDE_GPU,
    }
}

pub fn to_dlpack(blob: &mut BlobAny, part: Part, side: Side) -> Result<Dlpack> {
    let (part, side) = (part_code(part), side_code(side));
    // SAFETY: the blob is live and locked.
    let tensor = get(|out, err| unsafe {
        sys::sb_blob_to_mutable_dlpack(blob.as_ptr(), part, side, out, err)
    })?;
    // SAFETY: the library made the tensor, so any thread may call its deleter. The top of this file
    // explains why the elements may be shared.
    unsafe { Dlpack::from_raw(NonNull::new(tensor).expect("a tensor, or an error")) }
}

pub fn to_legacy_dlpack(blob: &mut BlobAny, part: Part, side: Side) -> Result<LegacyDlpack> {
    let (part, side) = (part_code(part), side_code(side));
    // SAFETY: the blob is live and locked.
    let tensor = get(|out, err| unsafe {
        sys::sb_blob_to_legacy_dlpack(blob.as_ptr(), part, side, out, err)
    })?;
    // SAFETY: as in `to_dlpack`.
    Ok(unsafe { LegacyDlpack::from_raw(NonNull::new(tensor).expect("a tensor, or an error")) })
}
