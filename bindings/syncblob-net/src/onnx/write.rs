//! Writes an ONNX file: nodes and names as one small message, then the tensors. Values are copied
//! from the model in pieces, so the memory for writing does not grow with the weights.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use half::f16;
use prost::encoding::{encode_key, encode_varint, encoded_len_varint, WireType};
use prost::Message;
use syncblob::{Dtype, Model, Part, StoredBlob};

use super::digests::Digests;
use super::graph::{Data, Graph, Initializer};
use super::proto::{DataType, GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use crate::{Error, Result};

const MODEL_GRAPH: u32 = 7;
const GRAPH_INITIALIZER: u32 = 5;
const TENSOR_RAW_DATA: u32 = 9;

/// The number of values to read and write at a time.
const CHUNK: usize = 64 << 10;

/// The alignment of tensors in the second file, so that readers can map them into memory.
const ALIGNMENT: u64 = 4096;

/// The minimum size of a tensor in the second file, as in ONNX's own tools. Shapes and axes are
/// smaller and remain in the message, because shape inference reads only the message.
const LEAST_OUTSIDE: u64 = 1024;

/// The destination of the bytes of a file.
pub trait Sink: Write {
    /// If the sink can copy faster than `write`, appends `size` bytes of the model's file, from
    /// `offset` on, and returns true. Otherwise returns false, and the caller must write the bytes.
    ///
    /// # Errors
    /// A failure to read the model's file, or to write to the sink's destination.
    fn copy_from_model(&mut self, offset: u64, size: u64) -> io::Result<bool>;
}

/// A sink that cannot copy from the model's file.
pub(super) struct Plain<W>(pub W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Sink for Plain<W> {
    fn copy_from_model(&mut self, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }
}

/// An ONNX file, without values that are stored in the model.
#[derive(Debug)]
pub(super) struct Parts {
    pub model: ModelProto,
    /// The graph without initializers.
    pub message: GraphProto,
    pub graph: Graph,
    /// Whether floating-point tensors become halves (16-bit floats).
    pub half: bool,
    pub overflows: Overflows,
    pub digests: Digests,
}

/// Counts the finite values, of all tensors written so far, that became infinite as 16-bit floats.
#[derive(Debug, Default)]
pub(super) struct Overflows {
    values: AtomicU64,
    first: OnceLock<String>,
}

impl Overflows {
    fn add(&self, tensor: &str, values: u64) {
        if values > 0 {
            self.values.fetch_add(values, Ordering::Relaxed);
            self.first.get_or_init(|| tensor.to_owned());
        }
    }

    pub fn get(&self) -> Option<Overflow> {
        let tensor = self.first.get()?.clone();
        Some(Overflow { values: self.values.load(Ordering::Relaxed), tensor })
    }
}

/// How many weights exceed the range of 16-bit floats. [`Display`](fmt::Display) prints a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overflow {
    /// The number of finite values that became infinite.
    pub values: u64,
    /// The name of the first tensor with such a value.
    pub tensor: String,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, tensor) = (self.values, self.tensor.escape_default());
        write!(
            f,
            "{values} values, the first of them in '{tensor}', are beyond the range of halves and \
             became infinite"
        )
    }
}

/// The second file: its name, and the offset of each tensor that it contains.
struct External<'a> {
    name: &'a str,
    offsets: Vec<Option<u64>>,
}

impl Parts {
    /// Returns the size of all tensors' values.
    pub fn size_of_values(&self) -> u64 {
        self.graph.initializers.iter().map(|tensor| self.size_of(tensor)).sum()
    }

    /// Returns the size of one file with all tensors inside.
    pub fn size(&self) -> u64 {
        let (bytes, tensors) = self.message(None);
        bytes.len() as u64 + tensors.size(self) + self.digests.size()
    }

    /// Writes one file with all tensors inside.
    pub fn write(&self, model: Option<&Model>, out: &mut dyn Sink) -> Result<()> {
        self.with_digests(model, out, |out| self.write_message(None, out)?.finish(self, model, out))
    }

    /// Writes two files: the message, and the values of large tensors in a second file `name`.
    pub fn write_external(
        &self,
        model: Option<&Model>,
        name: &str,
        out: &mut dyn Sink,
        values: &mut dyn Sink,
    ) -> Result<()> {
        self.with_digests(model, out, |out| {
            let offsets = self.write_outside(model, values)?;
            self.write_message(Some(External { name, offsets }), out)?.finish(self, model, out)
        })
    }

    /// Writes the values of large tensors to the second file. Returns the offset of each tensor.
    fn write_outside(
        &self,
        model: Option<&Model>,
        values: &mut dyn Sink,
    ) -> Result<Vec<Option<u64>>> {
        let mut end = 0_u64;
        let mut offsets = Vec::new();
        for tensor in &self.graph.initializers {
            if self.size_of(tensor) < LEAST_OUTSIDE {
                offsets.push(None);
                continue;
            }
            let offset = end.next_multiple_of(ALIGNMENT);
            io::copy(&mut io::Read::take(io::repeat(0), offset - end), values)?;
            self.write_values(tensor, model, values)?;
            offsets.push(Some(offset));
            end = offset + self.size_of(tensor);
        }
        Ok(offsets)
    }

    /// Calls `write`, then writes the digests of the files that the net was read from. Fails if the
    /// model's file has changed since it was opened.
    fn with_digests(
        &self,
        model: Option<&Model>,
        out: &mut dyn Sink,
        write: impl FnOnce(&mut dyn Sink) -> Result<()>,
    ) -> Result<()> {
        let digests = self.digests.while_writing(|| write(out))?;
        out.write_all(&digests)?;
        let stored = |tensor: &Initializer| match tensor.data {
            Data::Stored(at) => Some(at),
            Data::Bytes(_) => None,
        };
        match (model, self.graph.initializers.iter().find_map(stored)) {
            (Some(model), Some(at)) => check_unchanged(&model.blob(at)?),
            _ => Ok(()),
        }
    }

    fn data_type(&self, tensor: &Initializer) -> DataType {
        match tensor.data_type {
            DataType::Float if self.half && !tensor.full_precision => DataType::Float16,
            other => other,
        }
    }

    fn size_of(&self, tensor: &Initializer) -> u64 {
        let count = tensor.dims.iter().map(|dim| dim.unsigned_abs()).product::<u64>();
        count * size_of_type(self.data_type(tensor))
    }

    /// Writes all parts of the file except the tensors. Returns the tensors' headers.
    fn write_message(
        &self,
        external: Option<External<'_>>,
        out: &mut dyn Write,
    ) -> Result<Tensors> {
        let (bytes, tensors) = self.message(external);
        out.write_all(&bytes)?;
        Ok(tensors)
    }

    /// Encodes all parts of the file except the tensors' values. The tensors' headers are separate.
    fn message(&self, external: Option<External<'_>>) -> (Vec<u8>, Tensors) {
        let header = |(index, tensor): (usize, &Initializer)| {
            let place = external.as_ref().and_then(|external| {
                Some((external.name, external.offsets[index]?)) // None: inside the first file
            });
            Header { bytes: self.header(tensor, place).encode_to_vec(), inside: place.is_none() }
        };
        let tensors = Tensors(self.graph.initializers.iter().enumerate().map(header).collect());
        let mut bytes = self.model.encode_to_vec();
        let message = self.message.encode_to_vec();
        encode_key(MODEL_GRAPH, WireType::LengthDelimited, &mut bytes);
        encode_varint(message.len() as u64 + tensors.size(self), &mut bytes);
        bytes.extend_from_slice(&message);
        (bytes, tensors)
    }

    fn header(&self, tensor: &Initializer, external: Option<(&str, u64)>) -> TensorProto {
        let entry = |key: &str, value: String| StringStringEntryProto { key: key.into(), value };
        let external_data = external.map_or_else(Vec::new, |(name, offset)| {
            vec![
                entry("location", name.to_owned()),
                entry("offset", offset.to_string()),
                entry("length", self.size_of(tensor).to_string()),
            ]
        });
        TensorProto {
            dims: tensor.dims.clone(),
            data_type: self.data_type(tensor) as i32,
            name: self.graph.name(tensor.value).to_owned(),
            data_location: i32::from(external.is_some()),
            external_data,
        }
    }

    fn write_values(
        &self,
        tensor: &Initializer,
        model: Option<&Model>,
        out: &mut dyn Sink,
    ) -> Result<()> {
        let half = self.data_type(tensor) == DataType::Float16;
        let overflows = Cell::new(0);
        match &tensor.data {
            Data::Bytes(bytes) if half => {
                let floats =
                    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                let halves: Vec<u8> = floats.flat_map(|x| as_half(x, &overflows)).collect();
                out.write_all(&halves)?;
            }
            Data::Bytes(bytes) => out.write_all(bytes)?,
            Data::Stored(at) => {
                let model = model.ok_or_else(|| Error::invalid("the net has no weights"))?;
                let blob = model.blob(*at)?;
                if half || !copy_as_stored(&blob, out)? {
                    copy(&blob, half.then_some(&overflows), out)?;
                }
            }
        }
        self.overflows.add(self.graph.name(tensor.value), overflows.get());
        Ok(())
    }
}

fn as_half(value: f32, overflows: &Cell<u64>) -> [u8; 2] {
    let half = f16::from_f32(value);
    if value.is_finite() && !half.is_finite() {
        overflows.set(overflows.get() + 1);
    }
    half.to_le_bytes()
}

/// Writes the blob's values in pieces. If `halves` is set, writes 16-bit floats and counts the
/// values that became infinite.
fn copy(blob: &StoredBlob<'_>, halves: Option<&Cell<u64>>, out: &mut dyn Write) -> Result<()> {
    let count = blob.info().count();
    let mut values = vec![0_f32; CHUNK.min(count)];
    let mut bytes = Vec::with_capacity(4 * values.len());
    let mut first = 0;
    while first < count {
        let values = &mut values[..CHUNK.min(count - first)];
        blob.read_values(Part::Data, first, values)?;
        bytes.clear();
        match halves {
            Some(overflows) => bytes.extend(values.iter().flat_map(|&x| as_half(x, overflows))),
            None => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
        }
        out.write_all(&bytes)?;
        first += values.len();
    }
    Ok(())
}

/// Asks the sink to copy the values from the model's file. Returns whether the sink copied the
/// values.
fn copy_as_stored(blob: &StoredBlob<'_>, out: &mut dyn Sink) -> Result<bool> {
    let info = blob.info();
    let stored = info.values_offset(Part::Data).filter(|_| info.dtype() == Dtype::F32);
    let Some(offset) = stored else { return Ok(false) };
    if !out.copy_from_model(offset, 4 * info.count() as u64)? {
        return Ok(false);
    }
    check_unchanged(blob)?;
    Ok(true)
}

/// Reads one value of the blob. The read fails if the model's file has changed since it was opened.
fn check_unchanged(blob: &StoredBlob<'_>) -> Result<()> {
    Ok(blob.read_values(Part::Data, 0, &mut [0_f32; 1][..blob.info().count().min(1)])?)
}

/// A tensor's encoded message without its values. `inside` is true if the values follow the message
/// in the same file.
struct Header {
    bytes: Vec<u8>,
    inside: bool,
}

impl Header {
    /// Returns the size of the tensor's message if its values have `values` bytes.
    fn size_with(&self, values: u64) -> u64 {
        let inside = 1 + encoded_len_varint(values) as u64 + values;
        self.bytes.len() as u64 + if self.inside { inside } else { 0 }
    }
}

struct Tensors(Vec<Header>);

impl Tensors {
    /// Returns the size of all tensors, encoded as fields of the graph.
    fn size(&self, parts: &Parts) -> u64 {
        let tensors = self.0.iter().zip(&parts.graph.initializers);
        let sizes = tensors.map(|(header, tensor)| {
            let size = header.size_with(parts.size_of(tensor));
            1 + encoded_len_varint(size) as u64 + size
        });
        sizes.sum()
    }

    fn finish(self, parts: &Parts, model: Option<&Model>, out: &mut dyn Sink) -> Result<()> {
        for (header, tensor) in self.0.iter().zip(&parts.graph.initializers) {
            let values = parts.size_of(tensor);
            let mut bytes = Vec::with_capacity(header.bytes.len() + 32);
            encode_key(GRAPH_INITIALIZER, WireType::LengthDelimited, &mut bytes);
            encode_varint(header.size_with(values), &mut bytes);
            bytes.extend_from_slice(&header.bytes);
            if header.inside {
                encode_key(TENSOR_RAW_DATA, WireType::LengthDelimited, &mut bytes);
                encode_varint(values, &mut bytes);
            }
            out.write_all(&bytes)?;
            if header.inside {
                parts.write_values(tensor, model, out)?;
            }
        }
        Ok(())
    }
}

fn size_of_type(data_type: DataType) -> u64 {
    match data_type {
        DataType::Float16 => 2,
        DataType::Float => 4,
        DataType::Int64 | DataType::Double => 8,
        DataType::Undefined => 0,
    }
}
