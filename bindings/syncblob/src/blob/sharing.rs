use syncblob_sys as sys;

use super::{Blob, Part};
use crate::any::both;
use crate::ffi::check;
use crate::{Element, Error, ErrorKind, MemoryHandle, Result};

both! {
    /// Sharing of memories. See "Sharing" in the crate's documentation.
    impl Element {
        /// Makes this blob use the memory of `other`'s data as its data or, for `Part::Diff`, the
        /// memory of `other`'s diff as its diff. The memory lives as long as a blob uses it.
        ///
        /// ```
        /// use syncblob::{Blob, ErrorKind, Part};
        /// # fn main() -> syncblob::Result<()> {
        /// let a = Blob::<f32>::full([4], 1.0)?;
        /// let mut b = Blob::<f32>::zeros([2, 2])?;
        /// b.share(Part::Data, &a)?;
        /// assert_eq!(b.data()?.as_ptr(), a.data()?.as_ptr());
        /// assert_eq!(b.data_mut().unwrap_err().kind(), ErrorKind::Shared);
        /// drop(a);
        /// b.data_mut()?[0] = 2.0; // the only owner again
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) when the counts differ,
        /// [`WrongDevice`](ErrorKind::WrongDevice) when the blobs have different contexts.
        #[doc(alias("ShareData", "ShareDiff"))]
        pub fn share(&mut self, part: Part, other: &Self) -> Result<()> {
            // SAFETY: both blobs are live.
            check(|err| unsafe {
                sys::sb_blob_share(self.as_ptr(), part.code(), other.as_ptr(), err)
            })
        }

        /// Uses an existing memory, possibly another blob's, as this blob's data or diff. Bytes
        /// beyond the blob's elements are spare capacity. Blobs of other shapes and element types
        /// may share the memory.
        ///
        /// ```
        /// use syncblob::{Blob, MemoryHandle, Part};
        /// # fn main() -> syncblob::Result<()> {
        /// let scratch = MemoryHandle::new(4096)?;
        /// let mut columns = Blob::<f32>::zeros([3, 100])?;
        /// let mut buffer = Blob::<f64>::zeros([512])?;
        /// columns.set_memory(Part::Data, scratch.clone())?;
        /// buffer.set_memory(Part::Data, scratch)?;
        /// assert_eq!(columns.capacity(Part::Data), 1024);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`InvalidArgument`](ErrorKind::InvalidArgument) for a memory that is too small, or that
        /// uses the caller's bytes and is not aligned for `T`;
        /// [`WrongDevice`](ErrorKind::WrongDevice) for a memory of another context.
        #[doc(alias = "sb_blob_set_mem")]
        pub fn set_memory(&mut self, part: Part, memory: MemoryHandle) -> Result<()> {
            // SAFETY: blob and memory are live. The blob becomes an additional owner. The library
            // checks the memory's size and alignment.
            check(|err| unsafe {
                sys::sb_blob_set_mem(self.as_ptr(), part.code(), memory.as_ptr(), err)
            })
        }

        /// Releases this blob's share of a memory, for example of the diff after training. Other
        /// owners keep the memory. A later access gets a new memory of zeros.
        ///
        /// ```
        /// use syncblob::{Blob, Part};
        /// # fn main() -> syncblob::Result<()> {
        /// let mut blob = Blob::<f32>::full([4], 1.0)?;
        /// blob.diff_mut()?.fill(2.0);
        /// blob.release(Part::Diff);
        /// assert_eq!((blob.capacity(Part::Diff), blob.diff()?), (0, &[0.0; 4][..]));
        /// # Ok(())
        /// # }
        /// ```
        pub fn release(&mut self, part: Part) {
            // SAFETY: the blob is live. The blob has no live slice, because it is mutably borrowed.
            unsafe { sys::sb_blob_drop(self.raw(), part.code()) }
        }

        /// Returns whether this blob is the only owner of a memory and so may write it. A part
        /// whose memory was never allocated has one owner.
        ///
        /// # Errors
        /// Errors of [`memory`](Blob::memory).
        pub fn is_unique(&self, part: Part) -> Result<bool> {
            Ok(self.memory(part)?.is_unique())
        }
    }
}

/// Becoming the only owner, and writing shared memory.
impl<T: Element> Blob<T> {
    /// Makes this blob the only owner of a memory. If the memory is shared, the blob gets a new
    /// memory with a copy of the elements. The copy is on the side (host or device) that has the
    /// newest bytes. Spare capacity is not copied.
    ///
    /// ```
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let a = Blob::<f32>::full([4], 1.0)?;
    /// let mut b = Blob::<f32>::zeros([4])?;
    /// b.share(Part::Data, &a)?;
    /// b.make_unique(Part::Data)?;
    /// b.data_mut()?[0] = 2.0;
    /// assert_eq!((a.at(Part::Data, [0])?, b.at(Part::Data, [0])?), (1.0, 2.0));
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
        let mut copy = Self::in_context(&self.context()).empty()?;
        copy.take_written(self, part)?;
        match part {
            Part::Data => self.share(Part::Data, &copy),
            Part::Diff => self.share(Part::Diff, &copy),
        }
    }

    /// Allows writes to this blob although its memories have other owners, such as arrays of
    /// another language.
    ///
    /// # Safety
    /// While a method writes the blob, no slice of its memories is alive. Other reads and writes of
    /// the memories do not run concurrently.
    pub unsafe fn allow_shared_writes(&mut self) {
        self.writes_shared = true;
    }

    /// Returns an error if the memory is shared. Every method that writes elements calls this
    /// method first.
    #[inline]
    pub(crate) fn need_unique(&mut self, part: Part) -> Result<()> {
        if *self.may_share.get_mut() {
            self.ask_unique(part)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn ask_unique(&self, part: Part) -> Result<()> {
        match self.writes_shared || self.is_unique(part)? {
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
