//! A blob filled from bytes as NumPy and safetensors store them.

use bytemuck::Pod;
use half::{bf16, f16};
use syncblob::{Blob, BlobAny, Context, Dtype, Element};

use super::{Failure, Result, Stored, Tensor};

/// The order of the bytes of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// Writes a tensor's bytes, which become its values, from wherever they are.
pub type Read<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

/// A blob of the tensor's type and shape. `read` writes its bytes, in C order.
pub fn blob(tensor: &Tensor, context: &Context, order: ByteOrder, read: Read) -> Result<BlobAny> {
    match tensor.dtype {
        Stored::As(Dtype::F32) => typed::<f32>(tensor, context, order, read),
        Stored::As(Dtype::F64) => typed::<f64>(tensor, context, order, read),
        Stored::As(Dtype::I32) => typed::<i32>(tensor, context, order, read),
        Stored::As(Dtype::U32) => typed::<u32>(tensor, context, order, read),
        Stored::As(Dtype::F16) => typed::<f16>(tensor, context, order, read),
        Stored::As(Dtype::Bf16) => typed::<bf16>(tensor, context, order, read),
        ref other => Err(Failure::Unsupported(format!("no blob can hold {other}"))),
    }
}

fn typed<T: Element + Pod>(
    tensor: &Tensor,
    context: &Context,
    order: ByteOrder,
    read: Read,
) -> Result<BlobAny> {
    let mut blob = Blob::<T>::zeros_in(context, &tensor.shape[..])?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(blob.data_mut()?);
    read(bytes)?;
    if (order == ByteOrder::Big) != cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Ok(BlobAny::from(blob))
}
