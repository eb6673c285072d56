//! Trains with several workers, as in Caffe's data parallelism. The workers share the weights'
//! data; each worker has a separate diff. A step adds the diffs to the weights' diff and calls
//! `update`.
//!
//! The model is a linear function: `y = 2 a - 3 b + 0.5`.

use std::thread;

use syncblob::{Blob, ErrorKind, Part, Result};

const WORKERS: usize = 4;
const STEPS: usize = 400;
const RATE: f64 = 0.2;
const TRUTH: [f32; 3] = [2.0, -3.0, 0.5];

fn main() {
    match learn() {
        Ok((weights, loss)) => println!("weights {weights:.4?} of {TRUTH:?}, loss {loss:.2e}"),
        Err(error) => {
            eprintln!("data_parallel: {error:?}");
            std::process::exit(1);
        }
    }
}

/// Returns one worker's training data: rows of `a, b, 1`, and the value of `y` for each row.
fn shard(worker: usize) -> Result<(Blob<f32>, Vec<f32>)> {
    const POINTS: usize = 64;
    let noise = |i: usize| ((i as u64 * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0;
    let value = |i| if i % 3 == 2 { 1.0 } else { noise(i + worker * 1009) };
    let rows = Blob::from_fn([POINTS, 3], value)?;
    let ys = rows.data()?.chunks(3).map(|row| dot(row, &TRUTH)).collect();
    Ok((rows, ys))
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Writes the gradient of the mean squared error to the worker's diff, and returns the error.
fn backward(worker: &mut Blob<f32>, rows: &Blob<f32>, ys: &[f32]) -> Result<f32> {
    let mut loss = 0.0;
    let mut gradient = vec![0.0; worker.count()];
    for (row, y) in rows.data()?.chunks(3).zip(ys) {
        let error = dot(row, worker.data()?) - y;
        loss += error * error / ys.len() as f32;
        gradient.iter_mut().zip(row).for_each(|(g, x)| *g += 2.0 * error * x / ys.len() as f32);
    }
    worker.overwrite(Part::Diff, &gradient)?;
    Ok(loss)
}

fn step(weights: &mut Blob<f32>, shards: &[(Blob<f32>, Vec<f32>)]) -> Result<f32> {
    let shared: &Blob<f32> = weights;
    let work = |(rows, ys): &(Blob<f32>, Vec<f32>)| {
        let mut worker = Blob::zeros(shared.shape())?;
        worker.share(Part::Data, shared)?;
        let loss = backward(&mut worker, rows, ys)?;
        Ok((worker, loss))
    };
    let done: Result<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = shards.iter().map(|shard| scope.spawn(move || work(shard))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker panicked")).collect()
    });
    let done = done?;
    // `update` fails while the workers' blobs share the weights.
    assert_eq!(weights.update().unwrap_err().kind(), ErrorKind::Shared);

    weights.clear(Part::Diff)?;
    let sum = weights.diff_mut()?;
    for (worker, _) in &done {
        sum.iter_mut().zip(worker.diff()?).for_each(|(sum, diff)| *sum += diff);
    }
    let loss = done.iter().map(|(_, loss)| loss).sum::<f32>() / done.len() as f32;
    drop(done);
    weights.scale(Part::Diff, RATE / WORKERS as f64)?;
    weights.update()?; // data -= diff
    Ok(loss)
}

/// Returns the learned weights and the last loss.
pub fn learn() -> Result<(Vec<f32>, f32)> {
    let shards: Vec<_> = (0..WORKERS).map(shard).collect::<Result<_>>()?;
    let mut weights = Blob::<f32>::full([3], 0.0)?;
    let mut loss = f32::INFINITY;
    for _ in 0..STEPS {
        loss = step(&mut weights, &shards)?;
    }
    Ok((weights.data()?.to_vec(), loss))
}
