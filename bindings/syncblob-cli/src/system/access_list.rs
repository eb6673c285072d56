//! Copies a file's access list (POSIX ACL), which Linux stores in addition to the mode. A list
//! contains the numbers of users and groups with their rights, and is copied unchanged.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const NAME: &std::ffi::CStr = c"system.posix_acl_access";

/// The maximum size of a list, which is stored as an extended attribute.
const MAX_BYTES: usize = 1 << 16;

/// Returns the list of a file. Returns None if the file or its file system has no list.
pub fn of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut list = vec![0; MAX_BYTES];
    // SAFETY: both texts end in NUL, and `list` has memory for `list.len()` bytes.
    let size = unsafe {
        libc::getxattr(path.as_ptr(), NAME.as_ptr(), list.as_mut_ptr().cast(), list.len())
    };
    let Ok(size) = usize::try_from(size) else {
        return unless_there_is_none(io::Error::last_os_error()).map(|()| None);
    };
    list.truncate(size);
    Ok(Some(list))
}

pub fn set(file: &File, list: &[u8]) -> io::Result<()> {
    // SAFETY: the name ends in NUL, and `list` has `list.len()` bytes.
    let status = unsafe {
        libc::fsetxattr(file.as_raw_fd(), NAME.as_ptr(), list.as_ptr().cast(), list.len(), 0)
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Removes the file's list. Fails if the file still has a list afterwards.
pub fn remove(file: &File) -> io::Result<()> {
    let file = file.as_raw_fd();
    // SAFETY: the name ends in NUL.
    if unsafe { libc::fremovexattr(file, NAME.as_ptr()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // SAFETY: the name ends in NUL. With a size of 0, the call only returns the size.
    match unsafe { libc::fgetxattr(file, NAME.as_ptr(), ptr::null_mut(), 0) } {
        0.. => Err(error),
        _ => unless_there_is_none(io::Error::last_os_error()),
    }
}

fn unless_there_is_none(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        // A file system in user space may report a missing list as EINVAL.
        Some(libc::ENODATA | libc::ENOTSUP | libc::ENOSYS | libc::EINVAL) => Ok(()),
        _ => Err(error),
    }
}
