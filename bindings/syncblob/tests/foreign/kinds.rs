//! Lists the beginnings of files in foreign formats.

const LIST: &str = include_str!("../../../../tests/support/foreign.txt");

/// Returns pairs of a file's bytes and the text after "this is" in the error.
pub fn kinds() -> Vec<(Vec<u8>, String)> {
    let rows = LIST.lines().filter(|line| !line.starts_with('#'));
    let mut kinds: Vec<_> = rows.map(row).collect();
    kinds.push((Vec::new(), "empty: there are no bytes".into()));
    kinds.push((
        b"\x0a\x03net\xa2\x06\x40\x0a\x04conv\x12\x0bConvolution\x3a\x80".into(),
        "the beginning of a caffemodel: the rest was cut off".into(),
    ));
    kinds
}

fn row(line: &str) -> (Vec<u8>, String) {
    let [words, _, _, bytes] = line.split('\t').collect::<Vec<_>>()[..] else {
        panic!("four columns: {line}");
    };
    (decoded(bytes), words.into())
}

fn decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}
