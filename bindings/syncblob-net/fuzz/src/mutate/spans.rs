//! Finds the values, fields and messages in a prototxt, which may be malformed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    Text,
    Word,
    /// A message with its brackets.
    Message,
    /// A field's name and value.
    Field,
}

#[derive(Clone, Copy, Debug)]
pub struct Span<'t> {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// The name of the field, or of the field that contains the value.
    pub field: &'t [u8],
}

struct Open<'t> {
    field: &'t [u8],
    start: usize,
    bracket: usize,
}

/// Returns inner spans before the spans that contain them.
pub fn spans(text: &[u8]) -> Vec<Span<'_>> {
    let mut found = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut name: (&[u8], usize) = (b"", 0);
    let mut at = 0;
    while at < text.len() {
        let end = token(text, at);
        match text[at] {
            b'{' | b'<' => open.push(Open { field: name.0, start: name.1, bracket: at }),
            b'}' | b'>' => {
                let Some(Open { field, start, bracket }) = open.pop() else { break };
                found.push(Span { kind: Kind::Message, start: bracket, end, field });
                found.push(Span { kind: Kind::Field, start, end, field });
            }
            byte if byte.is_ascii_alphabetic() && !follows_colon(text, at) => {
                name = (&text[at..end], at);
            }
            byte if byte.is_ascii_alphanumeric() || b"-.\"'".contains(&byte) => {
                let kind = match byte {
                    b'"' | b'\'' => Kind::Text,
                    _ if byte.is_ascii_alphabetic() => Kind::Word,
                    _ => Kind::Number,
                };
                let field = name.0;
                found.push(Span { kind, start: at, end, field });
                found.push(Span { kind: Kind::Field, start: name.1, end, field });
            }
            _ => {}
        }
        at = end;
    }
    found
}

fn follows_colon(text: &[u8], at: usize) -> bool {
    text[..at].trim_ascii_end().ends_with(b":")
}

fn token(text: &[u8], start: usize) -> usize {
    let like = |like: fn(u8) -> bool| {
        start + 1 + text[start + 1..].iter().take_while(|&&byte| like(byte)).count()
    };
    match text[start] {
        quote @ (b'"' | b'\'') => {
            let rest = text[start + 1..].iter();
            let length = rest.take_while(|&&byte| byte != quote && byte != b'\n').count();
            (start + length + 2).min(text.len())
        }
        b'#' => like(|byte| byte != b'\n'),
        byte if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) => {
            like(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
        }
        _ => start + 1,
    }
}
