//! Blobs as arrays of the crate `ndarray`.

use ndarray::{
    Array, ArrayD, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Dimension, IxDyn,
};

use super::{Blob, Part};
use crate::{Element, Error, ErrorKind, Result};

/// Views and copies of the elements on the host as arrays of `ndarray`.
impl<T: Element> Blob<T> {
    /// Returns data or diff as an array, for reading. The array of a blob without a shape has the
    /// shape `[0]`.
    ///
    /// ```
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let blob = Blob::<f32>::from_fn([2, 3], |i| i as f32)?;
    /// let array = blob.view(Part::Data)?;
    /// assert_eq!(array.sum_axis(ndarray::Axis(0)).as_slice(), Some(&[3.0, 5.0, 7.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`data`](Blob::data); [`SizeOverflow`](ErrorKind::SizeOverflow) for a shape with a
    /// dimension of 0 if the product of its other dimensions is too large for `ndarray`.
    pub fn view(&self, part: Part) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(self.shape_or_empty(), self.host(part)?).map_err(not_representable)
    }

    /// Returns data or diff as an array, for writing.
    ///
    /// # Errors
    /// Errors of [`data_mut`](Blob::data_mut) and [`view`](Blob::view).
    pub fn view_mut(&mut self, part: Part) -> Result<ArrayViewMutD<'_, T>> {
        let shape = IxDyn(self.shape_or_empty());
        ArrayViewMutD::from_shape(shape, self.host_mut(part)?).map_err(not_representable)
    }

    /// Returns data or diff as an array whose type contains the number of axes, which linear
    /// algebra needs.
    ///
    /// ```
    /// use ndarray::{Ix1, Ix2};
    /// use syncblob::{Blob, Part};
    /// # fn main() -> syncblob::Result<()> {
    /// let weights = Blob::<f32>::from_fn([2, 3], |i| i as f32)?;
    /// let input = Blob::<f32>::full([3], 1.0)?;
    /// let output = weights.view_as::<Ix2>(Part::Data)?.dot(&input.view_as::<Ix1>(Part::Data)?);
    /// assert_eq!(output.to_vec(), [3.0, 12.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ShapeMismatch`](ErrorKind::ShapeMismatch) for a blob with a different number of axes;
    /// errors of [`view`](Blob::view).
    pub fn view_as<D: Dimension>(&self, part: Part) -> Result<ArrayView<'_, T, D>> {
        let shape = self.to_string();
        self.view(part)?.into_dimensionality().map_err(|_| other_axes::<D>(&shape))
    }

    /// Returns an array for writing; otherwise like [`view_as`](Blob::view_as).
    ///
    /// # Errors
    /// Errors of [`view_as`](Blob::view_as) and [`data_mut`](Blob::data_mut).
    pub fn view_mut_as<D: Dimension>(&mut self, part: Part) -> Result<ArrayViewMut<'_, T, D>> {
        let shape = self.to_string();
        self.view_mut(part)?.into_dimensionality().map_err(|_| other_axes::<D>(&shape))
    }

    /// Makes a blob with an array's shape and elements. If the elements are in row-major order, the
    /// blob uses the array's vector without a copy; otherwise the elements are copied.
    ///
    /// # Errors
    /// Errors of [`from_vec`](Blob::from_vec).
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

    /// Returns the data as an array. The call may copy the elements, as
    /// [`into_vec`](Blob::into_vec) does.
    ///
    /// # Errors
    /// Errors of [`into_vec`](Blob::into_vec) and [`view`](Blob::view).
    pub fn into_array(self) -> Result<ArrayD<T>> {
        self.view(Part::Data)?; // refuses the shape before `into_vec` consumes the blob
        let shape = self.shape_or_empty().to_vec();
        ArrayD::from_shape_vec(shape, self.into_vec()?).map_err(not_representable)
    }

    /// Returns a copy of the data as an array.
    ///
    /// # Errors
    /// Errors of [`view`](Blob::view).
    pub fn to_array(&self) -> Result<ArrayD<T>> {
        Ok(self.view(Part::Data)?.to_owned())
    }
}

fn not_representable(error: ndarray::ShapeError) -> Error {
    Error::new(ErrorKind::SizeOverflow, format!("no ndarray has this shape: {error}"))
}

fn other_axes<D: Dimension>(shape: &str) -> Error {
    let axes = D::NDIM.map_or_else(|| "some".to_string(), |axes| axes.to_string());
    let message = format!("a blob of shape {shape} is not an array of {axes} axes");
    Error::new(ErrorKind::ShapeMismatch, message)
}
