//! A writer that copies values from a model's file, shows a progress bar, and stops after a signal.
//! The system copies long runs of values directly between the files.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use syncblob_net::Sink;

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::system;

const BUFFER: usize = 1 << 18;

/// The system copies runs of at least this many bytes. Shorter runs pass through the buffer.
const LEAST: u64 = BUFFER as u64;

/// The maximum number of bytes to copy between two checks for a signal.
const MOST: u64 = 64 << 20;

/// Opens the model's file again, to copy from it. Returns None if the path no longer names the file
/// that `before` describes, or if the system cannot copy between files.
pub fn same_file(path: &Path, before: &Metadata) -> Option<File> {
    let file = File::open(path).ok().filter(|_| cfg!(target_os = "linux"))?;
    system::is_same(before, &file.metadata().ok()?).then_some(file)
}

pub struct Watched<'a> {
    out: BufWriter<&'a File>,
    model: Option<&'a File>,
    interrupt: &'a Interrupt,
    progress: Progress,
}

impl<'a> Watched<'a> {
    pub fn new(
        out: &'a File,
        model: Option<&'a File>,
        interrupt: &'a Interrupt,
        progress: Progress,
    ) -> Self {
        Self { out: BufWriter::with_capacity(BUFFER, out), model, interrupt, progress }
    }

    fn check(&self) -> io::Result<()> {
        self.interrupt.check().map_err(|_| io::Error::other("interrupted"))
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        let written = self.out.write(bytes)?;
        self.progress.advance(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Sink for Watched<'_> {
    fn copy_from_model(&mut self, offset: u64, size: u64) -> io::Result<bool> {
        let Some(mut model) = self.model.filter(|_| size >= LEAST) else { return Ok(false) };
        self.out.flush()?;
        model.seek(SeekFrom::Start(offset))?;
        let mut left = size;
        while left > 0 {
            self.check()?;
            let mut part = model.take(left.min(MOST));
            let copied = io::copy(&mut part, self.out.get_mut())?;
            if copied == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.progress.advance(copied);
            left -= copied;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn written(model: &File, offset: u64, size: u64) -> (io::Result<bool>, Vec<u8>) {
        let out = tempfile::NamedTempFile::new().unwrap();
        let interrupt = Interrupt::default();
        let mut sink = Watched::new(out.as_file(), Some(model), &interrupt, Progress::hidden());
        sink.write_all(b"before").unwrap();
        let copied = sink.copy_from_model(offset, size);
        sink.write_all(b"behind").unwrap();
        sink.flush().unwrap();
        (copied, fs::read(out.path()).unwrap())
    }

    #[test]
    fn long_ranges_are_copied_between_written_bytes() {
        let mut model = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..2 * LEAST).map(|i| (i % 251) as u8).collect();
        model.write_all(&bytes).unwrap();
        let long = &bytes[5..5 + LEAST as usize];
        let (copied, out) = written(&model, 5, LEAST);
        assert!(copied.unwrap());
        assert!(out == [b"before", long, b"behind"].concat());
        let (copied, out) = written(&model, 5, LEAST - 1);
        assert!(!copied.unwrap());
        assert_eq!(out, b"beforebehind");
    }

    #[test]
    fn a_model_file_that_became_shorter_is_an_error() {
        let mut model = tempfile::tempfile().unwrap();
        model.write_all(&vec![1; LEAST as usize]).unwrap();
        let error = written(&model, 1, LEAST).0.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
