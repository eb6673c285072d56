use crate::{Error, ErrorKind, Result};

/// Axes at most, Caffe's `kMaxBlobAxes`.
const MAX_AXES: usize = syncblob_sys::SB_MAX_AXES as usize;

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
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    dims: [i64; MAX_AXES],
    /// As given; may be more than `dims` holds.
    num_axes: usize,
}

impl Shape {
    fn from_dims(given: impl ExactSizeIterator<Item = i64>) -> Self {
        let num_axes = given.len();
        let mut dims = [0; MAX_AXES];
        for (to, from) in dims.iter_mut().zip(given) {
            *to = from;
        }
        Self { dims, num_axes }
    }

    /// The dimensions, or an error when there are more than a blob can have.
    pub(crate) fn dims(&self) -> Result<&[i64]> {
        self.dims.get(..self.num_axes).ok_or_else(|| {
            let message =
                format!("a shape of {} axes, at most {MAX_AXES} are allowed", self.num_axes);
            Error::new(ErrorKind::OverLimit, message)
        })
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
            fn from(dims: &[$type]) -> Self {
                // A number that does not fit is too large for any blob.
                Self::from_dims(dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)))
            }
        }

        impl<const N: usize> From<[$type; N]> for Shape {
            fn from(dims: [$type; N]) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl<const N: usize> From<&[$type; N]> for Shape {
            fn from(dims: &[$type; N]) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl From<Vec<$type>> for Shape {
            fn from(dims: Vec<$type>) -> Self {
                Self::from(dims.as_slice())
            }
        }

        impl From<&Vec<$type>> for Shape {
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
