//! Standard output that reports an error if nothing can be printed. Rust's own standard output
//! would report success: Rust's runtime replaces a closed descriptor with /dev/null, and ignores
//! the error of a descriptor that is open only for reading.

use std::io::{self, StdoutLock, Write};

use crate::system::standard_output;

/// The locked standard output, or the reason why nothing can be printed.
pub struct StandardOutput(io::Result<StdoutLock<'static>>);

impl StandardOutput {
    pub fn lock() -> Self {
        Self(check().map(|()| io::stdout().lock()))
    }
}

/// Fails if nothing can be printed.
pub fn check() -> io::Result<()> {
    match standard_output::is_open() {
        true => Ok(()),
        false => Err(io::Error::other("it is closed, or open only for reading")),
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
