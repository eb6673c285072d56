//! Prints each difference when it is found: as a table for people, or as JSON for programs.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{json, Value};
use unicode_width::UnicodeWidthStr;

use crate::diff::pairs::Which;
use crate::diff::{Difference, Numbers, Summary, What};
use crate::json::write_line;
use crate::table::{how_many, number};
use crate::text::{grouped, printable, shortened};
use crate::values::{indices, Part};

pub trait Print {
    /// Receives the names of all tensors that will be compared.
    fn begin(&mut self, names: &mut dyn Iterator<Item = Cow<str>>) -> io::Result<()>;
    fn difference(&mut self, difference: &Difference) -> io::Result<()>;
    fn summary(&mut self, files: [&Path; 2], summary: &Summary) -> io::Result<()>;
}

// --- the table --------------------------------------------------------------------

/// A table. Each row is written when its difference is found, before later rows are known.
/// Therefore the columns fit the widest name, and numbers of seven digits.
pub struct Table<W> {
    out: W,
    name_width: usize,
    is_empty: bool,
}

/// Longer names are shortened to this many characters.
const NAME: usize = 60;

const HEADINGS: [&str; 6] = ["tensor", "differing", "of", "max abs", "max rel", ""];

impl<W: Write> Table<W> {
    pub fn new(out: W) -> Self {
        Self { out, name_width: HEADINGS[0].width(), is_empty: true }
    }

    fn row(&mut self, [name, numbers @ .., note]: [&str; 6]) -> io::Result<()> {
        let mut line =
            format!(" {name}{}", " ".repeat(self.name_width.saturating_sub(name.width())));
        for number in numbers {
            line.push_str(&format!("  {number:>13}"));
        }
        writeln!(self.out, "{}", format!("{line}  {note}").trim_end())
    }

    fn text_row(&mut self, name: &str, note: &str) -> io::Result<()> {
        self.row([name, "-", "-", "-", "-", note])
    }
}

impl<W: Write> Print for Table<W> {
    fn begin(&mut self, names: &mut dyn Iterator<Item = Cow<str>>) -> io::Result<()> {
        let widths = names.map(|name| shortened(&name, NAME).width());
        self.name_width = widths.fold(self.name_width, usize::max);
        Ok(())
    }

    fn difference(&mut self, difference: &Difference) -> io::Result<()> {
        if std::mem::take(&mut self.is_empty) {
            self.row(HEADINGS)?;
        }
        let name = shortened(difference.tensor, NAME);
        let file = |which: &Which| which.name().to_uppercase();
        match &difference.what {
            What::Only(which) => self.text_row(&name, &format!("only in {}", file(which))),
            What::OnlyDiff(which) => {
                self.text_row(&name, &format!("its diff is only in {}", file(which)))
            }
            What::Texts { kind, a, b } => {
                let [a, b] = [a, b].map(|text| shortened(text, NAME));
                self.text_row(&name, &format!("{kind}: {a} and {b}"))
            }
            What::Values { part, shape, numbers } => {
                let counts = [numbers.differing, numbers.count].map(grouped);
                let largest = [numbers.max_abs, numbers.max_rel].map(number);
                let note = worst(*part, numbers, shape);
                self.row([&name, &counts[0], &counts[1], &largest[0], &largest[1], &note])
            }
        }
    }

    fn summary(&mut self, files: [&Path; 2], summary: &Summary) -> io::Result<()> {
        let [a, b] = files.map(|file| printable(&file.to_string_lossy()).into_owned());
        let [blobs, values] = [(summary.tensors, "blob"), (summary.values, "value")]
            .map(|(count, noun)| how_many(count, noun));
        let found = match summary.differences {
            0 if summary.max_abs == 0.0 => "no difference".into(),
            0 => {
                let [abs, rel] = [summary.max_abs, summary.max_rel].map(number);
                format!("within the tolerance (max abs {abs}, max rel {rel})")
            }
            count => how_many(count, "difference"),
        };
        writeln!(self.out, "{a} and {b}: {blobs} and {values} compared, {found}")?;
        self.out.flush()
    }
}

/// Formats the values with the largest difference, such as "0.5 and 0.25 at [0, 2]". Also formats
/// the number of values that are NaN in only one file.
fn worst(part: Part, numbers: &Numbers, shape: &[usize]) -> String {
    let Numbers { at, a, b, nan_only_a, nan_only_b, .. } = *numbers;
    let of = if part == Part::Diff { "diff: " } else { "" };
    let mut note = format!("{of}{} and {} at {:?}", number(a), number(b), indices(shape, at));
    for (count, file) in [(nan_only_a, "A"), (nan_only_b, "B")] {
        if count > 0 {
            note.push_str(&format!(", {} NaN in {file} alone", grouped(count)));
        }
    }
    note
}

// --- JSON ---------------------------------------------------------------------------

pub struct Json<W> {
    out: W,
}

impl<W: Write> Json<W> {
    pub fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        write_line(&mut self.out, value)
    }
}

impl<W: Write> Print for Json<W> {
    fn begin(&mut self, _: &mut dyn Iterator<Item = Cow<str>>) -> io::Result<()> {
        Ok(())
    }

    fn difference(&mut self, difference: &Difference) -> io::Result<()> {
        let tensor = difference.tensor;
        self.line(&match &difference.what {
            What::Only(which) => json!({ "kind": "only", "tensor": tensor, "in": which.name() }),
            What::OnlyDiff(which) => {
                json!({ "kind": "only_diff", "tensor": tensor, "in": which.name() })
            }
            What::Texts { kind, a, b } => json!({ "kind": kind, "tensor": tensor, "a": a, "b": b }),
            What::Values { part, shape, numbers } => json!({
                "kind": "values", "tensor": tensor, "part": part.name(),
                "count": numbers.count, "differing": numbers.differing,
                "nan_only_a": numbers.nan_only_a, "nan_only_b": numbers.nan_only_b,
                "max_abs": numbers.max_abs, "max_rel": numbers.max_rel,
                "at": indices(shape, numbers.at), "a": numbers.a, "b": numbers.b,
            }),
        })
    }

    fn summary(&mut self, files: [&Path; 2], summary: &Summary) -> io::Result<()> {
        let [a, b] = files.map(|file| file.to_string_lossy().into_owned());
        self.line(&json!({
            "kind": "summary", "schema": 1, "a": a, "b": b, "equal": summary.differences == 0,
            "tensors": summary.tensors, "values": summary.values,
            "differences": summary.differences,
            "max_abs": summary.max_abs, "max_rel": summary.max_rel,
        }))?;
        self.out.flush()
    }
}
