use syncblob::{
    Blob, BlobAny, Context, Dtype, ErrorKind, Format, Head, Limits, Model, OpenOptions, Part,
    Payload, Reallocated,
};

fn simulated() -> Context {
    Context::builder().device("sim:0").build().expect("the simulated device is always available")
}

#[test]
fn a_fresh_blob_has_no_shape_and_nothing_allocated() {
    let blob = Blob::<f32>::new().unwrap();
    assert!(!blob.is_shaped());
    assert_eq!((blob.shape(), blob.count()), (&[][..], 0));
    assert_eq!(blob.to_string(), "(0)");
    assert!(blob.data().unwrap().is_empty());
}

#[test]
fn shapes_of_every_kind_are_accepted() {
    let cases: [(Blob<f32>, &[usize], usize); 4] = [
        (Blob::zeros(()).unwrap(), &[], 1),
        (Blob::zeros([2, 3, 4]).unwrap(), &[2, 3, 4], 24),
        (Blob::zeros([5, 0, 7]).unwrap(), &[5, 0, 7], 0),
        (Blob::zeros(vec![1_usize; 32]).unwrap(), &[1; 32], 1),
    ];
    for (blob, shape, count) in cases {
        assert_eq!((blob.shape(), blob.num_axes(), blob.count()), (shape, shape.len(), count));
        assert_eq!(blob.data().unwrap(), vec![0.0; count]);
    }
}

#[test]
fn impossible_shapes_are_errors() {
    let kind = |blob: syncblob::Result<Blob<f64>>| blob.unwrap_err().kind();
    assert_eq!(kind(Blob::zeros([2, -1])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Blob::zeros([1; 33])), ErrorKind::OverLimit);
    assert_eq!(kind(Blob::zeros([1_i64 << 40, 1 << 40])), ErrorKind::SizeOverflow);
    assert_eq!(kind(Blob::zeros([usize::MAX])), ErrorKind::SizeOverflow);
    assert_eq!(kind(Blob::zeros([0, usize::MAX])), ErrorKind::SizeOverflow);
    assert_eq!(kind(Blob::from_slice([2, 2], &[1.0])), ErrorKind::ShapeMismatch);
}

#[test]
fn axes_and_counts_follow_caffe() {
    let blob = Blob::<f32>::zeros([2, 3, 4, 5]).unwrap();
    assert_eq!(blob.to_string(), "2 3 4 5 (120)");
    assert_eq!((blob.dim(-1).unwrap(), blob.dim(1).unwrap()), (5, 3));
    assert_eq!(blob.canonical_axis(-4).unwrap(), 0);
    assert_eq!(blob.dim(4).unwrap_err().kind(), ErrorKind::IndexOutOfRange);
    assert_eq!(blob.count_range(1..3).unwrap(), 12);
    assert_eq!(blob.count_range(2..2).unwrap(), 1);
    assert_eq!((blob.count_range(2..).unwrap(), blob.count_range(..=0).unwrap()), (20, 2));
    assert_eq!(blob.count_range(0..5).unwrap_err().kind(), ErrorKind::IndexOutOfRange);
    assert_eq!(Blob::<f32>::zeros([7, 2]).unwrap().legacy_shape().unwrap(), [7, 2, 1, 1]);
    let five = Blob::<f32>::zeros([1; 5]).unwrap();
    assert_eq!(five.legacy_shape().unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn offsets_are_row_major_and_checked() {
    let blob = Blob::<u32>::from_fn([2, 3, 4], |i| i as u32).unwrap();
    assert_eq!(blob.offset([1, 2, 3]).unwrap(), 23);
    assert_eq!(blob.offset([1]).unwrap(), 12);
    assert_eq!(blob.offset([]).unwrap(), 0);
    assert_eq!(blob.at(Part::Data, [1, 0, 2]).unwrap(), 14);
    assert_eq!(blob.at(Part::Diff, [1, 0, 2]).unwrap(), 0);
    assert_eq!(blob.offset_legacy([1, 2, 3, 0]).unwrap(), 23);
    assert_eq!(blob.offset_legacy([0, 3, 0, 0]).unwrap(), 12);
    assert_eq!(blob.offset_legacy([2, 3, 4, 1]).unwrap(), 24 + 12 + 4 + 1);
    assert_eq!(blob.offset_legacy([1, 2, 3, 2]).unwrap_err().kind(), ErrorKind::IndexOutOfRange);
    assert!(blob.at(Part::Data, [0, 3]).is_err() && blob.at(Part::Diff, [2]).is_err());
    for wrong in [&[2_usize][..], &[0, 3], &[0, 0, 0, 0], &[usize::MAX], &[0; 40]] {
        assert_eq!(blob.offset(wrong).unwrap_err().kind(), ErrorKind::IndexOutOfRange);
    }
}

#[test]
fn reshape_keeps_memories_that_fit_and_reports_replaced_ones() {
    let mut blob = Blob::<i32>::from_slice([2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(blob.reshape([4]).unwrap(), Reallocated::default());
    assert_eq!(blob.data().unwrap(), [1, 2, 3, 4]);
    blob.reshape([6]).unwrap();
    assert_eq!(blob.data().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!((blob.capacity(Part::Data), blob.capacity(Part::Diff)), (6, 0));
    let replaced = blob.reshape([7]).unwrap();
    assert!(replaced.data && !replaced.diff);
    assert_eq!(blob.capacity(Part::Data), 0);
    assert_eq!(blob.data().unwrap(), [0; 7]);
    let kind = blob.reshape([3, -3]).unwrap_err().kind();
    assert_eq!((kind, blob.shape()), (ErrorKind::InvalidArgument, &[7][..]));
    assert!(blob.reshape([2]).is_ok() && blob.shrink_to_fit().unwrap().data);
}

fn blobs_of_each_type() -> impl Iterator<Item = BlobAny> {
    let dtypes = Dtype::ALL
        .iter()
        .filter(|dtype| cfg!(feature = "half") || !matches!(dtype, Dtype::F16 | Dtype::Bf16));
    dtypes.map(|dtype| {
        let mut blob = BlobAny::new(&Context::host(), *dtype).unwrap();
        blob.reshape([2, 3]).unwrap();
        for (i, byte) in blob.bytes_mut(Part::Data).unwrap().iter_mut().enumerate() {
            *byte = i as u8;
        }
        assert_eq!(
            (blob.dtype(), blob.bytes(Part::Data).unwrap().len()),
            (*dtype, 6 * dtype.size())
        );
        blob
    })
}

#[test]
fn every_element_type_is_copied_and_shared() {
    for blob in blobs_of_each_type() {
        let copy = blob.try_clone().unwrap();
        let bytes = |blob: &BlobAny| blob.bytes(Part::Data).unwrap().to_vec();
        assert_eq!(
            (copy.dtype(), copy.shape(), bytes(&copy)),
            (blob.dtype(), &[2, 3][..], bytes(&blob))
        );
        let mut other = BlobAny::new(&Context::host(), blob.dtype()).unwrap();
        other.copy_from_reshape(Part::Data, &blob).unwrap();
        assert_eq!(bytes(&other), bytes(&blob));
        other.share(Part::Data, &blob).unwrap();
        assert_eq!(
            other.bytes(Part::Data).unwrap().as_ptr(),
            blob.bytes(Part::Data).unwrap().as_ptr()
        );
        let again = other.copy_from_reshape(Part::Data, &copy).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Shared);
        // SAFETY: no slice of the memory is alive.
        unsafe { other.allow_shared_writes() };
        other.copy_from_reshape(Part::Data, &copy).unwrap();
    }
}

#[test]
fn only_floats_have_arithmetic_at_run_time() {
    for mut blob in blobs_of_each_type() {
        let kinds = [
            blob.asum(Part::Data).map(drop),
            blob.sumsq(Part::Data).map(drop),
            blob.scale(Part::Data, 0.0),
            blob.update(),
        ]
        .map(|done| done.map_err(|error| error.kind()));
        match blob.dtype() {
            Dtype::F32 | Dtype::F64 => assert_eq!(kinds, [Ok(()); 4]),
            _ => assert_eq!(kinds, [Err(ErrorKind::Unsupported); 4]),
        }
    }
    let mut blob = BlobAny::from(Blob::<f32>::full([3], 2.0).unwrap());
    blob.scale(Part::Data, -1.5).unwrap();
    assert_eq!((blob.asum(Part::Data).unwrap(), blob.sumsq(Part::Data).unwrap()), (9.0, 27.0));
    let sharer = blob.downcast_ref::<f32>().unwrap().handle(Part::Data).unwrap();
    assert_eq!(blob.scale(Part::Data, 1.0).unwrap_err().kind(), ErrorKind::Shared);
    assert_eq!(blob.update().unwrap_err().kind(), ErrorKind::Shared);
    drop(sharer);
    blob.update().unwrap();
}

#[test]
fn arithmetic_agrees_with_caffe() {
    let mut blob = Blob::<f32>::from_slice([4], &[1.0, -2.0, 3.0, -4.0]).unwrap();
    blob.diff_mut().unwrap().copy_from_slice(&[0.5, 0.5, -0.5, 0.0]);
    assert_eq!((blob.asum(Part::Data).unwrap(), blob.sumsq(Part::Data).unwrap()), (10.0, 30.0));
    assert_eq!((blob.asum(Part::Diff).unwrap(), blob.sumsq(Part::Diff).unwrap()), (1.5, 0.75));
    blob.scale(Part::Diff, 2.0).unwrap();
    blob.update().unwrap();
    assert_eq!(blob.data().unwrap(), [0.0, -3.0, 4.0, -4.0]);
    blob.scale(Part::Data, -1.0).unwrap();
    assert_eq!(blob.data().unwrap(), [0.0, 3.0, -4.0, 4.0]);
    blob.clear(Part::Diff).unwrap();
    blob.clear(Part::Data).unwrap();
    assert_eq!((blob.data().unwrap(), blob.diff().unwrap()), (&[0.0; 4][..], &[0.0; 4][..]));
    let kind = Blob::<f64>::zeros([3]).unwrap().update().unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Uninitialized);
}

#[test]
fn bytes_move_only_when_needed() {
    let context = simulated();
    let copies = |context: &Context| {
        let stats = context.stats().unwrap();
        (stats.uploads, stats.downloads)
    };
    let mut blob = Blob::<f32>::in_context(&context).from_slice([3], &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!((blob.head(Part::Data).unwrap(), copies(&context)), (Head::AtCpu, (0, 0)));
    blob.gpu_ptr(Part::Data).unwrap();
    blob.gpu_ptr(Part::Data).unwrap();
    assert_eq!((blob.head(Part::Data).unwrap(), copies(&context)), (Head::Synced, (1, 0)));
    blob.gpu_mut_ptr(Part::Data).unwrap();
    assert_eq!((blob.head(Part::Data).unwrap(), copies(&context)), (Head::AtGpu, (1, 0)));
    assert_eq!(blob.asum(Part::Data).unwrap(), 6.0);
    assert_eq!(copies(&context), (1, 0));
    assert_eq!(blob.data().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!((blob.head(Part::Data).unwrap(), copies(&context)), (Head::Synced, (1, 1)));
    blob.data_mut().unwrap()[0] = 5.0;
    assert_eq!(blob.head(Part::Data).unwrap(), Head::AtCpu);
    assert_eq!(blob.head(Part::Diff).unwrap(), Head::Uninitialized);
}

#[test]
fn a_host_only_context_has_no_device_side() {
    let blob = Blob::<f32>::zeros([2]).unwrap();
    assert_eq!(blob.gpu_ptr(Part::Data).unwrap_err().kind(), ErrorKind::NoDevice);
    assert_eq!((blob.context(), blob.context().device()), (Context::host(), "cpu"));
    assert!(!Context::host().has_device() && simulated().has_device());
}

#[test]
fn blobs_are_copied_between_contexts() {
    let context = simulated();
    let mut source = Blob::<f32>::in_context(&context).from_slice([2], &[1.0, 2.0]).unwrap();
    source.gpu_mut_ptr(Part::Data).unwrap();
    let mut target = Blob::<f32>::zeros([2]).unwrap();
    target.copy_from(Part::Data, &source).unwrap();
    assert_eq!(target.data().unwrap(), [1.0, 2.0]);
    let mut other = Blob::<f32>::zeros([1, 2]).unwrap();
    let kind = other.copy_from(Part::Data, &source).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::ShapeMismatch);
    assert_eq!(target.share(Part::Data, &source).unwrap_err().kind(), ErrorKind::WrongDevice);
}

#[test]
fn memory_that_was_never_written_is_not_allocated_in_a_clone() {
    let blob = Blob::<f32>::full([4], 1.0).unwrap();
    let mut sharer = Blob::<f32>::zeros([4]).unwrap();
    sharer.share(Part::Diff, &blob).unwrap();
    sharer.make_unique(Part::Diff).unwrap();
    let copy = blob.try_clone().unwrap();
    assert_eq!(
        (copy.data().unwrap(), copy.head(Part::Data).unwrap()),
        (&[1.0; 4][..], Head::AtCpu)
    );
    for blob in [&copy, &sharer] {
        assert_eq!(blob.head(Part::Diff).unwrap(), Head::Uninitialized);
        assert!(blob.is_unique(Part::Diff).unwrap());
    }
    let never = Blob::<f32>::new().unwrap();
    assert!(!never.try_clone().unwrap().is_shaped());
    let mut twin = Blob::<f32>::new().unwrap();
    twin.share(Part::Data, &never).unwrap();
    twin.make_unique(Part::Data).unwrap();
    assert!(twin.is_unique(Part::Data).unwrap() && !twin.is_shaped());
    twin.reshape_like(&never).unwrap();
    assert_eq!((twin.shape(), twin.count()), (&[][..], 1));
}

#[test]
fn a_cap_is_an_error_and_changes_nothing() {
    let context = Context::builder().max_host_bytes(1 << 16).build().unwrap();
    let mut blob = Blob::<f32>::in_context(&context).from_fn([8], |i| i as f32).unwrap();
    let before = blob.data().unwrap().to_vec();
    let mut large = Blob::<f32>::in_context(&context).zeros([1 << 20]).unwrap();
    assert_eq!(large.data_mut().unwrap_err().kind(), ErrorKind::CapReached);
    assert_eq!(large.head(Part::Data).unwrap(), Head::Uninitialized);
    blob.scale(Part::Data, 1.0).unwrap();
    assert_eq!(blob.data().unwrap(), before);
}

#[test]
fn protos_are_written_and_read_in_both_float_types() {
    let mut blob = Blob::<f64>::from_slice([2, 1], &[0.1, 1e300]).unwrap();
    blob.diff_mut().unwrap()[1] = 3.0;
    let bytes = blob.to_proto(Payload::DataAndDiff).unwrap();
    let again = Blob::<f64>::from_proto(&bytes).unwrap();
    assert_eq!((again.shape(), again.data().unwrap()), (&[2, 1][..], &[0.1, 1e300][..]));
    assert_eq!(again.diff().unwrap(), [0.0, 3.0]);
    let rounded = Blob::<f32>::from_proto(&bytes).unwrap();
    assert_eq!(rounded.data().unwrap(), [0.1_f32, f32::INFINITY]);
    let without = Blob::<f64>::from_proto(&blob.to_proto(Payload::Data).unwrap()).unwrap();
    assert_eq!(without.head(Part::Diff).unwrap(), Head::Uninitialized);
}

#[test]
fn values_that_an_integer_does_not_hold_are_refused() {
    let bytes = Blob::<f64>::from_slice([2], &[-1.0, 2147483647.0]).unwrap();
    let bytes = bytes.to_proto(Payload::Data).unwrap();
    let mut blob = Blob::<i32>::from_proto(&bytes).unwrap();
    assert_eq!(blob.data().unwrap(), [-1, i32::MAX]);
    let error = Blob::<u32>::from_proto(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataOverflow);
    assert!(error.to_string().contains("element 0 is -1, which u32 does not hold"), "{error}");
    for value in [f32::NAN, 0.5, -0.25, 2147483648.0] {
        let none = Blob::<f32>::full([2], value).unwrap().to_proto(Payload::Data).unwrap();
        assert_eq!(blob.read_proto(&none).unwrap_err().kind(), ErrorKind::DataOverflow);
    }
    assert_eq!(blob.data().unwrap(), [-1, i32::MAX]);
}

#[test]
fn reading_a_proto_in_place_needs_its_shape() {
    let bytes = Blob::<f32>::full([4], 2.0).unwrap().to_proto(Payload::Data).unwrap();
    let mut blob = Blob::<f32>::zeros([4]).unwrap();
    blob.read_proto(&bytes).unwrap();
    assert_eq!(blob.data().unwrap(), [2.0; 4]);
    let mut other = Blob::<f32>::zeros([2, 2]).unwrap();
    assert_eq!(other.read_proto(&bytes).unwrap_err().kind(), ErrorKind::ShapeMismatch);
}

#[test]
fn a_proto_can_change_the_shape() {
    let bytes = Blob::<f32>::full([2, 3], 2.0).unwrap().to_proto(Payload::Data).unwrap();
    let mut blob = Blob::<f32>::zeros([9]).unwrap();
    let start = blob.data().unwrap().as_ptr();
    assert!(!blob.has_shape_of_proto(&bytes).unwrap());
    blob.read_proto_reshape(&bytes).unwrap();
    assert!(blob.has_shape_of_proto(&bytes).unwrap());
    assert_eq!((blob.shape(), blob.data().unwrap()), (&[2, 3][..], &[2.0; 6][..]));
    assert_eq!(blob.data().unwrap().as_ptr(), start);
    let shape = [0x0a, 2, 5, 4]; // BlobShape { dim: [5, 4] }, packed
    assert!(blob.reshape_proto(&shape).unwrap().data);
    assert_eq!(blob.shape(), [5, 4]);
    let mut other = Blob::<f32>::new().unwrap();
    other.copy_from_reshape(Part::Data, &Blob::full([3], 1.5).unwrap()).unwrap();
    assert_eq!(other.data().unwrap(), [1.5; 3]);
}

#[test]
fn malformed_bytes_are_errors_with_an_offset() {
    let error = Blob::<f32>::from_proto(&[0x2a, 0xff]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.offset().is_some(), "{error:?}");
    // `shape { dim: 2^29 }` and one value
    let claim = [0x3a, 0x06, 0x08, 0x80, 0x80, 0x80, 0x80, 0x02, 0x2a, 0x04, 0, 0, 0, 0];
    let error = Blob::<f32>::from_proto(&claim).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LengthMismatch);
}

#[test]
fn files_are_written_and_read_and_a_missing_file_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mean.binaryproto");
    let blob = Blob::<f32>::from_fn([1, 3, 2, 2], |i| i as f32).unwrap();
    blob.write_file(&path, Payload::Data).unwrap();
    let again = Blob::<f32>::read_file(&path).unwrap();
    assert!(again.same_shape(&blob));
    assert_eq!(again.data().unwrap(), blob.data().unwrap());
    let error = Blob::<f32>::read_file(dir.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn debug_shows_values_without_moving_them() {
    let context = simulated();
    let mut blob = Blob::<f32>::in_context(&context).from_slice([2], &[1.0, 2.0]).unwrap();
    assert!(format!("{blob:?}").contains("[1.0, 2.0]"), "{blob:?}");
    blob.gpu_mut_ptr(Part::Data).unwrap();
    let before = context.stats().unwrap().downloads;
    assert!(format!("{blob:?}").contains("AtGpu"), "{blob:?}");
    assert_eq!(context.stats().unwrap().downloads, before);
}

#[test]
fn a_blob_is_downcast_only_to_its_own_type() {
    let any = BlobAny::from(Blob::<i32>::zeros([2, 2]).unwrap());
    assert_eq!((any.dtype(), any.shape(), any.count()), (Dtype::I32, &[2, 2][..], 4));
    assert!(any.downcast_ref::<i32>().is_some() && any.downcast_ref::<u32>().is_none());
    let mut any = any.downcast::<f32>().unwrap_err();
    any.downcast_mut::<i32>().unwrap().fill(Part::Data, 3).unwrap();
    assert_eq!(any.to_string(), "2 2 (4)");
    assert_eq!(any.downcast::<i32>().unwrap().count(), 4);
}

#[test]
fn a_context_outlives_its_handle() {
    let context = simulated();
    let same = context.clone();
    let blob = Blob::<f32>::in_context(&context).zeros([2]).unwrap();
    assert!(context == same && context != simulated());
    drop((context, same));
    assert_eq!(blob.context().device(), "sim:0");
    assert!(!blob.gpu_ptr(Part::Data).unwrap().is_null());
}

#[test]
fn wrong_devices_are_refused() {
    let kind = |device: &str| Context::builder().device(device).build().unwrap_err().kind();
    assert_eq!(kind("sim"), ErrorKind::InvalidArgument);
    assert_eq!(kind("abacus:0"), ErrorKind::Unsupported);
    assert_eq!(kind("sim:0\0"), ErrorKind::InvalidArgument);
}

#[test]
fn errors_contain_the_number_that_the_caller_passed() {
    let blob = Blob::<f32>::zeros([2, 3]).unwrap();
    let model = Model::create(Format::Caffemodel).unwrap();
    let most = usize::MAX.to_string();
    for error in [
        blob.offset([usize::MAX]).unwrap_err(),
        blob.at(Part::Data, [1, usize::MAX]).unwrap_err(),
        blob.offset_legacy([0, 0, usize::MAX, 0]).unwrap_err(),
        blob.count_range(0..usize::MAX).unwrap_err(),
        blob.count_range(usize::MAX..).unwrap_err(),
        model.layer(usize::MAX).unwrap_err(),
        model.blob((usize::MAX, 0)).unwrap_err(),
        model.blob(usize::MAX).unwrap_err(),
        model.load::<f32>((0, usize::MAX)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::IndexOutOfRange);
        assert!(error.message().contains(&most), "{error}");
    }
    let large = usize::MAX / 3;
    let error = blob.count_range(..large).unwrap_err();
    assert!(error.message().contains(&large.to_string()), "{error}");
    let limits = Limits::new().max_axes(usize::MAX);
    let error = OpenOptions::new().limits(limits).from_bytes(vec![]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(&most), "{error}");
    let error = Context::builder().limits(limits).build().unwrap_err();
    assert!(error.message().contains(&most), "{error}");
    assert!(blob.offset([2]).unwrap_err().message().contains('2'));
}

#[test]
fn blobs_of_types_known_at_run_time_are_checked_by_the_library() {
    let mut floats = BlobAny::from(Blob::<f32>::full([3], 2.0).unwrap());
    let mut integers = BlobAny::from(Blob::<i64>::full([3], 2).unwrap());
    let kind = |result: syncblob::Result<()>| result.map_err(|error| error.kind());
    let (mismatch, unsupported) = (Err(ErrorKind::DtypeMismatch), Err(ErrorKind::Unsupported));
    for part in [Part::Data, Part::Diff] {
        assert_eq!(kind(floats.copy_from(part, &integers)), mismatch);
        assert_eq!(kind(floats.copy_from_reshape(part, &integers)), mismatch);
        assert_eq!(kind(floats.share(part, &integers)), mismatch);
        assert_eq!(kind(integers.scale(part, 2.0)), unsupported);
        assert_eq!(kind(integers.asum(part).map(drop)), unsupported);
        assert_eq!(kind(integers.sumsq(part).map(drop)), unsupported);
        assert_eq!(kind(integers.clear(part)), Ok(()));
    }
    assert_eq!(kind(integers.update()), unsupported);
    assert_eq!(floats.sumsq(Part::Data).unwrap(), 12.0);
    assert!(integers.bytes(Part::Data).unwrap().iter().all(|&byte| byte == 0));
    let sharer = floats.try_clone().and_then(|mut other| {
        other.share(Part::Data, &floats)?;
        Ok(other)
    });
    assert_eq!(kind(floats.clear(Part::Data)), Err(ErrorKind::Shared));
    drop(sharer);
    assert_eq!(kind(floats.clear(Part::Data)), Ok(()));
}

#[test]
fn data_and_diff_of_one_memory_are_never_two_slices() {
    let mut blob = Blob::<f32>::full([3], 2.0).unwrap();
    let memory = blob.handle(Part::Data).unwrap();
    blob.set_memory(Part::Diff, memory).unwrap();
    assert_eq!(blob.data_and_diff_mut().unwrap_err().kind(), ErrorKind::Shared);
    // SAFETY: no slice of the memory is alive.
    unsafe { blob.allow_shared_writes() };
    assert_eq!(blob.data_and_diff_mut().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(blob.data_mut().unwrap(), [2.0; 3]);
}
