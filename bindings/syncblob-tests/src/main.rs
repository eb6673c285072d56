//! What calls of the crate `syncblob` cost over those of C: the same loops in
//! both, interleaved, the fastest of many rounds each.
//!
//! ```sh
//! cargo run --release -p syncblob-tests
//! ```
//!
//! Fails when one of the small calls costs more than 1.1 times as much.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use syncblob::{Blob, Payload};
use syncblob_sys::sb_blob;

#[link(name = "loops", kind = "static")]
unsafe extern "C" {
    fn loop_cpu_data(blob: *const sb_blob, n: i64) -> f64;
    fn loop_mutable_cpu_data(blob: *mut sb_blob, n: i64) -> f64;
    fn loop_reshape(blob: *mut sb_blob, shapes: *const [i64; 4], n: i64) -> f64;
    fn loop_offset(blob: *const sb_blob, n: i64) -> f64;
    fn loop_proto(blob: *const sb_blob, n: i64) -> f64;
}

const ROUNDS: usize = 200;
const LIMIT: f64 = 1.1;
const SHAPES: [[i64; 4]; 2] = [[2, 2, 4, 4], [4, 4, 2, 2]];

/// A call, and whether it is one of the small ones.
struct Case {
    name: &'static str,
    is_small: bool,
    calls: i64,
    c: fn(&mut Blob<f32>, i64) -> f64,
    rust: fn(&mut Blob<f32>, i64) -> f64,
}

// SAFETY, of all calls here: the blob is live and holds f32, its memory is its
// own, and `SHAPES` are two shapes of four axes.
const CASES: [Case; 6] = [
    Case {
        name: "data, cpu_data",
        is_small: true,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_cpu_data(blob.as_ptr(), n) },
        rust: |blob, n| {
            let element = |i| f64::from(blob.data().expect("host memory")[i as usize & 7]);
            (0..n).map(element).sum()
        },
    },
    Case {
        name: "reshape",
        is_small: true,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_reshape(blob.as_ptr(), SHAPES.as_ptr(), n) },
        rust: |blob, n| {
            let mut reshape = |i| {
                let shape = &SHAPES[i as usize & 1];
                f64::from(u8::from(blob.reshape(shape).expect("a shape that fits").data))
            };
            (0..n).map(&mut reshape).sum()
        },
    },
    Case {
        name: "offset",
        is_small: true,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_offset(blob.as_ptr(), n) },
        rust: |blob, n| {
            let offset = |i| {
                let indices = [i & 1, i & 1, i & 3, i & 3].map(|index| index as usize);
                blob.offset(indices).expect("indices of the shape") as f64
            };
            (0..n).map(offset).sum()
        },
    },
    Case {
        name: "data_mut, mutable_cpu_data",
        is_small: false, // asks whether the memory is unique, which C does not
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_mutable_cpu_data(blob.as_ptr(), n) },
        rust: |blob, n| {
            let mut element = |i| {
                blob.data_mut().expect("host memory")[i as usize & 7] = 1.0;
                1.0
            };
            (0..n).map(&mut element).sum()
        },
    },
    Case {
        name: "proto there and back, 64 elements",
        is_small: true,
        calls: 500,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_proto(blob.as_ptr(), n) },
        rust: round_trips,
    },
    Case {
        name: "proto there and back, 1 Mi elements",
        is_small: false,
        calls: 1,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_proto(blob.as_ptr(), n) },
        rust: round_trips,
    },
];

fn round_trips(blob: &mut Blob<f32>, n: i64) -> f64 {
    let round_trip = || {
        let bytes = blob.to_proto(Payload::Data)?;
        let again = Blob::<f32>::from_proto(&bytes)?;
        Ok::<_, syncblob::Error>(f64::from(again.data()?[0]))
    };
    (0..n).map(|_| round_trip().expect("memory for a copy")).sum()
}

fn nanoseconds(run: impl FnOnce() -> f64) -> (f64, f64) {
    let start = Instant::now();
    let result = run();
    (start.elapsed().as_nanos() as f64, result)
}

/// The fastest round of each, in nanoseconds a call.
fn compare(case: &Case) -> syncblob::Result<(f64, f64)> {
    let shape = if case.calls == 1 { [1, 1, 1024, 1024] } else { SHAPES[0] };
    let mut blob = Blob::<f32>::full(shape, 1.0)?;
    let mut fastest = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (c, of_c) = nanoseconds(|| (case.c)(black_box(&mut blob), black_box(case.calls)));
        let (rust, of_rust) =
            nanoseconds(|| (case.rust)(black_box(&mut blob), black_box(case.calls)));
        assert_eq!(of_c, of_rust, "{}: the loops differ", case.name);
        fastest = (fastest.0.min(c), fastest.1.min(rust));
    }
    Ok((fastest.0 / case.calls as f64, fastest.1 / case.calls as f64))
}

fn main() -> ExitCode {
    let mut too_slow = 0;
    println!("{:<38}{:>12}{:>12}{:>8}", "nanoseconds a call", "C", "Rust", "ratio");
    for case in &CASES {
        let (c, rust) = compare(case).expect("the library works on host memory");
        let ratio = rust / c;
        let verdict = if case.is_small && ratio > LIMIT { "  above 1.1" } else { "" };
        println!("{:<38}{c:>12.1}{rust:>12.1}{ratio:>8.2}{verdict}", case.name);
        too_slow += u8::from(!verdict.is_empty());
    }
    if too_slow > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
