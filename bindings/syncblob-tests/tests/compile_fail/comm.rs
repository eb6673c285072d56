use std::thread;

use syncblob::comm::{Comm, Reducer, Step};
use syncblob::{Blob, Error, Result};

// Until the step ends, no code can use the diff of a ready blob.

fn read_in_flight(reducer: &mut Reducer<f32>, mut blob: Blob<f32>) {
    let _ = reducer.step(|step| {
        step.ready(&mut blob)?;
        let _ = blob.diff()?; //~ E0502
        Ok::<_, Error>(())
    });
}

fn written_in_flight(reducer: &mut Reducer<f32>, mut blob: Blob<f32>) {
    let _ = reducer.step(|step| {
        step.ready(&mut blob)?;
        blob.diff_mut()?.fill(1.0); //~ E0499
        Ok::<_, Error>(())
    });
}

fn reshaped_in_flight(reducer: &mut Reducer<f32>, mut blob: Blob<f32>) {
    let _ = reducer.step(|step| {
        step.ready(&mut blob)?;
        blob.reshape([1000]).map(drop) //~ E0499
    });
}

fn ready_twice(reducer: &mut Reducer<f32>, mut blob: Blob<f32>) {
    let _ = reducer.step(|step| {
        step.ready(&mut blob)?;
        step.ready(&mut blob) //~ E0499
    });
}

fn ended_in_flight(reducer: &mut Reducer<f32>) {
    let _ = reducer.step(|step| {
        let mut blob = Blob::<f32>::zeros([3])?;
        step.ready(&mut blob) //~ E0597
    });
}

fn ended_in_flight_elsewhere<'env>(step: &Step<'_, 'env, f32>, blob: &'env mut Blob<f32>) {
    let mut other = Blob::<f32>::zeros([3]).unwrap();
    let _ = step.ready(blob);
    let _ = step.ready(&mut other); //~ E0597
}

fn kept_after_the_step<'a>(reducer: &mut Reducer<f32>, kept: &mut Option<&'a Step<'a, 'a, f32>>) {
    let _ = reducer.step(|step| {
        *kept = Some(step); //~ E0521
        Ok::<_, Error>(())
    });
}

fn a_communicator_of_two_threads(comm: Comm) {
    thread::scope(|scope| {
        scope.spawn(|| comm.barrier()); //~ E0277
    });
}

fn a_reducer_of_another_thread(comm: Comm, blob: Blob<f32>) {
    let reducer = Reducer::new(&comm, [&blob]);
    thread::scope(|scope| {
        scope.spawn(move || drop(reducer)); //~ E0277
    });
}

fn a_reducer_that_outlives_its_communicator(comm: Comm, blob: &Blob<f32>) -> Result<()> {
    let reducer = Reducer::new(&comm, [blob])?;
    drop(comm); //~ E0505
    drop(reducer);
    Ok(())
}

fn main() {}
