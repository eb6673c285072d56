use syncblob::{ErrorKind, Part};

use crate::calls::ShapeCall;
use crate::state::{two, State};

impl State {
    pub fn run_shape(&mut self, call: ShapeCall) {
        match call {
            ShapeCall::Reshape(b, dims) => self.reshape(b.index(), &dims.shape()),
            ShapeCall::ReshapeLike(b, c) => self.reshape_like(b.index(), c.index()),
            ShapeCall::Shrink(b) => self.shrink(b.index()),
            ShapeCall::At(b, indices) => self.at(b.index(), indices.map(|i| usize::from(i) % 6)),
            ShapeCall::Show(b) => self.show(b.index()),
        }
    }

    fn reshape(&mut self, i: usize, shape: &[usize]) {
        let result = self.blobs[i].reshape(shape);
        if let Some(done) = self.done(result) {
            assert_eq!((done.data, done.diff), self.plain[i].reshape(shape));
        }
    }

    fn reshape_like(&mut self, i: usize, j: usize) {
        if i == j {
            return;
        }
        let (blob, other) = two(&mut self.blobs, i, j);
        let result = blob.reshape_like(other);
        let shape = self.plain[j].shape.clone();
        if let Some(done) = self.done(result) {
            assert_eq!((done.data, done.diff), self.plain[i].reshape(&shape));
        }
    }

    /// Shrinks a blob. The reference copy follows the result, because it does not record which
    /// memories the library may shrink.
    fn shrink(&mut self, i: usize) {
        let result = self.blobs[i].shrink_to_fit();
        let Some(done) = self.done(result) else { return };
        for (part, is_shrunk) in [(Part::Data, done.data), (Part::Diff, done.diff)] {
            if is_shrunk {
                self.plain[i].shrink(part);
            }
        }
    }

    fn at(&self, i: usize, indices: [usize; 4]) {
        let (blob, plain) = (&self.blobs[i], &self.plain[i]);
        let indices = &indices[..plain.shape.len().min(4)];
        let is_inside = indices.iter().zip(&plain.shape).all(|(index, dim)| index < dim);
        match blob.at(Part::Data, indices) {
            Ok(value) => {
                assert!(is_inside, "{indices:?} of {blob}");
                let offset = indices.iter().zip(&plain.shape).fold(0, |at, (i, dim)| at * dim + i);
                let expected = plain.values(Part::Data)[offset];
                assert!(value == expected || value.is_nan() && expected.is_nan());
            }
            Err(error) if error.kind() == ErrorKind::IndexOutOfRange => {
                assert!(!is_inside, "{indices:?} of {blob}");
            }
            Err(error) => assert!(self.done::<()>(Err(error)).is_none()),
        }
    }

    fn show(&self, i: usize) {
        let before = self.context.stats().expect("statistics");
        assert!(format!("{:?}", self.blobs[i]).contains("shape"));
        let count: usize = self.plain[i].shape.iter().product();
        assert!(self.blobs[i].to_string().ends_with(&format!("({count})")));
        assert_eq!(self.context.stats().expect("statistics"), before);
    }
}
