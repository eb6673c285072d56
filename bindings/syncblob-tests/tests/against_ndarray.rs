//! Compares the results of random calls on blobs with arrays of `ndarray`.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use syncblob::ndarray::{Array1, ArrayD, ArrayView1, ArrayViewD};
use syncblob::sim::Schedule;
use syncblob::{Blob, Context, ErrorKind, Part, Payload, Result};

const BLOBS: usize = 3;

/// The values of a memory. The reference copies of blobs that share a memory share the `Rc`.
type Memory = Rc<RefCell<Array1<f32>>>;

#[derive(Clone)]
struct Model {
    shape: Vec<usize>,
    data: Memory,
    diff: Memory,
}

fn zeros(count: usize) -> Memory {
    Rc::new(RefCell::new(Array1::zeros(count)))
}

impl Model {
    fn new(shape: &[usize]) -> Self {
        let count = shape.iter().product();
        Self { shape: shape.to_vec(), data: zeros(count), diff: zeros(count) }
    }

    fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn part(&mut self, part: Part) -> &mut Memory {
        match part {
            Part::Data => &mut self.data,
            Part::Diff => &mut self.diff,
        }
    }

    fn reshape(&mut self, shape: &[usize]) {
        self.shape = shape.to_vec();
        let count = self.count();
        for part in [Part::Data, Part::Diff] {
            let memory = self.part(part);
            let capacity = memory.borrow().len();
            if capacity < count {
                *memory = zeros(count);
            }
        }
    }

    fn values(&self, memory: &Memory) -> ArrayD<f32> {
        let memory = memory.borrow();
        let first = memory.slice(syncblob::ndarray::s![..self.count()]).to_vec();
        ArrayD::from_shape_vec(self.shape.clone(), first).unwrap()
    }

    fn write(&mut self, part: Part, values: ArrayView1<f32>) {
        let count = self.count();
        let mut memory = self.part(part).borrow_mut();
        memory.slice_mut(syncblob::ndarray::s![..count]).assign(&values);
    }

    fn shrink(&mut self, part: Part) {
        let count = self.count();
        let memory = self.part(part);
        if Rc::strong_count(memory) == 1 && memory.borrow().len() > count {
            let kept = memory.borrow().slice(syncblob::ndarray::s![..count]).to_owned();
            *memory = Rc::new(RefCell::new(kept));
        }
    }

    fn is_unique(&mut self, part: Part) -> bool {
        Rc::strong_count(self.part(part)) == 1
    }
}

#[derive(Clone, Debug)]
enum Call {
    Reshape(usize, Vec<usize>),
    ReshapeLike(usize, usize),
    Shrink(usize),
    Share(usize, usize, Part),
    MakeUnique(usize, Part),
    Write(usize, Part, f32),
    Fill(usize, Part, f32),
    Clear(usize, Part),
    Scale(usize, Part, f64),
    Update(usize),
    CopyFrom(usize, usize, Part),
    CloneOf(usize, usize),
    ToDevice(usize, Part, bool),
    ProtoInto(usize, usize, Payload),
    ProtoOver(usize, usize, Payload),
}

fn calls() -> impl Strategy<Value = Call> {
    let blob = || 0..BLOBS;
    let part = || prop_oneof![Just(Part::Data), Just(Part::Diff)];
    let payload = || prop_oneof![Just(Payload::Data), Just(Payload::DataAndDiff)];
    let value = || (-8_i8..8).prop_map(f32::from);
    let factor = || prop_oneof![Just(0.5), Just(-1.0), Just(2.0)];
    let shape = || proptest::collection::vec(0_usize..4, 0..5);
    prop_oneof![
        2 => (blob(), shape()).prop_map(|(i, shape)| Call::Reshape(i, shape)),
        2 => (blob(), blob()).prop_map(|(i, j)| Call::ReshapeLike(i, j)),
        1 => blob().prop_map(Call::Shrink),
        3 => (blob(), blob(), part()).prop_map(|(i, j, part)| Call::Share(i, j, part)),
        1 => (blob(), part()).prop_map(|(i, part)| Call::MakeUnique(i, part)),
        4 => (blob(), part(), value()).prop_map(|(i, part, v)| Call::Write(i, part, v)),
        1 => (blob(), part(), value()).prop_map(|(i, part, v)| Call::Fill(i, part, v)),
        1 => (blob(), part()).prop_map(|(i, part)| Call::Clear(i, part)),
        2 => (blob(), part(), factor()).prop_map(|(i, part, by)| Call::Scale(i, part, by)),
        2 => blob().prop_map(Call::Update),
        2 => (blob(), blob(), part()).prop_map(|(i, j, part)| Call::CopyFrom(i, j, part)),
        1 => (blob(), blob()).prop_map(|(i, j)| Call::CloneOf(i, j)),
        3 => (blob(), part(), any::<bool>()).prop_map(|(i, part, w)| Call::ToDevice(i, part, w)),
        2 => (blob(), blob(), payload()).prop_map(|(i, j, p)| Call::ProtoInto(i, j, p)),
        1 => (blob(), blob(), payload()).prop_map(|(i, j, p)| Call::ProtoOver(i, j, p)),
    ]
}

struct Pair {
    context: Context,
    blobs: Vec<Blob<f32>>,
    models: Vec<Model>,
}

fn two<T>(all: &mut [T], i: usize, j: usize) -> (&mut T, &mut T) {
    let (low, high) = all.split_at_mut(i.max(j));
    let (first, second) = (&mut low[i.min(j)], &mut high[0]);
    if i < j {
        (first, second)
    } else {
        (second, first)
    }
}

impl Pair {
    fn new(context: Context) -> Self {
        let shapes = [&[2, 3][..], &[6], &[1, 2, 2]];
        let blobs = shapes.map(|shape| Blob::in_context(&context).zeros(shape).unwrap());
        let pair = Self { context, blobs: blobs.into(), models: shapes.map(Model::new).into() };
        pair.make_memories();
        pair
    }

    /// Checks that a write succeeds exactly if no written memory has a second owner.
    fn expect(&mut self, i: usize, parts: &[Part], result: Result<()>) -> bool {
        let unique = parts.iter().all(|&part| self.models[i].is_unique(part));
        match result {
            Ok(()) => assert!(unique, "{parts:?} of {i} is shared and was written"),
            Err(error) => assert_eq!((error.kind(), unique), (ErrorKind::Shared, false), "{error}"),
        }
        unique
    }

    fn write(&mut self, i: usize, part: Part, value: f32) {
        let count = self.blobs[i].count();
        let values = Array1::from_shape_fn(count, |k| value + k as f32);
        let blob = &mut self.blobs[i];
        let elements = match part {
            Part::Data => blob.data_mut(),
            Part::Diff => blob.diff_mut(),
        };
        let result = elements.map(|to| to.copy_from_slice(values.as_slice().unwrap()));
        if self.expect(i, &[part], result) {
            self.models[i].write(part, values.view());
        }
    }

    fn set(&mut self, i: usize, part: Part, value: f32, result: Result<()>) {
        if self.expect(i, &[part], result) {
            let count = self.models[i].count();
            self.models[i].write(part, Array1::from_elem(count, value).view());
        }
    }

    fn scale(&mut self, i: usize, part: Part, factor: f64) {
        let result = match part {
            Part::Data => self.blobs[i].scale(Part::Data, factor),
            Part::Diff => self.blobs[i].scale(Part::Diff, factor),
        };
        if self.expect(i, &[part], result) {
            let model = &mut self.models[i];
            let memory = Rc::clone(model.part(part));
            let scaled = model.values(&memory).mapv(|value| value * factor as f32);
            model.write(part, flat(&scaled).view());
        }
    }

    fn update(&mut self, i: usize) {
        let model = &mut self.models[i];
        let (data, diff) = (model.values(&model.data), model.values(&model.diff));
        let result = self.blobs[i].update();
        if matches!(&result, Err(error) if error.kind() == ErrorKind::Uninitialized) {
            assert!(data.iter().all(|&value| value == 0.0), "a blob with values is uninitialized");
        } else if self.expect(i, &[Part::Data], result) {
            self.models[i].write(Part::Data, flat(&(data - diff)).view());
        }
    }

    fn share(&mut self, i: usize, j: usize, part: Part) {
        let (blob, other) = two(&mut self.blobs, i, j);
        let result = match part {
            Part::Data => blob.share(Part::Data, other),
            Part::Diff => blob.share(Part::Diff, other),
        };
        let (model, other) = two(&mut self.models, i, j);
        match result {
            Ok(()) => {
                assert_eq!(model.count(), other.count());
                *model.part(part) = Rc::clone(other.part(part));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
                assert_ne!(model.count(), other.count());
            }
        }
    }

    fn copy_from(&mut self, i: usize, j: usize, part: Part) {
        let (blob, source) = two(&mut self.blobs, i, j);
        let result = blob.copy_from(part, source);
        if self.models[i].shape != self.models[j].shape {
            assert!(result.is_err());
        } else if self.expect(i, &[part], result) {
            let memory = Rc::clone(self.models[j].part(part));
            let values = flat(&self.models[j].values(&memory));
            self.models[i].write(part, values.view());
        }
    }

    fn write_proto(&mut self, i: usize, j: usize, payload: Payload) {
        let source = self.models[j].clone();
        self.models[i].write(Part::Data, flat(&source.values(&source.data)).view());
        if payload == Payload::DataAndDiff {
            self.models[i].write(Part::Diff, flat(&source.values(&source.diff)).view());
        }
    }

    fn run(&mut self, call: &Call) {
        match call.clone() {
            Call::Reshape(i, shape) => {
                self.blobs[i].reshape(&shape).unwrap();
                self.models[i].reshape(&shape);
            }
            Call::ReshapeLike(i, j) if i != j => {
                let (blob, other) = two(&mut self.blobs, i, j);
                blob.reshape_like(other).unwrap();
                let shape = self.models[j].shape.clone();
                self.models[i].reshape(&shape);
            }
            Call::Shrink(i) => {
                self.blobs[i].shrink_to_fit().unwrap();
                self.models[i].shrink(Part::Data);
                self.models[i].shrink(Part::Diff);
            }
            Call::Share(i, j, part) if i != j => self.share(i, j, part),
            Call::MakeUnique(i, part) => {
                self.blobs[i].make_unique(part).unwrap();
                let model = &mut self.models[i];
                if !model.is_unique(part) {
                    let memory = Rc::clone(model.part(part));
                    let values = flat(&model.values(&memory));
                    *model.part(part) = Rc::new(RefCell::new(values));
                }
            }
            Call::Write(i, part, value) => self.write(i, part, value),
            Call::Fill(i, part, value) => {
                let result = match part {
                    Part::Data => self.blobs[i].fill(Part::Data, value),
                    Part::Diff => self.blobs[i].fill(Part::Diff, value),
                };
                self.set(i, part, value, result);
            }
            Call::Clear(i, part) => {
                let result = match part {
                    Part::Data => self.blobs[i].clear(Part::Data),
                    Part::Diff => self.blobs[i].clear(Part::Diff),
                };
                self.set(i, part, 0.0, result);
            }
            Call::Scale(i, part, factor) => self.scale(i, part, factor),
            Call::Update(i) => self.update(i),
            Call::CopyFrom(i, j, part) if i != j => self.copy_from(i, j, part),
            Call::CloneOf(i, j) => {
                self.blobs[i] = self.blobs[j].try_clone().unwrap();
                let source = self.models[j].clone();
                self.models[i] = Model::new(&source.shape);
                self.models[i].write(Part::Data, flat(&source.values(&source.data)).view());
                self.models[i].write(Part::Diff, flat(&source.values(&source.diff)).view());
            }
            Call::ToDevice(i, part, for_writing) => self.access_device(i, part, for_writing),
            Call::ProtoInto(i, j, payload) if i != j => {
                let bytes = self.blobs[j].to_proto(payload).unwrap();
                self.blobs[i] = Blob::in_context(&self.context).from_proto(&bytes).unwrap();
                self.models[i] = Model::new(&self.models[j].shape);
                self.write_proto(i, j, payload);
            }
            Call::ProtoOver(i, j, payload) if i != j => {
                let bytes = self.blobs[j].to_proto(payload).unwrap();
                let result = self.blobs[i].read_proto_reshape(&bytes);
                if self.expect(i, &[Part::Data, Part::Diff], result) {
                    let shape = self.models[j].shape.clone();
                    self.models[i].reshape(&shape);
                    self.write_proto(i, j, payload);
                }
            }
            _ => (), // `i` and `j` are the same blob
        }
        self.make_memories();
    }

    /// Makes each memory now. If the library made a memory later, its capacity could differ from
    /// the capacity of its reference copy.
    fn make_memories(&self) {
        for blob in &self.blobs {
            blob.memory(Part::Data).and_then(|_| blob.memory(Part::Diff)).unwrap();
        }
    }

    fn access_device(&mut self, i: usize, part: Part, for_writing: bool) {
        if !self.context.has_device() {
            return;
        }
        let blob = &mut self.blobs[i];
        if for_writing {
            let result = blob.memory_mut(part).unwrap().gpu_mut_ptr();
            self.expect(i, &[part], result.map(|_| ()));
        } else {
            blob.memory(part).unwrap().gpu_ptr().unwrap();
        }
    }

    fn check(&self, sums: bool) {
        for (blob, model) in self.blobs.iter().zip(&self.models) {
            let (data, diff) = (model.values(&model.data), model.values(&model.diff));
            if sums {
                let expected: f64 = data.iter().map(|&value| f64::from(value.abs())).sum();
                assert_eq!(blob.asum(Part::Data).unwrap(), expected);
            }
            assert_eq!(blob.shape(), model.shape);
            assert_eq!(blob.view(Part::Data).unwrap(), as_view(&data));
            assert_eq!(blob.view(Part::Diff).unwrap(), as_view(&diff));
        }
    }
}

fn as_view(array: &ArrayD<f32>) -> ArrayViewD<'_, f32> {
    array.view()
}

fn flat(array: &ArrayD<f32>) -> Array1<f32> {
    array.iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn blobs_on_the_host_agree_with_arrays(calls in proptest::collection::vec(calls(), 1..40)) {
        let mut pair = Pair::new(Context::host());
        for call in &calls {
            pair.run(call);
            pair.check(true);
        }
    }

    /// Checks values only after some calls, because a check copies values to the host.
    #[test]
    fn blobs_on_a_device_agree_with_arrays(
        calls in proptest::collection::vec((calls(), proptest::bool::weighted(0.2)), 1..60),
        seed in any::<u64>(),
    ) {
        let context = Context::builder().device("sim:0").build().unwrap();
        context.sim().unwrap().set_schedule(Schedule::Random(seed)).unwrap();
        let mut pair = Pair::new(context);
        for (call, looks) in &calls {
            pair.run(call);
            if *looks {
                pair.check(seed % 2 == 0);
            }
        }
        pair.check(false);
    }

    #[test]
    fn protos_keep_every_bit(
        shape in proptest::collection::vec(0_usize..5, 0..6),
        bits in any::<u64>(),
    ) {
        let element = |i: usize| f64::from_bits(bits.rotate_left(i as u32) ^ i as u64);
        let mut blob = Blob::<f64>::from_fn(&shape, element).unwrap();
        blob.diff_mut().unwrap().iter_mut().enumerate().for_each(|(i, d)| *d = element(i + 1));
        let bytes = blob.to_proto(Payload::DataAndDiff).unwrap();
        let again = Blob::<f64>::from_proto(&bytes).unwrap();
        prop_assert_eq!(again.shape(), blob.shape());
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(again.data().unwrap()), bits(blob.data().unwrap()));
        prop_assert_eq!(bits(again.diff().unwrap()), bits(blob.diff().unwrap()));
    }
}
