//! Prints the tensors of files that are not Caffe's, for `info`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use unicode_width::UnicodeWidthStr;

use crate::json;
use crate::source::{FileFormat, Source, Tensor};
use crate::table::{how_many, write_cells, NAME};
use crate::text::{grouped, printable, shortened};

const HEADINGS: [&str; 4] = ["tensor", "shape", "dtype", "count"];
/// The number of left-aligned columns.
const TEXTS: usize = 3;

/// Returns the file's format, or None if the format is Caffe's or unknown. Also returns None for a
/// pipe, because opening a pipe would block.
pub fn format_of(path: &Path) -> Option<FileFormat> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let format = FileFormat::of_file(&File::open(path).ok()?).ok()?;
    Some(format).filter(|format| !matches!(format, FileFormat::Caffe(_)))
}

pub fn write(out: &mut impl Write, file: &str, source: &Source) -> io::Result<()> {
    let rows: Vec<_> = source.tensors.iter().map(cells).collect();
    let headings = HEADINGS.map(String::from);
    let mut widths = headings.each_ref().map(|cell| cell.width());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width);
        }
    }
    let (tensors, format) = (how_many(rows.len(), "tensor"), source.format);
    writeln!(out, "{}: {format}, {tensors}", printable(file))?;
    write_cells(out, &headings, &widths, TEXTS)?;
    rows.iter().try_for_each(|row| write_cells(out, row, &widths, TEXTS))?;
    writeln!(out)
}

fn cells(tensor: &Tensor) -> [String; 4] {
    let dims: Vec<_> = tensor.shape.iter().map(usize::to_string).collect();
    let shape = if dims.is_empty() { "scalar".into() } else { dims.join("x") };
    let dtype = printable(&tensor.dtype.to_string()).into_owned();
    [shortened(&tensor.name, NAME), shape, dtype, grouped(tensor.count())]
}

pub fn write_json(out: &mut impl Write, file: &str, source: &Source) -> io::Result<()> {
    let tensors = source.tensors.iter().map(One).collect();
    let format = source.format.to_string();
    json::write_line(out, &Line { schema: 1, file, format, tensors })
}

#[derive(serde::Serialize)]
struct Line<'a> {
    schema: u32,
    file: &'a str,
    format: String,
    tensors: Vec<One<'a>>,
}

struct One<'a>(&'a Tensor);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Tensor", 4)?;
        fields.serialize_field("name", &self.0.name)?;
        fields.serialize_field("shape", &self.0.shape)?;
        fields.serialize_field("count", &self.0.count())?;
        fields.serialize_field("dtype", &self.0.dtype.to_string())?;
        fields.end()
    }
}
