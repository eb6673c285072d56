//! Prints a finding as one line.

use std::io::{self, Write};

use serde_json::json;

use crate::advice;
use crate::source::Failure;
use crate::table::how_many;
use crate::text::{grouped, printable, shortened};
use crate::verify::check::{Checked, Finding, Kind};

/// Longer names are shortened to this many characters.
const NAME: usize = 60;

/// Writes "net.caffemodel: layer conv1, blob 0, data: 3 values are NaN, the first at [0, 2]".
pub fn line(out: &mut impl Write, file: &str, finding: &Finding) -> io::Result<()> {
    let mut place = Vec::new();
    if let Some(layer) = finding.layer {
        place.push(format!("layer {}", shortened(layer, NAME)));
    }
    if let Some(blob) = finding.blob {
        place.push(format!("blob {blob}"));
    }
    if let Some(tensor) = finding.tensor {
        place.push(format!("tensor {}", shortened(tensor, NAME)));
    }
    place.extend(finding.part.map(|part| part.name().to_string()));
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    writeln!(out, "{}: {place}{}", printable(file), message(finding))
}

pub fn json(out: &mut impl Write, file: &str, finding: &Finding) -> io::Result<()> {
    let (count, at) = finding.values.as_ref().map(|(count, at)| (count, at)).unzip();
    let status = match &finding.failure {
        Some(Failure::Library(error)) => Some(error.code_name()),
        _ => None,
    };
    let value = json!({
        "schema": 1, "file": file, "kind": finding.kind.name(),
        "layer": finding.layer, "blob": finding.blob, "tensor": finding.tensor,
        "part": finding.part.map(|part| part.name()),
        "count": count, "at": at, "offset": finding.offset,
        "status": status,
        "message": message(finding),
    });
    crate::json::write_line(out, &value)
}

pub fn clean(out: &mut impl Write, file: &str, checked: &Checked) -> io::Result<()> {
    let layers = match checked.layers {
        0 => String::new(),
        count => format!(" {},", how_many(count, "layer")),
    };
    let (blobs, values) = (how_many(checked.blobs, "blob"), how_many(checked.values, "value"));
    writeln!(
        out,
        "{}: {},{layers} {blobs}, {values}: nothing found",
        printable(file),
        checked.format
    )
}

/// Writes "107 files: nothing found", or how many findings are in how many files.
pub fn summary(out: &mut impl Write, files: usize, bad: usize, findings: usize) -> io::Result<()> {
    let files = how_many(files, "file");
    match bad {
        0 => writeln!(out, "{files}: nothing found"),
        _ => writeln!(out, "{files}: {} in {bad}", how_many(findings, "finding")),
    }
}

fn message(finding: &Finding) -> String {
    match (finding.kind, &finding.failure, &finding.values) {
        (Kind::Unreadable, Some(failure), _) => {
            let advice = match advice::on(failure) {
                advice::VERIFY => "",
                advice => advice,
            };
            format!("{}{advice}", printable(&failure.to_string()))
        }
        (kind, _, Some((count, first))) => {
            let noun = if *count == 1 { "value is" } else { "values are" };
            let what = match kind {
                Kind::Nan => "NaN",
                Kind::Infinite => "infinite",
                _ => "beyond float's range, and become infinite in Caffe",
            };
            let offset = finding.offset.map_or(String::new(), |offset| {
                format!("; the blob's message begins at byte {offset}")
            });
            format!("{} {noun} {what}, the first at {first:?}{offset}", grouped(*count))
        }
        (Kind::DuplicateName, ..) => "an earlier layer with blobs has the same name: \
            Caffe copies the blobs of both to one layer and keeps the last"
            .into(),
        (Kind::UnsafeName, ..) => match finding.tensor {
            None => "a name or type that is not UTF-8, or has characters that act on a terminal",
            Some(_) => {
                "a name that has characters that act on a terminal, or that an archive may unpack \
                     to a file outside the chosen folder"
            }
        }
        .into(),
        _ => "it has no blob: was it cut off, or saved without weights?".into(),
    }
}
