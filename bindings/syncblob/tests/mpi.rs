//! `tests/mpi/run.sh` runs this test with mpirun, on any number of ranks.

use syncblob::comm::{Comm, Op, Reducer};
use syncblob::{Blob, Context, Error, ErrorKind, Part};

fn every_call_agrees_with_the_number_of_ranks(comm: &Comm) {
    let (rank, size) = (comm.rank(), comm.size());
    let mut values = [1.0_f64, rank as f64];
    comm.all_reduce(Op::Sum, &mut values).unwrap();
    assert_eq!(values, [size as f64, (size * (size - 1) / 2) as f64]);
    let mut bytes = [rank as u8; 5];
    comm.broadcast(size - 1, &mut bytes).unwrap();
    assert_eq!(bytes, [size as u8 - 1; 5]);
    let mut blob = Blob::<f32>::full([3], rank as f32).unwrap();
    comm.broadcast_blobs(0, Part::Data, [&mut blob]).unwrap();
    assert_eq!(blob.data().unwrap(), [0.0; 3]);
    comm.barrier().unwrap();
}

fn a_step_computes_the_mean(comm: &Comm) {
    let mut blobs: Vec<_> = (1..9).map(|i| Blob::<f32>::zeros([i * i * 1000]).unwrap()).collect();
    let mut reducer = Reducer::new(comm, &blobs).unwrap();
    for iteration in 0..5 {
        let own = (comm.rank() + iteration) as f32;
        reducer
            .step(|step| {
                for blob in blobs.iter_mut().rev() {
                    blob.diff_mut()?.fill(own);
                    step.ready(blob)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        let mean = (comm.size() - 1) as f32 / 2.0 + iteration as f32;
        for blob in &blobs {
            assert!(blob.diff().unwrap().iter().all(|value| (value - mean).abs() < 1e-5));
        }
    }
}

fn main() {
    let universe = mpi::initialize().unwrap();
    let comm = Comm::from_mpi(&Context::host(), &universe.world()).unwrap();
    every_call_agrees_with_the_number_of_ranks(&comm);
    a_step_computes_the_mean(&comm);
    drop(universe); // finalises MPI
    assert_eq!(comm.barrier().unwrap_err().kind(), ErrorKind::Unsupported);
    if comm.rank() == 0 {
        println!("test result: ok. 3 passed; 0 failed");
    }
}
