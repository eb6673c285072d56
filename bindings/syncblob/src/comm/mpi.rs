use mpi::environment::threading_support;
use mpi::ffi::MPI_Comm;
use mpi::traits::{AsRaw, Communicator};
use mpi::Threading;
use syncblob_sys as sys;

use super::Comm;
use crate::ffi::get;
use crate::{Context, Error, ErrorKind, Result};

impl Comm {
    /// Collective: makes a communicator over a duplicate of MPI's communicator `comm`. Handles and
    /// reducers' buckets are allocated in the context. Drop the communicator before the `Universe`
    /// of the crate `mpi`: dropping the `Universe` finalises MPI, and then the communicator's
    /// methods fail.
    ///
    /// ```no_run
    /// use syncblob::comm::{Comm, Op};
    /// use syncblob::Context;
    ///
    /// # fn main() -> syncblob::Result<()> {
    /// let universe = mpi::initialize().expect("MPI is initialised once");
    /// let comm = Comm::from_mpi(&Context::host(), &universe.world())?;
    /// let mut ones = [1.0_f32];
    /// comm.all_reduce(Op::Sum, &mut ones)?;
    /// assert_eq!(ones[0] as usize, comm.size());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported): MPI was initialised only for the main thread, and
    /// another thread makes the call; or MPI was initialised with `Threading::Serialized` instead
    /// of `Funneled` or `Multiple`, so two communicators on two threads could call MPI at once.
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): MPI is finalised, or `comm` is an
    /// intercommunicator; out of memory; [`CommFailure`](ErrorKind::CommFailure).
    pub fn from_mpi<C>(context: &Context, comm: &C) -> Result<Self>
    where
        C: Communicator + AsRaw<Raw = MPI_Comm>,
    {
        if threading_support() == Threading::Serialized {
            let message =
                "MPI was initialised with Threading::Serialized: use Funneled or Multiple";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        // SAFETY: context and communicator are live; the library does not keep the communicator.
        let raw = get(|out, err| unsafe {
            sys::sb_mpi_comm_create(context.as_ptr(), comm.as_raw(), out, err)
        })?;
        Ok(Self::own(raw))
    }
}
