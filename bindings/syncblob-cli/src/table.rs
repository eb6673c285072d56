//! The table for people.

use comfy_table::{presets, Cell, CellAlignment, Table};

use crate::info::{Blob, Info};
use crate::stats::Stats;
use crate::text::{grouped, printable, shortened};

const HEADINGS: [&str; 10] =
    ["layer", "type", "blob", "shape", "dtype", "count", "bytes", "sum", "asum", "sumsq"];

/// Columns that are numbers, from this one on.
const NUMBERS: usize = 5;

/// Characters of a name that are shown.
const NAME: usize = 60;

/// A line about the file, a table, and an empty line.
pub fn text(info: &Info) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(HEADINGS);
    let mut notes = Vec::new();
    for layer in info.layers.iter().flatten() {
        let name = shortened(&layer.name, NAME);
        let layer_type = shortened(&layer.layer_type, NAME);
        if layer.blobs.is_empty() {
            table.add_row([&*name, &*layer_type, "-"]);
        }
        add_blobs(&mut table, &mut notes, [&*name, &*layer_type], &layer.blobs);
    }
    add_blobs(&mut table, &mut notes, ["history", ""], info.history.as_deref().unwrap_or(&[]));
    add_blobs(&mut table, &mut notes, ["blob", ""], info.blob.as_slice());
    for index in NUMBERS..HEADINGS.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let rows: String = table.lines().map(|line| line.trim_end().to_string() + "\n").collect();
    format!("{}\n{rows}{}\n", heading(info), notes.concat())
}

fn heading(info: &Info) -> String {
    let blobs = || {
        let in_layers = info.layers.iter().flatten().flat_map(|layer| &layer.blobs);
        in_layers.chain(info.history.iter().flatten()).chain(&info.blob)
    };
    let mut words = vec![info.format.to_string()];
    if let Some(name) = info.name.as_deref().filter(|name| !name.is_empty()) {
        words.push(format!("\"{}\"", shortened(name, NAME)));
    }
    if let Some(iteration) = info.iteration {
        words.push(format!("iteration {iteration}"));
    }
    if let Some(layers) = &info.layers {
        words.push(how_many(layers.len(), "layer"));
    }
    words.push(how_many(blobs().count(), "blob"));
    let values = blobs().map(|blob| blob.count).fold(0, usize::saturating_add);
    words.push(how_many(values, "value"));
    format!("{}: {}", printable(&info.file), words.join(", "))
}

fn add_blobs(table: &mut Table, notes: &mut Vec<String>, owner: [&str; 2], blobs: &[Blob]) {
    for (index, blob) in blobs.iter().enumerate() {
        add_row(table, notes, owner, index.to_string(), blob, blob.data.as_ref());
        if let Some(diff) = &blob.diff {
            add_row(table, notes, owner, format!("{index} diff"), blob, Some(diff));
        }
    }
}

fn add_row(
    table: &mut Table,
    notes: &mut Vec<String>,
    [name, layer_type]: [&str; 2],
    index: String,
    blob: &Blob,
    stats: Option<&Stats>,
) {
    if let Some(stats) = stats.filter(|stats| stats.nonfinite > 0) {
        let count = grouped(stats.nonfinite);
        notes
            .push(format!("{name} {index}: {count} values are not finite, left out of the sums\n"));
    }
    let sum = |pick: fn(&Stats) -> f64| Cell::new(stats.map_or("-".into(), |s| number(pick(s))));
    let size = if blob.dtype == "f64" { 8 } else { 4 };
    table.add_row([
        Cell::new(name),
        Cell::new(layer_type),
        Cell::new(index),
        Cell::new(shape(&blob.shape)),
        Cell::new(blob.dtype),
        Cell::new(grouped(blob.count)),
        Cell::new(grouped(blob.count.saturating_mul(size))),
        sum(|stats| stats.sum),
        sum(|stats| stats.asum),
        sum(|stats| stats.sumsq),
    ]);
}

fn shape(dims: &[usize]) -> String {
    match dims {
        [] => "scalar".into(),
        dims => dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Seven digits, in whichever form is readable.
fn number(value: f64) -> String {
    if value == 0.0 || !(1e-4..1e9).contains(&value.abs()) {
        return if value == 0.0 { "0".into() } else { format!("{value:.6e}") };
    }
    let before_point = value.abs().log10().floor() as i32;
    format!("{value:.*}", usize::try_from(6 - before_point).unwrap_or(0))
}

/// "1 layer", "2 layers".
fn how_many(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_seven_digits() {
        let cases = [
            (0.0, "0"),
            (-0.275943, "-0.2759430"),
            (0.00011234567, "0.0001123457"),
            (45021175.2, "45021175"),
            (99.9999999, "100.00000"),
            (1.5e-5, "1.500000e-5"),
            (-2e9, "-2.000000e9"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn one_is_not_a_plural() {
        assert_eq!(
            (how_many(1, "blob"), how_many(1000, "blob")),
            ("1 blob".into(), "1,000 blobs".into())
        );
    }
}
