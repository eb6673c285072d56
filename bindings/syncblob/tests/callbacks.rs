use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use syncblob::{Blob, Context, ErrorKind, Part};
#[cfg(feature = "rayon")]
use syncblob::{Filler, Variance};

struct Counting {
    live: AtomicUsize,
    calls: AtomicUsize,
    behaviour: AtomicUsize,
}

const FAIL: usize = 1;
const PANIC: usize = 2;

// SAFETY: every allocation that succeeds is made by the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.behaviour.load(Ordering::SeqCst) {
            FAIL => return std::ptr::null_mut(),
            // `GlobalAlloc` forbids panics. The crate must still stop this panic before it reaches
            // C.
            PANIC => panic!("an allocator that panics, on purpose"),
            _ => self.live.fetch_add(layout.size(), Ordering::SeqCst),
        };
        // SAFETY: the caller promises that the layout is valid.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: `memory` is from `alloc`.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[test]
fn host_memory_comes_from_the_callers_allocator() {
    static ALLOCATOR: Counting = Counting {
        live: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
        behaviour: AtomicUsize::new(0),
    };
    let context = Context::builder().allocator(&ALLOCATOR).host_cache(false).build().unwrap();
    let mut blob = Blob::<f32>::in_context(&context).zeros([1 << 18]).unwrap();
    assert!(blob.data().unwrap().iter().all(|&value| value == 0.0));
    assert!(ALLOCATOR.live.load(Ordering::SeqCst) >= 4 << 18);
    for behaviour in [FAIL, PANIC] {
        ALLOCATOR.behaviour.store(behaviour, Ordering::SeqCst);
        assert_eq!(blob.diff_mut().unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
    ALLOCATOR.behaviour.store(0, Ordering::SeqCst);
    blob.diff_mut().unwrap().fill(1.0);
    drop((blob, context));
    assert!(ALLOCATOR.calls.load(Ordering::SeqCst) > 0);
    assert_eq!(ALLOCATOR.live.load(Ordering::SeqCst), 0);
}

type Spread = fn(usize, &(dyn Fn() + Sync));

static SPREADS: [(&str, Spread); 6] = [
    ("here", |tasks, task| (0..tasks).for_each(|_| task())),
    ("threads", |tasks, task| {
        std::thread::scope(|scope| (0..tasks).for_each(|_| drop(scope.spawn(task))));
    }),
    ("nothing", |_, _| ()),
    ("half", |tasks, task| (0..tasks / 2).for_each(|_| task())),
    ("too often", |tasks, task| (0..3 * tasks).for_each(|_| task())),
    ("panics", |_, task| {
        task();
        panic!("a parallel_for that panics, on purpose");
    }),
];

#[test]
fn every_task_is_run_once_whatever_the_callers_function_does() {
    const COUNT: usize = (5 << 18) + 3;
    let alone = Blob::<f32>::from_fn([COUNT], |i| (i % 7) as f32 - 3.0).unwrap();
    let expected = (alone.asum(Part::Data).unwrap(), alone.sumsq(Part::Data).unwrap());
    for (name, spread) in &SPREADS {
        let context = Context::builder().parallel_for(spread).build().unwrap();
        let mut blob =
            Blob::in_context(&context).from_slice([COUNT], alone.data().unwrap()).unwrap();
        let sums = (blob.asum(Part::Data).unwrap(), blob.sumsq(Part::Data).unwrap());
        assert_eq!(sums, expected, "{name}");
        blob.fill(Part::Diff, 1.0).unwrap();
        blob.update().unwrap();
        let subtracted = blob.data().unwrap().iter().zip(alone.data().unwrap());
        assert!(subtracted.clone().all(|(new, old)| *new == old - 1.0), "{name}");
    }
}

#[test]
fn a_parallel_for_closure_may_capture_variables() {
    use std::sync::atomic::AtomicUsize;
    use std::sync::LazyLock;

    static MOST: LazyLock<AtomicUsize> = LazyLock::new(AtomicUsize::default);

    let most = &*MOST;
    let spread = move |tasks: usize, task: &(dyn Fn() + Sync)| {
        most.fetch_max(tasks, Ordering::Relaxed);
        (0..tasks).for_each(|_| task());
    };
    let context = Context::builder().parallel_for(Box::leak(Box::new(spread))).build().unwrap();
    let blob = Blob::<f32>::in_context(&context).from_fn([5 << 18], |_| 1.0).unwrap();
    assert_eq!(blob.asum(Part::Data).unwrap(), f64::from(5 << 18));
    assert!(most.load(Ordering::Relaxed) > 1);
}

#[cfg(feature = "rayon")]
#[test]
fn rayon_computes_the_same_sums() {
    let context = Context::builder().rayon().build().unwrap();
    let value = |i: usize| (i as f32).sin();
    let spread = Blob::<f32>::in_context(&context).from_fn([3 << 18], value).unwrap();
    let alone = Blob::<f32>::from_fn([3 << 18], value).unwrap();
    assert_eq!(spread.asum(Part::Data).unwrap(), alone.asum(Part::Data).unwrap());
    assert_eq!(spread.sumsq(Part::Data).unwrap(), alone.sumsq(Part::Data).unwrap());
}

#[cfg(feature = "rayon")]
#[test]
fn rayon_fills_blobs_with_the_same_numbers() {
    let context = Context::builder().rayon().build().unwrap();
    let mut spread = Blob::<f32>::in_context(&context).zeros([3, 1 << 18]).unwrap();
    let mut alone = Blob::<f32>::zeros([3, 1 << 18]).unwrap();
    for filler in [Filler::PositiveUnitball, Filler::Xavier { variance: Variance::FanIn }] {
        spread.initialize(&filler, 5).unwrap();
        alone.initialize(&filler, 5).unwrap();
        assert!(spread.data().unwrap() == alone.data().unwrap(), "{filler:?}");
    }
}
