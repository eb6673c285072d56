//! Checks the directory of an archive. The crate `zip` reads only one member of each name, and only
//! as many members as the end record counts, so it could miss an array that another program reads.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::{Failure, Result};
use crate::text::shortened;

const ENTRY: [u8; 4] = *b"PK\x01\x02";

/// The size of an entry's fixed part. The name, the extra fields and the comment follow the fixed
/// part. The fixed part contains the lengths of these three parts at the offsets LENGTHS.
const ENTRY_BYTES: usize = 46;
const LENGTHS: [usize; 3] = [28, 30, 32];

/// Error messages shorten longer names to this many characters.
const NAME: usize = 60;

/// Refuses a directory that repeats a name, or has more or fewer entries than `zip` found (`kept`).
pub fn check(archive: impl Read + Seek, start: u64, kept: usize) -> Result<()> {
    let mut entries = BufReader::new(archive);
    entries.seek(SeekFrom::Start(start))?;
    let mut names = HashSet::new();
    while let Some(name) = next_name(&mut entries)? {
        if let Some(name) = names.replace(name) {
            let name = shortened(&String::from_utf8_lossy(&name), NAME);
            let text = format!("two members of the archive are called \"{name}\"");
            return Err(Failure::Malformed(text));
        }
    }
    match names.len() {
        count if count == kept => Ok(()),
        count => {
            let text = format!("its directory has {count} members, not {kept}");
            Err(Failure::Malformed(text))
        }
    }
}

/// Returns the name of the next entry, or None after the last entry.
fn next_name(entries: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut entry = [0; ENTRY_BYTES];
    let (signature, rest) = entry.split_at_mut(ENTRY.len());
    entries.read_exact(signature)?;
    if signature != ENTRY {
        return Ok(None);
    }
    entries.read_exact(rest)?;
    let [name, extra, comment] =
        LENGTHS.map(|at| usize::from(u16::from_le_bytes([entry[at], entry[at + 1]])));
    let mut bytes = vec![0; name];
    entries.read_exact(&mut bytes)?;
    let skipped = (extra + comment) as u64;
    std::io::copy(&mut entries.take(skipped), &mut std::io::sink())?;
    Ok(Some(bytes))
}
