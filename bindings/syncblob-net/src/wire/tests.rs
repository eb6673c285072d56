use super::read_bytes;
use crate::limits::Used;
use crate::message::Label;
use crate::schema::Kind;
use crate::{Error, ErrorKind, Field, Limits, Message, Place, Value};

fn read(bytes: &[u8]) -> crate::Result<Message> {
    read_bytes(bytes, "NetParameter", &mut Used::new(&Limits::default()))
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | 2), out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn encode_field(field: &Field, out: &mut Vec<u8>) {
    let Label::Known(info) = field.label else { panic!("{} is unknown", field.name()) };
    match &field.value {
        Value::Message(message) => delimited(info.number, &encode(message), out),
        Value::Text(text) => delimited(info.number, text, out),
        Value::Float(value) if info.kind == Kind::Float => {
            varint(u64::from(info.number << 3 | 5), out);
            out.extend((*value as f32).to_le_bytes());
        }
        Value::Float(value) => {
            varint(u64::from(info.number << 3 | 1), out);
            out.extend(value.to_le_bytes());
        }
        Value::Int(value) => {
            varint(u64::from(info.number << 3), out);
            varint(*value as u64, out);
        }
        Value::Bool(value) => {
            varint(u64::from(info.number << 3), out);
            varint(u64::from(*value), out);
        }
        Value::Unknown(_) => unreachable!("its label is known"),
    }
}

/// Encodes a message, all of whose fields must be in the schema.
pub(crate) fn encode(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.fields().iter().for_each(|field| encode_field(field, &mut out));
    out
}

/// Each row contains bytes, and the text of the message that is read from them.
#[test]
fn bytes_are_read_by_the_schema() {
    let rows: &[(&[u8], &str)] = &[
        (b"", ""),
        (b"\x0a\x01x", "name: \"x\"\n"),
        // If a singular field occurs twice, the parser keeps the last value at the first position.
        (b"\x0a\x01x\x28\x01\x0a\x02yz", "name: \"yz\"\nforce_backward: true\n"),
        // The parser joins the parts of a singular message.
        (
            b"\x32\x02\x10\x01\x32\x02\x10\x02\x32\x03\x1a\x01s",
            "state {\n  level: 2\n  stage: \"s\"\n}\n",
        ),
        // A repeated field may be packed or unpacked, whatever the schema declares.
        (b"\x42\x04\x0a\x02\x01\x02", "input_shape {\n  dim: 1\n  dim: 2\n}\n"),
        (b"\x42\x04\x08\x01\x08\x02", "input_shape {\n  dim: 1\n  dim: 2\n}\n"),
        (b"\x22\x03\x01\xac\x02\x20\x05", "input_dim: 1\ninput_dim: 300\ninput_dim: 5\n"),
        // Only the low 32 bits of a number are used. A negative number may have ten bytes or five.
        (b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "input_dim: -1\n"),
        (b"\x20\xff\xff\xff\xff\x0f", "input_dim: -1\n"),
        // A bool above 1 is treated as an unknown field.
        (b"\x28\x80\x80\x04", "# field 5: 3 bytes\n"),
        (b"\x08\x05", "# field 1: 1 bytes\n"),
        (b"\x2a\x01\x01", "# field 5: 1 bytes\n"),
        (b"\x32\x02\x08\x09", "state {\n  # field 1: 1 bytes\n}\n"),
        (
            b"\xfa\x3f\x03abc\xfd\x3f1234\xf9\x3f12345678",
            "# field 1023: 3 bytes\n# field 1023: 4 bytes\n# field 1023: 8 bytes\n",
        ),
        // Groups.
        (b"\x0b\x13\x08\x01\x14\x0c\x28\x01", "# field 1: 4 bytes\nforce_backward: true\n"),
        // The type of a layer may follow a field that depends on it. Blobs are omitted.
        (
            b"\xa2\x06\x0e\xca\x07\x00\x12\x09Pooling3D",
            "layer {\n  pooling_param {\n  }\n  type: \"Pooling3D\"\n}\n",
        ),
        (b"\xa2\x06\x07\x3a\x02\xff\xff\x0a\x01x", "layer {\n  name: \"x\"\n}\n"),
        (b"\x12\x06\x32\x02\xff\xff\x28\x04", "layers {\n  type: CONVOLUTION\n}\n"),
        (
            b"\x12\x08\x0a\x06\x92\x03\x01\xff\x0a\x00",
            "layers {\n  layer {\n    name: \"\"\n  }\n}\n",
        ),
    ];
    for (bytes, text) in rows {
        let message = read(bytes).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(message.to_string(), *text);
    }
}

#[test]
fn fields_depend_on_the_type_of_the_layer() {
    let (limits, new, old) = (Limits::default(), "LayerParameter", "V1LayerParameter");
    let rows: &[(&str, &[u8], &str)] = &[
        (new, b"\xca\x07\x00\x12\x09Pooling3D", "Pooling3DParameter"),
        (new, b"\x12\x09Pooling3D\xca\x07\x00", "Pooling3DParameter"),
        (new, b"\x12\x09Pooling3D\xca\x07\x00\x12\x07Pooling", "PoolingParameter"),
        (new, b"\xca\x07\x00", "PoolingParameter"),
        (new, b"\x10\x01\xca\x07\x00", "PoolingParameter"),
        // Layer type 31 is Pooling3D in C3D 1.0, but Threshold in Caffe.
        (old, b"\x28\x1f\x9a\x01\x00", "Pooling3DParameter"),
        (old, b"\x9a\x01\x00\x28\x1f", "Pooling3DParameter"),
        (old, b"\x28\x11\x9a\x01\x00", "PoolingParameter"),
        (old, b"\x28\x1e\x9a\x01\x00", "PoolingParameter"),
    ];
    for (layer, bytes, name) in rows {
        let message = read_bytes(bytes, layer, &mut Used::new(&limits)).unwrap();
        assert_eq!(message.message("pooling_param").unwrap().type_name(), *name);
    }
}

#[test]
fn malformed_bytes_are_refused() {
    let rows: &[(&[u8], &str)] = &[
        (b"\x0a", "byte 1: the bytes end within a number"),
        (b"\x0a\x02x", "byte 2: a value of 2 bytes where 1 are left"),
        (b"\x28\x80", "byte 1: the bytes end within a number"),
        (
            b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "byte 1: a number of more than ten bytes",
        ),
        (b"\x0d123", "byte 1: a value of 4 bytes where 3 are left"),
        (b"\x00\x01", "byte 0: the field's number is 0"),
        (b"\x0e", "byte 0: the wire type is 6"),
        (b"\x0f", "byte 0: the wire type is 7"),
        (b"\x88\x80\x80\x80\x10\x01", "byte 0: the tag does not fit 32 bits"),
        (b"\x0c", "byte 0: group 1 ends without a beginning"),
        (b"\x0b\x14", "byte 1: group 2 ends within group 1"),
        (b"\x0b", "byte 1: the bytes end within a number"),
        (b"\x28\x01\x32\x02\x10\x80", "byte 5: the bytes end within a number"),
        (b"\x22\x02\x01\x80", "byte 3: the bytes end within a number"),
        (
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "byte 11: a value of 18446744073709551615 bytes where 0 are left",
        ),
    ];
    for (bytes, text) in rows {
        let error = read(bytes).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.kind()), (*text, ErrorKind::Malformed));
    }
}

#[test]
fn limits_are_enforced() {
    let limits = Limits { size: 16, depth: 1, layers: 2, fields: 3 };
    let rows: &[(&[u8], &str)] = &[
        (&[0; 17], "17 bytes, more than the limit of 16"),
        (b"\xa2\x06\0\xa2\x06\0\x12\0", "byte 6: more than 2 layers"),
        (b"\xa2\x06\x03\xca\x07\0", "byte 3: more than 1 messages inside each other"),
        (b"\x22\x04\x01\x02\x03\x04", "byte 0: more than 3 fields"),
        (b"\x08\x01\x08\x01\x08\x01\x08\x01", "byte 6: more than 3 fields"),
        (b"\x0b\x0b\x0c\x0c", "byte 0: more than 1 groups inside each other"),
    ];
    for (bytes, text) in rows {
        let error: Error =
            read_bytes(bytes, "NetParameter", &mut Used::new(&limits)).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.kind()), (*text, ErrorKind::Limit));
    }
}

#[test]
fn several_messages_share_limits() {
    let limits = Limits { size: 9, depth: 1, layers: 2, fields: 3 };
    let rows: &[(&[u8], &str)] = &[
        (b"\x50\0\x58\0", "byte 2: more than 3 fields"),
        (b"\x0a\x04\0\0\0\0", "12 bytes, more than the limit of 9"),
        (b"", "byte 0: more than 2 layers"),
    ];
    for (bytes, text) in rows {
        let mut used = Used::new(&limits);
        read_bytes(bytes, "LayerParameter", &mut used).unwrap();
        let again = read_bytes(bytes, "LayerParameter", &mut used);
        let again = again.and_then(|_| read_bytes(bytes, "LayerParameter", &mut used));
        assert_eq!(again.unwrap_err().to_string(), *text);
    }
}

#[test]
fn fields_have_places() {
    let message = read(b"\x28\x01\x32\x02\x10\x01\x32\x02\x10\x02").unwrap();
    let places: Vec<Place> = message.fields().iter().map(Field::place).collect();
    assert_eq!(places, [Place::Byte(0), Place::Byte(2)]);
    let level = &message.message("state").unwrap().fields()[0];
    assert_eq!((level.place(), level.value()), (Place::Byte(8), &Value::Int(2)));
}

/// With SYNCBLOB_TEST_FULL, the input is so long that quadratic time would mean hours.
#[test]
fn hostile_bytes_take_linear_time() {
    let full = std::env::var_os("SYNCBLOB_TEST_FULL").is_some();
    let size = if full { 16 << 20 } else { 256 << 10 };
    let repeated: &[&[u8]] = &[
        b"\x32\x00", // one message in parts
        b"\x32\x02\x10\x01",
        b"\x32\x05\x1a\x01s\x10\x01",
        b"\x28\x01\x0a\x00", // singular scalars
        b"\x22\x01\x01",
        b"\x0b", // groups
        b"\x0b\x0c",
        b"\xa2\x06\x00", // layers
        b"\xa2\x06\x07\xca\x07\x00\x12\x02xy",
        b"\x12\x02\x0a\x00",
        b"\x12\x06\x0a\x00\x0a\x00\x28\x04",
        b"\xff\xff\xff\xff\x0f",
        b"\x42\x03\x0a\x01\x01",
    ];
    for bytes in repeated {
        let mut packed = Vec::new();
        delimited(4, &bytes.repeat(size / bytes.len() / 2), &mut packed);
        for whole in [bytes.repeat(size / bytes.len()), packed] {
            let _ = read(&whole);
        }
    }
}
