use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::MaybeUninit;
use std::slice;

use crate::{Error, ErrorKind, Result};

const MAX_AXES: usize = Shape::MAX_AXES;

/// The dimensions of a blob. `[2, 3, 4]`, a slice, a vector or `()` (a scalar) convert to a shape.
///
/// The conversion checks nothing. If a dimension is negative or beyond `i64`, or if there are too
/// many axes, the call that receives the shape fails.
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
    /// Only the first `num_axes` elements are initialised, because each reshape makes a shape and
    /// must be fast.
    dims: [MaybeUninit<i64>; MAX_AXES],
    /// The number of axes that the caller gave, which may exceed the length of `dims`.
    num_axes: usize,
    /// Whether a dimension is beyond `i64`.
    overflows: bool,
}

impl Shape {
    /// The maximum number of axes.
    #[doc(alias = "kMaxBlobAxes")]
    pub const MAX_AXES: usize = syncblob_sys::SB_MAX_AXES as usize;

    #[inline]
    fn from_dims(given: impl Iterator<Item = Option<i64>>) -> Self {
        let mut dims = [MaybeUninit::uninit(); MAX_AXES];
        let (mut num_axes, mut overflows) = (0, false);
        for dim in given {
            overflows |= dim.is_none();
            if let Some(to) = dims.get_mut(num_axes) {
                to.write(dim.unwrap_or(i64::MAX));
            }
            num_axes += 1;
        }
        Self { dims, num_axes, overflows }
    }

    /// Returns the given dimensions.
    ///
    /// # Errors
    /// [`OverLimit`](ErrorKind::OverLimit) for more axes than a blob can have,
    /// [`SizeOverflow`](ErrorKind::SizeOverflow) for a dimension beyond `i64`.
    #[inline]
    pub fn dims(&self) -> Result<&[i64]> {
        if self.num_axes > MAX_AXES || self.overflows {
            return Err(self.refusal());
        }
        Ok(self.kept().0)
    }

    /// Returns the stored dimensions, the number of given axes, and whether a dimension overflows.
    #[inline]
    fn kept(&self) -> (&[i64], usize, bool) {
        let kept = self.num_axes.min(MAX_AXES);
        // SAFETY: `from_dims` has written `kept` dimensions.
        let dims = unsafe { slice::from_raw_parts(self.dims.as_ptr().cast(), kept) };
        (dims, self.num_axes, self.overflows)
    }

    #[cold]
    fn refusal(&self) -> Error {
        if self.num_axes <= MAX_AXES {
            let message = format!("a dimension of the shape is above {}", i64::MAX);
            return Error::new(ErrorKind::SizeOverflow, message);
        }
        let message = format!("the shape has {} axes, more than {MAX_AXES}", self.num_axes);
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

/// Writes the dimensions, such as `2, 3, 4`, or the reason why the shape is not valid.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = match self.dims() {
            Ok(dims) => dims,
            Err(error) => return write!(f, "{error}"),
        };
        for (i, dim) in dims.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{dim}")?;
        }
        Ok(())
    }
}

/// Two shapes are equal if they have the same number of axes, and the same dimensions in the first
/// [`Shape::MAX_AXES`] axes. All dimensions beyond `i64` count as equal.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.kept() == other.kept()
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kept().hash(state);
    }
}

impl From<()> for Shape {
    fn from(_: ()) -> Self {
        Self::from_dims(std::iter::empty())
    }
}

macro_rules! shape_from {
    ($($type:ty),*) => {$(
        impl From<&[$type]> for Shape {
            #[inline]
            fn from(dims: &[$type]) -> Self {
                Self::from_dims(dims.iter().map(|&dim| i64::try_from(dim).ok()))
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
    use std::collections::HashSet;

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
        let shown = |shape: Shape| shape.to_string();
        assert_eq!((shown([2, 3].into()), shown(().into())), ("2, 3".into(), String::new()));
        assert!(shown([u64::MAX].into()).contains("above 9223372036854775807"));
        assert_eq!(Shape::from([2, 3]), Shape::from(vec![2_usize, 3]));
        assert_ne!(Shape::from([2, 3]), Shape::from([2, 3, 1]));
        assert_eq!(Shape::from([1; 33]), Shape::from([1; 33]));
        assert_ne!(Shape::from([1; 33]), Shape::from([1; 32]));
        assert_ne!(Shape::from([u64::MAX]), Shape::from([i64::MAX]));
        let set = HashSet::from([Shape::from([2, 3]), Shape::from(vec![2_u64, 3]), ().into()]);
        assert_eq!(set.len(), 2);
    }

    #[test]
    fn a_dimension_beyond_i64_is_an_error() {
        assert_eq!(Shape::from([i64::MAX as u64]).dims().unwrap(), [i64::MAX]);
        for shape in [Shape::from([u64::MAX]), Shape::from([0, u64::MAX])] {
            assert_eq!(shape.dims().unwrap_err().kind(), ErrorKind::SizeOverflow);
        }
        assert_eq!(Shape::from([1_u64 << 63; 33]).dims().unwrap_err().kind(), ErrorKind::OverLimit);
    }

    #[test]
    fn the_33rd_axis_is_an_error() {
        assert_eq!(Shape::from([1; 32]).dims().unwrap().len(), 32);
        assert_eq!(Shape::from([1; 33]).dims().unwrap_err().kind(), ErrorKind::OverLimit);
    }
}
