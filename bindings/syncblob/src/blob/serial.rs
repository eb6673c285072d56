//! Blobs through serde: the shape and the data.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Blob;
use crate::Element;

#[derive(Serialize)]
#[serde(rename = "Blob")]
struct Written<'a, T> {
    shape: &'a [usize],
    data: &'a [T],
}

#[derive(Deserialize)]
#[serde(rename = "Blob")]
struct Read<T> {
    shape: Vec<usize>,
    data: Vec<T>,
}

/// As `{ shape, data }`; a never-shaped blob as the empty one of shape `[0]`.
impl<T: Element + Serialize> Serialize for Blob<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = if self.is_shaped() { self.shape() } else { &[0] };
        let data = self.data().map_err(S::Error::custom)?;
        Written { shape, data }.serialize(serializer)
    }
}

/// In the built-in context; data of another length than the shape's count is
/// an error.
impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for Blob<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { shape, data } = Read::deserialize(deserializer)?;
        Self::from_vec(shape, data).map_err(D::Error::custom)
    }
}
