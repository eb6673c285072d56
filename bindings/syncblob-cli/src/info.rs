//! Computes the data that `info` prints, with one blob at a time in memory.

use std::path::Path;
use std::sync::Arc;

use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};
use syncblob::{
    BlobAt, Context, Dtype, Float, Format, Layer, Model, OpenOptions, Result, SolverInfo,
    StoredBlob,
};

use crate::net::Listing;
use crate::progress::Progress;
use crate::stats::{Stats, Value};

/// The contents of one file. A file may have a million blobs of a few bytes each. Blobs have no
/// separate allocations: the three vectors describe all blobs.
pub struct Info {
    pub file: String,
    pub model: Arc<Model>,
    /// The net that the model contains, if any.
    pub net: Option<Listing>,
    /// The layers' blobs, in the order of the layers, or all blobs of a file without layers.
    blobs: Vec<Kept>,
    dims: Vec<usize>,
    stats: Vec<Stats>,
}

/// A blob's type, and the indices of its first entries in `dims` and `stats`. A blob has `axes`
/// entries in `dims`. In `stats` a blob has an entry for its data, if any, then an entry for its
/// diff, if any.
struct Kept {
    first_dim: u32,
    first_stats: u32,
    axes: u8,
    dtype: Dtype,
    has_data: bool,
    has_diff: bool,
}

#[derive(Clone, Copy)]
pub struct Blob<'a> {
    pub shape: &'a [usize],
    pub dtype: Dtype,
    pub data: Option<&'a Stats>,
    pub diff: Option<&'a Stats>,
}

impl Blob<'_> {
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

#[derive(Clone, Copy)]
pub struct Blobs<'a> {
    info: &'a Info,
    kept: &'a [Kept],
}

impl<'a> Blobs<'a> {
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn iter(self) -> impl Iterator<Item = Blob<'a>> {
        self.kept.iter().map(move |kept| self.info.blob(kept))
    }
}

impl Info {
    pub fn layers(&self) -> impl Iterator<Item = (Layer<'_>, Blobs<'_>)> {
        let mut rest = &self.blobs[..];
        self.model.layers().map(move |layer| {
            let (kept, others) = rest.split_at(layer.num_blobs());
            rest = others;
            (layer, Blobs { info: self, kept })
        })
    }

    pub fn others(&self) -> Blobs<'_> {
        match self.model.format() {
            Format::Caffemodel => Blobs { info: self, kept: &[] },
            _ => self.all(),
        }
    }

    pub fn all(&self) -> Blobs<'_> {
        Blobs { info: self, kept: &self.blobs }
    }

    fn blob(&self, kept: &Kept) -> Blob<'_> {
        let mut stats = self.stats[kept.first_stats as usize..].iter();
        let mut next = |there: bool| if there { stats.next() } else { None };
        Blob {
            shape: &self.dims[kept.first_dim as usize..][..kept.axes.into()],
            dtype: kept.dtype,
            data: next(kept.has_data),
            diff: next(kept.has_diff),
        }
    }
}

// The JSON form has the fields of schema/info-v1.schema.json, in the same order.

impl Serialize for Info {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let format = self.model.format();
        let mut fields = serializer.serialize_struct("Info", 8)?;
        fields.serialize_field("schema", &1)?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("format", format.name())?;
        match format {
            Format::Blob => fields.serialize_field("blob", &self.all().iter().next())?,
            Format::Solverstate => {
                let SolverInfo { iteration, current_step, learned_net, .. } =
                    self.model.solver_info().map_err(S::Error::custom)?;
                fields.serialize_field("iter", &iteration)?;
                fields.serialize_field("current_step", &current_step)?;
                fields.serialize_field("learned_net", &learned_net.to_string_lossy())?;
                fields.serialize_field("history", &self.all())?;
            }
            _ => {
                fields.serialize_field("name", &self.model.name())?;
                fields.serialize_field("layers", &Layers(self))?;
                fields.serialize_field("net", &self.net)?;
            }
        }
        fields.end()
    }
}

struct Layers<'a>(&'a Info);

impl Serialize for Layers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.layers().map(|(layer, blobs)| OneLayer(layer, blobs)))
    }
}

struct OneLayer<'a>(Layer<'a>, Blobs<'a>);

impl Serialize for OneLayer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Layer", 3)?;
        fields.serialize_field("name", &self.0.name())?;
        fields.serialize_field("type", &self.0.layer_type())?;
        fields.serialize_field("blobs", &self.1)?;
        fields.end()
    }
}

impl Serialize for Blobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Blob", 5)?;
        fields.serialize_field("shape", self.shape)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("dtype", self.dtype.name())?;
        fields.serialize_field("data", &self.data)?;
        fields.serialize_field("diff", &self.diff)?;
        fields.end()
    }
}

pub struct Reader {
    options: OpenOptions,
    with_digests: bool,
}

impl Reader {
    pub fn new(format: Option<Format>, with_digests: bool) -> Result<Self> {
        // Disables the cache of freed buffers, because the next blob rarely has the same size.
        let context = Context::builder().host_cache(false).build()?;
        let options = OpenOptions::new().context(&context);
        Ok(Self {
            options: match format {
                Some(format) => options.format(format),
                None => options,
            },
            with_digests,
        })
    }

    /// Fails at the first error in the file.
    pub fn read(&self, file: &Path) -> Result<Info> {
        let model = self.options.open(file)?;
        let file = file.as_os_str().to_string_lossy().into_owned();
        let (mut info, bytes) = with_room(file, Arc::new(model))?;
        let progress = Progress::new(bytes);
        let Info { model, blobs, dims, stats, .. } = &mut info;
        for at in places(model) {
            let stored = model.blob(at)?;
            let shape = stored.info().shape();
            let (first_dim, first_stats) = (index(dims.len()), index(stats.len()));
            let (data, diff) = stats_of(&stored, self.with_digests)?;
            blobs.push(Kept {
                first_dim,
                first_stats,
                axes: u8::try_from(shape.len()).expect("at most 32 axes"),
                dtype: stored.info().dtype(),
                has_data: data.is_some(),
                has_diff: diff.is_some(),
            });
            dims.extend(shape);
            stats.extend(data.into_iter().chain(diff));
            progress.advance(stored.info().size() as u64);
        }
        drop(progress);
        Ok(info)
    }
}

/// Returns an `Info` whose empty vectors have room for all blobs, and the total size of all blobs.
fn with_room(file: String, model: Arc<Model>) -> Result<(Info, u64)> {
    let (mut blobs, mut dims, mut stats, mut bytes) = (0, 0, 0, 0);
    for at in places(&model) {
        let stored = model.blob(at)?;
        blobs += 1;
        dims += stored.info().shape().len();
        stats += usize::from(stored.info().count() > 0) + usize::from(has_diff(&stored));
        bytes += stored.info().size() as u64;
    }
    let (blobs, dims, stats) =
        (Vec::with_capacity(blobs), Vec::with_capacity(dims), Vec::with_capacity(stats));
    let net = Listing::of_model(&model);
    Ok((Info { file, model, net, blobs, dims, stats }, bytes))
}

/// Iterates over the layer and index of every blob, in the file's order.
pub fn places(model: &Model) -> impl Iterator<Item = BlobAt> + '_ {
    let in_layers = model.layers().flat_map(|layer| {
        let index = layer.index();
        (0..layer.num_blobs()).map(move |blob| BlobAt::from((index, blob)))
    });
    in_layers.chain((0..model.blobs().len()).map(BlobAt::from))
}

pub fn has_diff(stored: &StoredBlob) -> bool {
    stored.info().diff_count() > 0
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a file has fewer than 2^31 bytes")
}

/// Computes statistics of data and diff. May load the blob twice if data and diff have different
/// stored types.
fn stats_of(stored: &StoredBlob, digests: bool) -> Result<(Option<Stats>, Option<Stats>)> {
    let is_single = |dtype| matches!(dtype, Dtype::F32 | Dtype::F16);
    match (is_single(stored.info().dtype()), is_single(stored.info().diff_dtype())) {
        (true, true) => stats_as::<f32>(stored, digests),
        (false, false) => stats_as::<f64>(stored, digests),
        (true, false) => {
            Ok((stats_as::<f32>(stored, digests)?.0, stats_as::<f64>(stored, digests)?.1))
        }
        (false, true) => {
            Ok((stats_as::<f64>(stored, digests)?.0, stats_as::<f32>(stored, digests)?.1))
        }
    }
}

fn stats_as<T: Float + Value>(
    stored: &StoredBlob,
    digests: bool,
) -> Result<(Option<Stats>, Option<Stats>)> {
    let blob = stored.load::<T>()?;
    let data = match blob.count() {
        0 => None,
        _ => Some(Stats::of(blob.data()?, stored.info().dtype(), digests)),
    };
    let diff = match has_diff(stored) {
        true => Some(Stats::of(blob.diff()?, stored.info().diff_dtype(), digests)),
        false => None,
    };
    Ok((data, diff))
}
