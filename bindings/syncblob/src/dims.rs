//! A blob's dimensions as sizes.
//!
//! The library has them as 64 bits. A host of 64 bits reads them in place; on one of 32 bits the blob
//! keeps a copy. The library refuses dimensions that do not fit.

/// Calls with a pointer to the indices as the library takes them. One beyond 63 bits becomes negative,
/// and is as far out of range.
#[cfg(target_pointer_width = "64")]
#[inline]
pub(crate) fn with_indices<R>(indices: &[usize], call: impl FnOnce(*const i64) -> R) -> R {
    call(indices.as_ptr().cast())
}

/// Calls with a pointer to the indices as the library takes them.
#[cfg(target_pointer_width = "32")]
pub(crate) fn with_indices<R>(indices: &[usize], call: impl FnOnce(*const i64) -> R) -> R {
    let wide: Vec<_> = indices.iter().map(|&index| index as i64).collect();
    call(wide.as_ptr())
}

#[cfg(target_pointer_width = "64")]
#[derive(Default)]
pub(crate) struct Dims;

#[cfg(target_pointer_width = "64")]
impl Dims {
    /// The dimensions as sizes.
    ///
    /// # Safety
    /// They are not negative, and stay as long as the result.
    #[inline]
    pub(crate) unsafe fn sizes<'a>(&'a self, dims: &'a [i64]) -> &'a [usize] {
        // SAFETY: usize has the layout of an i64 that is not negative.
        unsafe { std::slice::from_raw_parts(dims.as_ptr().cast(), dims.len()) }
    }
}

#[cfg(target_pointer_width = "32")]
#[derive(Default)]
pub(crate) struct Dims(std::sync::Mutex<Box<[usize]>>);

#[cfg(target_pointer_width = "32")]
impl Dims {
    /// The dimensions as sizes, copied when they are no longer those of the last call.
    ///
    /// # Safety
    /// They are not negative, and stay as long as the result; no result of a call with other
    /// dimensions is alive.
    pub(crate) unsafe fn sizes<'a>(&'a self, dims: &'a [i64]) -> &'a [usize] {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !kept.iter().map(|&size| size as i64).eq(dims.iter().copied()) {
            *kept = dims.iter().map(|&dim| dim as usize).collect();
        }
        // SAFETY: the box is replaced only when the dimensions have changed; then this result is
        // not alive, as the caller promises.
        unsafe { std::slice::from_raw_parts(kept.as_ptr(), kept.len()) }
    }
}
