//! Finds layers whose results depend on memory that two blobs share in Caffe. One layer works in
//! place on the first blob, and a later layer reads the second blob.

use std::collections::HashMap;
use std::iter::repeat;

use crate::net::Layer;
use crate::{Error, Problem, Result};

/// Layer types whose tops share the memory of the first bottom.
const ALIASES: &[&str] = &["Flatten", "Reshape", "Split"];

/// Layer types that change no values in phase TEST.
const PASSING: &[&str] = &["Dropout", "SpatialDropout"];

/// Returns layers whose results would be wrong: a layer that reads a blob whose memory another
/// layer has overwritten, and a layer that makes an output whose memory another layer overwrites.
pub(crate) fn problems(layers: &[Layer], outputs: &[String]) -> Vec<Problem> {
    let (mut memory, mut problems) = (Memory::default(), Vec::new());
    for (at, layer) in layers.iter().enumerate() {
        if let Err(error) = memory.run(layer) {
            problems.push(Problem::new(at, layer, &error));
        }
    }
    let tops = layers.iter().enumerate().flat_map(|(at, layer)| layer.tops.iter().zip(repeat(at)));
    let makers: HashMap<_, _> = tops.collect(); // the last layer that makes each blob
    for output in outputs {
        if let (Err(error), Some(&at)) = (memory.check(output), makers.get(output)) {
            problems.push(Problem::new(at, &layers[at], &error));
        }
    }
    problems
}

/// The effect of the previous layers on the memory of blobs. Processing a layer takes constant
/// time, even if many blobs share the same memory.
#[derive(Default)]
struct Memory<'n> {
    /// The blobs by name. An input is added when a layer first shares or overwrites the input's
    /// memory.
    blobs: HashMap<&'n str, Blob>,
    /// For each memory, by its `place`: the last overwrite, and the last overwrite through a
    /// different blob.
    overwrites: HashMap<usize, [Option<Overwrite<'n>>; 2]>,
    /// The last number that was given to a `place` or a `time`. Every new `place` or `time` gets
    /// the next.
    next: usize,
}

#[derive(Clone, Copy)]
struct Blob {
    place: usize,
    /// An overwrite with a larger `time` happened after the blob was made.
    since: usize,
}

#[derive(Clone, Copy)]
struct Overwrite<'n> {
    by: &'n Layer,
    through: &'n str,
    time: usize,
}

impl<'n> Memory<'n> {
    /// Processes a layer. Fails if a bottom's memory was overwritten through a blob with another
    /// name.
    fn run(&mut self, layer: &'n Layer) -> Result<()> {
        let read = layer.bottoms.iter().try_for_each(|bottom| self.check(bottom));
        for (index, top) in layer.tops.iter().enumerate() {
            match layer.is_in_place(index) {
                true if PASSING.contains(&layer.layer_type.as_str()) => {}
                true => self.overwrite(top, layer),
                false => self.make(top, layer),
            }
        }
        read
    }

    /// Fails if a layer has overwritten the blob through another name since the blob was made.
    fn check(&self, blob: &str) -> Result<()> {
        match self.overwritten(blob) {
            None => Ok(()),
            Some(by) => Err(Error::unsupported(format_args!(
                "'{}' is overwritten by {by}, which works in place on the same memory",
                blob.escape_default()
            ))),
        }
    }

    /// Returns the last layer that overwrote a blob through another name.
    fn overwritten(&self, name: &str) -> Option<&'n Layer> {
        let blob = self.blobs.get(name)?;
        let overwrites = self.overwrites.get(&blob.place)?.iter().flatten();
        let last = overwrites.clone().find(|overwrite| overwrite.through != name)?;
        (last.time > blob.since).then_some(last.by)
    }

    fn make(&mut self, top: &'n str, layer: &'n Layer) {
        let place = match layer.bottoms.first() {
            Some(bottom) if is_alias(layer) => self.place(bottom),
            _ => self.fresh(),
        };
        self.blobs.insert(top, Blob { place, since: self.next });
    }

    fn overwrite(&mut self, top: &'n str, layer: &'n Layer) {
        let place = self.place(top);
        let overwrite = Overwrite { by: layer, through: top, time: self.fresh() };
        let [last, other] = self.overwrites.entry(place).or_default();
        if last.is_some_and(|last| last.through != top) {
            *other = *last;
        }
        *last = Some(overwrite);
    }

    fn place(&mut self, name: &'n str) -> usize {
        if let Some(blob) = self.blobs.get(name) {
            return blob.place;
        }
        let place = self.fresh();
        self.blobs.insert(name, Blob { place, since: place });
        place
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }
}

/// Returns whether the layer's tops share the memory of its first bottom. As in Caffe, returns true
/// for a Concat with one bottom and for a Slice with one top.
fn is_alias(layer: &Layer) -> bool {
    match layer.layer_type.as_str() {
        "Concat" => layer.bottoms.len() == 1,
        "Slice" => layer.tops.len() == 1,
        other => ALIASES.contains(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::problems;
    use crate::{Net, NetOptions};

    const CASES: &[(&str, &[&str])] = &[
        // The Power reads memory that the ReLU has overwritten.
        ("Flatten a f|ReLU f f|Power a z", &["Power"]),
        ("Reshape a f|ReLU f f|Power a z", &["Power"]),
        ("Concat a f|ReLU f f|Power a z", &["Power"]),
        ("Slice a f|ReLU f f|Power a z", &["Power"]),
        ("Split a f g|ReLU f f|Power g z", &["Power"]),
        ("Flatten a f|Flatten f g|ReLU g g|Power a z", &["Power"]),
        // The ReLU overwrites an output of the net.
        ("Split a f g|ReLU f f", &["Split"]),
        // No layer reads the overwritten memory.
        ("Flatten a f|Power a z|ReLU f f", &[]),
        ("Flatten a f|ReLU f f", &[]),
        ("Power a f|ReLU f f|Power a z", &[]),
        ("Slice a f g|ReLU f f|Power a z", &[]),
        ("Flatten a f|Dropout f f|Power a z", &[]),
        ("Flatten a f|Power f g|ReLU g g|Power a z", &[]),
    ];

    #[test]
    fn layers_that_read_overwritten_memory_are_refused() {
        for (layers, wanted) in CASES {
            let layers = layers.split('|').map(|layer| {
                let mut words = layer.split(' ');
                let (kind, bottom) = (words.next().unwrap(), words.next().unwrap());
                let tops: String = words.map(|top| format!(" top: '{top}'")).collect();
                format!("layer {{ name: '{kind}' type: '{kind}' bottom: '{bottom}'{tops} }}")
            });
            let text: String = layers.collect();
            let text = format!("input: 'a' input_shape {{ dim: 1 dim: 4 }} {text}");
            let net = Net::from_prototxt(text.as_bytes(), &NetOptions::default()).unwrap();
            let problems = problems(&net.layers, &net.outputs);
            let names: Vec<&str> = problems.iter().map(|problem| &*problem.layer).collect();
            assert_eq!(names, *wanted, "{text}");
        }
    }
}
