//! A writer for a zip archive. After a failure, the writer discards all further data.

use std::cell::Cell;
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};

/// Writes bytes to `out` until a call fails or the archive is abandoned. Later writes discard their
/// bytes and report success: a dropped `ZipWriter` completes its archive, and would print an error
/// or panic if a write failed.
pub struct Until<'a, W: Write + Seek> {
    out: BufWriter<W>,
    at: u64,
    end: u64,
    is_over: &'a Cell<bool>,
}

impl<'a, W: Write + Seek> Until<'a, W> {
    pub fn new(out: W, is_over: &'a Cell<bool>) -> Self {
        Self { out: BufWriter::new(out), at: 0, end: 0, is_over }
    }

    fn note<R>(&self, result: io::Result<R>) -> io::Result<R> {
        if result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            self.is_over.set(true);
        }
        result
    }

    fn position(&self) -> u64 {
        if self.is_over.get() {
            self.end
        } else {
            self.at
        }
    }
}

impl<W: Write + Seek> Write for Until<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = match self.is_over.get() {
            true => bytes.len(),
            false => {
                let written = self.out.write(bytes);
                self.note(written)?
            }
        };
        self.at = self.position() + size as u64;
        self.end = self.end.max(self.at);
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_over.get() {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

impl<W: Write + Seek> Seek for Until<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if !self.is_over.get() {
            let at = self.out.seek(to);
            self.at = self.note(at)?;
        }
        Ok(self.position())
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// A fake disk: its content, and the maximum number of bytes that it stores.
    struct Small(Cursor<Vec<u8>>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1.saturating_sub(self.0.get_ref().len());
            match room.min(bytes.len()) {
                0 => Err(ErrorKind::StorageFull.into()),
                room => self.0.write(&bytes[..room]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Small {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn an_archive_without_space_is_abandoned_without_a_panic() {
        let member = [7; 10_000];
        for room in (0..40_000).step_by(997) {
            let is_over = Cell::new(false);
            let small = Small(Cursor::new(Vec::new()), room);
            let mut archive = ZipWriter::new(Until::new(small, &is_over));
            let options =
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            let written = (0..3).try_for_each(|index| {
                archive.start_file(index.to_string(), options)?;
                Ok::<_, zip::result::ZipError>(archive.write_all(&member)?)
            });
            let finished = written.and_then(|()| Ok(archive.finish()?.flush()?));
            assert_eq!(finished.is_err(), room < 30_000, "{room}: {finished:?}");
            assert_eq!(is_over.get(), room < 30_000, "{room}");
        }
    }
}
