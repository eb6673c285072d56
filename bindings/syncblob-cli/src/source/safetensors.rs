//! Reads the safetensors format: a header in JSON, followed by the tensors' bytes.

mod header;

use std::fs::File;
use std::io;

use ::safetensors::tensor::{Dtype as Type, Metadata, TensorInfo};
use syncblob::{Context, Dtype, ReadAt};

use super::fill::{ByteOrder, Bytes, Filled};
use super::{notes, Failure, Notes, Reading, Result, Store, Stored, Tensor};

/// The maximum size of a header, enough for a hundred thousand tensors. The format allows 100 MB,
/// but parsing so large a header would need a gigabyte of memory.
const MAX_HEADER: u64 = 16 << 20;
const LENGTH_BYTES: u64 = 8;

struct Safetensors {
    file: File,
    /// The offset of each tensor's bytes.
    starts: Vec<u64>,
}

impl Store for Safetensors {
    fn read(
        &self,
        index: usize,
        tensor: &Tensor,
        context: &Context,
        reading: Reading,
    ) -> Result<()> {
        let bytes = Slice { file: &self.file, at: self.starts[index] };
        reading(&mut Filled::new(tensor, context, ByteOrder::Little, bytes));
        Ok(())
    }
}

/// The bytes of a file that begin at an offset.
struct Slice<'a> {
    file: &'a File,
    at: u64,
}

impl Bytes for Slice<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        read_exact_at(self.file, bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

pub fn open(file: File) -> Result<(Notes, Vec<Tensor>, Box<dyn Store>)> {
    let (metadata, payload) = read_header(&file)?;
    let ours = metadata.metadata().as_ref().and_then(|texts| texts.get(notes::KEY));
    let (notes, places) = ours.and_then(|text| Notes::from_json(text)).unwrap_or_default();
    let mut found: Vec<(Tensor, u64)> = Vec::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let (shape, place) = (info.shape.clone(), places.get(&name).copied());
        let start = payload + info.data_offsets.0 as u64;
        found.push((Tensor { name, place, shape, dtype: stored(info) }, start));
    }
    // Sorts by layer and blob number. Tensors without a place are last, in the file's order.
    found.sort_by_key(|(tensor, _)| (tensor.place.is_none(), tensor.place));
    let (tensors, starts) = found.into_iter().unzip();
    Ok((notes, tensors, Box::new(Safetensors { file, starts })))
}

/// Reads the header. Returns the header and the offset at which the tensors' bytes begin.
fn read_header(file: &File) -> Result<(Metadata, u64)> {
    let size = file.metadata()?.len();
    let mut length = [0; LENGTH_BYTES as usize];
    read_exact_at(file, &mut length, 0)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        let text = format!("its safetensors header of {length} bytes exceeds {MAX_HEADER} bytes");
        return Err(Failure::Malformed(text));
    }
    let payload = LENGTH_BYTES + length;
    if payload > size {
        let text = format!("a safetensors header of {length} bytes in a file of {size}");
        return Err(Failure::Malformed(text));
    }
    let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
    read_exact_at(file, &mut text, LENGTH_BYTES)?;
    let metadata = header::parse(&text)
        .map_err(|what| Failure::Malformed(format!("the safetensors header: {what}")))?;
    if payload.checked_add(metadata.data_len() as u64) != Some(size) {
        let needed = metadata.data_len();
        let text = format!("its tensors need {needed} bytes, but the file has {}", size - payload);
        return Err(Failure::Malformed(text));
    }
    Ok((metadata, payload))
}

fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) => {
                bytes = &mut bytes[size..];
                at += size as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

macro_rules! types {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        const TYPES: &[(Dtype, Type)] = &[$((Dtype::$name, Type::$safe)),*];
    };
}

syncblob::for_each_dtype!(types);

fn stored(info: &TensorInfo) -> Stored {
    match TYPES.iter().find(|(_, stored)| *stored == info.dtype) {
        Some((dtype, _)) => Stored::As(*dtype),
        None => Stored::Other(info.dtype.to_string()),
    }
}

pub fn type_of(dtype: Dtype) -> Result<Type> {
    let found = TYPES.iter().find(|(known, _)| *known == dtype);
    found
        .map(|(_, stored)| *stored)
        .ok_or_else(|| Failure::Unsupported(format!("safetensors has no {dtype}")))
}
