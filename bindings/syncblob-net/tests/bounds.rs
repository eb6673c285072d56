//! Tests that the memory for converting a text is at most proportional to the text's length.

use std::fmt::Write;
use std::time::{Duration, Instant};

use syncblob_net::{Net, NetOptions, OnnxOptions};

#[path = "../fuzz/src/memory.rs"]
mod memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const LENGTH: usize = 128 << 10;
const LONG: usize = 16 << 20;
const TIMES: usize = 8;
/// The long text may take at most TIMES x NOISE times as long as the short text.
const NOISE: u32 = 3;

const INPUT: &str =
    "layer{name:'i'type:'Input'top:'b0'input_param{shape{dim:1 dim:4 dim:8 dim:8}}}\n";

/// A name, a function that makes a text of a given length, and the maximum memory per byte of text.
type Row = (&'static str, fn(usize) -> String, usize);

fn repeated(start: &str, part: impl Fn(usize) -> String, length: usize) -> String {
    let mut text = String::from(start);
    for index in 0.. {
        if text.len() >= length {
            break;
        }
        text += &part(index);
    }
    text
}

fn closed(start: &str, part: &str, end: &str, length: usize) -> String {
    repeated(start, |_| part.into(), length) + end
}

fn layers(part: impl Fn(usize) -> String, length: usize) -> String {
    repeated(INPUT, part, length)
}

fn long_names(length: usize) -> String {
    let mut text = String::from(INPUT);
    let name = "n".repeat(length / 12);
    for index in 0..4 {
        write!(
            text,
            "layer{{name:'{name}{index}'type:'MVN'bottom:'b{index}'top:'b{}'}}\n\
             layer{{name:'{name}x{index}'type:'LRN'bottom:'b{index}'top:'c{index}'
             lrn_param{{norm_region:WITHIN_CHANNEL}}}}\n",
            index + 1
        )
        .unwrap();
    }
    text
}

static ROWS: &[Row] = &[
    ("unknown fields", |n| repeated("", |_| "a:1 ".into(), n), 150),
    ("unknown messages", |n| repeated("", |_| "a{}".into(), n), 150),
    ("numbers", |n| repeated("", |_| "input_dim:1 ".into(), n), 40),
    ("numbers in a list", |n| closed("input_dim:[1", ",1", "]", n), 150),
    ("empty texts", |n| repeated("", |_| "input:''".into(), n), 40),
    ("empty layers", |n| repeated("", |_| "layer{}".into(), n), 150),
    ("brackets", |n| repeated("", |_| "a{".into(), n), 10),
    ("brackets of lists", |n| repeated("a:", |_| "[".into(), n), 10),
    ("brackets in a layer", |n| repeated("layer{", |_| "a{".into(), n), 10),
    ("spaces", |n| " ".repeat(n), 1),
    ("lines", |n| "\n".repeat(n), 1),
    ("comments", |n| repeated("", |_| "#a\n".into(), n), 1),
    ("one long text", |n| closed("name:'", "a", "'", n), 8),
    ("escapes", |n| closed("name:'", "\\n", "'", n), 8),
    ("a text of parts", |n| repeated("name:", |_| "'a'".into(), n), 8),
    ("an unknown field in many parts", |n| repeated("x:", |_| "'a'".into(), n), 8),
    ("a layer that does not end", |n| repeated("layer{", |_| "x:1 ".into(), n), 150),
    ("a type of parts", |n| repeated("layer{type:", |_| "'a'".into(), n) + "}", 8),
    ("types", |n| repeated("layer{", |_| "type:'a'".into(), n) + "}", 40),
    ("values of a blob", |n| closed("layer{blobs{data:[1", ",1", "]}}", n), 150),
    (
        "a chain",
        |n| layers(|i| format!("layer{{name:'{i}'type:'ReLU'bottom:'b{i}'top:'b{}'}}\n", i + 1), n),
        80,
    ),
    (
        "readers of one blob",
        |n| layers(|i| format!("layer{{name:'{i}'type:'TanH'bottom:'b0'top:'t{i}'}}\n"), n),
        80,
    ),
    ("layers in place", |n| layers(|_| "layer{type:'ReLU'bottom:'b0'top:'b0'}\n".into(), n), 120),
    (
        "in-place layers on many blobs",
        |n| {
            layers(
                |i| {
                    format!(
                        "layer{{name:'{i}'type:'TanH'bottom:'b0'top:'{i}'}}\n\
                         layer{{name:'{i}r'type:'ReLU'bottom:'{i}'top:'{i}'}}\n"
                    )
                },
                n,
            )
        },
        120,
    ),
    (
        "in-place layers on a blob of many names",
        |n| {
            let names = repeated("", |i| format!("top:'{i}'"), n / 6);
            let split = format!("{INPUT} layer{{name:'s'type:'Split'bottom:'b0'{names}}}\n");
            let relu = |i| format!("layer{{name:'r{i}'type:'ReLU'bottom:'{i}'top:'{i}'}}\n");
            repeated(&split, relu, n)
        },
        120,
    ),
    (
        "layers of one name",
        |n| layers(|i| format!("layer{{name:'x'type:'MVN'bottom:'b0'top:'t{i}'}}\n"), n),
        400,
    ),
    (
        "constants of one name",
        |n| {
            layers(
                |i| {
                    format!(
                        "layer{{name:'x'type:'Power'bottom:'b0'top:'t{i}'power_param{{shift:2}}}}\n"
                    )
                },
                n,
            )
        },
        200,
    ),
    (
        "a blob that is split",
        |n| {
            repeated(
                &format!("{INPUT} layer{{name:'s'type:'Split'bottom:'b0'"),
                |i| format!("top:'{i}'"),
                n,
            ) + "}"
        },
        300,
    ),
    (
        "a blob that is added to itself many times",
        |n| closed(&format!("{INPUT} layer{{name:'s'type:'Eltwise'top:'x'"), "bottom:'b0'", "}", n),
        80,
    ),
    (
        "slices",
        |n| {
            let points = repeated("slice_param{slice_point:1 ", |_| "slice_point:2 ".into(), n);
            format!("{INPUT} layer{{name:'s'type:'Slice'bottom:'b0'top:'x'top:'y'{points}}}}}")
        },
        40,
    ),
    (
        "ratios of boxes",
        |n| {
            let ratios = repeated("min_size:4 ", |i| format!("aspect_ratio:{} ", i + 2), n);
            format!("{INPUT} layer{{type:'PriorBox'bottom:'b0'bottom:'b0'top:'x'prior_box_param{{{ratios}}}}}")
        },
        40,
    ),
    (
        "sizes of boxes, and ratios",
        |n| {
            let sizes = repeated("", |i| format!("min_size:{} ", i + 1), n / 2);
            let ratios = repeated(&sizes, |i| format!("aspect_ratio:{} ", i + 2), n);
            format!("{INPUT} layer{{type:'PriorBox'bottom:'b0'bottom:'b0'top:'x'prior_box_param{{{ratios}}}}}")
        },
        40,
    ),
    (
        "detections of many classes",
        |n| {
            let start =
                "layer{name:'i'type:'Input'top:'l'top:'c'top:'p'input_param{shape{dim:1 dim:4}
                shape{dim:1 dim:1000000}shape{dim:1 dim:2 dim:4}}}\n";
            repeated(
                start,
                |i| {
                    format!(
                        "layer{{name:'{i}'type:'DetectionOutput'bottom:'l'bottom:'c'bottom:'p'top:'{i}'
                         detection_output_param{{num_classes:1000000}}}}\n"
                    )
                },
                n,
            )
        },
        2400, // the bound of a graph, divided by LENGTH
    ),
    ("names", long_names, 60),
    ("many inputs", |n| repeated("", |i| format!("input:'{i}'input_dim:[1,1,1,1]"), n), 80),
    (
        "V1",
        |n| {
            repeated(
                "input:'b0'input_dim:[1,1,1,1]",
                |i| {
                    format!(
                        "layers{{name:'{i}'type:RELU bottom:'b{i}'top:'b{}'blobs_lr:1}}\n",
                        i + 1
                    )
                },
                n,
            )
        },
        100,
    ),
    (
        "V0",
        |n| {
            repeated(
                "input:'b0'input_dim:[1,1,1,1]",
                |i| {
                    format!(
                        "layers{{layer{{name:'{i}'type:'padding'pad:1}}bottom:'b{i}'top:'p{i}'}}
                         layers{{layer{{type:'pool'kernelsize:3}}bottom:'p{i}'top:'b{}'}}\n",
                        i + 1
                    )
                },
                n,
            )
        },
        100,
    ),
    (
        "layers of stages",
        |n| repeated("state{stage:'a'}", |_| "layer{include{stage:'a'}}".into(), n),
        80,
    ),
    (
        "shared weights",
        |n| {
            layers(
                |i| {
                    format!(
                        "layer{{name:'{i}'type:'PReLU'bottom:'b0'top:'t{i}'param{{name:'w'}}}}\n"
                    )
                },
                n,
            )
        },
        80,
    ),
    (
        "data and losses",
        |n| {
            repeated(
                "layer{name:'d'type:'Data'top:'d'top:'l'}",
                |i| {
                    format!(
                        "layer{{name:'{i}'type:'SoftmaxWithLoss'bottom:'d'bottom:'l'top:'{i}'}}"
                    )
                },
                n,
            )
        },
        80,
    ),
];

fn convert(text: &str) {
    let Ok(net) = Net::from_prototxt(text.as_bytes(), &NetOptions::default()) else { return };
    let shapes = net.shapes();
    assert_eq!(shapes.weights.len(), net.layers().len());
    if let Ok(onnx) = net.to_onnx(&OnnxOptions::default()) {
        onnx.write(std::io::sink()).unwrap();
    }
}

/// Returns the processor time of a call or, if the system does not report it, the elapsed time.
fn seconds_of(call: impl FnOnce()) -> Duration {
    let now = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    let (start, begun) = (now(), Instant::now());
    call();
    match (start, now()) {
        (Some(start), Some(end)) => end - start,
        _ => begun.elapsed(),
    }
}

/// Times below 2 ms count as 2 ms, because shorter times vary too much.
fn most_time(short: &str) -> Duration {
    let took = seconds_of(|| convert(short));
    took.max(Duration::from_millis(2)) * TIMES as u32 * NOISE
}

#[test]
fn costs_are_linear_in_the_length() {
    convert(INPUT); // reads the schema before the measurement
    let full = std::env::var_os("SYNCBLOB_TEST_FULL").is_some();
    let mut failed = Vec::new();
    for (name, text, per_byte) in ROWS {
        let long = text(if full { LONG - 200 } else { LENGTH });
        let mut memory = 0;
        let took = seconds_of(|| memory = memory::peak_of(|| convert(&long)).1);
        let per = memory as f64 / long.len() as f64;
        println!("{name:40} {took:9.3?} {per:8.1} bytes of memory a byte");
        let slow = full && took > most_time(&text(LONG / TIMES));
        if slow || per > *per_byte as f64 {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
