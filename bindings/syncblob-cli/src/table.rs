//! Prints `info` as a table for human readers.

use std::io::{self, Write};

use syncblob::Format;
use unicode_width::UnicodeWidthStr;

use crate::info::{Blob, Blobs, Info};
use crate::net;
use crate::stats::Stats;
use crate::text::{grouped, printable, shortened};

const COLUMNS: usize = 10;

const HEADINGS: [&str; COLUMNS] =
    ["layer", "type", "blob", "shape", "dtype", "count", "bytes", "sum", "asum", "sumsq"];

/// The index of the first column of numbers. This column and all later columns are right-aligned.
const NUMBERS: usize = 5;

/// Longer names are shortened to this many characters.
pub const NAME: usize = 60;

type Cells = [String; COLUMNS];

/// Writes one line about the file, then a table, then notes, then an empty line. To save memory,
/// formats the rows once for the columns' widths, and again for the output.
pub fn write(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let headings = HEADINGS.map(String::from);
    let mut widths = headings.each_ref().map(|cell| cell.width());
    each_row(info, &mut |row| {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = cell.width().max(*width);
        }
        Ok(())
    })?;
    writeln!(out, "{}", heading(info))?;
    write_cells(out, &headings, &widths, NUMBERS)?;
    each_row(info, &mut |row| write_cells(out, &row.cells(), &widths, NUMBERS))?;
    each_row(info, &mut |row| row.write_note(out))?;
    if let Some(net) = &info.net {
        net::write_ends(out, net)?;
    }
    writeln!(out)
}

/// Writes a line of cells. The columns from index `numbers` on are right-aligned.
pub fn write_cells<const N: usize>(
    out: &mut impl Write,
    cells: &[String; N],
    widths: &[usize; N],
    numbers: usize,
) -> io::Result<()> {
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let room = " ".repeat(width - cell.width());
        let [left, right] = if index < numbers { ["", &*room] } else { [&*room, ""] };
        line.extend([" ", left, cell, right, " "]);
    }
    writeln!(out, "{}", line.trim_end())
}

fn heading(info: &Info) -> String {
    let model = &info.model;
    let mut words = vec![model.format().name().to_string()];
    let name = model.name();
    if !name.is_empty() {
        words.push(format!("\"{}\"", shortened(&name, NAME)));
    }
    if let Ok(solver) = model.solver_info() {
        words.push(format!("iteration {}, step {}", solver.iteration, solver.current_step));
        let net = solver.learned_net.to_string_lossy();
        if !net.is_empty() {
            words.push(format!("net \"{}\"", shortened(&net, NAME)));
        }
    }
    if model.format() == Format::Caffemodel {
        words.push(how_many(model.num_layers(), "layer"));
    }
    words.push(how_many(info.all().len(), "blob"));
    let values = info.all().iter().map(|blob| blob.count()).fold(0, usize::saturating_add);
    words.push(how_many(values, "value"));
    format!("{}: {}", printable(&info.file), words.join(", "))
}

/// A row: a layer without blobs, the data of a blob, or the diff of a blob.
struct Row<'a> {
    layer: &'a str,
    layer_type: &'a str,
    index: String,
    of: Option<(Blob<'a>, Option<&'a Stats>)>,
}

fn each_row(info: &Info, row: &mut impl FnMut(Row) -> io::Result<()>) -> io::Result<()> {
    for (layer, blobs) in info.layers() {
        let name = shortened(&layer.name(), NAME);
        let layer_type = shortened(&layer.layer_type(), NAME);
        if blobs.len() == 0 {
            row(Row { layer: &name, layer_type: &layer_type, index: "-".into(), of: None })?;
        }
        each_blob([&*name, &*layer_type], blobs, row)?;
    }
    let owner = if info.model.format() == Format::Blob { "blob" } else { "history" };
    each_blob([owner, ""], info.others(), row)
}

fn each_blob(
    [layer, layer_type]: [&str; 2],
    blobs: Blobs,
    row: &mut impl FnMut(Row) -> io::Result<()>,
) -> io::Result<()> {
    for (index, blob) in blobs.iter().enumerate() {
        let of = Some((blob, blob.data));
        row(Row { layer, layer_type, index: index.to_string(), of })?;
        if let Some(diff) = blob.diff {
            let of = Some((blob, Some(diff)));
            row(Row { layer, layer_type, index: format!("{index} diff"), of })?;
        }
    }
    Ok(())
}

impl Row<'_> {
    fn cells(&self) -> Cells {
        let mut cells = Cells::default();
        cells[0] = self.layer.into();
        cells[1] = self.layer_type.into();
        cells[2].clone_from(&self.index);
        if let Some((blob, stats)) = self.of {
            let sum = |pick: fn(&Stats) -> f64| stats.map_or("-".into(), |s| number(pick(s)));
            cells[3] = shape(blob.shape);
            cells[4] = blob.dtype.name().into();
            cells[5] = grouped(blob.count());
            cells[6] = grouped(blob.count().saturating_mul(blob.dtype.size()));
            cells[7] = sum(|stats| stats.sum);
            cells[8] = sum(|stats| stats.asum);
            cells[9] = sum(|stats| stats.sumsq);
        }
        cells
    }

    fn write_note(&self, out: &mut impl Write) -> io::Result<()> {
        let left_out = self.of.and_then(|(_, stats)| stats).map_or(0, |stats| stats.nonfinite);
        if left_out == 0 {
            return Ok(());
        }
        let (count, Row { layer, index, .. }) = (grouped(left_out), self);
        writeln!(out, "{layer} {index}: {count} values are not finite; the sums exclude them")
    }
}

pub fn shape(dims: &[usize]) -> String {
    match dims {
        [] => "scalar".into(),
        dims => dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Formats a value with seven significant digits. Very small or large values have an exponent.
pub fn number(value: f64) -> String {
    digits(value, 7)
}

/// Formats a value with `digits` significant digits. Very small or large values have an exponent.
pub fn digits(value: f64, digits: usize) -> String {
    if value == 0.0 || !(1e-4..1e9).contains(&value.abs()) {
        return if value == 0.0 { "0".into() } else { format!("{value:.*e}", digits - 1) };
    }
    let before_point = value.abs().log10().floor() as i64 + 1;
    format!("{value:.*}", usize::try_from(digits as i64 - before_point).unwrap_or(0))
}

/// Formats a count with a noun: "1 layer", "2 layers".
pub fn how_many(count: usize, noun: &str) -> String {
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
        assert_eq!(
            [0.0123456, 123456.0, -2e-9].map(|n| digits(n, 4)),
            ["0.01235", "123456", "-2.000e-9"]
        );
    }

    #[test]
    fn a_count_of_one_is_singular() {
        assert_eq!(
            (how_many(1, "blob"), how_many(1000, "blob")),
            ("1 blob".into(), "1,000 blobs".into())
        );
    }
}
