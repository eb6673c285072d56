//! NumPy's format for one array: a header in Python's syntax, followed by the values.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use npyz::{Endianness, TypeChar, TypeStr};
use py_literal::Value;
use syncblob::{Context, Dtype, Shape};

use super::fill::{ByteOrder, Bytes, Filled};
use super::{Failure, Notes, Reading, Result, Store, Stored, Tensor};

/// The maximum size of a header, as in NumPy. A header contains only a type and a shape.
const MAX_HEADER: usize = 10_000;
const MAX_NESTING: usize = 16;

#[derive(Debug)]
pub struct Header {
    pub shape: Vec<usize>,
    pub dtype: Stored,
    order: ByteOrder,
    /// Whether the first axis varies fastest.
    fortran: bool,
    pub header_bytes: u64,
    pub value_bytes: u64,
}

impl Header {
    pub fn read(from: &mut impl Read) -> Result<Self> {
        let (text, before) = read_text(from)?;
        let header_bytes = (before + text.len()) as u64;
        parse(&text, header_bytes).map_err(|what| Failure::Malformed(format!("npy header: {what}")))
    }

    pub fn tensor(&self, name: String) -> Tensor {
        Tensor { name, place: None, shape: self.shape.clone(), dtype: self.dtype.clone() }
    }

    /// Returns whether the values must be reordered, which requires all values in memory.
    pub fn is_whole(&self) -> bool {
        self.fortran && self.shape.len() > 1
    }

    /// Returns a reader of the values. `from` must be positioned at the first value. `end` checks
    /// the data that follows the last value.
    pub fn parts<'a, R: Read>(
        &'a self,
        tensor: &'a Tensor,
        context: &'a Context,
        from: R,
        end: fn(&mut R) -> Result<()>,
    ) -> Filled<'a, Values<'a, R>> {
        Filled::new(tensor, context, self.order, Values { header: self, from, end })
    }
}

pub struct Values<'a, R> {
    header: &'a Header,
    from: R,
    end: fn(&mut R) -> Result<()>,
}

impl<R: Read> Bytes for Values<'_, R> {
    fn is_whole(&self) -> bool {
        self.header.is_whole()
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        match self.header.is_whole() {
            true => scatter(bytes, &self.header.shape, &mut self.from),
            false => Ok(self.from.read_exact(bytes)?),
        }
    }

    fn end(&mut self) -> Result<()> {
        (self.end)(&mut self.from)
    }
}

/// Returns the text of the header, and the number of bytes before this text.
fn read_text(from: &mut impl Read) -> Result<(String, usize)> {
    let mut start = [0; 10];
    from.read_exact(&mut start)?;
    let [0x93, b'N', b'U', b'M', b'P', b'Y', major, _, low, high] = start else {
        return Err(Failure::Malformed("it is not an npy file".into()));
    };
    let (length, before) = match major {
        1 => (u32::from(u16::from_le_bytes([low, high])), 10),
        2 | 3 => {
            let mut rest = [0; 2];
            from.read_exact(&mut rest)?;
            (u32::from_le_bytes([low, high, rest[0], rest[1]]), 12)
        }
        _ => return Err(Failure::Malformed(format!("npy version {major} is unknown"))),
    };
    let length = length as usize;
    if length > MAX_HEADER {
        let text = format!("its npy header of {length} bytes exceeds {MAX_HEADER} bytes");
        return Err(Failure::Malformed(text));
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text)?;
    // Versions 1 and 2 use Latin-1, version 3 uses UTF-8. Here all versions are read as UTF-8, so
    // Latin-1 text that is neither ASCII nor UTF-8 is refused.
    let text = String::from_utf8(text)
        .map_err(|_| Failure::Malformed("its npy header is not UTF-8 text".into()))?;
    Ok((text, before))
}

fn parse(text: &str, header_bytes: u64) -> Result<Header, String> {
    // The parser recurses for each bracket, so a limit protects the stack.
    if text.bytes().filter(|byte| b"([{".contains(byte)).count() > MAX_NESTING {
        return Err("the type has too many parts".into());
    }
    let Ok(Value::Dict(entries)) = text.trim_end().parse::<Value>() else {
        return Err("it is not a dictionary".into());
    };
    let entry = |key: &str| {
        let found = entries.iter().find(|(k, _)| k.as_string().is_some_and(|k| k == key));
        found.map(|(_, value)| value).ok_or_else(|| format!("there is no \"{key}\""))
    };
    let fortran = entry("fortran_order")?.as_boolean().ok_or("fortran_order is not a bool")?;
    let shape = parse_shape(entry("shape")?)?;
    let (dtype, order, value_size) = parse_type(entry("descr")?)?;
    let count = shape.iter().try_fold(1_usize, |count, dim| count.checked_mul(*dim));
    let value_bytes = count.and_then(|count| count.checked_mul(value_size));
    let value_bytes = value_bytes.ok_or("the size of its values overflows")? as u64;
    Ok(Header { shape, dtype, order, fortran, header_bytes, value_bytes })
}

fn parse_shape(value: &Value) -> Result<Vec<usize>, String> {
    let dims = value.as_tuple().ok_or("the shape is not a tuple")?;
    if dims.len() > Shape::MAX_AXES {
        return Err(format!("more axes than a blob's {}", Shape::MAX_AXES));
    }
    let dim = |value: &Value| value.as_integer().and_then(|dim| dim.to_string().parse().ok());
    dims.iter().map(|value| dim(value).ok_or_else(|| "a dimension is invalid".into())).collect()
}

/// Returns the type, its byte order, and its size in bytes.
fn parse_type(value: &Value) -> Result<(Stored, ByteOrder, usize), String> {
    let Some(text) = value.as_string() else {
        return Ok((Stored::Other("a structure".into()), ByteOrder::Little, 0));
    };
    let parsed: TypeStr = text.parse().map_err(|_| "the type is unknown")?;
    let order = match parsed.endianness() {
        Endianness::Big => ByteOrder::Big,
        _ => ByteOrder::Little,
    };
    if parsed.type_char() == TypeChar::Object {
        let pickled = "object (a pickle, which may run programs when it is read)";
        return Ok((Stored::Other(pickled.into()), order, 0));
    }
    let kind_and_size = |typestr: &str| {
        let known: TypeStr = typestr.parse().ok()?;
        Some((known.type_char(), known.size_field()))
    };
    let found = Dtype::ALL.iter().copied().find(|dtype| {
        let own = dtype.typestr().and_then(kind_and_size);
        own == Some((parsed.type_char(), parsed.size_field()))
    });
    Ok(match found {
        Some(dtype) => (Stored::As(dtype), order, dtype.size()),
        None => (Stored::Other(text.clone()), order, parsed.num_bytes().unwrap_or(0)),
    })
}

/// Reads values in Fortran's order (the first axis varies fastest) and stores them in C order (the
/// last axis varies fastest).
fn scatter(bytes: &mut [u8], shape: &[usize], from: &mut impl Read) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let size = bytes.len() / shape.iter().product::<usize>();
    let mut strides = vec![size; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let (mut indices, mut at) = (vec![0; shape.len()], 0);
    for _ in 0..bytes.len() / size {
        from.read_exact(&mut bytes[at..at + size])?;
        for (axis, index) in indices.iter_mut().enumerate() {
            *index += 1;
            at += strides[axis];
            if *index < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            *index = 0;
        }
    }
    Ok(())
}

struct Npy {
    header: Header,
    file: File,
}

impl Store for Npy {
    fn read(&self, _: usize, tensor: &Tensor, context: &Context, reading: Reading) -> Result<()> {
        let mut file = BufReader::new(&self.file);
        file.seek(std::io::SeekFrom::Start(self.header.header_bytes))?;
        reading(&mut self.header.parts(tensor, context, file, |_| Ok(())));
        Ok(())
    }
}

pub fn open(file: File) -> Result<(Notes, Vec<Tensor>, Box<dyn Store>)> {
    let header = Header::read(&mut BufReader::new(&file))?;
    let rest = file.metadata()?.len().saturating_sub(header.header_bytes);
    if matches!(header.dtype, Stored::As(_)) && rest != header.value_bytes {
        let wanted = header.value_bytes;
        let text = format!("the npy header requires {wanted} bytes of values, not {rest}");
        return Err(Failure::Malformed(text));
    }
    Ok((Notes::default(), vec![header.tensor("blob".into())], Box::new(Npy { header, file })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend(text.bytes());
        Header::read(&mut &bytes[..])
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn invalid_shapes_are_refused() {
        let with = |shape| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        for shape in ["(2**3,)", "(-1,)", "3", "('3',)", "(1.5,)", "(99999999999999999999,)"] {
            assert!(refusal(&with(shape)).contains("npy header"), "{shape}");
        }
        let huge = with("(4294967295, 4294967295)");
        assert!(refusal(&huge).contains("overflows"));
        assert_eq!(read(&with("(2, 3,)")).unwrap().value_bytes, 24);
        assert_eq!(read(&with("()")).unwrap().value_bytes, 4);
    }

    #[test]
    fn nested_brackets_do_not_exhaust_the_stack() {
        assert!(refusal(&"(".repeat(9000)).contains("too many parts"));
    }

    #[test]
    fn objects_have_a_type_name_and_are_not_read() {
        let header = read("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}").unwrap();
        assert!(matches!(header.dtype, Stored::Other(name) if name.contains("pickle")));
    }

    #[test]
    fn the_first_axis_may_vary_fastest() {
        let mut bytes = [0; 24];
        let values: Vec<u8> = (0..24).collect();
        scatter(&mut bytes, &[2, 3, 2], &mut &values[..]).unwrap();
        // Element (i, j, k) is at the index i + 2 j + 6 k of the values.
        let firsts: Vec<u8> = bytes.chunks(2).map(|element| element[0] / 2).collect();
        assert_eq!(firsts, [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
    }
}
