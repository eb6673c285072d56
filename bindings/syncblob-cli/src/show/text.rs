//! Prints a histogram as text.

use std::io::{self, Write};

use crate::source::Tensor;
use crate::summary::{Summary, BINS};
use crate::table::{how_many, number, shape};
use crate::text::{grouped, printable, shortened};
use crate::values::indices;

/// Longer names are shortened to this many characters.
const NAME: usize = 60;

pub fn heading(out: &mut impl Write, tensor: &Tensor, layer_type: Option<&str>) -> io::Result<()> {
    let layer_type = layer_type.map_or(String::new(), |t| format!(" ({})", shortened(t, NAME)));
    let (name, count) = (shortened(&tensor.name, NAME), how_many(tensor.count(), "value"));
    writeln!(out, "{name}{layer_type}: {}, {count}", shape(&tensor.shape))
}

pub fn note(out: &mut impl Write, why: &str) -> io::Result<()> {
    writeln!(out, "  {}\n", printable(why))
}

/// Writes a histogram, the mean, the standard deviation and the largest values. If `is_alone` is
/// true, each bin of the histogram has a line. Otherwise all bins share a line.
pub fn distribution(
    out: &mut impl Write,
    tensor: &Tensor,
    summary: &Summary,
    is_alone: bool,
) -> io::Result<()> {
    if summary.nonfinite > 0 {
        writeln!(out, "  {} not finite", grouped(summary.nonfinite))?;
    }
    if let Some(range) = summary.range {
        match is_alone {
            true => bars(out, range, &summary.bins)?,
            false => line(out, range, &summary.bins)?,
        }
        let (mean, deviation) = (number(summary.mean), number(summary.deviation));
        writeln!(out, "  mean {mean}, standard deviation {deviation}")?;
        let at = |&(value, offset): &(f64, usize)| {
            format!("{} at {:?}", number(value), indices(&tensor.shape, offset))
        };
        let largest: Vec<_> = summary.largest.iter().map(at).collect();
        writeln!(out, "  largest: {}", largest.join(", "))?;
    }
    writeln!(out)
}

const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Converts a `count` from 0 to `most` into a number from 0 to `steps`. Only a `count` of 0 becomes
/// 0.
fn part(count: usize, most: usize, steps: usize) -> usize {
    (count as f64 / most.max(1) as f64 * steps as f64).ceil() as usize
}

fn line(out: &mut impl Write, (min, max): (f64, f64), bins: &[usize; BINS]) -> io::Result<()> {
    let most = bins.iter().copied().max().unwrap_or(0);
    let height = |&count| HEIGHTS[part(count, most, HEIGHTS.len() - 1)];
    let heights: String = bins.iter().map(height).collect();
    writeln!(out, "  {} [{heights}] {}", number(min), number(max))
}

/// The length of the longest bar.
const BAR: usize = 50;

fn bars(out: &mut impl Write, (min, max): (f64, f64), bins: &[usize; BINS]) -> io::Result<()> {
    let most = bins.iter().copied().max().unwrap_or(0);
    for (index, &count) in bins.iter().enumerate() {
        let share = index as f64 / BINS as f64;
        let from = number(min * (1.0 - share) + max * share);
        let bar = "█".repeat(part(count, most, BAR));
        writeln!(out, "  {from:>14} {bar:<BAR$} {:>13}", grouped(count))?;
    }
    writeln!(out, "  {:>14}", number(max))
}
