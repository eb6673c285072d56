//! Tests the rule of sharing: a write needs a memory with one owner.

use std::collections::HashSet;

use syncblob::{Blob, ErrorKind, MemoryHandle, Part};

// --- a simplified model: calls that the compiler and the owner count allow ----

const OWNERS: usize = 3;
const MEMORIES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Slice {
    memory: usize,
    is_mut: bool,
}

/// A blob or a handle. `memory` is None after the owner has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Owner {
    memory: Option<usize>,
    slices: [Option<Slice>; 2],
}

type State = [Owner; OWNERS];

#[derive(Clone, Copy)]
struct Rule {
    writing_needs_one_owner: bool,
    writing_needs_mut: bool,
    replacing_needs_mut: bool,
    ending_needs_no_borrow: bool,
    sharing_borrows_the_source: bool,
}

const RULE: Rule = Rule {
    writing_needs_one_owner: true,
    writing_needs_mut: true,
    replacing_needs_mut: true,
    ending_needs_no_borrow: true,
    sharing_borrows_the_source: true,
};

fn owners_of(state: &State, memory: usize) -> usize {
    state.iter().filter(|owner| owner.memory == Some(memory)).count()
}

impl Owner {
    fn of(memory: usize) -> Self {
        Self { memory: Some(memory), slices: [None; 2] }
    }

    /// Returns whether `&self` methods may be called.
    fn is_borrowable(&self) -> bool {
        !self.slices.iter().flatten().any(|slice| slice.is_mut)
    }

    /// Returns whether `&mut self` methods may be called, and the owner dropped.
    fn is_free(&self) -> bool {
        self.slices == [None; 2]
    }

    fn with_slice(mut self, memory: usize, is_mut: bool) -> Option<Self> {
        *self.slices.iter_mut().find(|slot| slot.is_none())? = Some(Slice { memory, is_mut });
        Some(self)
    }

    fn without_slice(mut self, slot: usize) -> Self {
        self.slices[slot] = None;
        self
    }
}

fn successors(state: &State, rule: Rule) -> Vec<State> {
    let mut next = Vec::new();
    let mut add = |i: usize, owner: Owner| {
        let mut changed = *state;
        changed[i] = owner;
        next.push(changed);
    };
    for i in 0..OWNERS {
        let owner = state[i];
        (0..owner.slices.len()).for_each(|slot| add(i, owner.without_slice(slot)));
        let Some(memory) = owner.memory else { continue };
        // data
        if owner.is_borrowable() {
            owner.with_slice(memory, false).into_iter().for_each(|read| add(i, read));
        }
        // data_mut
        if (owners_of(state, memory) == 1 || !rule.writing_needs_one_owner)
            && (owner.is_free() || !rule.writing_needs_mut)
        {
            owner.with_slice(memory, true).into_iter().for_each(|write| add(i, write));
        }
        // close, drop
        if owner.is_free() || !rule.ending_needs_no_borrow {
            add(i, Owner { memory: None, ..owner });
        }
        // calls that replace the memory: set, make_unique, a reshape that outgrows the memory
        if owner.is_free() || !rule.replacing_needs_mut {
            let unowned = (0..MEMORIES).filter(|&memory| owners_of(state, memory) == 0);
            unowned.for_each(|memory| add(i, Owner { memory: Some(memory), ..owner }));
        }
        // share_data, or the creation of a handle
        if owner.is_borrowable() || !rule.sharing_borrows_the_source {
            let others = (0..OWNERS).filter(|&j| j != i && state[j].is_free());
            others.for_each(|j| add(j, Owner::of(memory)));
        }
    }
    next
}

/// Returns whether a state is sound: every slice points to its owner's current memory, and no other
/// slice points to the memory of a mutable slice.
fn is_sound(state: &State) -> bool {
    let slices: Vec<_> = state.iter().flat_map(|owner| owner.slices).flatten().collect();
    let is_alone =
        |slice: &Slice| slices.iter().filter(|other| other.memory == slice.memory).count() == 1;
    let is_kept = |owner: &Owner| {
        owner.slices.iter().flatten().all(|slice| Some(slice.memory) == owner.memory)
    };
    state.iter().all(is_kept) && slices.iter().all(|slice| !slice.is_mut || is_alone(slice))
}

/// Returns the number of states, and an unsound state if there is one.
fn explore(rule: Rule) -> (usize, Option<State>) {
    let start: State = std::array::from_fn(Owner::of);
    let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
    while let Some(state) = open.pop() {
        if !is_sound(&state) {
            return (seen.len(), Some(state));
        }
        open.extend(successors(&state, rule).into_iter().filter(|next| seen.insert(*next)));
    }
    (seen.len(), None)
}

#[test]
fn no_slice_is_stale_or_aliased_in_any_state() {
    let (states, unsound) = explore(RULE);
    assert_eq!(unsound, None);
    assert!(states > 100, "{states}");
}

#[test]
fn every_part_of_the_rule_is_needed() {
    let without = [
        Rule { writing_needs_one_owner: false, ..RULE },
        Rule { writing_needs_mut: false, ..RULE },
        Rule { replacing_needs_mut: false, ..RULE },
        Rule { ending_needs_no_borrow: false, ..RULE },
        Rule { sharing_borrows_the_source: false, ..RULE },
    ];
    for (part, rule) in without.into_iter().enumerate() {
        assert!(explore(rule).1.is_some(), "part {part} is not needed");
    }
}

// --- the library: every sequence of calls ---------------------------------------

struct Scene {
    blobs: [Blob<f32>; 2],
    handle: Option<MemoryHandle>,
    memories: [usize; 3], // indexed by owner; 0 without a handle
    values: Vec<f32>,     // indexed by memory
}

impl Scene {
    fn new() -> Self {
        let blobs = [1.0, 2.0].map(|value| Blob::full([2], value).unwrap());
        Self { blobs, handle: None, memories: [1, 2, 0], values: vec![0.0, 1.0, 2.0] }
    }

    fn is_shared(&self, owner: usize) -> bool {
        let memory = self.memories[owner];
        self.memories.iter().filter(|&&other| other == memory).count() > 1
    }

    fn fresh(&mut self, owner: usize, value: f32) {
        self.memories[owner] = self.values.len();
        self.values.push(value);
    }
}

type Call = (&'static str, fn(&mut Scene, value: f32));

/// Checks that a write has succeeded exactly if `owner` is the only owner.
fn check_write(scene: &mut Scene, owner: usize, value: f32, result: syncblob::Result<()>) {
    match result {
        Ok(()) if !scene.is_shared(owner) => scene.values[scene.memories[owner]] = value,
        Err(error) if scene.is_shared(owner) => assert_eq!(error.kind(), ErrorKind::Shared),
        other => panic!("{other:?} of owner {owner}, memories {:?}", scene.memories),
    }
}

fn write<const I: usize>(scene: &mut Scene, value: f32) {
    let result = scene.blobs[I].fill(Part::Data, value);
    check_write(scene, I, value, result);
}

fn write_handle(scene: &mut Scene, value: f32) {
    let Some(handle) = &mut scene.handle else { return };
    let bytes = [value, value].map(f32::to_ne_bytes);
    let result = handle.overwrite(bytes.as_flattened());
    check_write(scene, 2, value, result);
}

fn share<const TO: usize>(scene: &mut Scene, _: f32) {
    let [first, second] = &mut scene.blobs;
    let (to, from) = if TO == 0 { (first, second) } else { (second, first) };
    to.share(Part::Data, from).unwrap();
    scene.memories[TO] = scene.memories[1 - TO];
}

fn keep<const I: usize>(scene: &mut Scene, _: f32) {
    scene.handle = Some(scene.blobs[I].handle(Part::Data).unwrap());
    scene.memories[2] = scene.memories[I];
}

fn drop_handle(scene: &mut Scene, _: f32) {
    scene.handle = None;
    scene.memories[2] = 0;
}

fn make_unique<const I: usize>(scene: &mut Scene, _: f32) {
    scene.blobs[I].make_unique(Part::Data).unwrap();
    if scene.is_shared(I) {
        let value = scene.values[scene.memories[I]];
        scene.fresh(I, value);
    }
}

fn outgrow(scene: &mut Scene, _: f32) {
    scene.blobs[0].reshape([3]).unwrap();
    scene.blobs[0].reshape([2]).unwrap();
    scene.blobs[0].shrink_to_fit().unwrap();
    scene.fresh(0, 0.0);
}

fn adopt(scene: &mut Scene, value: f32) {
    scene.blobs[1].set(Part::Data, vec![value; 2]).unwrap();
    scene.fresh(1, value);
}

fn replace(scene: &mut Scene, value: f32) {
    scene.blobs[0] = Blob::full([2], value).unwrap();
    scene.fresh(0, value);
}

const CALLS: [Call; 13] = [
    ("write the first", write::<0>),
    ("write the second", write::<1>),
    ("write the handle", write_handle),
    ("share with the first", share::<0>),
    ("share with the second", share::<1>),
    ("keep the first", keep::<0>),
    ("keep the second", keep::<1>),
    ("drop the handle", drop_handle),
    ("make the first unique", make_unique::<0>),
    ("make the second unique", make_unique::<1>),
    ("outgrow the first", outgrow),
    ("adopt in the second", adopt),
    ("replace the first", replace),
];

fn check(scene: &Scene, calls: &[usize]) {
    let names = || calls.iter().map(|&call| CALLS[call].0).collect::<Vec<_>>();
    for (i, blob) in scene.blobs.iter().enumerate() {
        let expected = [scene.values[scene.memories[i]]; 2];
        assert_eq!(blob.data().unwrap(), expected, "blob {i} after {:?}", names());
    }
    if let Some(handle) = &scene.handle {
        let expected = [scene.values[scene.memories[2]]; 2].map(f32::to_ne_bytes);
        assert_eq!(handle.data().unwrap(), expected.as_flattened(), "handle after {:?}", names());
    }
}

#[test]
fn the_library_follows_the_rule_in_every_sequence_of_four_calls() {
    const LENGTH: u32 = 4;
    for number in 0..CALLS.len().pow(LENGTH) {
        let calls = [0, 1, 2, 3].map(|place| number / CALLS.len().pow(place) % CALLS.len());
        let mut scene = Scene::new();
        for (step, &call) in calls.iter().enumerate() {
            (CALLS[call].1)(&mut scene, 10.0 + step as f32);
            check(&scene, &calls[..=step]);
        }
    }
}
