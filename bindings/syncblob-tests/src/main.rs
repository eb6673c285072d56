//! Compares the cost of calls to the crate `syncblob` with the cost of the same calls to C.
//!
//! ```sh
//! ./dev bench rust
//! ```
//!
//! Fails if a Rust call executes more than LIMIT times the instructions of the C call.

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use syncblob::{Blob, Part, Payload};
use syncblob_sys::sb_blob;

#[link(name = "loops", kind = "static")]
unsafe extern "C" {
    fn loop_cpu_data(blob: *const sb_blob, n: i64) -> f64;
    fn loop_mutable_cpu_data(blob: *mut sb_blob, n: i64) -> f64;
    fn loop_reshape(blob: *mut sb_blob, n: i64) -> f64;
    fn loop_offset(blob: *const sb_blob, n: i64) -> f64;
    fn loop_data_at(blob: *const sb_blob, n: i64) -> f64;
    fn loop_asum_data(blob: *const sb_blob, n: i64) -> f64;
    fn loop_update(blob: *mut sb_blob, n: i64) -> f64;
    fn loop_proto(blob: *const sb_blob, n: i64) -> f64;
}

const ROUNDS: usize = 200;
const COUNTED_CALLS: i64 = 1000;
const LIMIT: f64 = 1.05;
const SHAPE: [i64; 4] = [2, 2, 8, 8];

type Loop = fn(&mut Blob<f32>, i64) -> f64;

struct Case {
    name: &'static str,
    limit: f64,
    calls: i64,
    c: Loop,
    rust: Loop,
}

fn indices(i: i64) -> [usize; 4] {
    [i & 1, i & 1, i & 1, i & 1].map(|index| index as usize)
}

// SAFETY of all calls to C below: the blob is live, its elements are f32, and its memory has no
// other owner.
const CASES: [Case; 9] = [
    Case {
        name: "data, cpu_data",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_cpu_data(blob.as_ptr(), n) },
        rust: |blob, n| {
            let element = |i| f64::from(blob.data().expect("host memory")[i as usize & 7]);
            (0..n).map(element).sum()
        },
    },
    Case {
        name: "data_mut, mutable_cpu_data",
        limit: LIMIT,
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
        name: "reshape",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_reshape(blob.as_ptr(), n) },
        rust: |blob, n| {
            let mut reshape = |i| {
                let step = (i & 1) * 2;
                let shape = [2 << step, 2 << step, 8 >> step, 8 >> step];
                f64::from(u8::from(blob.reshape(shape).expect("a shape that fits").data))
            };
            (0..n).map(&mut reshape).sum()
        },
    },
    Case {
        name: "offset",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_offset(blob.as_ptr(), n) },
        rust: |blob, n| {
            let offset = |i| blob.offset(indices(i)).expect("indices of the shape") as i64 as f64;
            (0..n).map(offset).sum()
        },
    },
    Case {
        name: "at, data_at",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_data_at(blob.as_ptr(), n) },
        rust: |blob, n| {
            let element =
                |i| f64::from(blob.at(Part::Data, indices(i)).expect("indices of the shape"));
            (0..n).map(element).sum()
        },
    },
    Case {
        name: "asum_data",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_asum_data(blob.as_ptr(), n) },
        rust: |blob, n| (0..n).map(|_| blob.asum(Part::Data).expect("host memory")).sum(),
    },
    Case {
        name: "update",
        limit: LIMIT,
        calls: 20_000,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_update(blob.as_ptr(), n) },
        rust: |blob, n| {
            (0..n).for_each(|_| blob.update().expect("host memory"));
            0.0
        },
    },
    Case {
        name: "proto there and back",
        limit: LIMIT,
        calls: 500,
        // SAFETY: see above.
        c: |blob, n| unsafe { loop_proto(blob.as_ptr(), n) },
        rust: round_trips,
    },
    Case {
        name: "proto there and back, 1 Mi elements",
        limit: LIMIT,
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

fn blob_for(case: &Case) -> syncblob::Result<Blob<f32>> {
    let shape = if case.calls == 1 { [1, 1, 1024, 1024] } else { SHAPE };
    let mut blob = Blob::<f32>::full(shape, 1.0)?;
    blob.diff_mut()?.fill(0.0);
    Ok(blob)
}

// --- times -----------------------------------------------------------------------------

fn nanoseconds(run: impl FnOnce() -> f64) -> (f64, f64) {
    let start = Instant::now();
    let result = run();
    (start.elapsed().as_nanos() as f64, result)
}

/// Returns C's and Rust's nanoseconds per call.
fn times(case: &Case) -> syncblob::Result<[f64; 2]> {
    let (mut for_c, mut blob) = (blob_for(case)?, blob_for(case)?);
    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        let (c, of_c) = nanoseconds(|| (case.c)(black_box(&mut for_c), black_box(case.calls)));
        let (rust, of_rust) =
            nanoseconds(|| (case.rust)(black_box(&mut blob), black_box(case.calls)));
        assert_eq!(of_c, of_rust, "{}: the loops differ", case.name);
        fastest = [fastest[0].min(c), fastest[1].min(rust)];
    }
    Ok(fastest.map(|time| time / case.calls as f64))
}

// --- instructions ----------------------------------------------------------------------

/// The function in which callgrind counts instructions.
#[no_mangle]
#[inline(never)]
fn counted(run: Loop, blob: &mut Blob<f32>, calls: i64) {
    black_box(run(black_box(blob), black_box(calls)));
}

/// Runs C's loop (side 0) or Rust's loop (side 1) of a case under callgrind.
fn run_counted(case: &Case, side: usize) -> syncblob::Result<()> {
    let (run, mut blob) = ([case.c, case.rust][side], blob_for(case)?);
    run(&mut blob, 2); // does one-time work before callgrind counts
    counted(run, &mut blob, COUNTED_CALLS.min(case.calls));
    Ok(())
}

/// Returns C's and Rust's instructions per call.
fn instructions(case: usize) -> Result<[f64; 2], Box<dyn Error>> {
    let folder = env::temp_dir();
    let mut found = [0.0; 2];
    for (side, found) in found.iter_mut().enumerate() {
        let out = folder.join(format!("syncblob-tests-{}-{case}-{side}", std::process::id()));
        let done = Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=counted"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(env::current_exe()?)
            .args([case.to_string(), side.to_string()])
            .output()?;
        let profile = fs::read_to_string(&out)?;
        fs::remove_file(out)?;
        let total = profile.lines().find_map(|line| line.strip_prefix("summary: "));
        let total: f64 = total.ok_or("callgrind wrote no line \"summary\"")?.trim().parse()?;
        if !done.status.success() || total == 0.0 {
            return Err(String::from_utf8_lossy(&done.stderr).into());
        }
        *found = total / COUNTED_CALLS.min(CASES[case].calls) as f64;
    }
    Ok(found)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let given: Vec<usize> =
        env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    if let [case, side] = given[..] {
        run_counted(&CASES[case], side)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut failed = 0;
    println!(
        "{:<36}{:>10}{:>10}{:>7}{:>14}{:>12}{:>7}",
        "a call", "C, ns", "Rust, ns", "ratio", "C, instr.", "Rust", "ratio"
    );
    for (index, case) in CASES.iter().enumerate() {
        let [c, rust] = times(case)?;
        print!("{:<36}{c:>10.1}{rust:>10.1}{:>7.2}", case.name, rust / c);
        let [c, rust] = instructions(index)?;
        let ratio = rust / c;
        let verdict =
            if ratio > case.limit { format!("  above {}", case.limit) } else { String::new() };
        println!("{c:>14.1}{rust:>12.1}{ratio:>7.2}{verdict}");
        failed += u8::from(!verdict.is_empty());
    }
    println!("{} passed, {failed} failed", CASES.len() - usize::from(failed));
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
