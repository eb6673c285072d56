//! Fills blobs with values from NumPy and safetensors files.

use bytemuck::Pod;
use syncblob::{Blob, BlobAny, Context, Dtype, Element};

use super::{Failure, Parts, Result, Stored, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// A source of the bytes of a tensor, in C order.
pub trait Bytes {
    /// Returns true if `read` must be called only once, for all bytes.
    fn is_whole(&self) -> bool {
        false
    }

    /// Fills `bytes` with the next bytes of the tensor.
    fn read(&mut self, bytes: &mut [u8]) -> Result<()>;

    /// Checks the data after the last value.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The parts of a tensor, which are filled from bytes of a file.
pub struct Filled<'a, B> {
    tensor: &'a Tensor,
    context: &'a Context,
    order: ByteOrder,
    bytes: B,
    /// The number of values that have not been returned, or None after the last part.
    left: Option<usize>,
}

impl<'a, B: Bytes> Filled<'a, B> {
    pub fn new(tensor: &'a Tensor, context: &'a Context, order: ByteOrder, bytes: B) -> Self {
        Self { tensor, context, order, bytes, left: Some(tensor.count()) }
    }
}

impl<B: Bytes> Parts for Filled<'_, B> {
    fn next(&mut self, most: usize) -> Result<Option<BlobAny>> {
        let Some(left) = self.left else { return Ok(None) };
        let count = if self.bytes.is_whole() { left } else { left.min(most) };
        let one = [count];
        let shape = if count == self.tensor.count() { &self.tensor.shape[..] } else { &one };
        let read = &mut |bytes: &mut [u8]| self.bytes.read(bytes);
        let blob = blob(self.tensor, shape, self.context, self.order, read)?;
        self.left = Some(left - count).filter(|left| *left > 0);
        if self.left.is_none() {
            self.bytes.end()?;
        }
        Ok(Some(blob))
    }
}

type Read<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

macro_rules! blob {
    ([] $(
        $name:ident = [$when:meta] $type:ty, $code:ident, $text:literal, $size:literal,
        $numpy:literal, $typestr:literal, $safe:ident, [$($can:ident)*], $kind:ident;
    )*) => {
        fn blob(
            tensor: &Tensor,
            shape: &[usize],
            context: &Context,
            order: ByteOrder,
            read: Read,
        ) -> Result<BlobAny> {
            match tensor.dtype {
                $(Stored::As(Dtype::$name) => typed::<$type>(shape, context, order, read),)*
                ref other => Err(Failure::Unsupported(format!("no blob can hold {other}"))),
            }
        }
    };
}

syncblob::for_each_dtype!(blob);

fn typed<T: Element + Pod>(
    shape: &[usize],
    context: &Context,
    order: ByteOrder,
    read: Read,
) -> Result<BlobAny> {
    let mut blob = Blob::<T>::in_context(context).zeros(shape)?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(blob.data_mut()?);
    read(bytes)?;
    if (order == ByteOrder::Big) != cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Ok(BlobAny::from(blob))
}
