//! Prints a net as a table for human readers.

use std::io::{self, Write};

use syncblob_net::Layer;
use unicode_width::UnicodeWidthStr;

use super::Listing;
use crate::table::{how_many, write_cells, NAME};
use crate::text::{printable, shortened};

const HEADINGS: [&str; 5] = ["layer", "type", "bottoms", "top", "shape"];

/// The maximum number of bottoms that are shown for a layer.
const MAX_BOTTOMS: usize = 4;

pub fn write(out: &mut impl Write, file: &str, net: &Listing) -> io::Result<()> {
    let headings = HEADINGS.map(String::from);
    let mut widths = headings.each_ref().map(|cell| cell.width());
    each_row(net, &mut |row| {
        for (width, cell) in widths.iter_mut().zip(&row) {
            *width = cell.width().max(*width);
        }
        Ok(())
    })?;
    let mut words = vec!["prototxt".to_owned()];
    if !net.name().is_empty() {
        words.push(format!("\"{}\"", shortened(net.name(), NAME)));
    }
    words.push(how_many(net.layers().len(), "layer"));
    writeln!(out, "{}: {}", printable(file), words.join(", "))?;
    write_cells(out, &headings, &widths, HEADINGS.len())?;
    each_row(net, &mut |row| write_cells(out, &row, &widths, HEADINGS.len()))?;
    write_ends(out, net)?;
    net.problems.iter().try_for_each(|problem| writeln!(out, "{}", printable(problem)))?;
    writeln!(out)
}

fn each_row(net: &Listing, row: &mut impl FnMut([String; 5]) -> io::Result<()>) -> io::Result<()> {
    for layer in net.layers() {
        let [name, layer_type] =
            [layer.name(), layer.layer_type()].map(|text| shortened(text, NAME));
        let cells = |[top, shape]: [String; 2]| {
            [name.clone(), layer_type.clone(), bottoms(layer), top, shape]
        };
        if layer.tops().is_empty() {
            row(cells(["-".into(), String::new()]))?;
        }
        for top in layer.tops() {
            row(cells([shortened(top, NAME), net.blob(top).to_string()]))?;
        }
    }
    Ok(())
}

fn bottoms(layer: &Layer) -> String {
    let all = layer.bottoms();
    let mut shown: Vec<_> =
        all.iter().take(MAX_BOTTOMS).map(|name| shortened(name, NAME)).collect();
    if all.len() > MAX_BOTTOMS {
        shown.push(format!("… {} in all", all.len()));
    }
    shown.join(", ")
}

pub fn write_ends(out: &mut impl Write, net: &Listing) -> io::Result<()> {
    for input in net.inputs() {
        writeln!(out, "input {}: {}", shortened(input.name, NAME), input)?;
    }
    for output in net.outputs() {
        writeln!(out, "output {}: {}", shortened(output.name, NAME), output)?;
    }
    Ok(())
}
