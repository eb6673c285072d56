//! Functions that differ between systems.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Reads bytes at an offset. Several threads may read one file at the same time.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
    // WASI has one thread, so no other read moves the position between `seek` and `read`.
    #[cfg(target_os = "wasi")]
    return io::Seek::seek(&mut &*file, io::SeekFrom::Start(offset))
        .and_then(|_| io::Read::read(&mut &*file, buffer));
}

/// Returns the path that is stored in a Caffe message. On Windows such paths are UTF-8.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into();
    #[cfg(target_os = "wasi")]
    return <std::ffi::OsStr as std::os::wasi::ffi::OsStrExt>::from_bytes(bytes).into();
    #[cfg(windows)]
    return String::from_utf8_lossy(bytes).into_owned().into();
}
