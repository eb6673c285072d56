//! Writes tensors to Caffe's own files, through the C library.

use std::path::Path;

use syncblob::{
    Blob, BlobAny, BlobAt, Context, Dtype, ErrorKind, Format, Model, OpenOptions, SolverInfo,
};

use super::layers::{self, Content};
use super::plan::Plan;
use super::values::Reader;
use crate::interrupt::Interrupt;
use crate::source::{Failure, Kind, Result};

/// A model without values. `save` gets the values of each blob from `contents`.
pub struct Net {
    model: Model,
    /// The blobs of each layer. For a format without layers, one entry contains all blobs.
    contents: Vec<Vec<Content>>,
}

const TOO_LARGE: &str = "protobuf, and so Caffe, has no files of 2 GiB or more: \
    write .safetensors instead, which has no such limit";

impl Net {
    /// Refuses a model that exceeds protobuf's limit of 2 GiB. A signal cancels the library's
    /// calls.
    pub fn new(format: Option<Format>, plan: &Plan, interrupt: &Interrupt) -> Result<Self> {
        let mut net = Self::announced(format, plan).map_err(|failure| match failure {
            Failure::Library(error) if error.kind() == ErrorKind::OverLimit => {
                Failure::Unsupported(TOO_LARGE.into())
            }
            other => other,
        })?;
        net.model.set_progress(interrupt.progress());
        Ok(net)
    }

    fn announced(format: Option<Format>, plan: &Plan) -> Result<Self> {
        let format = format.unwrap_or(Format::Caffemodel);
        let context = Context::builder().host_cache(false).build()?;
        let mut net = Self {
            model: OpenOptions::new().context(&context).create(format)?,
            contents: Vec::new(),
        };
        match format {
            Format::Blob => {
                plan.single()?;
                net.announce(None, vec![Content::Item(0)], plan)?;
            }
            Format::Solverstate => net.announce_solver(plan)?,
            Format::BlobVector => net.announce(None, in_order(plan, "blobs")?, plan)?,
            _ => net.announce_layers(plan)?,
        }
        net.model.size()?;
        Ok(net)
    }

    fn announce_layers(&mut self, plan: &Plan) -> Result<()> {
        let layers = layers::of(plan)?;
        self.model.set_name(&plan.notes.name)?;
        for (layer, contents) in layers {
            let index = self.model.add_layer(&layer.name, &layer.layer_type)?;
            self.announce(Some(index), contents, plan)?;
        }
        Ok(())
    }

    fn announce_solver(&mut self, plan: &Plan) -> Result<()> {
        if let Some(solver) = &plan.notes.solver {
            let info = SolverInfo::new(solver.iter).current_step(solver.current_step);
            self.model.set_solver_info(&info.learned_net(&solver.learned_net))?;
        }
        self.announce(None, in_order(plan, "history")?, plan)
    }

    fn announce(
        &mut self,
        layer: Option<usize>,
        contents: Vec<Content>,
        plan: &Plan,
    ) -> Result<()> {
        for content in &contents {
            let item = match content {
                Content::Item(index) => &plan.items[*index],
                Content::One => {
                    self.model.announce_blob::<f32>(layer, [1])?;
                    continue;
                }
            };
            match item.dtype {
                Dtype::F64 => self.model.announce_blob::<f64>(layer, &item.shape[..])?,
                Dtype::F32 => self.model.announce_blob::<f32>(layer, &item.shape[..])?,
                other => {
                    return Err(Failure::Unsupported(format!("Caffe's files hold no {other}")));
                }
            }
        }
        self.contents.push(contents);
        Ok(())
    }

    pub fn save(&self, plan: &Plan, reader: &Reader, path: &Path) -> Result<()> {
        self.model.save_from(path, |at: BlobAt| -> Result<BlobAny> {
            match self.contents[at.layer.unwrap_or_default()][at.index] {
                Content::Item(index) => reader.blob(&plan.items[index]),
                Content::One => Ok(Blob::<f32>::from_slice([1], &[1.0])?.into()),
            }
        })
    }
}

/// Returns the tensors `prefix.0`, `prefix.1` and so on, in this order.
fn in_order(plan: &Plan, prefix: &str) -> Result<Vec<Content>> {
    let number = |name: &str| name.strip_prefix(prefix)?.strip_prefix('.')?.parse().ok();
    let mut contents = vec![None; plan.items.len()];
    let in_layers = plan.notes.kind == Some(Kind::Caffemodel);
    for (index, item) in plan.items.iter().enumerate() {
        let place: Option<usize> = match item.place {
            Some(place) => Some(place.blob),
            None => number(&item.name),
        };
        let free = place.and_then(|place| contents.get_mut(place)).filter(|free| free.is_none());
        match free {
            Some(free) if !in_layers => *free = Some(Content::Item(index)),
            _ => {
                let text = format!(
                    "the format stores only tensors {prefix}.0, {prefix}.1 and so on, not \"{}\"",
                    item.name
                );
                return Err(Failure::Unsupported(text));
            }
        }
    }
    // Every entry is set: there are as many entries as tensors, and each tensor set a different
    // entry.
    Ok(contents.into_iter().flatten().collect())
}
