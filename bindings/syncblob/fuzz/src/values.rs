use syncblob::{Blob, ErrorKind, MemoryHandle, Part, Result};

use crate::calls::{Dims, ValuesCall};
use crate::plain::{is_unique, ramp, to_bytes, PlainBlob};
use crate::state::{two, State};

impl State {
    pub fn run_values(&mut self, call: ValuesCall) {
        match call {
            ValuesCall::Look(b) => self.look(b.index()),
            ValuesCall::Write(b, p, value) => self.write(b.index(), p.part(), value),
            ValuesCall::WriteBoth(b, value) => self.write_both(b.index(), value),
            ValuesCall::Fill(b, p, value) => self.fill(b.index(), p.part(), value.into()),
            ValuesCall::Overwrite(b, p, value, more) => {
                self.overwrite(b.index(), p.part(), value, more.into());
            }
            ValuesCall::Clear(b, p) => self.clear(b.index(), p.part()),
            ValuesCall::Scale(b, p, up) => {
                self.scale(b.index(), p.part(), if up { 2.0 } else { -0.5 });
            }
            ValuesCall::Update(b) => self.update(b.index()),
            ValuesCall::CopyFrom(b, c, p, reshape) => {
                self.copy_from(b.index(), c.index(), p.part(), reshape);
            }
            ValuesCall::CloneOf(b, c) => self.clone_of(b.index(), c.index()),
            ValuesCall::FromSlice(b, dims, value) => self.new_from_slice(b.index(), dims, value),
            ValuesCall::WriteHandle(h, value) => self.write_handle(h.index(), value, |to, from| {
                to.data_mut().map(|bytes| bytes.copy_from_slice(&to_bytes(from)))
            }),
            ValuesCall::OverwriteHandle(h, value) => {
                self.write_handle(h.index(), value, |to, from| to.overwrite(&to_bytes(from)));
            }
            ValuesCall::ClearHandle(h) => self.clear_handle(h.index()),
        }
    }

    pub fn wrote(&mut self, i: usize, part: Part, values: &[f32], result: Result<()>) {
        if self.written(self.is_unique(i, part), result).is_some() {
            self.plain[i].write(part, values);
        }
    }

    fn write(&mut self, i: usize, part: Part, value: i8) {
        let values = ramp(value, self.plain[i].count());
        let blob = &mut self.blobs[i];
        let elements = match part {
            Part::Data => blob.data_mut(),
            Part::Diff => blob.diff_mut(),
        };
        let result = elements.map(|to| to.copy_from_slice(&values));
        self.wrote(i, part, &values, result);
    }

    fn write_both(&mut self, i: usize, value: i8) {
        let count = self.plain[i].count();
        let (data, diff) = (ramp(value, count), ramp(value.wrapping_add(1), count));
        let result = self.blobs[i].data_and_diff_mut().map(|(to_data, to_diff)| {
            to_data.copy_from_slice(&data);
            to_diff.copy_from_slice(&diff);
        });
        let are_unique = self.is_unique(i, Part::Data) && self.is_unique(i, Part::Diff);
        if self.written(are_unique, result).is_some() {
            self.plain[i].write(Part::Data, &data);
            self.plain[i].write(Part::Diff, &diff);
        }
    }

    fn fill(&mut self, i: usize, part: Part, value: f32) {
        let result = match part {
            Part::Data => self.blobs[i].fill(Part::Data, value),
            Part::Diff => self.blobs[i].fill(Part::Diff, value),
        };
        self.wrote(i, part, &vec![value; self.plain[i].count()], result);
    }

    fn overwrite(&mut self, i: usize, part: Part, value: i8, too_many: usize) {
        let values = ramp(value, self.plain[i].count() + too_many);
        let result = match part {
            Part::Data => self.blobs[i].overwrite(Part::Data, &values),
            Part::Diff => self.blobs[i].overwrite(Part::Diff, &values),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::ShapeMismatch => assert_eq!(too_many, 1),
            result => {
                assert!(too_many == 0 || result.is_err());
                self.wrote(i, part, &values, result);
            }
        }
    }

    fn clear(&mut self, i: usize, part: Part) {
        let result = match part {
            Part::Data => self.blobs[i].clear(Part::Data),
            Part::Diff => self.blobs[i].clear(Part::Diff),
        };
        self.wrote(i, part, &vec![0.0; self.plain[i].count()], result);
    }

    fn scale(&mut self, i: usize, part: Part, factor: f64) {
        let result = match part {
            Part::Data => self.blobs[i].scale(Part::Data, factor),
            Part::Diff => self.blobs[i].scale(Part::Diff, factor),
        };
        let scaled =
            self.plain[i].values(part).iter().map(|v| v * factor as f32).collect::<Vec<_>>();
        self.wrote(i, part, &scaled, result);
    }

    fn update(&mut self, i: usize) {
        let result = self.blobs[i].update();
        let plain = &self.plain[i];
        let (data, diff) = (plain.values(Part::Data), plain.values(Part::Diff));
        if matches!(&result, Err(error) if error.kind() == ErrorKind::Uninitialized) {
            assert!(data.iter().all(|&value| value == 0.0), "a blob with values is uninitialized");
            return;
        }
        let updated: Vec<_> = data.iter().zip(&diff).map(|(data, diff)| data - diff).collect();
        self.wrote(i, Part::Data, &updated, result);
    }

    fn copy_from(&mut self, i: usize, j: usize, part: Part, reshape: bool) {
        if i == j {
            return;
        }
        let (blob, source) = two(&mut self.blobs, i, j);
        let result = match reshape {
            true => blob.copy_from_reshape(part, source),
            false => blob.copy_from(part, source),
        };
        let shape = self.plain[j].shape.clone();
        if matches!(&result, Err(error) if error.kind() == ErrorKind::ShapeMismatch) {
            assert!(!reshape && self.plain[i].shape != shape);
        } else if self.written(self.is_unique(i, part), result).is_some() {
            assert!(reshape || self.plain[i].shape == shape);
            self.plain[i].reshape(&shape);
            let values = self.plain[j].values(part);
            self.plain[i].write(part, &values);
        }
    }

    fn clone_of(&mut self, i: usize, j: usize) {
        let result = self.blobs[j].try_clone();
        if let Some(copy) = self.done(result) {
            let source = &self.plain[j];
            let (data, diff) = (source.values(Part::Data), source.values(Part::Diff));
            self.plain[i] = PlainBlob::new(source.shape.clone(), data, Some(diff));
            self.blobs[i] = copy;
        }
    }

    fn new_from_slice(&mut self, i: usize, dims: Dims, value: i8) {
        let shape = dims.shape();
        let values = ramp(value, shape.iter().product());
        let result = Blob::in_context(&self.context).from_slice(&shape, &values);
        if let Some(blob) = self.done(result) {
            self.blobs[i] = blob;
            self.plain[i] = PlainBlob::new(shape, values, None);
        }
    }

    pub fn write_handle(
        &mut self,
        h: usize,
        value: i8,
        write: impl FnOnce(&mut MemoryHandle, &[f32]) -> Result<()>,
    ) {
        let Some((handle, plain)) = &mut self.handles[h] else { return };
        let values = ramp(value, plain.borrow().len());
        let (is_unique, result) = (is_unique(plain), write(handle, &values));
        if self.written(is_unique, result).is_some() {
            let (_, plain) = self.handles[h].as_ref().expect("a handle");
            plain.borrow_mut().copy_from_slice(&values);
        }
    }

    fn clear_handle(&mut self, h: usize) {
        let Some((handle, plain)) = &mut self.handles[h] else { return };
        let (is_unique, result) = (is_unique(plain), handle.clear());
        if self.written(is_unique, result).is_some() {
            let (_, plain) = self.handles[h].as_ref().expect("a handle");
            plain.borrow_mut().fill(0.0);
        }
    }
}
