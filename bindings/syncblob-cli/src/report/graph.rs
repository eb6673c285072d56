//! Draws a net as inline SVG. Each layer has a row, in execution order. Each blob has a lane, which
//! runs from the layer that makes the blob down to the last layer that reads it.

use std::collections::HashMap;
use std::fmt::Write;

use maud::{html, Markup};

use crate::net::{Blob, Listing};
use crate::text::{grouped, shortened};

/// The maximum number of drawn rows, so that the page opens quickly.
const MAX_ROWS: usize = 600;
/// The maximum number of lanes. Additional blobs share the last lane.
const MAX_LANES: usize = 24;
/// The maximum number of bottoms, of tops, and of shapes that a row shows.
const MAX_BLOBS: usize = 64;
const MAX_SHAPES: usize = 3;
/// Longer names are shortened to this many characters.
const NAME: usize = 40;

const ROW: usize = 22;
const LANE: usize = 14;
/// The width in pixels of the text to the right of the lanes.
const WIDTH: usize = 760;

/// A layer or an input.
struct Row<'a> {
    name: &'a str,
    what: &'a str,
    bottoms: Vec<&'a str>,
    tops: Vec<Blob<'a>>,
}

fn rows(net: &Listing) -> Vec<Row<'_>> {
    let inputs = net.inputs().map(|input| Row {
        name: input.name,
        what: "input",
        bottoms: Vec::new(),
        tops: vec![input],
    });
    let layers = net.layers().iter().map(|layer| Row {
        name: layer.name(),
        what: layer.layer_type(),
        bottoms: layer.bottoms().iter().take(MAX_BLOBS).map(String::as_str).collect(),
        tops: layer.tops().iter().take(MAX_BLOBS).map(|top| net.blob(top)).collect(),
    });
    inputs.chain(layers).take(MAX_ROWS).collect()
}

/// The values of a blob, from the row that writes them to the next row that overwrites them.
struct Value {
    made: usize,
    lane: usize,
    readers: Vec<usize>,
}

/// The values that pass from rows to later rows, and the lane of each row.
struct Plan {
    values: Vec<Value>,
    lanes: Vec<usize>,
}

impl Plan {
    fn of(rows: &[Row]) -> Self {
        let mut plan = Self { values: Vec::new(), lanes: Vec::new() };
        let of_rows = plan.link(rows);
        plan.place(&of_rows);
        plan
    }

    /// Creates the values. Returns for each row the values that it reads and the values that it
    /// makes.
    fn link(&mut self, rows: &[Row]) -> Vec<[Vec<usize>; 2]> {
        let mut last: HashMap<&str, usize> = HashMap::new();
        let mut of_rows = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let mut reads: Vec<usize> =
                row.bottoms.iter().filter_map(|name| last.get(name).copied()).collect();
            reads.sort_unstable();
            reads.dedup();
            reads.iter().for_each(|&value| self.values[value].readers.push(at));
            let makes = row.tops.iter().map(|top| {
                last.insert(top.name, self.values.len());
                self.values.push(Value { made: at, lane: 0, readers: Vec::new() });
                self.values.len() - 1
            });
            let makes = makes.collect();
            of_rows.push([reads, makes]);
        }
        of_rows
    }

    /// Assigns the first free lane to each row. A value's lane becomes free at the last row that
    /// reads the value.
    fn place(&mut self, of_rows: &[[Vec<usize>; 2]]) {
        let mut taken = [false; MAX_LANES];
        let free = |taken: &mut [bool; MAX_LANES]| {
            let lane = taken.iter().position(|taken| !taken).unwrap_or(MAX_LANES - 1);
            taken[lane] = true;
            lane
        };
        for (at, [reads, makes]) in of_rows.iter().enumerate() {
            let ends =
                reads.iter().filter(|&&value| self.values[value].readers.last() == Some(&at));
            for &value in ends {
                taken[self.values[value].lane] = false;
            }
            let own = free(&mut taken);
            self.lanes.push(own);
            for (index, &value) in makes.iter().enumerate() {
                let is_read = !self.values[value].readers.is_empty();
                self.values[value].lane = match index {
                    0 => own,
                    _ if is_read => free(&mut taken),
                    _ => own,
                };
            }
            if makes.first().is_none_or(|&value| self.values[value].readers.is_empty()) {
                taken[own] = false;
            }
        }
    }

    fn width(&self) -> usize {
        let lanes = self.values.iter().map(|value| value.lane).chain(self.lanes.iter().copied());
        (lanes.max().unwrap_or(0) + 1) * LANE
    }

    fn edges(&self) -> String {
        let mut path = String::new();
        for value in &self.values {
            let Some(&last) = value.readers.last() else { continue };
            let (from, x) = (self.lanes[value.made], x(value.lane));
            let start = if from == value.lane {
                format!("M{x} {}", y(value.made))
            } else {
                format!("M{} {}L{x} {}", self::x(from), y(value.made), y(value.made) + ROW / 2)
            };
            let _ = write!(path, "{start}V{}", y(last) - ROW / 2); // writes to a String never fail
            for &reader in &value.readers {
                let _ = write!(
                    path,
                    "M{x} {}L{} {}",
                    y(reader) - ROW / 2,
                    self::x(self.lanes[reader]),
                    y(reader)
                );
            }
        }
        path
    }

    fn nodes(&self) -> String {
        let node = |(at, &lane): (usize, &usize)| {
            format!("M{} {}a4 4 0 1 0 8 0a4 4 0 1 0-8 0", x(lane) - 4, y(at))
        };
        self.lanes.iter().enumerate().map(node).collect()
    }
}

fn x(lane: usize) -> usize {
    lane * LANE + LANE / 2
}

fn y(row: usize) -> usize {
    row * ROW + ROW / 2
}

/// Returns the drawing. If only a part of the net is drawn, a line shows the number of drawn inputs
/// and layers.
pub fn graph(net: &Listing) -> Markup {
    let rows = rows(net);
    let plan = Plan::of(&rows);
    let all = net.inputs().count() + net.layers().len();
    let (left, height) = (plan.width(), rows.len() * ROW);
    html! {
        @if rows.len() < all {
            p.facts { "The first " (grouped(rows.len())) " of " (grouped(all)) " inputs and layers" }
        }
        div.scroll.net tabindex="0" role="region" aria-label="Net" {
            svg width=(left + WIDTH) height=(height) viewBox={ "0 0 " (left + WIDTH) " " (height) } {
                path.edges d=(plan.edges()) {}
                path d=(plan.nodes()) {}
                @for (at, row) in rows.iter().enumerate() {
                    text x=(left + 6) y=(y(at) + 5) {
                        (shortened(row.name, NAME)) " "
                        tspan.what { (shortened(row.what, NAME)) } " " (shapes(row))
                    }
                }
            }
        }
    }
}

fn shapes(row: &Row) -> String {
    let known = row.tops.iter().filter(|top| top.shape.is_some());
    let shown = known.take(MAX_SHAPES).map(Blob::to_string).collect::<Vec<_>>();
    shown.join(", ") + if row.tops.len() > MAX_SHAPES { ", …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(bottoms: &[&'a str], tops: &[&'a str]) -> Row<'a> {
        let tops = tops.iter().map(|name| Blob { name, shape: None }).collect();
        Row { name: "", what: "", bottoms: bottoms.to_vec(), tops }
    }

    fn lanes(rows: &[Row]) -> Vec<usize> {
        Plan::of(rows).lanes
    }

    #[test]
    fn a_row_is_in_the_lane_of_a_value_that_ends_there() {
        let chain =
            [row(&[], &["a"]), row(&["a"], &["b"]), row(&["b"], &["b"]), row(&["b"], &["c"])];
        assert_eq!(lanes(&chain), [0, 0, 0, 0]);
        let residual = [
            row(&[], &["a"]),
            row(&["a"], &["b"]),
            row(&["b"], &["c"]),
            row(&["a", "c"], &["d"]),
            row(&["d"], &[]),
        ];
        assert_eq!(lanes(&residual), [0, 1, 1, 0, 0]);
        let unread = [row(&[], &["a", "b"]), row(&["a"], &["c"]), row(&["a"], &["d"])];
        assert_eq!(lanes(&unread), [0, 1, 0]);
    }

    #[test]
    fn values_that_overlap_have_separate_lanes_up_to_the_limit() {
        let names: Vec<String> = (0..100).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows = [row(&[], &names[..5]), row(&names[..5], &["x"])];
        let mut own: Vec<usize> = Plan::of(&rows).values[..5].iter().map(|one| one.lane).collect();
        own.sort_unstable();
        assert_eq!(own, [0, 1, 2, 3, 4]);
        let rows = [row(&[], &names), row(&names, &["x"])];
        assert_eq!(Plan::of(&rows).width(), MAX_LANES * LANE);
    }

    #[test]
    fn lines_connect_the_maker_with_each_reader() {
        let plan = Plan::of(&[row(&[], &["a"]), row(&["a"], &["b"]), row(&["a"], &["c"])]);
        assert_eq!(plan.edges(), "M7 11V44M7 22L21 33M7 44L7 55");
    }
}
