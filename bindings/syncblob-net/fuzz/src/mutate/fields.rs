//! Makes prototxt text for fields that the schema lists, with random values of the fields' types.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Random, NUMBERS};

static SCHEMA: &str = include_str!("../../../schema/caffe.schema");

/// Types of layers, including all types in the schema's `when` conditions.
pub static TYPES: &[&str] = &[
    "AbsVal",
    "Accuracy",
    "ArgMax",
    "Axpy",
    "BNLL",
    "BatchNorm",
    "BatchReindex",
    "Bias",
    "Concat",
    "Convolution",
    "Convolution3D",
    "Crop",
    "Data",
    "Deconvolution",
    "DetectionOutput",
    "Dropout",
    "DummyData",
    "ELU",
    "Eltwise",
    "Embed",
    "Exp",
    "Flatten",
    "Im2col",
    "InnerProduct",
    "Input",
    "Interp",
    "LRN",
    "LSTM",
    "Log",
    "MVN",
    "Normalize",
    "PReLU",
    "Parameter",
    "Permute",
    "Pooling",
    "Pooling3D",
    "Power",
    "PriorBox",
    "Python",
    "RNN",
    "ReLU",
    "ReLU6",
    "Reduction",
    "Reorg",
    "Reshape",
    "Reverse",
    "SPP",
    "Scale",
    "ShuffleChannel",
    "Sigmoid",
    "Silence",
    "Slice",
    "Softmax",
    "SoftmaxWithLoss",
    "Split",
    "Swish",
    "TanH",
    "Threshold",
    "Tile",
    "Upsample",
];

/// The lines of the schema, grouped by message or enum.
pub struct Schema {
    blocks: BTreeMap<&'static str, Vec<Vec<&'static str>>>,
}

impl Schema {
    pub fn get() -> &'static Self {
        static READ: OnceLock<Schema> = OnceLock::new();
        READ.get_or_init(|| {
            let mut blocks: BTreeMap<_, Vec<Vec<_>>> = BTreeMap::new();
            let mut block = "";
            for line in SCHEMA.lines() {
                let line = line.split('#').next().unwrap_or_default();
                let words: Vec<&str> = line.split_whitespace().collect();
                match words.as_slice() {
                    [] => {}
                    ["message" | "enum", name] => block = name,
                    _ => blocks.entry(block).or_default().push(words),
                }
            }
            Self { blocks }
        })
    }

    /// Returns a random field, as text, of the message in the field `outer`.
    pub fn field(&self, outer: &[u8], random: &mut Random) -> Option<String> {
        let outer = std::str::from_utf8(outer).ok()?;
        let fields = self.blocks.values().flatten();
        let mut named = fields.filter(|line| line.len() > 2 && line[1] == outer);
        let lines = self.blocks.get(named.next()?[2])?;
        let line = &lines[random.below(lines.len())];
        let (name, kind) = (line.get(1)?, line.get(2)?);
        Some(match (*kind, self.blocks.get(kind)) {
            ("string" | "bytes", _) => format!("{name}: '{}'", TYPES[random.below(TYPES.len())]),
            ("bool", _) => format!("{name}: {}", ["true", "false"][random.below(2)]),
            (_, Some(values)) if values[0].len() == 2 => {
                format!("{name}: {}", values[random.below(values.len())][1])
            }
            (_, Some(_)) => format!("{name} {{ }}"),
            _ => format!("{name}: {}", NUMBERS[random.below(NUMBERS.len())]),
        })
    }
}
