//! Mutates a prototxt: changes numbers, names and types, and adds fields that the schema lists.

mod fields;
mod spans;

use fields::Schema;
use spans::{spans, Kind, Span};

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }
}

static NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "31",
    "32",
    "64",
    "-1",
    "-2",
    "-3",
    "0.5",
    "1.5",
    "-0.5",
    "1e-9",
    "0.0001",
    "1000",
    "65535",
    "65536",
    "46341",
    "2147483647",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e38",
    "1e39",
    "-1e38",
    "nan",
    "inf",
    "-inf",
    "true",
    "false",
];

pub fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let spans = spans(text);
    let changed = match random.below(12) {
        0..=2 => number(text, &spans, random),
        3 => string(text, &spans, random),
        4 => layer_type(text, &spans, random),
        5 | 6 => new_field(text, &spans, random),
        7 => remove(text, &spans, random),
        8 => repeat(text, &spans, random),
        9 => new_layer(text, &spans, random),
        10 => enclose(text, &spans, random),
        _ => byte(text, random),
    };
    changed.unwrap_or_else(|| text.to_vec())
}

fn of_kind<'s, 't>(spans: &'s [Span<'t>], kind: Kind) -> Vec<&'s Span<'t>> {
    spans.iter().filter(|span| span.kind == kind).collect()
}

fn with(text: &[u8], span: &Span, new: &[u8]) -> Vec<u8> {
    [&text[..span.start], new, &text[span.end..]].concat()
}

fn number(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let span = random.pick(&of_kind(spans, Kind::Number))?;
    let old = std::str::from_utf8(&text[span.start..span.end]).ok()?;
    let new = match (random.below(3), old.parse::<i64>()) {
        (0, Ok(number)) => number.saturating_add(random.below(5) as i64 - 2).to_string(),
        (1, Ok(number)) => number.saturating_mul([2, 3, -1, 10][random.below(4)]).to_string(),
        _ => random.pick(NUMBERS)?.to_owned(),
    };
    Some(with(text, span, new.as_bytes()))
}

fn string(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let strings = of_kind(spans, Kind::Text);
    let (to, from) = (random.pick(&strings)?, random.pick(&strings)?);
    Some(with(text, to, &text[from.start..from.end]))
}

fn layer_type(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let types: Vec<&Span> =
        of_kind(spans, Kind::Text).into_iter().filter(|span| span.field == b"type").collect();
    let new = random.pick(fields::TYPES)?;
    Some(with(text, random.pick(&types)?, format!("\"{new}\"").as_bytes()))
}

fn new_field(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let block = random.pick(&of_kind(spans, Kind::Message))?;
    let field = Schema::get().field(block.field, random)?;
    let name = field.split([':', ' ']).next().unwrap_or_default().as_bytes();
    let inside = |span: &&Span| block.start < span.start && span.end < block.end;
    let fields = of_kind(spans, Kind::Field).into_iter().filter(inside);
    if let Some(old) = fields.into_iter().find(|span| span.field == name) {
        return Some(with(text, old, field.as_bytes()));
    }
    let at = block.start + 1;
    Some([&text[..at], b" ", field.as_bytes(), b" ", &text[at..]].concat())
}

fn remove(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    Some(with(text, random.pick(&of_kind(spans, Kind::Field))?, b""))
}

fn repeat(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let fields = of_kind(spans, Kind::Field);
    let (from, to) = (random.pick(&fields)?, random.pick(&fields)?);
    let to = if random.below(2) == 0 { from.end } else { to.end };
    Some([&text[..to], b" ", &text[from.start..from.end], b" ", &text[to..]].concat())
}

fn new_layer(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let tops: Vec<&Span> =
        of_kind(spans, Kind::Text).into_iter().filter(|span| span.field == b"top").collect();
    let layers: Vec<&Span> =
        of_kind(spans, Kind::Field).into_iter().filter(|span| span.field == b"layer").collect();
    let at = random.pick(&layers)?.end;
    let kind = random.pick(fields::TYPES)?;
    let mut layer = format!(" layer {{ name: 'n{}' type: '{kind}'", random.below(9)).into_bytes();
    for _ in 0..=random.below(3) {
        let top = random.pick(&tops)?;
        layer.extend([b" bottom: ", &text[top.start..top.end]].concat());
    }
    let top = random.pick(&tops)?;
    match random.below(3) {
        0 => layer.extend([b" top: ", &text[top.start..top.end]].concat()),
        _ => layer.extend(format!(" top: 't{}'", random.below(9)).bytes()),
    }
    layer.extend(b" } ");
    Some([&text[..at], &layer, &text[at..]].concat())
}

fn enclose(text: &[u8], spans: &[Span], random: &mut Random) -> Option<Vec<u8>> {
    let span = random.pick(&spans.iter().collect::<Vec<_>>())?;
    let (open, close) =
        [("[", "]"), ("{", "}"), ("<", ">"), ("x {", "}"), ("'", "'"), ("-", "")][random.below(6)];
    let value = [open.as_bytes(), &text[span.start..span.end], close.as_bytes()].concat();
    Some(with(text, span, &value))
}

fn byte(text: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let at = random.below(text.len() + 1);
    let mut changed = text.to_vec();
    match random.below(3) {
        0 if at < text.len() => drop(changed.remove(at)),
        1 if at < text.len() => changed[at] = random.below(256) as u8,
        _ => changed.insert(at, random.pick(b"{}<>[]:;,-#\"'\\\n0a\xff")?),
    }
    Some(changed)
}
