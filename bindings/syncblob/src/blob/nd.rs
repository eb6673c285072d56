//! Blobs as arrays of the crate `ndarray`.

use ndarray::{Array, ArrayD, ArrayViewD, ArrayViewMutD, Dimension, IxDyn};

use super::Blob;
use crate::{Element, Error, ErrorKind, Result};

/// Views of the elements on the host as `ndarray` has them, and copies.
impl<T: Element> Blob<T> {
    /// The data as an array, for reading.
    ///
    /// ```
    /// use syncblob::Blob;
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<f32>::from_fn([2, 3], |i| i as f32)?;
    /// assert_eq!(blob.view()?.sum_axis(ndarray::Axis(0)).as_slice(), Some(&[3.0, 5.0, 7.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`data`](Blob::data); [`SizeOverflow`](ErrorKind::SizeOverflow) for an
    /// empty shape whose other dimensions `ndarray` cannot multiply. A blob that has no
    /// shape yet is an array of shape `[0]`.
    pub fn view(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(self.shape_or_empty(), self.data()?).map_err(not_representable)
    }

    /// The data as an array, for writing.
    ///
    /// # Errors
    /// As [`data_mut`](Blob::data_mut) and [`view`](Blob::view).
    pub fn view_mut(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let shape = IxDyn(self.shape_or_empty());
        ArrayViewMutD::from_shape(shape, self.data_mut()?).map_err(not_representable)
    }

    /// The diff as an array, for reading.
    ///
    /// # Errors
    /// As [`diff`](Blob::diff) and [`view`](Blob::view).
    pub fn diff_view(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(self.shape_or_empty(), self.diff()?).map_err(not_representable)
    }

    /// The diff as an array, for writing.
    ///
    /// # Errors
    /// As [`diff_mut`](Blob::diff_mut) and [`view`](Blob::view).
    pub fn diff_view_mut(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let shape = IxDyn(self.shape_or_empty());
        ArrayViewMutD::from_shape(shape, self.diff_mut()?).map_err(not_representable)
    }

    /// A blob of an array's shape and elements. An array whose elements lie in
    /// row-major order and fill its vector is used in place, any other copied.
    ///
    /// # Errors
    /// As [`from_vec`](Blob::from_vec).
    pub fn from_array<D: Dimension>(array: Array<T, D>) -> Result<Self> {
        let shape = array.shape().to_vec();
        if !array.is_standard_layout() {
            return Self::from_vec(shape, array.iter().copied().collect());
        }
        let count = array.len();
        let (mut values, offset) = array.into_raw_vec_and_offset();
        values.drain(..offset.unwrap_or(0));
        values.truncate(count);
        Self::from_vec(shape, values)
    }

    /// The data as an array, without a copy where [`into_vec`](Blob::into_vec) makes none.
    ///
    /// # Errors
    /// As [`into_vec`](Blob::into_vec) and [`view`](Blob::view).
    pub fn into_array(self) -> Result<ArrayD<T>> {
        self.view()?; // before the data is given up
        let shape = self.shape_or_empty().to_vec();
        ArrayD::from_shape_vec(shape, self.into_vec()?).map_err(not_representable)
    }

    /// A copy of the data.
    ///
    /// # Errors
    /// As [`view`](Blob::view).
    pub fn to_array(&self) -> Result<ArrayD<T>> {
        Ok(self.view()?.to_owned())
    }
}

fn not_representable(error: ndarray::ShapeError) -> Error {
    Error::new(ErrorKind::SizeOverflow, format!("no ndarray has this shape: {error}"))
}
