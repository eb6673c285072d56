use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use syncblob::{
    Blob, BlobAny, BlobAt, Context, Dtype, ErrorKind, Format, Generation, Limits, Model,
    OpenOptions, Part, Payload, SolverInfo,
};

fn net() -> Model {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name("net").unwrap();
    model.add_layer("data", "Input").unwrap();
    let ip = model.add_layer("ip", "InnerProduct").unwrap();
    let weights = Blob::<f32>::from_fn([2, 3], |i| i as f32).unwrap();
    model.add_blob(ip, &weights, Payload::Data).unwrap();
    let mut bias = Blob::<f64>::from_slice([2], &[0.1, 0.2]).unwrap();
    bias.diff_mut().unwrap().fill(7.0);
    model.add_blob(ip, &bias, Payload::DataAndDiff).unwrap();
    model
}

fn check_net(model: &Model) {
    assert_eq!((model.format(), &*model.name()), (Format::Caffemodel, "net"));
    assert_eq!(model.layers().len(), 2);
    let names: Vec<_> = model.layers().map(|layer| layer.name().into_owned()).collect();
    assert_eq!(names, ["data", "ip"]);
    let ip = model.layer_by_name("ip").unwrap();
    assert_eq!((ip.index(), &*ip.layer_type(), ip.num_blobs()), (1, "InnerProduct", 2));
    assert_eq!(ip.generation(), Generation::Current);
    let [weights, bias] = [0, 1].map(|index| ip.blob(index).unwrap());
    assert_eq!((weights.info().shape(), weights.info().dtype()), (&[2, 3][..], Dtype::F32));
    assert_eq!((bias.info().dtype(), bias.info().diff_count()), (Dtype::F64, 2));
    assert_eq!(weights.load::<f32>().unwrap().data().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    match bias.load_any().unwrap() {
        BlobAny::F64(bias) => assert_eq!(bias.diff().unwrap(), [7.0, 7.0]),
        other => panic!("{other:?}"),
    }
    assert_eq!(bias.load::<f32>().unwrap().data().unwrap(), [0.1_f32, 0.2]);
    assert_eq!(model.load::<f64>((1, 1)).unwrap().data().unwrap(), [0.1, 0.2]);
    assert_eq!(model.load::<f64>((1, 2)).unwrap_err().kind(), ErrorKind::IndexOutOfRange);
    assert_eq!(model.size().unwrap(), model.to_bytes().unwrap().len());
}

#[test]
fn a_model_built_in_memory_is_saved_and_opened_as_bytes_and_as_a_file() {
    let model = net();
    let bytes = model.to_bytes().unwrap();
    check_net(&Model::from_bytes(bytes.clone()).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    model.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    check_net(&Model::open(&path).unwrap());
}

fn announced() -> Model {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name("net").unwrap();
    model.add_layer("data", "Input").unwrap();
    let ip = model.add_layer("ip", "InnerProduct").unwrap();
    model.announce_blob::<f32>(ip, [2, 3]).unwrap();
    model.announce_blob::<f64>(ip, [2]).unwrap();
    model
}

#[test]
fn announced_blobs_are_requested_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    let model = announced();
    assert_eq!(model.save(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    let context = Context::builder().host_cache(false).build().unwrap();
    let empty = context.stats().unwrap().host_bytes;
    let mut asked = Vec::new();
    model
        .save_from(&path, |at| {
            assert_eq!(context.stats()?.host_bytes, empty, "the previous blob is still alive");
            asked.push((at.layer, at.index));
            let blob = model.blob(at)?;
            let shape = blob.info().shape().to_vec();
            Ok::<_, syncblob::Error>(match blob.info().dtype() {
                Dtype::F64 => Blob::<f64>::in_context(&context).full(shape, 0.5)?.into(),
                _ => Blob::<f32>::in_context(&context).full(shape, 2.5)?.into(),
            })
        })
        .unwrap();
    assert_eq!(asked, [(Some(1), 0), (Some(1), 1)]);
    let saved = Model::open(&path).unwrap();
    let load = |index| saved.layer(1).unwrap().blob(index).unwrap();
    assert_eq!(load(0).load::<f32>().unwrap().data().unwrap(), [2.5; 6]);
    assert_eq!(load(1).load::<f64>().unwrap().data().unwrap(), [0.5; 2]);
    assert_eq!(load(1).info().dtype(), Dtype::F64);
}

#[test]
fn a_failed_save_from_leaves_the_old_file() {
    #[derive(Debug, PartialEq)]
    enum Why {
        Mine,
        Library(ErrorKind),
    }
    impl From<syncblob::Error> for Why {
        fn from(error: syncblob::Error) -> Self {
            Self::Library(error.kind())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    std::fs::write(&path, "old").unwrap();
    let model = announced();
    let wrong = |blob: BlobAny| model.save_from(&path, |_| blob_once(&blob)).unwrap_err();
    fn blob_once(blob: &BlobAny) -> Result<BlobAny, Why> {
        match blob {
            BlobAny::F32(blob) => Ok(blob.try_clone()?.into()),
            BlobAny::F64(blob) => Ok(blob.try_clone()?.into()),
            _ => Err(Why::Mine),
        }
    }
    assert_eq!(wrong(Blob::<i32>::zeros([2, 3]).unwrap().into()), Why::Mine);
    let doubles = Blob::<f64>::zeros([2, 3]).unwrap();
    assert_eq!(wrong(doubles.into()), Why::Library(ErrorKind::DtypeMismatch));
    let turned = Blob::<f32>::zeros([3, 2]).unwrap();
    assert_eq!(wrong(turned.into()), Why::Library(ErrorKind::ShapeMismatch));
    let panics = std::panic::catch_unwind(|| {
        model.save_from(&path, |_| -> Result<BlobAny, Why> { panic!("no values") })
    });
    assert_eq!(*panics.unwrap_err().downcast::<&str>().unwrap(), "no values");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_replaced_blob_is_saved_and_the_rest_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    net().save(&path).unwrap();
    let mut model = Model::open(&path).unwrap();
    let mut weights = model.blob((1, 0)).unwrap().load::<f32>().unwrap();
    weights.scale(Part::Data, 2.0).unwrap();
    model.set_blob((1, 0), &weights, Payload::Data).unwrap();
    model.save(&path).unwrap();
    let again = Model::open(&path).unwrap();
    let blob = again.blob((1, 0)).unwrap().load::<f32>().unwrap();
    assert_eq!(blob.data().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(again.blob((1, 1)).unwrap().info().diff_count(), 2);
}

#[test]
fn a_layer_or_blob_that_does_not_exist_is_an_error() {
    let mut model = net();
    let kind = |result: syncblob::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(model.layer(2).map(drop)), ErrorKind::IndexOutOfRange);
    assert_eq!(kind(model.blob((1, 2)).map(drop)), ErrorKind::IndexOutOfRange);
    assert_eq!(kind(model.blob(0).map(drop)), ErrorKind::IndexOutOfRange);
    assert_eq!(kind(model.layer(usize::MAX).map(drop)), ErrorKind::IndexOutOfRange);
    assert_eq!(model.layer_by_name("nobody").unwrap_err().kind(), ErrorKind::NotFound);
    let blob = Blob::<f32>::zeros([1]).unwrap();
    let set = model.set_blob((0, 0), &blob, Payload::Data);
    assert_eq!(kind(set), ErrorKind::IndexOutOfRange);
    assert_eq!(kind(model.iteration().map(drop)), ErrorKind::Unsupported);
}

#[test]
fn names_are_bytes_of_any_value() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name(b"n\0m\xff").unwrap();
    model.add_layer("a\0b", b"\0").unwrap();
    let model = Model::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!(model.name_bytes(), b"n\0m\xff");
    let layer = model.layer_by_name(b"a\0b").unwrap();
    assert_eq!((layer.index(), layer.layer_type_bytes()), (0, &b"\0"[..]));
    assert!(model.layer_by_name("a").is_err());
}

#[test]
fn the_history_is_stored_in_blobs_without_a_layer() {
    let mut model = Model::create(Format::Solverstate).unwrap();
    for value in [1.0, 2.0] {
        model.add_blob(None, &Blob::<f32>::full([2], value).unwrap(), Payload::Data).unwrap();
    }
    let options = OpenOptions::new().format(Format::Solverstate);
    let again = options.from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!(
        (again.format(), again.blobs().len(), again.num_layers()),
        (Format::Solverstate, 2, 0)
    );
    let second = again.blobs().nth(1).unwrap().unwrap();
    assert_eq!(second.at(), BlobAt::from(1));
    assert_eq!(second.load::<f32>().unwrap().data().unwrap(), [2.0, 2.0]);
    assert_eq!(again.solver_info().unwrap(), SolverInfo::default());
}

#[test]
fn a_solver_state_keeps_its_iteration_step_and_net() {
    let mut model = Model::create(Format::Solverstate).unwrap();
    let info = SolverInfo::new(70).current_step(3).learned_net("net.caffemodel");
    model.set_solver_info(&info).unwrap();
    let again = Model::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!((again.solver_info().unwrap(), again.iteration().unwrap()), (info.clone(), 70));
    assert_eq!(net().set_solver_info(&info).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn all_blobs_are_returned_in_the_files_order() {
    let blobs: Vec<_> = net().into_blobs::<f64>().map(Result::unwrap).collect();
    let places: Vec<_> = blobs.iter().map(|loaded| loaded.at).collect();
    assert_eq!(places, [BlobAt::from((1, 0)), BlobAt::from((1, 1))]);
    assert_eq!(blobs[1].blob.data().unwrap(), [0.1, 0.2]);
    let model = net();
    let name = model.layer(1).unwrap().name().into_owned();
    assert!(!name.is_empty() && blobs.iter().all(|loaded| loaded.layer_name == name));
    let places_and_names: Vec<_> = model
        .all_blobs()
        .map(|blob| blob.map(|blob| (blob.at(), blob.layer_name().into_owned())).unwrap())
        .collect();
    assert_eq!(places_and_names, [((1, 0).into(), name.clone()), ((1, 1).into(), name)]);
}

#[test]
fn a_mapped_file_is_read_as_an_ordinary_file_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    net().save(&path).unwrap();
    // SAFETY: no other code changes the file.
    check_net(&unsafe { OpenOptions::new().open_mapped(&path) }.unwrap());
}

#[test]
fn a_file_that_changes_meanwhile_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    net().save(file.path()).unwrap();
    let model = Model::open(file.path()).unwrap();
    std::fs::OpenOptions::new().write(true).open(file.path()).unwrap().set_len(20).unwrap();
    let ip = model.layer_by_name("ip").unwrap();
    assert_eq!(ip.blobs().len(), 2);
    for blob in ip.blobs() {
        let kind = blob.and_then(|blob| blob.load::<f32>()).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Io | ErrorKind::Malformed), "{kind:?}");
    }
}

#[test]
fn malformed_bytes_are_refused_with_an_offset() {
    let error = Model::from_bytes(&b"\xff\xff\xff rubbish"[..]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let cut = net().to_bytes().unwrap();
    let cut = cut[..cut.len() - 3].to_vec();
    let error = OpenOptions::new().format(Format::Caffemodel).from_bytes(cut).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.offset().is_some(), "{error:?}");
}

#[test]
fn limits_are_checked() {
    let bytes = net().to_bytes().unwrap();
    let open = |limits| OpenOptions::new().limits(limits).from_bytes(bytes.clone());
    assert!(open(Limits::new().max_layers(2)).is_ok());
    for limits in [Limits::new().max_layers(1), Limits::new().max_blobs(1)] {
        assert_eq!(open(limits).unwrap_err().kind(), ErrorKind::DataLimit);
    }
}

#[test]
fn blobs_load_into_the_context_of_choice() {
    let context = Context::builder().device("sim:0").build().unwrap();
    let bytes = net().to_bytes().unwrap();
    let model = OpenOptions::new().context(&context).from_bytes(bytes).unwrap();
    let stored = model.blob((1, 0)).unwrap();
    assert_eq!(stored.load::<f32>().unwrap().context(), context);
    assert_eq!(
        Blob::<f32>::in_context(&Context::host()).load(&stored).unwrap().context(),
        Context::host()
    );
}

struct Counted {
    bytes: Vec<u8>,
    dropped: Arc<AtomicUsize>,
    panics: bool,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "a destructor that panics, on purpose");
    }
}

#[test]
fn the_owner_of_the_bytes_is_dropped_once_whatever_happens() {
    let good = net().to_bytes().unwrap();
    for (bytes, opens, panics) in
        [(good.clone(), true, false), (good, true, true), (b"\xff rubbish".to_vec(), false, false)]
    {
        let dropped = Arc::new(AtomicUsize::new(0));
        let model = Model::from_bytes(Counted { bytes, dropped: Arc::clone(&dropped), panics });
        assert_eq!((model.is_ok(), dropped.load(Ordering::SeqCst)), (opens, usize::from(!opens)));
        drop(model);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_model_is_read_from_many_threads() {
    let model = Arc::new(Model::from_bytes(net().to_bytes().unwrap()).unwrap());
    let readers = (0..4).map(|_| {
        let model = Arc::clone(&model);
        std::thread::spawn(move || (0..20).for_each(|_| check_net(&model)))
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.join().unwrap();
    }
}

/// NVCaffe's message of a blob: data 1 and -2 as FLOAT16, diff 3 and -1 as INT.
const RAW: &[u8] = b"\x3a\x03\x0a\x01\x02\x50\x02\x62\x04\x00\x3c\x00\xc0\
    \x58\x03\x6a\x08\x03\0\0\0\xff\xff\xff\xff";

#[test]
fn raw_data_is_listed_as_stored_and_loaded_as_floats() {
    let model = Model::from_bytes(RAW.to_vec()).unwrap();
    let stored = model.blob(0).unwrap();
    let info = stored.info();
    assert_eq!((info.dtype(), info.diff_dtype()), (Dtype::F16, Dtype::I32));
    assert_eq!((info.data_count(), info.diff_count()), (2, 2));
    let wide = stored.load::<f64>().unwrap();
    assert_eq!((wide.data().unwrap(), wide.diff().unwrap()), (&[1.0, -2.0][..], &[3.0, -1.0][..]));
    match stored.load_any().unwrap() {
        BlobAny::F32(blob) => assert_eq!(blob.data().unwrap(), [1.0, -2.0]),
        other => panic!("{other:?}"),
    }
    assert_eq!(Blob::<f32>::from_proto(RAW).unwrap().diff().unwrap(), [3.0, -1.0]);
}

#[cfg(feature = "half")]
#[test]
fn halves_stay_halves() {
    use syncblob::half::f16;
    let alone = &RAW[..RAW.len() - 12];
    let model = Model::from_bytes(alone.to_vec()).unwrap();
    let halves = [1.0, -2.0].map(f16::from_f32);
    match model.blob(0).unwrap().load_any().unwrap() {
        BlobAny::F16(blob) => assert_eq!(blob.data().unwrap(), halves),
        other => panic!("{other:?}"),
    }
    assert_eq!(Blob::<f16>::from_proto(alone).unwrap().data().unwrap(), halves);
    let error = Blob::<f16>::from_proto(RAW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DtypeMismatch, "{error}");
}

#[test]
fn integers_are_loaded_as_doubles_which_hold_them() {
    let unsigned = b"\x50\x04\x62\x04\xff\xff\xff\xff";
    let model = Model::from_bytes(unsigned.to_vec()).unwrap();
    let stored = model.blob(0).unwrap();
    assert_eq!((stored.info().dtype(), stored.info().diff_dtype()), (Dtype::U32, Dtype::U32));
    match stored.load_any().unwrap() {
        BlobAny::F64(blob) => assert_eq!(blob.data().unwrap(), [4_294_967_295.0]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_models_layers_are_iterated_from_both_ends() {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    for name in ["a", "b", "c", "d"] {
        model.add_layer(name, "ReLU").unwrap();
    }
    let names = |layers: &mut dyn Iterator<Item = syncblob::Layer<'_>>| {
        layers.map(|layer| layer.name().into_owned()).collect::<String>()
    };
    assert_eq!(names(&mut (&model).into_iter()), "abcd");
    assert_eq!(names(&mut model.layers().rev()), "dcba");
    assert_eq!(names(&mut model.layers().skip(2)), "cd");
    assert_eq!((model.layers().len(), model.layers().nth(4).is_none()), (4, true));
    for layer in &model {
        assert_eq!(model.layer(layer.index()).unwrap().name(), layer.name());
    }
}

#[test]
fn an_error_of_a_file_contains_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut off.caffemodel");
    std::fs::write(&path, b"\x0a\x05net").unwrap();
    let errors = [
        Model::open(&path).unwrap_err(),
        Blob::<f32>::read_file(&path).unwrap_err(),
        Model::open(folder.path().join("none")).unwrap_err(),
        Blob::<f32>::zeros([1])
            .unwrap()
            .write_file(folder.path().join("no/file"), Payload::Data)
            .unwrap_err(),
        Model::open("a\0b").unwrap_err(),
    ];
    for (error, name) in
        errors.iter().zip(["cut off.caffemodel", "cut off.caffemodel", "none", "no/file", "a\\0b"])
    {
        let text = error.to_string();
        assert_eq!(text.matches(name).count(), 1, "{text}");
        assert!(error.path().is_some() && text.ends_with(error.message()), "{text}");
    }
    assert_eq!(errors[0].path().unwrap(), path);
    assert!(!errors[0].message().contains("cut off."));
    let error = Model::from_bytes(b"\x0a\x05net").unwrap_err();
    assert_eq!((error.path(), error.to_string()), (None, error.message().to_string()));
}

#[test]
fn names_are_read_and_written() {
    use syncblob::{Dtype, ErrorKind, Head, Side, Storage};
    for format in [Format::Blob, Format::Caffemodel, Format::Solverstate, Format::BlobVector] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    for dtype in Dtype::ALL {
        assert_eq!(dtype.name().parse(), Ok(*dtype));
    }
    let error = "F32".parse::<Dtype>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("element type \"F32\": known are f32, f64"), "{error}");
    let shown = [
        Head::AtCpu.to_string(),
        Side::Device.to_string(),
        Storage::Pinned.to_string(),
        ErrorKind::BadShape.to_string(),
    ];
    assert_eq!(shown, ["HEAD_AT_CPU", "device", "page-locked", "SB_ERR_BAD_SHAPE"]);
}

#[test]
fn an_error_of_a_file_contains_its_name_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.caffemodel");
    let named = format!("{path:?}");
    let missing = Model::open(&path).unwrap_err();
    assert!(missing.message().starts_with(&named), "{missing}");
    std::fs::write(&path, b"rubbish").unwrap();
    let malformed = Model::open(&path).unwrap_err();
    assert!(!malformed.message().contains("net.caffemodel"), "{malformed}");
    std::fs::write(&path, b"").unwrap();
    let error = Model::open(folder.path()).unwrap_err();
    assert_eq!(error.path(), Some(folder.path()));
    for error in [missing, malformed] {
        assert_eq!(error.path(), Some(&*path));
        let text = error.to_string();
        assert!(text.starts_with(&named) && text.matches("net.caffemodel").count() == 1, "{text}");
    }
    std::fs::write(&path, net_of_one_blob()).unwrap();
    let mut model = Model::open(&path).unwrap();
    std::fs::write(&path, b"").unwrap();
    model.set_name("x").unwrap();
    let target = folder.path().join("target");
    let error = model.save(&target).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*target)));
    let text = error.to_string();
    assert!(text.starts_with(&format!("{target:?}: ")), "{text}");
}

#[test]
fn errors_are_unwind_safe() {
    fn passes<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe + Send + Sync>() {}
    passes::<syncblob::Error>();
}

fn net_of_one_blob() -> Vec<u8> {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let layer = model.add_layer("ip", "InnerProduct").unwrap();
    model.add_blob(layer, &Blob::<f32>::zeros([1000]).unwrap(), Payload::Data).unwrap();
    model.to_bytes().unwrap()
}

#[test]
fn a_result_of_load_any_can_be_stored() {
    let mut model = net();
    let mut any = model.blob((1, 1)).unwrap().load_any().unwrap();
    any.bytes_mut(Part::Data).unwrap().fill(0);
    model.set_blob((1, 1), &any, Payload::Data).unwrap();
    let count = any.count();
    assert_eq!(model.load::<f64>((1, 1)).unwrap().data().unwrap(), vec![0.0; count]);
    let integers = BlobAny::from(Blob::<i32>::zeros([2]).unwrap());
    let error = model.set_blob((1, 1), &integers, Payload::Data).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
