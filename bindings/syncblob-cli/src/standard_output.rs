//! Standard output where it may be closed. Rust's own then takes everything and reports nothing:
//! the runtime opens /dev/null in the place of a closed descriptor, and writing to one that cannot
//! be written counts as done.

use std::io::{self, StdoutLock, Write};

/// It, or why nothing can be printed.
pub struct StandardOutput(io::Result<StdoutLock<'static>>);

impl StandardOutput {
    pub fn lock() -> Self {
        Self(check().map(|()| io::stdout().lock()))
    }
}

/// Fails if nothing can be printed.
pub fn check() -> io::Result<()> {
    match own::is_open() {
        true => Ok(()),
        false => Err(io::Error::other("it is closed, or open for reading alone")),
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Ok(open) => open.write(bytes),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), StdoutLock::flush)
    }
}

#[cfg(unix)]
mod own {
    #![allow(unsafe_code)]

    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether it was closed before Rust's runtime began.
    static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

    /// The loader calls this before `main`, or when a library with this code is loaded.
    #[used]
    #[cfg_attr(target_vendor = "apple", link_section = "__DATA,__mod_init_func")]
    #[cfg_attr(not(target_vendor = "apple"), link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        WAS_CLOSED.store(!can_be_written(), Ordering::Relaxed);
    }

    pub fn is_open() -> bool {
        !WAS_CLOSED.load(Ordering::Relaxed) && can_be_written()
    }

    fn can_be_written() -> bool {
        // SAFETY: the call takes no pointer, and a descriptor that is not open is an error of it.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
        flags != -1 && flags & libc::O_ACCMODE != libc::O_RDONLY
    }
}

#[cfg(windows)]
mod own {
    use std::io;
    use std::os::windows::io::AsRawHandle;

    pub fn is_open() -> bool {
        !io::stdout().as_raw_handle().is_null()
    }
}
