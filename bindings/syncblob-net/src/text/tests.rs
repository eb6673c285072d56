use super::read_text;
use crate::{ErrorKind, Limits, Message, Place, Value};

fn read(text: &str) -> crate::Result<Message> {
    read_text(text.as_bytes(), "NetParameter", &Limits::default())
}

/// Each row contains a text, and the text that is printed after reading.
#[test]
fn equivalent_texts_are_read_alike() {
    let rows: &[(&str, &str)] = &[
        ("", ""),
        ("\u{feff}name: 'x'", "name: \"x\"\n"),
        ("# no fields\n", ""),
        ("name: 'a' \"b\" # and\n 'c'", "name: \"abc\"\n"),
        (
            "input_dim: 1, input_dim: 0x10; input_dim: 010",
            "input_dim: 1\ninput_dim: 16\ninput_dim: 8\n",
        ),
        ("input_dim: - # minus\n 5", "input_dim: -5\n"),
        ("input_dim: [1, 2] input_dim: []", "input_dim: 1\ninput_dim: 2\n"),
        ("state: < level: 1 >", "state {\n  level: 1\n}\n"),
        ("state { phase: 1 }", "state {\n  phase: TEST\n}\n"),
        ("force_backward: t", "force_backward: true\n"),
        ("force_backward: 0", "force_backward: false\n"),
        ("force_backward: True;", "force_backward: true\n"),
        ("input_shape { dim: 1 dim: [2, 3] }", "input_shape {\n  dim: 1\n  dim: 2\n  dim: 3\n}\n"),
        (
            "layer [{ name: 'a' }, < name: 'b' >]",
            "layer {\n  name: \"a\"\n}\nlayer {\n  name: \"b\"\n}\n",
        ),
        ("layers { type: CONVOLUTION }", "layers {\n  type: CONVOLUTION\n}\n"),
        ("layers { type: 4 }", "layers {\n  type: CONVOLUTION\n}\n"),
        ("foo: 1e3f", "foo: 1e3f\n"),
        ("foo : [ -1, inf , {a<b:'}'>}]\n#\n", "foo: [ -1, inf , {a<b:'}'>}]\n"),
        ("foo{};state{}", "foo {}\nstate {\n}\n"),
    ];
    for (text, printed) in rows {
        let message = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        // An unknown field is printed unchanged, even with a space before its colon.
        assert_eq!(message.to_string().replace("foo : ", "foo: "), *printed, "{text}");
    }
}

#[test]
fn numbers_are_read_as_floats() {
    let rows: &[(&str, f32)] = &[
        ("1e-3f", 1e-3),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("0", 0.0),
        ("2F", 2.0),
        ("1e999", f32::INFINITY),
        ("-INF", f32::NEG_INFINITY),
        ("infinity", f32::INFINITY),
        ("16777217", 16_777_216.0),
        ("0.1", 0.1),
        ("123456789012345678901234567890", 1.234_567_9e29),
    ];
    for (text, value) in rows {
        let message = read_text(
            format!("negative_slope: {text}").as_bytes(),
            "ReLUParameter",
            &Limits::default(),
        );
        let message = message.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(message.float("negative_slope"), *value, "{text}");
    }
    let nan = read_text(b"negative_slope: -nan", "ReLUParameter", &Limits::default()).unwrap();
    assert!(nan.float("negative_slope").is_nan());
    assert_eq!(nan.to_string(), "negative_slope: nan\n");
}

#[test]
fn escapes_are_decoded() {
    let rows: &[(&str, &[u8])] = &[
        (r"\a\b\f\n\r\t\v\\\?\'\x22", b"\x07\x08\x0c\n\r\t\x0b\\?'\""),
        (r"\0\12\1234\377", b"\0\nS4\xff"),
        (r"\x1\x41B\xfF", b"\x01AB\xff"),
        (r"\u00e4\U0001F600\ud83d\ude00", "ä😀😀".as_bytes()),
        ("ä\t", "ä\t".as_bytes()),
    ];
    for (text, bytes) in rows {
        let message = read(&format!("name: \"{text}\"")).unwrap();
        assert_eq!(message.text("name"), *bytes, "{text}");
        assert_eq!(read(&message.to_string()).unwrap(), message, "{text}");
    }
}

#[test]
fn malformed_texts_are_refused() {
    let rows: &[(&str, &str)] = &[
        ("name", "line 1, column 5: expected ':' after 'name', found the end of the text"),
        ("name 'x'", "line 1, column 6: expected ':' after 'name', found '\\'x\\''"),
        ("name: x", "line 1, column 7: expected a string in quotes for 'name', found 'x'"),
        ("name: 'x", "line 1, column 7: the string has no closing ' in its line"),
        ("name: 'x\n'", "line 1, column 7: the string has no closing ' in its line"),
        ("name: 'x\\", "line 1, column 7: the string has no closing ' in its line"),
        ("name: 'x\\q'", "line 1, column 7: unknown escape in a string: \\\\q"),
        ("name: '\\777'", "line 1, column 7: unknown escape in a string: \\\\777"),
        ("name: '\\ud800'", "line 1, column 7: unknown escape in a string: \\\\ud800"),
        ("name: '\\U00110000'", "line 1, column 7: unknown escape in a string: \\\\U00110000"),
        ("name: '\\x'", "line 1, column 7: unknown escape in a string: \\\\x"),
        ("name: '\\X41'", "line 1, column 7: unknown escape in a string: \\\\X41"),
        ("foo: '\\q'", "line 1, column 6: unknown escape in a string: \\\\q"),
        ("name: 'a' name: 'b'", "line 1, column 11: 'name' is given twice"),
        ("state {} state {}", "line 1, column 10: 'state' is given twice"),
        ("\n\n  }", "line 3, column 3: expected the name of a field, found '}'"),
        ("state {", "line 1, column 8: expected the name of a field, found the end of the text"),
        ("state { >", "line 1, column 9: expected the name of a field, found '>'"),
        ("state: 1", "line 1, column 8: expected '{' after 'state', found '1'"),
        ("state: [{}]", "line 1, column 8: expected '{' after 'state', found '['"),
        ("name: 'x' ,; name", "line 1, column 12: expected the name of a field, found ';'"),
        ("[a.b]: 1", "line 1, column 1: expected the name of a field, found '['"),
        ("1: 1", "line 1, column 1: expected the name of a field, found '1'"),
        (
            "input_dim: 1.5",
            "line 1, column 12: expected a whole number for 'input_dim', found '1.5'",
        ),
        (
            "input_dim: -2147483649",
            "line 1, column 12: expected a whole number from -2147483648 to 2147483647 for \
             'input_dim', found '-2147483649'",
        ),
        ("input_dim: 08", "line 1, column 13: expected a space after the number"),
        ("input_dim: 0x", "line 1, column 14: expected hexadecimal digits after 0x"),
        ("input_dim: 1input_dim: 2", "line 1, column 13: expected a space after the number"),
        ("input_dim: 1.2.3", "line 1, column 15: expected a space after the number"),
        ("input_dim: [1 2]", "line 1, column 15: expected ',' or ']' in 'input_dim', found '2'"),
        (
            "input_dim: [1,]",
            "line 1, column 15: expected a whole number for 'input_dim', found ']'",
        ),
        (
            "layer {\n\tpooling_param {\n\t\tpad: same }}",
            "line 3, column 8: expected a whole number for 'pad', found 'same'",
        ),
        (
            "layer { pooling_param { pad: -1 } }",
            "line 1, column 30: expected a whole number from 0 to 4294967295 for 'pad', found '-1'",
        ),
        (
            "layer { relu_param { negative_slope: 010 } }",
            "line 1, column 38: expected a number for 'negative_slope', found '010'",
        ),
        ("foo: 1e+", "line 1, column 9: expected the digits of an exponent"),
        (
            "force_backward: 2",
            "line 1, column 17: expected true or false for 'force_backward', found '2'",
        ),
        (
            "state { phase: FOO }",
            "line 1, column 16: expected TRAIN or TEST for 'phase', found 'FOO'",
        ),
        (
            "state { phase: -1 }",
            "line 1, column 16: expected TRAIN or TEST for 'phase', found '-1'",
        ),
        (
            "layers { type: FOO }",
            "line 1, column 16: expected NONE, ACCURACY, BNLL, … or another name for 'type', \
             found 'FOO'",
        ),
        ("foo", "line 1, column 4: expected ':' or '{', found the end of the text"),
        ("foo: ]", "line 1, column 6: expected a value, found ']'"),
        ("foo: [1 2]", "line 1, column 9: expected ',' or ']', found '2'"),
        ("foo: [1,]", "line 1, column 9: expected a value, found ']'"),
        ("foo { a: 1 >", "line 1, column 12: expected the name of a field, found '>'"),
        ("foo { a [1] }", "line 1, column 9: expected ':' or '{', found '['"),
        ("foo: -bar", "line 1, column 7: expected a value, found 'bar'"),
        ("foo: [{a: [1}]", "line 1, column 13: expected ',' or ']', found '}'"),
        ("\x01", "line 1, column 1: the byte 0x01 is only allowed in a string"),
        ("näme: 1", "line 1, column 2: the byte 0xc3 is only allowed in a string"),
        ("name: \"\0\"", "line 1, column 7: the string has no closing \" in its line"),
        (
            "name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeee",
            "line 1, column 7: expected a string in quotes for 'name', found \
             'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd…'",
        ),
    ];
    for (text, message) in rows {
        let error = read(text).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.kind()), (*message, ErrorKind::Malformed));
    }
}

#[test]
fn fields_depend_on_the_type_of_the_layer() {
    let rows = [
        ("type: 'Pooling3D' pooling_param {}", "Pooling3DParameter"),
        ("pooling_param {} type: 'Pooling3D'", "Pooling3DParameter"),
        ("pooling_param {} foo { type: 'x' } type: 'Pool' 'ing3D'", "Pooling3DParameter"),
        ("pooling_param {} type: 'Pooling'", "PoolingParameter"),
        ("pooling_param {}", "PoolingParameter"),
    ];
    for (layer, name) in rows {
        // The type of the previous layer must have no effect.
        let message = read(&format!("layer {{ type: 'Pooling3D' }} layer {{ {layer} }}")).unwrap();
        let layer = message.messages("layer").last().unwrap();
        assert_eq!(layer.message("pooling_param").unwrap().type_name(), name, "{layer}");
    }
}

#[test]
fn fields_have_places() {
    let message = read("name: 'x'\n\tstate {\n  level: -1 } bar:\n1").unwrap();
    let place = |line, column| Place::Text { line, column };
    let places: Vec<Place> = message.fields().iter().map(crate::Field::place).collect();
    assert_eq!(places, [place(1, 7), place(2, 8), place(3, 15)]);
    let state = message.message("state").unwrap();
    assert_eq!(state.fields()[0].place(), place(3, 10));
    assert_eq!(message.fields()[2].value(), &Value::Unknown(b":\n1".as_slice().into()));
}

#[test]
fn limits_are_enforced() {
    let limits = Limits { size: 40, depth: 2, layers: 2, fields: 5 };
    let rows = [
        ("name: '0123456789012345678901234567890123'", "42 bytes, more than the limit of 40"),
        ("layer{}layer{}layers{}", "line 1, column 21: more than 2 layers"),
        ("a{b{c{}}}", "line 1, column 7: more than 2 messages inside each other"),
        ("a:[[[1]]]", "line 1, column 6: more than 2 messages inside each other"),
        ("layer{a{b{}}}", "line 1, column 11: more than 2 messages inside each other"),
        ("input_dim:[1,2,3,4,5,6]", "line 1, column 22: more than 5 fields"),
        ("a:1 a:1 a:1 a:1 a:1 a:1", "line 1, column 21: more than 5 fields"),
    ];
    for (text, message) in rows {
        let error = read_text(text.as_bytes(), "NetParameter", &limits).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::Limit));
    }
}

/// With SYNCBLOB_TEST_FULL, the texts are so large that quadratic time would mean hours.
#[test]
fn hostile_texts_take_linear_time() {
    let full = std::env::var_os("SYNCBLOB_TEST_FULL").is_some();
    let size = if full { 16 << 20 } else { 256 << 10 };
    let repeated = [
        "a{",
        "a:[",
        "a:[{",
        "state{",
        "layer{",
        "layer{layer{",
        "'",
        "\"\\",
        "\"\"",
        "dim:1 ",
        "input_dim:1 ",
        "name:''",
        "input:''",
        "\\",
        "#",
        "\n",
        "{",
        "[",
        "<",
        "-",
        "0",
        "a",
        "layer{}",
        "layer{type:'x'a:1}",
        "layers{layer{}}",
        "layer{a{type:''}}",
        "input_shape{}",
        "a:1 ",
        "layer{bottom:'a'bottom:'b'",
        "input_shape{dim:[",
        "1,",
        "a:''''",
    ];
    for text in repeated {
        for before in ["", "input_dim:[", "layer{", "name:'", "name:", "a:[", "a{"] {
            let whole = before.to_owned() + &text.repeat((size - before.len()) / text.len());
            let _ = read(&whole);
        }
    }
}

#[test]
fn a_hundred_thousand_layers_are_the_limit() {
    let layer = "layer { name: 'x' type: 'ReLU' bottom: 'x' top: 'x' }\n";
    let message = read(&layer.repeat(100_000)).unwrap();
    assert_eq!(message.fields().len(), 100_000);
    let error = read(&layer.repeat(100_001)).unwrap_err().to_string();
    assert_eq!(error, "line 100001, column 7: more than 100000 layers");
}
