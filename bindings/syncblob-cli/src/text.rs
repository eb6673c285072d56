//! Makes text from files safe for a terminal.

use std::borrow::Cow;

/// Returns whether a character moves the cursor, starts an escape sequence or reorders text. Such
/// characters are escaped, because a hostile file must not control the terminal.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a name in an archive is safe: unpacking creates the file below the chosen
/// folder, and printing the name does not control a terminal.
pub fn is_plain(name: &str) -> bool {
    let is_drive = name.as_bytes().get(1) == Some(&b':');
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    !is_drive
        && !name.contains('\\')
        && !name.contains(is_unprintable)
        && name.split('/').all(is_part)
}

/// Returns the text with unprintable characters escaped, such as `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return text.into();
    }
    let escape = |c: char| match is_unprintable(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect::<String>().into()
}

/// Truncates a text to `max` characters and an ellipsis. Names in a file may be very long, and a
/// column is as wide as its longest cell.
pub fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", printable(&text[..end])),
        None => printable(text).into_owned(),
    }
}

/// Formats 1234567 as "1,234,567".
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_text() {
        assert_eq!(printable("conv1/7x7_s2 – 重み"), "conv1/7x7_s2 – 重み");
        assert_eq!(printable("\u{1b}]0;owned\u{7}\r\n"), "\\u{1b}]0;owned\\u{7}\\u{d}\\u{a}");
        assert_eq!(printable("\u{9b}2J\u{7f}\u{202e}"), "\\u{9b}2J\\u{7f}\\u{202e}");
    }

    #[test]
    fn plain_names_are_below_their_folder() {
        for name in ["conv1.0", "inception_3a/1x1.0", "#3.0", "a..b", "...", "重み", "-rf", "ab:c"]
        {
            assert!(is_plain(name), "{name}");
        }
        let others = [
            "",
            "/abs",
            "..",
            "../a",
            "a/../../b",
            "a/..",
            ".",
            "./a",
            "a//b",
            "a/",
            "C:a",
            "c:/a",
            "\\a",
            "..\\a",
            "a\\b",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "a\u{202e}b",
        ];
        for name in others {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(shortened("重み重み", 4), "重み重み");
        assert_eq!(shortened("重み重み", 3), "重み重…");
    }

    #[test]
    fn thousands_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }
}
