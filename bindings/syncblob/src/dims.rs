//! A blob's dimensions as `usize`.
//!
//! The library stores dimensions as 64-bit integers. A 64-bit host reads these integers in place;
//! on a 32-bit host the blob keeps a copy as `usize`. The library refuses dimensions that do not
//! fit `usize`.

/// Calls `call` with a pointer to the indices as `i64`. An index above `i64::MAX` becomes a
/// negative number, which the library refuses.
#[cfg(target_pointer_width = "64")]
#[inline]
pub(crate) fn with_indices<R>(indices: &[usize], call: impl FnOnce(*const i64) -> R) -> R {
    call(indices.as_ptr().cast())
}

/// Calls `call` with a pointer to a copy of the indices as `i64`.
#[cfg(target_pointer_width = "32")]
pub(crate) fn with_indices<R>(indices: &[usize], call: impl FnOnce(*const i64) -> R) -> R {
    let wide: Vec<_> = indices.iter().map(|&index| index as i64).collect();
    call(wide.as_ptr())
}

#[cfg(target_pointer_width = "64")]
#[derive(Default)]
pub(crate) struct Dims(());

#[cfg(target_pointer_width = "64")]
impl Dims {
    /// Returns the dimensions as `usize`.
    ///
    /// # Safety
    /// The dimensions are not negative, and live as long as the result.
    #[inline]
    pub(crate) unsafe fn sizes<'a>(&'a self, dims: &'a [i64]) -> &'a [usize] {
        // SAFETY: an `i64` that is not negative has the bytes of the equal `usize`.
        unsafe { std::slice::from_raw_parts(dims.as_ptr().cast(), dims.len()) }
    }
}

#[cfg(target_pointer_width = "32")]
#[derive(Default)]
pub(crate) struct Dims(std::sync::Mutex<Box<[usize]>>);

#[cfg(target_pointer_width = "32")]
impl Dims {
    /// Returns the dimensions as `usize`; copies the dimensions if they have changed.
    ///
    /// # Safety
    /// The dimensions are not negative, and live as long as the result. A call with different
    /// dimensions replaces the copy, so the caller must no longer use any earlier result.
    pub(crate) unsafe fn sizes<'a>(&'a self, dims: &'a [i64]) -> &'a [usize] {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !kept.iter().map(|&size| size as i64).eq(dims.iter().copied()) {
            *kept = dims.iter().map(|&dim| dim as usize).collect();
        }
        // SAFETY: a call with different dimensions replaces the box. The caller promises not to use
        // this result after such a call.
        unsafe { std::slice::from_raw_parts(kept.as_ptr(), kept.len()) }
    }
}
