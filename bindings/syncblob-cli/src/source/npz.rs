//! NumPy's format for many arrays: a zip archive of .npy files.

mod directory;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use syncblob::Context;
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::npy::Header;
use super::{Failure, Notes, Reading, Result, Store, Stored, Tensor};

/// The maximum unpacked size of a compressed member. A member may unpack to a thousand times its
/// compressed size, so a limit is needed. The file's size limits an uncompressed member.
const MAX_INFLATED: u64 = (2 << 30) - 1;

/// If a member must be in memory as a whole, its maximum size is MAX_GROWTH times its compressed
/// size, plus MAX_SMALL.
const MAX_GROWTH: u64 = 7;
const MAX_SMALL: u64 = 20 << 20;

type Archive = ZipArchive<BufReader<Arc<File>>>;

struct Npz {
    archive: RefCell<Archive>,
    /// The index of the member that contains each tensor.
    members: Vec<usize>,
}

impl Store for Npz {
    fn read(
        &self,
        index: usize,
        tensor: &Tensor,
        context: &Context,
        reading: Reading,
    ) -> Result<()> {
        let mut archive = self.archive.borrow_mut();
        let mut member = archive.by_index(self.members[index])?;
        let header = Header::read(&mut member)?;
        if header.is_whole() {
            check_whole(&member, &tensor.name)?;
        }
        reading(&mut header.parts(tensor, context, member, end));
        Ok(())
    }
}

/// Refuses data after the array. Reading to the member's end also verifies the member's checksum.
fn end<R: Read>(member: &mut ZipFile<R>) -> Result<()> {
    match member.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(Failure::Malformed(format!("member \"{}\" has excess data", member.name()))),
    }
}

/// Refuses a member that is too large to be in memory as a whole.
fn check_whole<R: Read>(member: &ZipFile<R>, name: &str) -> Result<()> {
    let most = member.compressed_size().saturating_mul(MAX_GROWTH).saturating_add(MAX_SMALL);
    if member.size() <= most {
        return Ok(());
    }
    Err(Failure::Unsupported(format!(
        "array \"{name}\" is in Fortran's order, so {} bytes of memory are needed for {} bytes in \
         the file: store it in C's order (numpy.ascontiguousarray) or without compression \
         (numpy.savez)",
        member.size(),
        member.compressed_size()
    )))
}

/// Returns whether the file is an archive without arrays, such as a PyTorch file. Returns false if
/// the archive cannot be read or is empty.
pub fn is_of_others(file: &File) -> Result<bool> {
    let Ok(archive) = ZipArchive::new(BufReader::new(file)) else { return Ok(false) };
    let is_array = |name| npyz::npz::array_name_from_file_name(name).is_some();
    Ok(!archive.is_empty() && !archive.file_names().any(is_array))
}

/// Opens an archive. Adds the names of members that are not arrays to `others`.
pub fn open(file: File, others: &mut Vec<String>) -> Result<(Notes, Vec<Tensor>, Box<dyn Store>)> {
    let file = Arc::new(file);
    let mut archive = ZipArchive::new(BufReader::new(file.clone()))?;
    directory::check(&*file, archive.central_directory_start(), archive.len())?;
    if archive.has_overlapping_files()? {
        return Err(Failure::Malformed("members of the archive overlap".into()));
    }
    let (mut tensors, mut members, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for index in 0..archive.len() {
        let mut member = archive.by_index(index)?;
        let Some(name) = npyz::npz::array_name_from_file_name(member.name()) else {
            others.push(member.name().to_owned());
            continue;
        };
        let name = name.to_owned();
        if !names.insert(name.clone()) {
            return Err(Failure::Malformed(format!("two arrays are called \"{name}\"")));
        }
        let header = Header::read(&mut member).map_err(|failure| in_member(&name, failure))?;
        check(&member, &name, &header)?;
        tensors.push(header.tensor(name));
        members.push(index);
    }
    Ok((Notes::default(), tensors, Box::new(Npz { archive: RefCell::new(archive), members })))
}

fn in_member(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Malformed(text) => Failure::Malformed(format!("array \"{name}\": {text}")),
        other => other,
    }
}

fn check<R: Read>(member: &ZipFile<R>, name: &str, header: &Header) -> Result<()> {
    let size = member.size();
    let wanted = header.header_bytes.checked_add(header.value_bytes);
    if matches!(header.dtype, Stored::As(_)) && wanted != Some(size) {
        let text = format!(
            "array \"{name}\" is a member of {size} bytes, but its header requires {}",
            header.header_bytes.saturating_add(header.value_bytes)
        );
        return Err(Failure::Malformed(text));
    }
    if member.compression() != CompressionMethod::Stored && size > MAX_INFLATED {
        let text = format!(
            "array \"{name}\" would grow to {size} bytes, more than {MAX_INFLATED}: \
             store it without compression (numpy.savez)"
        );
        return Err(Failure::Unsupported(text));
    }
    Ok(())
}

impl From<ZipError> for Failure {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            other => Self::Malformed(format!("the archive: {other}")),
        }
    }
}
