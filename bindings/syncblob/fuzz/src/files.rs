use syncblob::{Blob, ErrorKind, OpenOptions, Part, Payload};

use crate::calls::FileCall;
use crate::plain::PlainBlob;
use crate::state::State;

pub struct Saved {
    shape: Vec<usize>,
    data: Vec<f32>,
    diff: Option<Vec<f32>>,
}

impl Saved {
    fn of(plain: &PlainBlob, payload: Payload) -> Self {
        let diff = (payload == Payload::DataAndDiff).then(|| plain.values(Part::Diff));
        Self { shape: plain.shape.clone(), data: plain.values(Part::Data), diff }
    }

    fn blob(&self) -> PlainBlob {
        PlainBlob::new(self.shape.clone(), self.data.clone(), self.diff.clone())
    }
}

fn payload(with_diff: bool) -> Payload {
    if with_diff {
        Payload::DataAndDiff
    } else {
        Payload::Data
    }
}

impl State {
    pub fn run_file(&mut self, call: FileCall) {
        match call {
            FileCall::FromProto(b, c, diff) => {
                self.new_from_proto(b.index(), c.index(), payload(diff));
            }
            FileCall::ReadProto(b, c, diff) => {
                self.read_proto(b.index(), c.index(), payload(diff));
            }
            FileCall::CutProto(b, c, at) => self.cut_proto(b.index(), c.index(), at.into()),
            FileCall::AddToModel(b, diff) => self.add_to_model(b.index(), payload(diff)),
            FileCall::SetInModel(at, b, diff) => {
                self.set_in_model(at.into(), b.index(), payload(diff));
            }
            FileCall::ReopenModel => self.reopen_model(),
            FileCall::LoadFromModel(at, b) => self.load_from_model(at.into(), b.index()),
        }
    }

    fn new_from_proto(&mut self, i: usize, j: usize, payload: Payload) {
        let Some(bytes) = self.done(self.blobs[j].to_proto(payload)) else { return };
        let result = Blob::in_context(&self.context).from_proto(&bytes);
        if let Some(blob) = self.done(result) {
            assert_eq!(blob.has_shape_of_proto(&bytes).ok(), Some(true));
            self.blobs[i] = blob;
            self.plain[i] = Saved::of(&self.plain[j], payload).blob();
        }
    }

    fn read_proto(&mut self, i: usize, j: usize, payload: Payload) {
        let Some(bytes) = self.done(self.blobs[j].to_proto(payload)) else { return };
        let are_unique = self.is_unique(i, Part::Data) && self.is_unique(i, Part::Diff);
        let result = self.blobs[i].read_proto_reshape(&bytes);
        if self.written(are_unique, result).is_some() {
            let saved = Saved::of(&self.plain[j], payload);
            self.plain[i].reshape(&saved.shape);
            self.plain[i].write(Part::Data, &saved.data);
            if let Some(diff) = &saved.diff {
                self.plain[i].write(Part::Diff, diff);
            }
        }
    }

    fn cut_proto(&mut self, i: usize, j: usize, cut: usize) {
        let Some(bytes) = self.done(self.blobs[j].to_proto(Payload::Data)) else { return };
        let cut = &bytes[..cut.min(bytes.len().saturating_sub(1))];
        let are_unique = self.is_unique(i, Part::Data) && self.is_unique(i, Part::Diff);
        match self.blobs[i].read_proto(cut) {
            Ok(()) => {
                assert!(are_unique && self.plain[i].count() == 0, "{cut:?} was read");
            }
            Err(error) if error.kind() == ErrorKind::Shared => assert!(!are_unique),
            Err(error) => assert!(is_of_the_bytes(error.kind()), "{error:?}"),
        }
    }

    fn add_to_model(&mut self, i: usize, payload: Payload) {
        let result = self.model.add_blob(0, &self.blobs[i], payload);
        if self.done(result).is_some() {
            self.saved.push(Saved::of(&self.plain[i], payload));
        }
    }

    fn set_in_model(&mut self, at: usize, i: usize, payload: Payload) {
        if self.saved.is_empty() {
            return;
        }
        let at = at % self.saved.len();
        let result = self.model.set_blob((0, at), &self.blobs[i], payload);
        if self.done(result).is_some() {
            self.saved[at] = Saved::of(&self.plain[i], payload);
        }
    }

    fn reopen_model(&mut self) {
        let Some(bytes) = self.done(self.model.to_bytes()) else { return };
        let options = OpenOptions::new().context(&self.context);
        let Some(model) = self.done(options.from_bytes(bytes)) else { return };
        assert_eq!(model.layers().map(|layer| layer.num_blobs()).sum::<usize>(), self.saved.len());
        self.model = model;
    }

    fn load_from_model(&mut self, at: usize, i: usize) {
        if self.saved.is_empty() {
            return;
        }
        let at = at % self.saved.len();
        let stored = self.model.blob((0, at)).expect("a blob of the model");
        assert_eq!(stored.info().shape(), self.saved[at].shape);
        if let Some(blob) = self.done(stored.load()) {
            self.blobs[i] = blob;
            self.plain[i] = self.saved[at].blob();
        }
    }
}

fn is_of_the_bytes(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Malformed
            | ErrorKind::LengthMismatch
            | ErrorKind::BadShape
            | ErrorKind::ShapeMismatch
    )
}
