//! What `info` says about a file, and how it is read: one blob at a time.

use std::path::Path;

use serde::Serialize;
use syncblob::{BlobAny, Context, Error, Format, Model, OpenOptions, Result, StoredBlob};

use crate::progress::Progress;
use crate::stats::Stats;

/// One file. Field names and their order are those of the JSON schema.
#[derive(Serialize)]
pub struct Info {
    schema: u32,
    pub file: String,
    pub format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Layer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Blob>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<Blob>,
    /// Of a solver state; for people alone.
    #[serde(skip)]
    pub iteration: Option<i32>,
}

#[derive(Serialize)]
pub struct Layer {
    pub name: String,
    #[serde(rename = "type")]
    pub layer_type: String,
    pub blobs: Vec<Blob>,
}

#[derive(Serialize)]
pub struct Blob {
    pub shape: Vec<usize>,
    pub count: usize,
    pub dtype: &'static str,
    pub data: Option<Stats>,
    pub diff: Option<Stats>,
}

pub struct Reader {
    options: OpenOptions,
}

impl Reader {
    pub fn new(format: Option<Format>) -> Result<Self> {
        // Freed buffers are not kept: the next blob is rarely as large.
        let context = Context::builder().host_cache(false).build()?;
        let options = OpenOptions::new().context(&context);
        Ok(Self {
            options: match format {
                Some(format) => options.format(format),
                None => options,
            },
        })
    }

    /// Everything about a file, or the first thing wrong with it.
    pub fn read(&self, file: &Path) -> Result<Info> {
        let model = self.options.open(file)?;
        let progress = Progress::new(stored_bytes(&model));
        let mut info = Info {
            schema: 1,
            file: file.as_os_str().to_string_lossy().into_owned(),
            format: model.format().name(),
            name: None,
            layers: None,
            history: None,
            blob: None,
            iteration: None,
        };
        match model.format() {
            Format::Blob => info.blob = read_blobs(model.blobs(), &progress)?.pop(),
            Format::Solverstate => {
                info.history = Some(read_blobs(model.blobs(), &progress)?);
                info.iteration = model.iteration().ok();
            }
            _ => {
                info.name = Some(model.name().into_owned());
                info.layers = Some(read_layers(&model, &progress)?);
            }
        }
        Ok(info)
    }
}

fn stored_bytes(model: &Model) -> u64 {
    let in_layers = model.layers().flat_map(|layer| layer.blobs());
    in_layers.chain(model.blobs()).map(|blob| blob.info().size() as u64).sum()
}

fn read_layers(model: &Model, progress: &Progress) -> Result<Vec<Layer>> {
    let read = |layer: syncblob::Layer| {
        Ok(Layer {
            name: layer.name().into_owned(),
            layer_type: layer.layer_type().into_owned(),
            blobs: read_blobs(layer.blobs(), progress)?,
        })
    };
    model.layers().map(read).collect()
}

fn read_blobs<'m>(
    blobs: impl Iterator<Item = StoredBlob<'m>>,
    progress: &Progress,
) -> Result<Vec<Blob>> {
    blobs.map(|blob| read_blob(&blob, progress)).collect()
}

fn read_blob(stored: &StoredBlob, progress: &Progress) -> Result<Blob> {
    let info = stored.info();
    let loaded = stored.load_any()?;
    let (data, diff) = stats_of(&loaded, info.diff_count() > 0)?;
    progress.advance(info.size() as u64);
    Ok(Blob {
        shape: info.shape().to_vec(),
        count: info.count(),
        dtype: info.dtype().name(),
        data,
        diff,
    })
}

fn stats_of(blob: &BlobAny, has_diff: bool) -> Result<(Option<Stats>, Option<Stats>)> {
    match blob {
        BlobAny::F32(blob) => stats_of_typed(blob, has_diff),
        BlobAny::F64(blob) => stats_of_typed(blob, has_diff),
        other => unreachable!("load_any gives f32 or f64, not {}", other.dtype()),
    }
}

fn stats_of_typed<T>(
    blob: &syncblob::Blob<T>,
    has_diff: bool,
) -> Result<(Option<Stats>, Option<Stats>), Error>
where
    T: syncblob::Float + crate::stats::Value,
{
    let data = match blob.count() {
        0 => None,
        _ => Some(Stats::of(blob.data()?)),
    };
    let diff = match has_diff {
        true => Some(Stats::of(blob.diff()?)),
        false => None,
    };
    Ok((data, diff))
}
