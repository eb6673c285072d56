//! Prints each layer's blobs with their shapes and the range of their values, and reports
//! suspicious values.
//!
//! ```sh
//! cargo run --example model_inspector -- resnet.caffemodel
//! ```

use std::fmt::Write;
use std::path::Path;
use std::{env, process};

use syncblob::{Limits, OpenOptions, StoredBlob};

fn main() {
    let Some(path) = env::args_os().nth(1) else {
        eprintln!("usage: model_inspector FILE");
        process::exit(2);
    };
    match inspect(path.as_ref()) {
        Ok(report) => print!("{report}"),
        Err(error) => {
            eprintln!("{}: {error:?}", Path::new(&path).display());
            process::exit(1);
        }
    }
}

#[derive(Default)]
struct Values {
    count: usize,
    zeros: usize,
    not_finite: usize,
    sum: f64,
    range: Option<(f32, f32)>,
}

impl Values {
    fn see(&mut self, value: f32) {
        self.count += 1;
        if !value.is_finite() {
            self.not_finite += 1;
            return;
        }
        self.zeros += usize::from(value == 0.0);
        self.sum += f64::from(value);
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
    }

    fn complaint(&self) -> Option<String> {
        match self {
            Self { not_finite: 1.., .. } => Some(format!("{} not finite", self.not_finite)),
            Self { count: 1.., .. } if self.zeros == self.count => Some("all zero".into()),
            _ => None,
        }
    }
}

/// Returns the report. Only one blob is in memory at a time.
pub fn inspect(path: &Path) -> syncblob::Result<String> {
    let limits = Limits::new().max_memory(1 << 30); // the file is untrusted
    let model = OpenOptions::new().limits(limits).open(path)?;
    let mut report = String::new();
    let (mut parameters, mut complaints) = (0, 0);
    let _ =
        writeln!(report, "{} {:?}, {} layers", model.format(), model.name(), model.num_layers());
    for layer in model.layers().filter(|layer| layer.num_blobs() > 0) {
        let (name, kind) = (layer.name(), layer.layer_type());
        let _ = writeln!(report, "{} ({})", name.escape_debug(), kind.escape_debug());
        for stored in layer.blobs() {
            let stored = stored?;
            let values = look_at(&stored)?;
            parameters += values.count;
            complaints += usize::from(values.complaint().is_some());
            describe(&mut report, &stored, &values);
        }
    }
    for stored in model.blobs() {
        let stored = stored?;
        describe(&mut report, &stored, &look_at(&stored)?);
    }
    let _ = writeln!(report, "{parameters} parameters, {complaints} blobs look wrong");
    Ok(report)
}

fn look_at(stored: &StoredBlob) -> syncblob::Result<Values> {
    let blob = stored.load::<f32>()?;
    let mut values = Values::default();
    blob.data()?.iter().for_each(|&value| values.see(value));
    Ok(values)
}

fn describe(report: &mut String, stored: &StoredBlob, values: &Values) {
    let (low, high) = values.range.unwrap_or_default();
    let mean = values.sum / (values.count - values.not_finite).max(1) as f64;
    let shape = format!("{:?}", stored.info().shape());
    let _ = write!(report, "    {shape:<20} {low:>12.5} .. {high:<12.5} mean {mean:.5}");
    let _ =
        writeln!(report, "{}", values.complaint().map_or(String::new(), |c| format!("  ! {c}")));
}
