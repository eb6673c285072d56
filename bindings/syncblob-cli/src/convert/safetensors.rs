//! Writes a safetensors file: a header in JSON, then the tensors' bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use ::safetensors::tensor::{Metadata, TensorInfo};
use serde::Serialize;

use super::plan::{Item, Plan};
use super::values::Reader;
use crate::source::{safetensors_type, Failure, Result, NOTES_KEY};

/// The header's size is a multiple of this number, so that the tensors are aligned.
const ALIGNMENT: usize = 8;

pub fn write(plan: &Plan, reader: &Reader, mut file: &File) -> Result<()> {
    let mut items: Vec<_> = plan.items.iter().collect();
    // The widest types come first, so that all tensors are aligned. Tensors of the same width are
    // sorted by name, as in files of other writers.
    items.sort_by_key(|item| (std::cmp::Reverse(item.dtype.size()), &item.name));
    file.write_all(&header(plan, &items)?)?;
    for item in items {
        reader.bytes(item, &mut |bytes| Ok(file.write_all(bytes)?))?;
    }
    Ok(())
}

/// The header. The keys in `texts` are sorted, unlike the keys that `safetensors::Metadata` writes.
#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    texts: BTreeMap<&'a str, String>,
    #[serde(flatten)]
    tensors: &'a Metadata,
}

fn header(plan: &Plan, items: &[&Item]) -> Result<Vec<u8>> {
    let mut end = 0;
    let mut tensors = Vec::new();
    for item in items {
        let start = end;
        end += item.bytes();
        let (dtype, shape) = (safetensors_type(item.dtype)?, item.shape.clone());
        tensors.push((item.name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) }));
    }
    // Other programs require the key "format". The value "pt" means PyTorch.
    let mut texts = BTreeMap::from([("format", "pt".to_owned())]);
    let placed = plan.items.iter().filter_map(|item| Some((item.name.as_str(), item.place?)));
    texts.extend(plan.notes.to_json(placed).map(|notes| (NOTES_KEY, notes)));
    let tensors = Metadata::new(None, tensors)
        .map_err(|error| Failure::Unsupported(format!("the safetensors header: {error}")))?;
    let mut json = serde_json::to_vec(&Header { texts, tensors: &tensors })
        .map_err(|error| Failure::Unsupported(format!("the safetensors header: {error}")))?;
    json.resize(json.len().next_multiple_of(ALIGNMENT), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}
