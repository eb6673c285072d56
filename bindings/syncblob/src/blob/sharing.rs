use syncblob_sys as sys;

use super::{Blob, Part};
use crate::ffi::check;
use crate::{Element, Error, ErrorKind, Result};

/// Sharing; see the crate's section on it.
impl<T: Element> Blob<T> {
    /// Uses the data memory of `other` from now on. It lives as long as either.
    ///
    /// ```
    /// use syncblob::{Blob, ErrorKind};
    /// # fn main() -> syncblob::Result<()> {
    /// let a = Blob::<f32>::full([4], 1.0)?;
    /// let mut b = Blob::<f32>::zeros([2, 2])?;
    /// b.share_data(&a)?;
    /// assert_eq!(b.data()?.as_ptr(), a.data()?.as_ptr());
    /// assert_eq!(b.data_mut().unwrap_err().kind(), ErrorKind::Shared);
    /// drop(a);
    /// b.data_mut()?[0] = 2.0; // alone again
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the counts differ,
    /// [`WrongDevice`](ErrorKind::WrongDevice) for a blob of another context.
    #[doc(alias = "ShareData")]
    pub fn share_data(&mut self, other: &Self) -> Result<()> {
        // SAFETY: both blobs are live.
        check(|err| unsafe { sys::sb_blob_share_data(self.as_ptr(), other.as_ptr(), err) })
    }

    /// Uses the diff memory of `other` from now on; see
    /// [`share_data`](Blob::share_data).
    ///
    /// # Errors
    /// As there.
    #[doc(alias = "ShareDiff")]
    pub fn share_diff(&mut self, other: &Self) -> Result<()> {
        // SAFETY: both blobs are live.
        check(|err| unsafe { sys::sb_blob_share_diff(self.as_ptr(), other.as_ptr(), err) })
    }

    /// Whether a memory is this blob's alone, so that it may be written. Where
    /// it was never needed yet, it is.
    ///
    /// # Errors
    /// As [`memory`](Blob::memory).
    pub fn is_unique(&self, part: Part) -> Result<bool> {
        Ok(self.memory(part)?.is_unique())
    }

    /// Makes a memory this blob's alone: a shared one is copied, where its head
    /// is, and let go of.
    ///
    /// ```
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let a = Blob::<f32>::full([4], 1.0)?;
    /// let mut b = Blob::<f32>::zeros([4])?;
    /// b.share_data(&a)?;
    /// b.make_unique(Part::Data)?;
    /// b.data_mut()?[0] = 2.0;
    /// assert_eq!((a.at([0])?, b.at([0])?), (1.0, 2.0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Out of memory, a cap that is reached, a device that fails.
    #[doc(alias = "make_mut")]
    pub fn make_unique(&mut self, part: Part) -> Result<()> {
        if self.is_unique(part)? {
            return Ok(());
        }
        let mut copy = Self::new_in(&self.context())?;
        copy.take_written(self, part)?;
        match part {
            Part::Data => self.share_data(&copy),
            Part::Diff => self.share_diff(&copy),
        }
    }

    /// What every writer asks first.
    #[inline]
    pub(crate) fn need_unique(&mut self, part: Part) -> Result<()> {
        match self.is_unique(part)? {
            true => Ok(()),
            false => Err(self.shared(part)),
        }
    }

    #[cold]
    fn shared(&self, part: Part) -> Error {
        let message = format!("{part} of a blob of shape {self} is shared and cannot be written");
        Error::new(ErrorKind::Shared, message)
    }
}
