//! A blob filled from bytes as NumPy and safetensors store them.

use bytemuck::Pod;
use half::{bf16, f16};
use syncblob::{Blob, BlobAny, Context, Dtype, Element};

use super::{Each, Failure, Result, Stored, Tensor};

/// The order of the bytes of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// Writes a tensor's bytes, which become its values, from wherever they are.
pub type Read<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

/// Blobs of at most `most` values, or one of the tensor's shape if those are all.
/// `read` writes the bytes of each in turn, in C order.
pub fn parts(
    tensor: &Tensor,
    context: &Context,
    order: ByteOrder,
    most: usize,
    read: Read,
    each: Each,
) -> Result<()> {
    let mut left = tensor.count();
    if left <= most {
        return each(blob(tensor, &tensor.shape, context, order, read)?);
    }
    while left > 0 {
        let count = left.min(most);
        each(blob(tensor, &[count], context, order, read)?)?;
        left -= count;
    }
    Ok(())
}

fn blob(
    tensor: &Tensor,
    shape: &[usize],
    context: &Context,
    order: ByteOrder,
    read: Read,
) -> Result<BlobAny> {
    match tensor.dtype {
        Stored::As(Dtype::F32) => typed::<f32>(shape, context, order, read),
        Stored::As(Dtype::F64) => typed::<f64>(shape, context, order, read),
        Stored::As(Dtype::I32) => typed::<i32>(shape, context, order, read),
        Stored::As(Dtype::U32) => typed::<u32>(shape, context, order, read),
        Stored::As(Dtype::I8) => typed::<i8>(shape, context, order, read),
        Stored::As(Dtype::U8) => typed::<u8>(shape, context, order, read),
        Stored::As(Dtype::F16) => typed::<f16>(shape, context, order, read),
        Stored::As(Dtype::Bf16) => typed::<bf16>(shape, context, order, read),
        ref other => Err(Failure::Unsupported(format!("no blob can hold {other}"))),
    }
}

fn typed<T: Element + Pod>(
    shape: &[usize],
    context: &Context,
    order: ByteOrder,
    read: Read,
) -> Result<BlobAny> {
    let mut blob = Blob::<T>::zeros_in(context, shape)?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(blob.data_mut()?);
    read(bytes)?;
    if (order == ByteOrder::Big) != cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Ok(BlobAny::from(blob))
}
