//! Decodes quoted strings.

use super::lexer::{malformed, Token};
use crate::Result;

/// Decodes a string in quotes, and appends its bytes to `out`.
pub(super) fn unescape(token: Token<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut rest = &token.bytes[1..token.bytes.len() - 1];
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let escape = &rest[at + 1..];
        let Some(length) = escaped(escape, out) else {
            let shown = &rest[at..rest.len().min(at + 10)];
            let text = format_args!("unknown escape in a string: {}", shown.escape_ascii());
            return Err(malformed(token.place, text));
        };
        rest = &escape[length..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Decodes the escape after a backslash. Returns the escape's length, or `None` for an unknown
/// escape.
fn escaped(escape: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let byte = match *escape.first()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        same @ (b'\\' | b'?' | b'\'' | b'"') => same,
        b'0'..=b'7' => {
            let (code, digits) = number(escape, 8, 3);
            out.push(u8::try_from(code).ok()?);
            return Some(digits);
        }
        b'x' => {
            let (code, digits) = number(&escape[1..], 16, 2);
            out.push(u8::try_from(code).ok()?);
            return (digits > 0).then_some(1 + digits);
        }
        b'u' => return unicode(escape, 4, out),
        b'U' => return unicode(escape, 8, out),
        _ => return None,
    };
    out.push(byte);
    Some(1)
}

/// Decodes `uXXXX` or `UXXXXXXXX`. A pair of surrogates (`uXXXX\uXXXX`) becomes one character.
fn unicode(escape: &[u8], digits: usize, out: &mut Vec<u8>) -> Option<usize> {
    let code = exactly(&escape[1..], digits)?;
    let (code, length) = match code {
        0xd800..=0xdbff => {
            let low = exactly(escape[1 + digits..].strip_prefix(b"\\u")?, 4)?;
            let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            (0x10000 + ((code - 0xd800) << 10) + low, 1 + digits + 6)
        }
        _ => (code, 1 + digits),
    };
    let text = char::from_u32(code)?;
    out.extend_from_slice(text.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
}

fn exactly(bytes: &[u8], digits: usize) -> Option<u32> {
    let (code, found) = number(bytes, 16, digits);
    (found == digits).then_some(code)
}

/// Reads at most `most` digits. Returns the number and how many digits were read.
fn number(bytes: &[u8], radix: u32, most: usize) -> (u32, usize) {
    let digits = bytes.iter().take(most).map_while(|&byte| char::from(byte).to_digit(radix));
    digits.fold((0, 0), |(code, count), digit| (code * radix + digit, count + 1))
}
