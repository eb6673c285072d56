//! Makes the page in parts: the part before the table's rows, each row, and the part after the
//! rows. `html!` escapes all text from the file, and shows characters that would reorder text. The
//! page's only script searches and sorts rows. The page also works without scripts.

use base64::prelude::{Engine, BASE64_STANDARD};
use maud::{html, Markup, PreEscaped, DOCTYPE};
use sha2::{Digest, Sha256};

use crate::net::Listing;
use crate::picture::Tiles;
use crate::report::{graph, svg};
use crate::source::{FileFormat, Layer, Source, Tensor};
use crate::summary::Summary;
use crate::table::{digits, how_many, shape};
use crate::text::{grouped, shortened};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Longer names are shortened to this many characters.
const NAME: usize = 200;

/// The number of significant digits that are shown.
const DIGITS: usize = 4;

/// A picture of a tensor, or of its first filters.
pub struct Figure<'a> {
    pub tensor: &'a Tensor,
    pub tiles: Tiles,
    pub shown: usize,
    pub width: usize,
    pub height: usize,
    pub png: Vec<u8>,
}

/// A tensor, or a layer that has no tensors.
pub struct Row<'a> {
    pub layer: Option<&'a Layer>,
    pub tensor: Option<&'a Tensor>,
    /// None for a layer without tensors, or if the tensor's values cannot be loaded: `note` then
    /// contains the reason.
    pub summary: Option<Summary>,
    pub note: Option<String>,
}

/// The sortable columns before and after the histogram. The flag is true for a column of numbers.
/// In this order, the histogram is visible in a window that is 1200 pixels wide.
const HEADINGS: [&[(&str, bool)]; 2] = [
    &[
        ("Tensor", false),
        ("Layer's type", false),
        ("Shape", false),
        ("Dtype", false),
        ("Count", true),
    ],
    &[("Min", true), ("Max", true), ("Mean", true), ("Std", true), ("Not finite", true)],
];

pub fn start(file: &str, source: &Source, net: Option<&Listing>, figures: &[Figure]) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = shortened(name, NAME);
    // The policy allows only this page's style and script, and no other resources.
    let [style, script] = [STYLE, SCRIPT].map(|text| BASE64_STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; \
         style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) " – syncblob" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (name) }
                p.facts { (facts(source)) }
                @if let Some(net) = net {
                    h2 { "Net" }
                    (graph::graph(net))
                }
                @if !figures.is_empty() {
                    h2 { "Pictures" }
                    div.figures { @for figure in figures { (figure_of(figure)) } }
                }
                h2 { "Blobs" }
                search hidden {
                    label {
                        "Search "
                        input type="search" autocomplete="off" placeholder="name, type, shape";
                    }
                    output {}
                }
                div.scroll {
                    table {
                        thead {
                            tr {
                                (headings(HEADINGS[0]))
                                th scope="col" { "Distribution" }
                                (headings(HEADINGS[1]))
                            }
                        }
                        tbody {}
                    }
                }
            }
        }
    };
    let page = page.into_string();
    // Cuts off the end of the table, because the caller writes the rows one by one.
    let body = page.rfind("</tbody>").unwrap_or(page.len());
    page[..body].to_owned()
}

pub const END: &str = concat!(
    "</tbody></table></div><footer>syncblob ",
    env!("CARGO_PKG_VERSION"),
    "</footer><script>",
    include_str!("page.js"),
    "</script></body></html>\n"
);

fn headings(headings: &[(&str, bool)]) -> Markup {
    html! {
        @for (heading, is_number) in headings {
            th.number[*is_number] scope="col" data-sorts { (heading) }
        }
    }
}

fn facts(source: &Source) -> String {
    let format = match (source.format, source.notes.kind) {
        (FileFormat::Safetensors, _) => "safetensors",
        (FileFormat::Npz, _) => "npz",
        (FileFormat::Npy, _) => "npy",
        (FileFormat::Caffe(_), kind) => kind.map_or("", |kind| kind.name()),
    };
    let mut facts = vec![format.to_string()];
    if !source.notes.name.is_empty() {
        facts.push(format!("net “{}”", shortened(&source.notes.name, NAME)));
    }
    if let Some(solver) = &source.notes.solver {
        facts.push(format!("iteration {}", solver.iter));
    }
    if !source.notes.layers.is_empty() {
        facts.push(how_many(source.notes.layers.len(), "layer"));
    }
    facts.push(how_many(source.tensors.len(), "blob"));
    let values = source.tensors.iter().map(Tensor::count).fold(0, usize::saturating_add);
    facts.push(how_many(values, "value"));
    facts.join(" · ")
}

fn figure_of(figure: &Figure) -> Markup {
    let name = shortened(&figure.tensor.name, NAME);
    let shape = shape(&figure.tensor.shape);
    let what = match figure.tiles.count {
        1 => shape,
        count if count == figure.shown => format!("{shape}, {}", how_many(count, "filter")),
        count => format!("{shape}, the first {} of {} filters", figure.shown, grouped(count)),
    };
    html! {
        figure {
            img width=(figure.width) height=(figure.height) alt={ "Values of " (name) }
                src={ "data:image/png;base64," (BASE64_STANDARD.encode(&figure.png)) };
            figcaption { (name) span { (what) } }
        }
    }
}

pub fn row(row: &Row) -> String {
    let layer_type = row.layer.map_or(String::new(), |layer| shortened(&layer.layer_type, NAME));
    let Some(tensor) = row.tensor else {
        let name = row.layer.map_or(String::new(), |layer| shortened(&layer.name, NAME));
        let row = html! {
            tr.none { th scope="row" { (name) } td { (layer_type) } td colspan="9" { "no blobs" } }
        };
        return row.into_string();
    };
    html! {
        tr {
            th scope="row" { (shortened(&tensor.name, NAME)) }
            td { (layer_type) }
            td { (shape(&tensor.shape)) }
            td { (shortened(&tensor.dtype.to_string(), NAME)) }
            td.number { (grouped(tensor.count())) }
            @match (&row.summary, &row.note) {
                (Some(summary), _) => (numbers(summary)),
                (None, note) => td.note colspan="6" { (shortened(note.as_deref().unwrap_or(""), NAME)) },
            }
        }
    }
    .into_string()
}

fn numbers(summary: &Summary) -> Markup {
    html! {
        td {
            @if let Some((min, max)) = summary.range {
                (svg::histogram(&summary.bins, [min, max].map(|value| digits(value, DIGITS))))
            }
        }
        @if let Some((min, max)) = summary.range {
            @for value in [min, max, summary.mean, summary.deviation] {
                td.number { (digits(value, DIGITS)) }
            }
        } @else {
            @for _ in 0..4 { td.number { "–" } }
        }
        td.number.alarm[summary.nonfinite > 0] { (grouped(summary.nonfinite)) }
    }
}
