//! Trains a multinomial logistic regression on ranks, and prints the loss of every step:
//!
//! ```sh
//! train STEPS [--ranks N] [--save STEP PREFIX] [--restore PREFIX]
//! mpirun -n 4 train STEPS --mpi ... # with the feature mpi
//! ```
//!
//! The ranks divide each batch, so the losses do not depend on the number of ranks. At step STEP
//! rank 0 saves PREFIX.caffemodel and PREFIX.solverstate, as Caffe does. A run that restores these
//! files continues with the same losses as a run without a stop. The ranks are threads, or
//! processes of MPI.

use std::path::{Path, PathBuf};
use std::thread;

use syncblob::comm::{Comm, Op, Reducer, ReducerOptions, SimOptions};
use syncblob::{Blob, Error, Format, Model, Part, Payload, Result, SolverInfo};

const FEATURES: usize = 16;
const CLASSES: usize = 4;
const BATCH: usize = 64;
const RATE: f32 = 0.1;
const MOMENTUM: f32 = 0.9;

#[derive(Clone, Default)]
pub struct Run {
    pub steps: usize,
    pub save: Option<(usize, PathBuf)>,
    pub restore: Option<PathBuf>,
}

// --- data: random points around the centre of each class, by splitmix64 ------------------------

fn draw(i: u64) -> f64 {
    let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

fn features_of(sample: usize) -> [f64; FEATURES] {
    let centre = 1_000_000_007 + sample % CLASSES * FEATURES;
    std::array::from_fn(|f| draw((centre + f) as u64) + draw((sample * FEATURES + f) as u64))
}

// --- one step ------------------------------------------------------------------------------------

/// `history` contains the last change of each parameter.
struct Net {
    weights: Blob<f32>,
    bias: Blob<f32>,
    history: [Blob<f32>; 2],
}

/// Returns the loss, and replaces the scores with the gradient of the loss.
fn softmax_loss(scores: &mut [f64; CLASSES], label: usize) -> f64 {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
    let loss = -scores[label].ln();
    scores[label] -= 1.0;
    loss
}

/// Computes this rank's part of the gradient, and returns its part of the loss. Both are divided by
/// the size of the whole batch.
fn backward(net: &mut Net, samples: impl Iterator<Item = usize>) -> Result<f64> {
    let (weights, bias) = (net.weights.data()?, net.bias.data()?);
    let mut sums = [[0.0; FEATURES]; CLASSES];
    let mut bias_sums = [0.0; CLASSES];
    let mut loss = 0.0;
    for sample in samples {
        let features = features_of(sample);
        let mut scores: [f64; CLASSES] = std::array::from_fn(|c| {
            let row = weights[c * FEATURES..][..FEATURES].iter().zip(&features);
            f64::from(bias[c]) + row.map(|(&weight, x)| f64::from(weight) * x).sum::<f64>()
        });
        loss += softmax_loss(&mut scores, sample % CLASSES) / BATCH as f64;
        for (c, score) in scores.iter().enumerate() {
            sums[c].iter_mut().zip(&features).for_each(|(sum, x)| *sum += score * x / BATCH as f64);
            bias_sums[c] += score / BATCH as f64;
        }
    }
    net.weights.overwrite(
        Part::Diff,
        &sums.as_flattened().iter().map(|&x| x as f32).collect::<Vec<_>>(),
    )?;
    net.bias.overwrite(Part::Diff, &bias_sums.map(|x| x as f32))?;
    Ok(loss)
}

/// Computes history = momentum x history + rate x diff, then data -= history.
fn update(param: &mut Blob<f32>, history: &mut Blob<f32>) -> Result<()> {
    for (diff, moved) in param.diff_mut()?.iter_mut().zip(history.data_mut()?) {
        *moved = MOMENTUM * *moved + RATE * *diff;
        *diff = *moved;
    }
    param.update()
}

fn one_step(net: &mut Net, reducer: &mut Reducer<f32>, step: usize) -> Result<f64> {
    let comm = reducer.comm();
    let own = (comm.rank()..BATCH).step_by(comm.size());
    let mut loss = [backward(net, own.map(|i| step * BATCH + i))?];
    reducer.step(|step| {
        step.ready(&mut net.bias)?;
        step.ready(&mut net.weights)
    })?;
    update(&mut net.weights, &mut net.history[0])?;
    update(&mut net.bias, &mut net.history[1])?;
    comm.all_reduce(Op::Sum, &mut loss)?;
    Ok(loss[0])
}

// --- snapshots ---------------------------------------------------------------------------------

fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn save(net: &Net, step: usize, prefix: &Path) -> Result<()> {
    let path = with_ending(prefix, ".caffemodel");
    let mut model = Model::create(Format::Caffemodel)?;
    let mut state = Model::create(Format::Solverstate)?;
    let layer = model.add_layer("ip", "InnerProduct")?;
    for blob in [&net.weights, &net.bias] {
        model.add_blob(layer, blob, Payload::Data)?;
    }
    for blob in &net.history {
        state.add_blob(None, blob, Payload::Data)?;
    }
    state.set_solver_info(&SolverInfo::new(step as i32).learned_net(&path))?;
    model.save(path)?;
    state.save(with_ending(prefix, ".solverstate"))
}

/// Restores the net, and returns the next step.
fn restore(net: &mut Net, prefix: &Path) -> Result<usize> {
    let model = Model::open(with_ending(prefix, ".caffemodel"))?;
    let state = Model::open(with_ending(prefix, ".solverstate"))?;
    net.weights = model.load((0, 0))?;
    net.bias = model.load((0, 1))?;
    net.history = [state.load(0)?, state.load(1)?];
    Ok(state.iteration()? as usize)
}

// --- training ------------------------------------------------------------------------------------

pub fn train(comm: &Comm, run: &Run) -> Result<Vec<f64>> {
    let shapes = [vec![CLASSES, FEATURES], vec![CLASSES]];
    let zeros = |i: usize| Blob::zeros(&shapes[i][..]);
    let mut net = Net { weights: zeros(0)?, bias: zeros(1)?, history: [zeros(0)?, zeros(1)?] };
    let mut first = [0_u32];
    if let (0, Some(prefix)) = (comm.rank(), &run.restore) {
        first[0] = restore(&mut net, prefix)? as u32;
    }
    comm.broadcast(0, &mut first)?;
    comm.broadcast_blobs(0, Part::Data, [&mut net.weights, &mut net.bias])?;
    comm.broadcast_blobs(0, Part::Data, &mut net.history)?;
    let options = ReducerOptions::new().op(Op::Sum);
    let mut reducer = options.register(comm, [&net.weights, &net.bias])?;
    let mut losses = Vec::new();
    for step in first[0] as usize..run.steps {
        if let Some((_, prefix)) = run.save.as_ref().filter(|(at, _)| *at == step) {
            if comm.rank() == 0 {
                save(&net, step, prefix)?;
            }
        }
        losses.push(one_step(&mut net, &mut reducer, step)?);
    }
    Ok(losses)
}

/// Runs the ranks as threads. Returns the losses of rank 0.
pub fn train_threads(ranks: usize, run: &Run) -> Result<Vec<f64>> {
    let ranks = SimOptions::new().ranks(ranks)?;
    thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.into_iter().map(|comm| scope.spawn(move || train(&comm, run))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("a rank panicked"));
        let losses: Result<Vec<_>> = results.collect();
        Ok::<_, Error>(losses?.swap_remove(0))
    })
}

fn print(run: &Run, losses: &[f64]) {
    for (step, loss) in (run.steps - losses.len()..).zip(losses) {
        println!("{step} {loss:.9}");
    }
}

/// Runs one rank of MPI. If the rank fails, aborts all ranks, because they would wait for it.
#[cfg(feature = "mpi")]
fn train_mpi(run: &Run) {
    use mpi::traits::Communicator;
    let universe = mpi::initialize().expect("MPI is initialised once");
    let world = universe.world();
    match Comm::from_mpi(&syncblob::Context::host(), &world).and_then(|comm| train(&comm, run)) {
        Ok(losses) if world.rank() == 0 => print(run, &losses),
        Ok(_) => (),
        Err(error) => {
            eprintln!("train: {error:?}");
            world.abort(1);
        }
    }
}

#[cfg(not(feature = "mpi"))]
fn train_mpi(_: &Run) {
    eprintln!("train: --mpi needs the feature mpi");
    std::process::exit(2);
}

struct Arguments {
    run: Run,
    ranks: usize,
    is_mpi: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let steps = words.next()?.parse().ok()?;
    let run = Run { steps, ..Run::default() };
    let mut arguments = Arguments { run, ranks: 1, is_mpi: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--ranks" => arguments.ranks = words.next()?.parse().ok()?,
            "--save" => {
                arguments.run.save = Some((words.next()?.parse().ok()?, words.next()?.into()));
            }
            "--restore" => arguments.run.restore = Some(words.next()?.into()),
            "--mpi" => arguments.is_mpi = true,
            _ => return None,
        }
    }
    Some(arguments)
}

fn main() {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("train STEPS [--ranks N | --mpi] [--save STEP PREFIX] [--restore PREFIX]");
        std::process::exit(2);
    };
    if arguments.is_mpi {
        return train_mpi(&arguments.run);
    }
    match train_threads(arguments.ranks, &arguments.run) {
        Ok(losses) => print(&arguments.run, &losses),
        Err(error) => {
            eprintln!("train: {error:?}");
            std::process::exit(1);
        }
    }
}
