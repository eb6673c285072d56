//! Blobs through serde: the shape and the data.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Blob;
use crate::{BlobAny, Element};

#[derive(Serialize)]
#[serde(rename = "Blob")]
struct Written<'a, T: Element + Serialize> {
    shape: &'a [usize],
    data: Values<'a, T>,
}

#[derive(Deserialize)]
#[serde(rename = "Blob", deny_unknown_fields)]
#[serde(bound(deserialize = "T: Element + Deserialize<'de>"))]
struct Read<T> {
    shape: Vec<usize>,
    data: OwnedValues<T>,
}

/// Elements to write. In a human-readable format, values that are not JSON numbers are written as
/// words.
struct Values<'a, T>(&'a [T]);

struct OwnedValues<T>(Vec<T>);

/// An element in a human-readable format: a number or a word.
struct Readable<T>(T);

struct ReadableVisitor<T>(PhantomData<T>);

/// Deserializes a number as the element's type.
macro_rules! visit_numbers {
    ($($visit:ident($type:ty),)*) => {$(
        fn $visit<E: serde::de::Error>(self, value: $type) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map(Readable)
        }
    )*};
}

impl<'de, T: Element + Deserialize<'de>> Visitor<'de> for ReadableVisitor<T> {
    type Value = Readable<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"a number, "NaN", "inf" or "-inf""#)
    }

    visit_numbers!(visit_i64(i64), visit_u64(u64), visit_f32(f32), visit_f64(f64),);

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
        let value = T::from_word(word).map(Readable);
        value.ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
    }
}

impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for Readable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadableVisitor(PhantomData))
    }
}

impl<T: Element + Serialize> Serialize for Values<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.0 {
            match value.word() {
                Some(word) => sequence.serialize_element(word)?,
                None => sequence.serialize_element(value)?,
            }
        }
        sequence.end()
    }
}

impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for OwnedValues<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() || !T::HAS_WORDS {
            return Vec::deserialize(deserializer).map(Self);
        }
        let values = Vec::<Readable<T>>::deserialize(deserializer)?;
        Ok(Self(values.into_iter().map(|value| value.0).collect()))
    }
}

/// Writes `{ shape, data }`. A blob without a shape is written with the shape `[0]`. In a
/// human-readable format, such as JSON, `"NaN"`, `"inf"` and `"-inf"` represent values for which
/// JSON has no number. The bits of a NaN are lost. Elements of `f16` and `bf16` are written as
/// integers with the same bits, as the crate `half` writes them: `15872` for an `f16` of 1.5.
impl<T: Element + Serialize> Serialize for Blob<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = Values(self.data().map_err(S::Error::custom)?);
        Written { shape: self.shape_or_empty(), data }.serialize(serializer)
    }
}

/// Makes the blob in the built-in context. The length of the data must be the shape's count.
impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for Blob<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { shape, data } = Read::deserialize(deserializer)?;
        Self::from_vec(shape, data.0).map_err(D::Error::custom)
    }
}

/// Writes the blob without its element type.
impl Serialize for BlobAny {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::any::each!(self, blob => blob.serialize(serializer))
    }
}
