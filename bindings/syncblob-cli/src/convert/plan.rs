//! The plan of a conversion: all tensors of the output. The plan is complete before any write.

use std::collections::HashSet;

use glob::Pattern;
use npyz::npz::file_name_from_array_name;
use syncblob::Dtype;
use syncblob_net::StateTensor;

use super::state::{found, Found};
use super::Scheme;
use crate::advice;
use crate::source::{Failure, FileFormat, Notes, Place, Result, Source, Stored, Tensor};
use crate::text::{is_plain, shortened};

/// The maximum number of bytes of a name in a zip archive.
const MAX_MEMBER_NAME: usize = u16::MAX as usize;

/// Error messages shorten longer names to this many characters.
const NAME: usize = 60;

pub struct Wishes<'a> {
    pub format: FileFormat,
    pub scheme: Option<Scheme>,
    pub dtype: Option<Dtype>,
    pub only: &'a [Pattern],
}

impl Wishes<'_> {
    pub fn include(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.matches(name))
    }
}

/// Suggests a replacement for a pattern that matches no tensor. If the pattern is a layer's name,
/// suggests a pattern for the layer's tensors.
fn similar<'a>(only: &str, mut names: impl Iterator<Item = &'a str> + Clone) -> String {
    let layer = format!("{only}.");
    match names.clone().any(|name| name.starts_with(&layer)) {
        true => format!("; did you mean \"{layer}*\"?"),
        false => advice::similar(only, &mut names),
    }
}

pub struct Plan {
    pub items: Vec<Item>,
    /// All data of the output except its tensors.
    pub notes: Notes,
    /// Whether `--only` is set, so that tensors may be missing.
    pub partial: bool,
}

pub struct Item {
    pub name: String,
    pub place: Option<Place>,
    pub shape: Vec<usize>,
    pub dtype: Dtype,
    pub origin: Origin,
}

/// The source of an output tensor's values.
#[derive(Clone)]
pub enum Origin {
    /// The tensor with this index in `Source::tensors`.
    Tensor(usize),
    /// A tensor that is computed from blobs of the input's net.
    State(StateTensor),
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
    pub fn new(source: &Source, wishes: &Wishes) -> Result<Self> {
        let (notes, found) = found(source, wishes)?;
        let mut items = Vec::new();
        for Found { tensor, origin } in &found {
            if wishes.include(&tensor.name) {
                let (dtype, origin) = (dtype(tensor, wishes)?, origin.clone());
                let Tensor { name, place, shape, .. } = tensor.clone();
                items.push(Item { name, place, shape, dtype, origin });
            }
        }
        let plan = Self { items, notes, partial: !wishes.only.is_empty() };
        plan.check(&found, wishes)?;
        if wishes.format == FileFormat::Npz {
            plan.check_members()?;
        }
        Ok(plan)
    }

    fn check(&self, found: &[Found], wishes: &Wishes) -> Result<()> {
        let Some(first) = found.first() else {
            let text = "it has no blob, so there is nothing to convert";
            return Err(Failure::Unsupported(text.into()));
        };
        if self.items.is_empty() {
            let names = || found.iter().map(|found| &*found.tensor.name);
            let near = wishes.only.iter().map(|only| similar(only.as_str(), names()));
            let near = near.max().filter(|near| !near.is_empty());
            let near = near.unwrap_or_else(|| format!(", such as \"{}\"", first.tensor.name));
            let text = format!("--only matches none of {} tensors{near}", found.len());
            return Err(Failure::Unsupported(text));
        }
        let mut met = HashSet::new();
        match self.items.iter().find(|item| !met.insert(&item.name)) {
            Some(item) => Err(Failure::Unsupported(format!(
                "two tensors would be called \"{}\"; --names caffe gives them different names",
                item.name
            ))),
            None => Ok(()),
        }
    }

    /// Refuses names that an archive cannot contain, and names that a program would unpack outside
    /// the chosen folder.
    fn check_members(&self) -> Result<()> {
        let refuse = |item: &Item, why| {
            let name = shortened(&item.name, NAME);
            let text = format!(
                "an archive cannot have the name \"{name}\", {why}; a .safetensors file can have it"
            );
            Err(Failure::Unsupported(text))
        };
        if let Some(item) = self.items.iter().find(|item| !is_plain(&item.name)) {
            return refuse(item, "which is not a plain path inside a folder");
        }
        let is_long = |item: &&Item| file_name_from_array_name(&item.name).len() > MAX_MEMBER_NAME;
        match self.items.iter().find(is_long) {
            Some(item) => refuse(item, "which is too long"),
            None => Ok(()),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes() as u64).sum()
    }

    pub fn single(&self) -> Result<&Item> {
        match &self.items[..] {
            [item] => Ok(item),
            items => {
                let first = items.first().map(|item| item.name.as_str()).unwrap_or_default();
                let text = format!(
                    "the file can hold one tensor, not {}: choose one, such as --only \"{first}\"",
                    items.len()
                );
                Err(Failure::Unsupported(text))
            }
        }
    }
}

fn dtype(tensor: &Tensor, wishes: &Wishes) -> Result<Dtype> {
    let refuse = |what: String| {
        let text = format!("tensor \"{}\" is of type {}: {what}", tensor.name, tensor.dtype);
        Err(Failure::Unsupported(text))
    };
    let Stored::As(stored) = tensor.dtype else {
        return refuse("it cannot be converted; leave it out with --only".into());
    };
    if let Some(dim) = tensor.shape.iter().find(|dim| i64::try_from(**dim).is_err()) {
        return refuse(format!("its dimension {dim} exceeds the largest possible size"));
    }
    let caffe = matches!(wishes.format, FileFormat::Caffe(_));
    match wishes.dtype.unwrap_or(stored) {
        // F32 represents 16-bit values exactly, and Caffe has no narrower type.
        Dtype::F16 | Dtype::Bf16 if caffe && wishes.dtype.is_none() => Ok(Dtype::F32),
        dtype @ (Dtype::F32 | Dtype::F64) => Ok(dtype),
        dtype if caffe => {
            refuse(format!("Caffe's files hold f32 and f64, not {dtype}; use --dtype f32"))
        }
        Dtype::Bf16 if wishes.format != FileFormat::Safetensors => {
            refuse("NumPy has no bf16; use --dtype f32".into())
        }
        dtype => Ok(dtype),
    }
}
