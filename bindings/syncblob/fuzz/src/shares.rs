use std::rc::Rc;

use syncblob::{ErrorKind, Part};

use crate::calls::ShareCall;
use crate::plain::memory;
use crate::state::{two, State};

impl State {
    pub fn run_share(&mut self, call: ShareCall) {
        match call {
            ShareCall::Share(b, c, p) => self.share(b.index(), c.index(), p.part()),
            ShareCall::MakeUnique(b, p) => self.make_unique(b.index(), p.part()),
            ShareCall::Keep(h, b, p) => self.keep(h.index(), b.index(), p.part()),
            ShareCall::CloneHandle(h, k) => {
                self.handles[h.index()] = self.handles[k.index()].clone();
            }
            ShareCall::Release(h) => self.handles[h.index()] = None,
        }
    }

    fn share(&mut self, i: usize, j: usize, part: Part) {
        if i == j {
            return;
        }
        let (blob, other) = two(&mut self.blobs, i, j);
        let result = match part {
            Part::Data => blob.share(Part::Data, other),
            Part::Diff => blob.share(Part::Diff, other),
        };
        let (plain, other) = two(&mut self.plain, i, j);
        match result {
            Ok(()) => {
                assert_eq!(plain.count(), other.count());
                *plain.part_mut(part) = Rc::clone(other.part(part));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
                assert_ne!(plain.count(), other.count());
            }
        }
    }

    fn make_unique(&mut self, i: usize, part: Part) {
        let was_unique = self.is_unique(i, part);
        assert_eq!(self.blobs[i].is_unique(part).ok(), Some(was_unique));
        let result = self.blobs[i].make_unique(part);
        if self.done(result).is_some() && !was_unique {
            *self.plain[i].part_mut(part) = memory(self.plain[i].values(part));
        }
    }

    fn keep(&mut self, h: usize, i: usize, part: Part) {
        let blob = &self.blobs[i];
        let handle = match part {
            Part::Data => blob.handle(Part::Data),
            Part::Diff => blob.handle(Part::Diff),
        };
        let handle = handle.expect("a handle");
        self.handles[h] = Some((handle, Rc::clone(self.plain[i].part(part))));
    }
}
