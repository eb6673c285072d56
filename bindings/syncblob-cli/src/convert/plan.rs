//! What is to be written, decided before anything is.

use std::collections::HashSet;

use glob::Pattern;
use npyz::npz::file_name_from_array_name;
use syncblob::{BlobAny, Dtype};

use super::{names, Note, Scheme};
use crate::source::{Failure, FileFormat, Notes, Place, Result, Source, Stored, Tensor};
use crate::text::{is_plain, shortened};

/// Bytes of a name in an archive.
const MAX_MEMBER_NAME: usize = u16::MAX as usize;

/// Characters of a name in an error.
const NAME: usize = 60;

/// What the user asked for.
pub struct Wishes<'a> {
    pub format: FileFormat,
    pub scheme: Scheme,
    pub apply_scale: bool,
    pub dtype: Option<Dtype>,
    pub only: &'a [Pattern],
}

pub struct Plan {
    pub items: Vec<Item>,
    /// What goes with the tensors.
    pub notes: Notes,
    /// Some tensors were left out on purpose.
    pub partial: bool,
}

/// A tensor of OUT.
pub struct Item {
    pub name: String,
    pub place: Option<Place>,
    pub shape: Vec<usize>,
    pub dtype: Dtype,
    /// An index of the source's tensors.
    pub index: usize,
    /// By what each value is multiplied.
    pub factor: Option<f64>,
}

impl Item {
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> usize {
        self.count().saturating_mul(self.dtype.size())
    }
}

impl Plan {
    pub fn new(source: &Source, wishes: &Wishes, note: Note) -> Result<Self> {
        let mut notes = source.notes.clone();
        let factors = match wishes.apply_scale {
            true => apply_scale(source, &mut notes, note)?,
            false => vec![Factor::None; source.tensors.len()],
        };
        let mut items = Vec::new();
        let names = names::of(source, wishes.scheme);
        for (index, (tensor, name)) in source.tensors.iter().zip(names).enumerate() {
            let factor = match factors[index] {
                Factor::LeftOut => continue,
                Factor::By(factor) => Some(factor),
                Factor::None => None,
            };
            if wishes.only.is_empty() || wishes.only.iter().any(|only| only.matches(&name)) {
                let dtype = dtype(tensor, wishes)?;
                let (place, shape) = (tensor.place, tensor.shape.clone());
                items.push(Item { name, place, shape, dtype, index, factor });
            }
        }
        let plan = Self { items, notes, partial: !wishes.only.is_empty() };
        plan.check(source)?;
        if wishes.format == FileFormat::Npz {
            plan.check_members()?;
        }
        Ok(plan)
    }

    fn check(&self, source: &Source) -> Result<()> {
        if source.tensors.is_empty() {
            return Err(Failure::Unsupported(
                "it has no blob, so there is nothing to convert".into(),
            ));
        }
        if let (true, Some(first)) = (self.items.is_empty(), source.tensors.first()) {
            let count = source.tensors.len();
            let text =
                format!("--only matches none of {count} tensors, such as \"{}\"", first.name);
            return Err(Failure::Unsupported(text));
        }
        let mut met = HashSet::new();
        match self.items.iter().find(|item| !met.insert(&item.name)) {
            Some(item) => Err(Failure::Unsupported(format!(
                "two tensors would be called \"{}\": --names numbers keeps them apart",
                item.name
            ))),
            None => Ok(()),
        }
    }

    /// Programs that unpack an archive make files of the names in it.
    fn check_members(&self) -> Result<()> {
        let refuse = |what, item: &Item| {
            let name = shortened(&item.name, NAME);
            let text = format!("{what} the name \"{name}\": a .safetensors file can have it");
            Err(Failure::Unsupported(text))
        };
        if let Some(item) = self.items.iter().find(|item| !is_plain(&item.name)) {
            return refuse("an archive would make a file outside its folder, or none, of", item);
        }
        let is_long = |item: &&Item| file_name_from_array_name(&item.name).len() > MAX_MEMBER_NAME;
        match self.items.iter().find(is_long) {
            Some(item) => refuse("an archive has no room for all bytes of", item),
            None => Ok(()),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes() as u64).sum()
    }

    /// The one tensor of a format that holds one.
    pub fn single(&self) -> Result<&Item> {
        match &self.items[..] {
            [item] => Ok(item),
            items => {
                let first = items.first().map(|item| item.name.as_str()).unwrap_or_default();
                let text = format!(
                    "it holds one tensor, not {}: choose one, such as --only \"{first}\"",
                    items.len()
                );
                Err(Failure::Unsupported(text))
            }
        }
    }
}

/// What `--apply-scale` does to a tensor.
#[derive(Clone, Copy)]
enum Factor {
    None,
    By(f64),
    LeftOut,
}

/// As Caffe applies a BatchNorm's third blob: both others times its inverse, or
/// 0 when it is 0.
fn apply_scale(source: &Source, notes: &mut Notes, note: Note) -> Result<Vec<Factor>> {
    let mut factors = vec![Factor::None; source.tensors.len()];
    let layer_of = |tensor: &Tensor| tensor.place.and_then(|place| place.layer);
    let mut applied = false;
    for (index, tensor) in source.tensors.iter().enumerate() {
        let Some(Place { layer: Some(layer), blob: 2 }) = tensor.place else { continue };
        if !names::is_batch_norm(&notes.layers[layer]) || tensor.count() != 1 {
            continue;
        }
        let factor = inverse(&source.load(index)?)?;
        for (other, of_other) in source.tensors.iter().zip(&mut factors) {
            if layer_of(other) == Some(layer) && other.place.is_some_and(|place| place.blob < 2) {
                *of_other = Factor::By(factor);
            }
        }
        factors[index] = Factor::LeftOut;
        notes.layers[layer].scale_applied = true;
        applied = true;
    }
    if !applied {
        note(&"no BatchNorm layer has a scale factor to apply");
    }
    Ok(factors)
}

/// In the precision that Caffe has for the type.
fn inverse(blob: &BlobAny) -> syncblob::Result<f64> {
    Ok(match blob {
        BlobAny::F64(blob) if blob.data()?[0] != 0.0 => blob.data()?[0].recip(),
        BlobAny::F32(blob) if blob.data()?[0] != 0.0 => blob.data()?[0].recip().into(),
        BlobAny::F16(blob) if blob.data()?[0].to_f32() != 0.0 => {
            blob.data()?[0].to_f32().recip().into()
        }
        BlobAny::Bf16(blob) if blob.data()?[0].to_f32() != 0.0 => {
            blob.data()?[0].to_f32().recip().into()
        }
        _ => 0.0,
    })
}

/// The type that a tensor is written in.
fn dtype(tensor: &Tensor, wishes: &Wishes) -> Result<Dtype> {
    let refuse = |what: String| {
        let text = format!("tensor \"{}\" is of type {}: {what}", tensor.name, tensor.dtype);
        Err(Failure::Unsupported(text))
    };
    let Stored::As(stored) = tensor.dtype else {
        return refuse("it cannot be converted, only left out by --only".into());
    };
    if let Some(dim) = tensor.shape.iter().find(|dim| i64::try_from(**dim).is_err()) {
        return refuse(format!("a dimension of {dim} is more than any program can have"));
    }
    let caffe = matches!(wishes.format, FileFormat::Caffe(_));
    match wishes.dtype.unwrap_or(stored) {
        // Exact, and Caffe has nothing narrower.
        Dtype::F16 | Dtype::Bf16 if caffe && wishes.dtype.is_none() => Ok(Dtype::F32),
        dtype @ (Dtype::F32 | Dtype::F64) => Ok(dtype),
        dtype if caffe => {
            refuse(format!("Caffe's files hold f32 and f64, not {dtype}: --dtype f32"))
        }
        Dtype::Bf16 if wishes.format != FileFormat::Safetensors => {
            refuse("NumPy has no bf16: --dtype f32".into())
        }
        dtype => Ok(dtype),
    }
}
