//! Parses the JSON of a safetensors header. The parser of the crate `safetensors` is not used. That
//! parser needs at least sixteen times the header's size in memory. Of the tensors with the same
//! name, that parser drops all but one.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::fmt;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use syncblob::Shape;

use crate::text::shortened;

/// Error messages shorten longer names to this many characters.
const NAME: usize = 60;

pub fn parse(text: &[u8]) -> Result<Metadata, String> {
    let header: Header = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let mut tensors: Vec<_> = header.tensors.into_iter().collect();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    Metadata::new(header.texts, tensors).map_err(|error| error.to_string())
}

#[derive(Default)]
struct Header {
    /// The metadata of the file.
    texts: Option<HashMap<String, String>>,
    tensors: HashMap<String, TensorInfo>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        while let Some(name) = entries.next_key::<String>()? {
            if name == "__metadata__" {
                header.texts = entries.next_value()?;
                continue;
            }
            let shown = shortened(&name, NAME);
            let Entry::Vacant(place) = header.tensors.entry(name) else {
                return Err(A::Error::custom(format!("two tensors are called \"{shown}\"")));
            };
            let named = |error| A::Error::custom(format!("tensor \"{shown}\": {error}"));
            place.insert(entries.next_value::<Info>().map_err(named)?.into());
        }
        Ok(header)
    }
}

#[derive(Deserialize)]
struct Info {
    dtype: Dtype,
    shape: Axes,
    data_offsets: (usize, usize),
}

impl From<Info> for TensorInfo {
    fn from(info: Info) -> Self {
        Self { dtype: info.dtype, shape: info.shape.0, data_offsets: info.data_offsets }
    }
}

/// The dimensions of a shape. A shape may have as many axes as a blob.
struct Axes(Vec<usize>);

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Dims)
    }
}

struct Dims;

impl<'de> Visitor<'de> for Dims {
    type Value = Axes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the dimensions of a shape")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut dims: A) -> Result<Axes, A::Error> {
        let mut axes = Vec::new();
        while axes.len() < Shape::MAX_AXES {
            let Some(dim) = dims.next_element()? else { return Ok(Axes(axes)) };
            axes.push(dim);
        }
        match dims.next_element::<IgnoredAny>()? {
            None => Ok(Axes(axes)),
            Some(_) => {
                Err(A::Error::custom(format!("more axes than a blob's {}", Shape::MAX_AXES)))
            }
        }
    }
}
