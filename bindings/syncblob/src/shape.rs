use std::fmt;
use std::mem::MaybeUninit;
use std::slice;

use crate::{Error, ErrorKind, Result};

const MAX_AXES: usize = Shape::MAX_AXES;

/// The dimensions of a blob: what `[2, 3, 4]`, a slice, a vector or `()` (a
/// scalar) turn into where a shape is asked for.
///
/// Nothing is checked here: a negative dimension or too many axes are errors of
/// the call that takes the shape.
///
/// ```
/// use syncblob::Blob;
/// # fn main() -> syncblob::Result<()> {
/// assert_eq!(Blob::<f32>::zeros([2, 3])?.count(), 6);
/// assert_eq!(Blob::<f32>::zeros(vec![7_usize, 0])?.count(), 0);
/// assert_eq!(Blob::<f32>::zeros(())?.count(), 1);
/// assert!(Blob::<f32>::zeros([2, -3]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Shape {
    /// Written up to `num_axes`: a shape is made for every reshape.
    dims: [MaybeUninit<i64>; MAX_AXES],
    /// As given; may be more than `dims` holds.
    num_axes: usize,
}

impl Shape {
    /// Axes at most.
    #[doc(alias = "kMaxBlobAxes")]
    pub const MAX_AXES: usize = syncblob_sys::SB_MAX_AXES as usize;

    #[inline]
    fn from_dims(given: impl Iterator<Item = i64>) -> Self {
        let mut dims = [MaybeUninit::uninit(); MAX_AXES];
        let mut num_axes = 0;
        for dim in given {
            if let Some(to) = dims.get_mut(num_axes) {
                to.write(dim);
            }
            num_axes += 1;
        }
        Self { dims, num_axes }
    }

    /// The dimensions, or an error when there are more than a blob can have.
    #[inline]
    pub(crate) fn dims(&self) -> Result<&[i64]> {
        if self.num_axes > MAX_AXES {
            return Err(self.too_many_axes());
        }
        // SAFETY: `from_dims` wrote that many.
        Ok(unsafe { slice::from_raw_parts(self.dims.as_ptr().cast(), self.num_axes) })
    }

    #[cold]
    fn too_many_axes(&self) -> Error {
        let message = format!("a shape of {} axes, at most {MAX_AXES} are allowed", self.num_axes);
        Error::new(ErrorKind::OverLimit, message)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dims() {
            Ok(dims) => f.debug_tuple("Shape").field(&dims).finish(),
            Err(error) => write!(f, "Shape({error})"),
        }
    }
}

/// Two are equal when their dimensions are; of too many axes none are.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.dims(), other.dims()), (Ok(ours), Ok(theirs)) if ours == theirs)
    }
}

impl From<()> for Shape {
    fn from(_: ()) -> Self {
        Self::from_dims([].into_iter())
    }
}

macro_rules! shape_from {
    ($($type:ty),*) => {$(
        impl From<&[$type]> for Shape {
            #[inline]
            fn from(dims: &[$type]) -> Self {
                // A number that does not fit is too large for any blob.
                Self::from_dims(dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)))
            }
        }

        impl<const N: usize> From<[$type; N]> for Shape {
            #[inline]
            fn from(dims: [$type; N]) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl<const N: usize> From<&[$type; N]> for Shape {
            #[inline]
            fn from(dims: &[$type; N]) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl From<Vec<$type>> for Shape {
            #[inline]
            fn from(dims: Vec<$type>) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl From<&Vec<$type>> for Shape {
            #[inline]
            fn from(dims: &Vec<$type>) -> Self {
                Self::from(dims.as_slice())
            }
        }
    )*};
}

shape_from!(usize, i64, i32, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_gives_the_same_dimensions() {
        let spellings = [
            Shape::from([2_usize, 3]),
            Shape::from(vec![2_i64, 3]),
            Shape::from(&[2_i32, 3]),
            Shape::from([2_u32, 3].as_slice()),
        ];
        for shape in spellings {
            assert_eq!(shape.dims().unwrap(), [2, 3]);
        }
        assert_eq!(Shape::from(()).dims().unwrap(), [0_i64; 0]);
        assert_eq!(Shape::from([1; Shape::MAX_AXES]).dims().unwrap(), [1; 32]);
    }

    #[test]
    fn shapes_are_shown_and_compared_by_their_dimensions() {
        assert_eq!(format!("{:?}", Shape::from([2, 3])), "Shape([2, 3])");
        assert!(format!("{:?}", Shape::from([1; 33])).contains("33 axes"));
        assert_eq!(Shape::from([2, 3]), Shape::from(vec![2_usize, 3]));
        assert_ne!(Shape::from([2, 3]), Shape::from([2, 3, 1]));
        assert_ne!(Shape::from([1; 33]), Shape::from([1; 33]));
    }

    #[test]
    fn a_dimension_beyond_i64_is_not_wrapped() {
        assert_eq!(Shape::from([usize::MAX]).dims().unwrap(), [i64::MAX]);
    }

    #[test]
    fn the_33rd_axis_is_an_error() {
        assert_eq!(Shape::from([1; 32]).dims().unwrap().len(), 32);
        assert_eq!(Shape::from([1; 33]).dims().unwrap_err().kind(), ErrorKind::OverLimit);
    }
}
