use std::path::Path;

use proptest::prelude::*;

use crate::limits::Used;
use crate::message::Label;
use crate::schema::{is_layer, FieldInfo, Kind, MessageInfo, Schema};
use crate::text::read_text;
use crate::wire::read_bytes;
use crate::wire::tests::encode;
use crate::{Field, Limits, Message, Place, Value};

/// One of the files is a template, which is not a valid prototxt.
#[test]
fn public_nets_are_read_back_after_printing() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("SYNCBLOB_TEST_DATA").map_or(beside, Into::into);
    let Ok(nets) = std::fs::read_dir(data.join("nets")) else {
        eprintln!("skipped: {} has no nets; set SYNCBLOB_TEST_DATA", data.display());
        return;
    };
    let mut count = 0;
    for net in nets.map(|net| net.unwrap().path()) {
        if net.extension().is_none_or(|extension| extension != "prototxt") {
            continue;
        }
        let read = |text: &[u8]| read_text(text, "NetParameter", &Limits::default());
        let message = match read(&std::fs::read(&net).unwrap()) {
            Ok(message) => message,
            Err(error) if net.to_string_lossy().contains("template") => {
                let text = "line 2397, column 17: expected a whole number for 'num_output', \
                            found 'cls3x'";
                assert_eq!(error.to_string(), text);
                continue;
            }
            Err(error) => panic!("{}: {error}", net.display()),
        };
        assert_eq!(read(message.to_string().as_bytes()).unwrap(), message, "{}", net.display());
        count += 1;
    }
    assert!(count > 0);
}

/// Makes messages from a tape of random bytes.
struct Maker<'a> {
    tape: std::slice::Iter<'a, u8>,
    layer_type: Option<&'static str>,
}

impl Maker<'_> {
    fn byte(&mut self) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0))
    }

    fn bits(&mut self) -> u64 {
        (0..8).fold(0, |bits, _| bits << 8 | self.byte() as u64)
    }

    /// Chooses a field that the surrounding layer can contain both in a text and in bytes.
    fn choose(&mut self, info: &'static MessageInfo) -> Option<&'static FieldInfo> {
        let field = info.fields.get(self.byte() % info.fields.len().max(1))?;
        let layer_type = self.layer_type.unwrap_or_default();
        let by_name = info.by_name(field.name, layer_type)?;
        let by_number = info.by_number(by_name.number, layer_type)?;
        // Some fields have no number, so only texts contain them. Blobs are not read from bytes.
        let both = by_name.number != 0 && field.name != "blobs";
        (both && std::ptr::eq(by_name, by_number)).then_some(by_name)
    }

    fn message(&mut self, name: &'static str) -> Message {
        let mut message = Message::new(name, Place::Made);
        let outer = self.layer_type;
        if message.info.name == "LayerParameter" {
            let types = message.info.fields.iter().flat_map(|field| &field.when).copied();
            let types: Vec<&str> = types.chain(["ReLU"]).collect();
            let chosen = types[self.byte() % types.len()];
            self.layer_type = Some(chosen);
            message.push("type", Value::Text(chosen.as_bytes().into()));
        }
        for _ in 0..self.byte() % 8 {
            let Some(field) = self.choose(message.info) else { continue };
            let given = message.fields().iter().any(|other| other.name() == field.name);
            if (given && !field.repeated) || (is_layer(message.info) && field.name == "type") {
                continue;
            }
            let value = self.value(field.kind);
            message.fields.push(Field::new(Label::Known(field), Place::Made, value));
        }
        self.layer_type = outer;
        message
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn value(&mut self, kind: Kind) -> Value {
        let finite = |value: f64| if value.is_nan() { 0.0 } else { value };
        match kind {
            Kind::Bool => Value::Bool(self.byte() % 2 == 1),
            Kind::Int32 => Value::Int(i64::from(self.bits() as i32)),
            Kind::Uint32 => Value::Int(i64::from(self.bits() as u32)),
            Kind::Int64 | Kind::Uint64 => Value::Int(self.bits() as i64),
            Kind::Float => Value::Float(finite(f64::from(f32::from_bits(self.bits() as u32)))),
            Kind::Double => Value::Float(finite(f64::from_bits(self.bits()))),
            Kind::Text | Kind::Bytes => {
                Value::Text((0..self.byte() % 6).map(|_| self.byte() as u8).collect())
            }
            Kind::Enum(name) => {
                let info = Schema::get().enumeration(name);
                let number = info.values[self.byte() % info.values.len()].0;
                Value::Int(info.first_number(number).unwrap_or(number).into())
            }
            Kind::Message(name) => Value::Message(Box::new(self.message(name))),
        }
    }
}

/// In a fork of Caffe, the value NONE of an enum has a second number.
#[test]
fn numbers_with_one_name_are_the_same_value() {
    let limits = Limits::default();
    let named = read_text(b"normalization: NONE", "LossParameter", &limits).unwrap();
    assert_eq!(read_text(b"normalization: 4", "LossParameter", &limits).unwrap(), named);
    let bytes = read_bytes(b"\x18\x04", "LossParameter", &mut Used::new(&limits)).unwrap();
    assert_eq!(bytes, named);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_read_back_unchanged(tape in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut maker = Maker { tape: tape.iter(), layer_type: None };
        let message = maker.message("NetParameter");
        let (limits, text) = (Limits::default(), message.to_string());
        let of_text = read_text(text.as_bytes(), "NetParameter", &limits).unwrap();
        prop_assert!(of_text == message, "{}\nis read from\n{}", of_text, text);
        let bytes = encode(&message);
        let of_bytes = read_bytes(&bytes, "NetParameter", &mut Used::new(&limits)).unwrap();
        prop_assert!(of_bytes == message, "{}\nis read from the bytes of\n{}", of_bytes, text);
    }

    #[test]
    fn any_readable_bytes_print_stably(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let limits = Limits::default();
        if let Ok(message) = read_bytes(&bytes, "LayerParameter", &mut Used::new(&limits)) {
            prints_as_itself(&message, "LayerParameter");
        }
    }

    /// Damages a text. If the damaged text can be parsed, the printed text can be parsed, too, and
    /// is printed unchanged.
    #[test]
    fn any_text(edits in prop::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len(), any::<bool>()), 0..4)) {
        let mut words: Vec<&[u8]> = TEXT.split_inclusive(|&byte| byte == b' ').collect();
        for (at, word, replace) in edits {
            let at = at.index(words.len());
            words.splice(at..at + usize::from(replace), [WORDS[word]]);
        }
        if let Ok(message) = read_text(&words.concat(), "LayerParameter", &Limits::default()) {
            prints_as_itself(&message, "LayerParameter");
        }
    }
}

static TEXT: &[u8] =
    b"pooling_param { pool: MAX kernel_size : 3 pad: 1 foo < a : 1 > } \
    name: 'x' 'y' bottom: 'a' ; type : 'Pooling3D' loss_weight : [ -1e9 , 2 ] , foo : [ 'x' , { } ] \
    blobs { data : [ 1.5 , nan ] double_data: 0.1 } include { phase: TEST stage : '' } # end ";

static WORDS: &[&[u8]] = &[
    b"type",
    b"name:",
    b"'Pooling3D'",
    b"\"a\xff\\n'\"",
    b"pooling_param",
    b"{",
    b"}",
    b"<",
    b">",
    b"[",
    b"]",
    b":",
    b";",
    b",",
    b"-",
    b"1",
    b" 0x1f ",
    b"1e-9f",
    b" inf ",
    b"nan ",
    b"kernel_size",
    b"pad:",
    b"\n",
    b" ",
    b"#c\xe9\n",
    b"foo",
    b"pool:",
    b"MAX",
    b"\\",
    b"'",
    b"phase: TEST",
    b"loss_weight",
];

fn prints_as_itself(message: &Message, name: &str) {
    let text = message.to_string();
    let again = read_text(text.as_bytes(), name, &Limits::default());
    let again = again.unwrap_or_else(|error| panic!("{error}: {text}"));
    // An unknown field is printed as a comment, which the parser ignores.
    let fields: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("# field ")).collect();
    assert_eq!(again.to_string().lines().collect::<Vec<_>>(), fields);
}
