//! Tests `syncblob convert` as users run it.

mod program;

use std::fs::{self, File};
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::{chown, symlink, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use program::{command, field, number, real_files, run, Files};
use syncblob::{Blob, BlobAny, Dtype, Format, Model, Payload, SolverInfo, StoredBlob};
use syncblob_cli::conversion::{Conversion, FileFormat, Scheme};

/// Returns the standard error of a conversion that must succeed.
fn convert(options: &[&str], from: &Path, to: &Path) -> String {
    let (status, out, err) = run(command("convert", options, &[from, to]));
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
    err
}

/// Returns the standard error of a conversion that must fail and leave no file.
fn refuse(options: &[&str], from: &Path, to: &Path) -> String {
    let before = listing(to.parent().unwrap());
    let (status, out, err) = run(command("convert", options, &[from, to]));
    assert_eq!((status, out.as_str(), err.lines().count()), (1, "", 1), "{err}");
    assert_eq!(listing(to.parent().unwrap()), before, "{err}");
    err
}

fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.path(), entry.metadata().unwrap().len())
    };
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(entry).collect();
    found.sort();
    found
}

/// The net's name; each layer's name, type and blobs; the blobs without a layer.
type Contents = (String, Vec<(String, String, Vec<Values>)>, Vec<Values>);
type Values = (Vec<usize>, Dtype, Vec<u64>);

fn loaded(stored: syncblob::Result<StoredBlob<'_>>) -> Values {
    let stored = stored.unwrap();
    values(&match stored.info().dtype() {
        Dtype::F16 => stored.load::<f32>().unwrap().into(),
        _ => stored.load_any().unwrap(),
    })
}

fn contents(path: &Path) -> Contents {
    let model = Model::open(path).unwrap();
    let layers = model.layers().map(|layer| {
        let blobs = layer.blobs().map(loaded);
        (layer.name().into_owned(), layer.layer_type().into_owned(), blobs.collect())
    });
    let others = model.blobs().map(loaded);
    (model.name().into_owned(), layers.collect(), others.collect())
}

fn values(blob: &BlobAny) -> Values {
    let bits = match blob {
        BlobAny::F32(blob) => {
            blob.data().unwrap().iter().map(|value| value.to_bits().into()).collect()
        }
        BlobAny::F64(blob) => blob.data().unwrap().iter().map(|value| value.to_bits()).collect(),
        other => panic!("{other:?}"),
    };
    (blob.shape().to_vec(), blob.dtype(), bits)
}

fn odd_net(files: &Files) -> PathBuf {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name("odd \"net\" 重み").unwrap();
    model.add_layer("data", "Input").unwrap();
    let conv = model.add_layer("conv/1", "Convolution").unwrap();
    let weights = Blob::<f32>::from_slice([2, 3], &[1.5, -0.0, f32::NAN, 3e38, 1e-45, -7.0]);
    model.add_blob(conv, &weights.unwrap(), Payload::Data).unwrap();
    let bias = Blob::<f64>::from_slice([2], &[0.1, f64::INFINITY]).unwrap();
    model.add_blob(conv, &bias, Payload::Data).unwrap();
    let again = model.add_layer("conv/1", "Convolution").unwrap();
    model.add_blob(again, &Blob::<f32>::zeros([0, 3]).unwrap(), Payload::Data).unwrap();
    let unnamed = model.add_layer("", "Bias").unwrap();
    model.add_blob(unnamed, &Blob::<f32>::full([0_usize; 0], 4.0).unwrap(), Payload::Data).unwrap();
    let path = files.path("odd.caffemodel");
    model.save(&path).unwrap();
    path
}

#[test]
fn a_net_survives_a_round_trip_through_safetensors() {
    let files = Files::new();
    let (net, between, back) =
        (odd_net(&files), files.path("odd.safetensors"), files.path("back.caffemodel"));
    for names in ["caffe", "torch"] {
        let text = convert(&["--force", "--names", names], &net, &between);
        assert!(text.contains("2 layers have no name or a repeated name"), "{text}");
        // PyTorch's readers refuse a file that lacks this key.
        let bytes = std::fs::read(&between).unwrap();
        let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
        // The entries of the metadata must have the same order in every run.
        assert!(bytes[8..].starts_with(br#"{"__metadata__":{"format":"pt","syncblob":"#));
        assert_eq!(convert(&["-f"], &between, &back), "");
        assert_eq!(contents(&back), contents(&net));
    }
}

/// Each blob stores its values in NVCaffe's field raw_data.
fn raw_net(files: &Files) -> PathBuf {
    let field = |key: &[u8], bytes: &[u8]| [key, &[bytes.len() as u8], bytes].concat();
    let blob = |count: u8, raw_type: u8, raw: &[u8]| {
        let shape = field(b"\x3a", &field(b"\x0a", &[count]));
        [shape, vec![0x50, raw_type], field(b"\x62", raw)].concat()
    };
    let halves = [0x3c00_u16, 0x0001, 0xc200, 0x7bff].map(u16::to_le_bytes).concat();
    let integers = [-7_i32, i32::MAX].map(i32::to_le_bytes).concat();
    let unsigned = u32::MAX.to_le_bytes();
    let layers = [blob(4, 2, &halves), blob(2, 3, &integers), blob(1, 4, &unsigned)];
    let layer = |(index, blob): (usize, &Vec<u8>)| {
        let name = field(b"\x0a", format!("raw{index}").as_bytes());
        field(b"\xa2\x06", &[name, field(b"\x3a", blob)].concat())
    };
    let net: Vec<u8> = layers.iter().enumerate().flat_map(layer).collect();
    files.write("raw.caffemodel", &net)
}

#[test]
fn raw_values_of_a_fork_are_converted_exactly() {
    let files = Files::new();
    let net = raw_net(&files);
    let bits: Vec<_> = contents(&net).1.into_iter().map(|mut layer| layer.2.remove(0)).collect();
    let halves = [1.0_f32, 2.0_f32.powi(-24), -3.0, 65504.0].map(|value| value.to_bits().into());
    assert_eq!(bits[0], (vec![4], Dtype::F32, halves.to_vec()));
    let integers = [-7.0_f64, i32::MAX.into()].map(f64::to_bits);
    assert_eq!(bits[1], (vec![2], Dtype::F64, integers.to_vec()));
    assert_eq!(bits[2], (vec![1], Dtype::F64, vec![f64::from(u32::MAX).to_bits()]));
    for between in ["raw.safetensors", "raw.npz"].map(|name| files.path(name)) {
        let back = files.path("back.caffemodel");
        convert(&[], &net, &between);
        convert(&["--force"], &between, &back);
        let again: Vec<_> =
            contents(&back).1.into_iter().map(|mut layer| layer.2.remove(0)).collect();
        assert_eq!(again, bits, "{}", between.display());
        let (status, out, _) = run(command("diff", &["--ignore", "type"], &[&net, &between]));
        assert_eq!(status, 0, "{out}");
    }
    let half = files.path("half.safetensors");
    convert(&["--dtype", "f16", "--only", "raw0.0"], &net, &half);
    assert_eq!(
        fs::read(&half).unwrap()[fs::metadata(&half).unwrap().len() as usize - 8..],
        [0x3c00_u16, 0x0001, 0xc200, 0x7bff].map(u16::to_le_bytes).concat()
    );
}

#[test]
fn real_files_survive_a_round_trip_through_safetensors() {
    let files = Files::new();
    for file in real_files() {
        let back = files.path("back").with_extension(file.extension().unwrap());
        let between = files.path("between.safetensors");
        convert(&["--force", "--names=caffe"], &file, &between);
        convert(&["--force"], &between, &back);
        let (before, after) = (contents(&file), contents(&back));
        assert_eq!(before, after, "{}", file.display());
        let solver = |path: &Path| Model::open(path).unwrap().solver_info().ok();
        assert_eq!(solver(&file), solver(&back));
    }
}

#[test]
fn numpy_keeps_values_and_names() {
    let files = Files::new();
    let (net, between, back) =
        (odd_net(&files), files.path("odd.npz"), files.path("back.caffemodel"));
    convert(&["--names=caffe"], &net, &between);
    convert(&[], &between, &back);
    let expected = [("conv/1", 2), ("conv/1#2", 1), ("#3", 1)];
    let (_, layers, _) = contents(&back);
    let found: Vec<_> = layers.iter().map(|(name, _, blobs)| (&**name, blobs.len())).collect();
    assert_eq!(found, expected);
    let blobs = |layers: &[(String, String, Vec<Values>)]| {
        layers.iter().flat_map(|(_, _, blobs)| blobs.clone()).collect::<Vec<_>>()
    };
    assert_eq!(blobs(&layers), blobs(&contents(&net).1));

    let mean = files.mean("mean.binaryproto", &[1, 3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
    let (array, again) = (files.path("mean.npy"), files.path("again.binaryproto"));
    convert(&[], &mean, &array);
    convert(&[], &array, &again);
    assert_eq!(contents(&again), contents(&mean));
}

#[test]
fn elements_keep_their_type_and_bytes() {
    let files = Files::new();
    for dtype in Dtype::ALL {
        let Some(descr) = dtype.typestr() else { continue };
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (3,)}}\n");
        let values: Vec<u8> = (0..3 * dtype.size()).map(|i| 0x40 + i as u8).collect();
        let start = [b"\x93NUMPY\x01\0", &[header.len() as u8, 0][..], header.as_bytes()].concat();
        let array = files.write("array.npy", &[start, values.clone()].concat());
        let (between, again) = (files.path("array.safetensors"), files.path("again.npy"));
        convert(&["--force"], &array, &between);
        convert(&["--force"], &between, &again);
        let written = fs::read(&again).unwrap();
        assert!(written.windows(3).any(|text| text == descr.as_bytes()), "{descr}");
        assert!(written.ends_with(&values), "{descr}");
        let (status, out, _) = run(command("diff", &[], &[&array, &between]));
        assert_eq!(status, 0, "{out}");
    }
}

#[test]
fn elements_of_one_byte_keep_their_type() {
    let files = Files::new();
    for (descr, values) in [("|u1", [0.0_f32, 1.0, 255.0]), ("|i1", [0.0, 1.0, -1.0])] {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (3,)}}\n");
        let bytes =
            [b"\x93NUMPY\x01\0", &[header.len() as u8, 0][..], header.as_bytes(), &[0, 1, 255]];
        let array = files.write("bytes.npy", &bytes.concat());
        let (between, again) = (files.path("bytes.safetensors"), files.path("again.npy"));
        convert(&["--force"], &array, &between);
        convert(&["--force"], &between, &again);
        let written = fs::read(&again).unwrap();
        assert!(written.windows(3).any(|text| text == descr.as_bytes()), "{descr}");
        assert_eq!(written[written.len() - 3..], [0, 1, 255]);
        let (status, out, _) = run(command("diff", &[], &[&array, &between]));
        assert_eq!(status, 0, "{out}");
        let mean = files.path("bytes.binaryproto");
        assert!(refuse(&[], &array, &mean).contains("--dtype f32"));
        convert(&["--force", "--dtype", "f32"], &array, &mean);
        let bits = values.map(|value| value.to_bits().into()).to_vec();
        assert_eq!(contents(&mean).2, [(vec![3], Dtype::F32, bits)]);
        fs::remove_file(mean).unwrap();
    }
}

#[test]
fn a_solver_state_keeps_its_counters_in_a_round_trip() {
    let files = Files::new();
    let mut solver = Model::create(Format::Solverstate).unwrap();
    let info = SolverInfo::new(70).current_step(3).learned_net("a/b.caffemodel");
    solver.set_solver_info(&info).unwrap();
    for index in 0..12 {
        let blob = Blob::<f32>::full([1, index], index as f32).unwrap();
        solver.add_blob(None, &blob, Payload::Data).unwrap();
    }
    let path = files.path("a.solverstate");
    solver.save(&path).unwrap();
    let (between, back) = (files.path("a.safetensors"), files.path("back.solverstate"));
    convert(&[], &path, &between);
    convert(&[], &between, &back);
    assert_eq!(contents(&back), contents(&path));
    assert_eq!(Model::open(&back).unwrap().solver_info().unwrap(), info);
    let (archive, bare) = (files.path("a.npz"), files.path("bare.solverstate"));
    convert(&[], &path, &archive);
    convert(&[], &archive, &bare);
    assert_eq!(contents(&bare), contents(&path));
    let net = files.path("x.caffemodel");
    assert!(refuse(&[], &path, &net).contains("a caffemodel has layers, and IN has none"));
    assert!(refuse(&[], &odd_net(&files), &files.path("x.solverstate")).contains("history.0"));
}

fn normed_net(files: &Files, factor: f32) -> PathBuf {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    let blob = |values: &[f32]| Blob::<f32>::from_slice([values.len()], values).unwrap();
    let norm = model.add_layer("bn", "BatchNorm").unwrap();
    for values in [&[0.1, -3.7][..], &[7.0, 1e-3], &[factor]] {
        model.add_blob(norm, &blob(values), Payload::Data).unwrap();
    }
    let scale = model.add_layer("scale", "Scale").unwrap();
    for values in [[1.0, 2.0], [3.0, 4.0]] {
        model.add_blob(scale, &blob(&values), Payload::Data).unwrap();
    }
    let path = files.path("normed.caffemodel");
    model.save(&path).unwrap();
    path
}

/// `parameters` is an encoded field of LayerParameter.
struct Row<'a> {
    name: &'a str,
    layer_type: &'a str,
    ends: [&'a str; 2],
    parameters: &'a [u8],
    blobs: &'a [&'a [u64]],
}

fn connected_net(files: &Files, name: &str, rows: &[Row]) -> PathBuf {
    let blob = |shape: &&[u64]| {
        let dims: Vec<u8> = shape.iter().flat_map(|dim| number(1, *dim)).collect();
        let count: u64 = shape.iter().product();
        let values: Vec<u8> = (1..=count).flat_map(|value| (value as f32).to_le_bytes()).collect();
        field(7, &[field(7, &dims), field(5, &values)].concat())
    };
    let layer = |row: &Row| {
        let texts = [row.name, row.layer_type, row.ends[0], row.ends[1]];
        let mut message: Vec<u8> =
            (1..).zip(texts).flat_map(|(number, text)| field(number, text.as_bytes())).collect();
        message.extend(row.parameters);
        message.extend(row.blobs.iter().flat_map(blob));
        field(100, &message)
    };
    files.write(name, &rows.iter().flat_map(layer).collect::<Vec<u8>>())
}

/// The encoded `transpose: true` of an InnerProductParameter.
const TRANSPOSE: &[u8] = &[0x30, 1];

fn torch_net(files: &Files, inner_product: &[u8]) -> PathBuf {
    let row =
        |name, layer_type, ends, blobs| Row { name, layer_type, ends, parameters: &[], blobs };
    let inner_product = field(117, inner_product);
    let rows = [
        row("norm", "BatchNorm", ["data", "a"], &[&[2], &[2], &[1]]),
        row("gamma", "Scale", ["a", "b"], &[&[2], &[2]]),
        row("alone", "BatchNorm", ["b", "c"], &[&[2], &[2], &[1]]),
        Row {
            parameters: &inner_product,
            ..row("fc", "InnerProduct", ["c", "d"], &[&[2, 3], &[2]])
        },
    ];
    connected_net(files, "torch.caffemodel", &rows)
}

fn listed(file: &Path, extension: &str, options: &[&str]) -> Vec<(String, String)> {
    let to = file.with_extension(extension);
    let options = [&["--dry-run"], options].concat();
    let (status, out, err) = run(command("convert", &options, &[file, &to]));
    assert_eq!((status, err.as_str(), to.exists()), (0, "", false));
    let word = |line: &str, at| line.split("  ").nth(at).unwrap().to_owned();
    let mut lines: Vec<_> = out.lines().collect();
    lines.pop(); // removes the total
    lines.into_iter().map(|line| (word(line, 0), word(line, 2))).collect()
}

fn names_in(file: &Path, options: &[&str]) -> Vec<String> {
    listed(file, "npz", options).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn connections_determine_pytorchs_names_and_shapes() {
    let files = Files::new();
    let net = torch_net(&files, TRANSPOSE);
    let norm = |name: &str| {
        ["weight", "bias", "running_mean", "running_var"]
            .map(|role| (format!("{name}.{role}"), "2".to_owned()))
    };
    let fc = [("fc.weight", "3x2"), ("fc.bias", "2")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let torch = [&norm("norm")[..], &norm("alone"), &fc].concat();
    assert_eq!(listed(&net, "npz", &[]), torch);
    assert_eq!(listed(&net, "safetensors", &[]), torch);
    assert_eq!(listed(&net, "npy", &["--names=torch", "--only=fc.weight"]), torch[8..9]);
    assert_eq!(
        names_in(&net, &["--only=*.running_mean"]),
        ["norm.running_mean", "alone.running_mean"]
    );
    let blobs = names_in(&net, &["--names=caffe"]);
    assert_eq!(blobs[..5], ["norm.0", "norm.1", "norm.2", "gamma.0", "gamma.1"]);
    assert_eq!(listed(&net, "npy", &["--only=fc.0"]), [("fc.0".to_owned(), "2x3".to_owned())]);

    let matrix = files.path("matrix.npy");
    convert(&["--names=torch", "--only=fc.weight"], &net, &matrix);
    let swapped = [1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0].map(f32::to_le_bytes).concat();
    assert!(fs::read(&matrix).unwrap().ends_with(&swapped));
    let text = refuse(&["--names=torch"], &net, &files.path("x.caffemodel"));
    assert!(text.contains("--names torch is for .safetensors"), "{text}");
    let text = refuse(&["--names=caffe"], &matrix, &files.path("x.npz"));
    assert!(text.contains("have names already"), "{text}");
}

#[test]
fn shapes_of_old_nets_become_those_of_pytorch() {
    let files = Files::new();
    let blob = |dims: [u64; 4]| {
        let count: u64 = dims.iter().product();
        let values = vec![0; 4 * usize::try_from(count).unwrap()];
        let dims: Vec<u8> = (1..).zip(dims).flat_map(|(at, dim)| number(at, dim)).collect();
        field(6, &[dims, field(5, &values)].concat())
    };
    let layer = |name: &str, kind, weight, bias| {
        field(2, &[field(4, name.as_bytes()), number(5, kind), blob(weight), blob(bias)].concat())
    };
    let old =
        [layer("conv", 4, [4, 1, 3, 3], [1, 1, 1, 4]), layer("fc", 14, [1, 1, 2, 4], [1, 1, 1, 2])];
    let net = files.write("old.caffemodel", &old.concat());
    let wanted =
        [("conv.weight", "4x1x3x3"), ("conv.bias", "4"), ("fc.weight", "2x4"), ("fc.bias", "2")];
    let wanted = wanted.map(|(name, shape)| (name.to_owned(), shape.to_owned()));
    assert_eq!(listed(&net, "npz", &[]), wanted);
}

#[test]
fn a_net_with_pytorchs_names_keeps_its_results_in_a_round_trip() {
    let files = Files::new();
    let (net, back) = (torch_net(&files, &[]), files.path("back.caffemodel"));
    let (between, again) = (files.path("between.safetensors"), files.path("again.safetensors"));
    convert(&[], &net, &between);
    convert(&["--dtype=f32"], &between, &again);
    for between in [&between, &again] {
        convert(&["--force"], between, &back);
        assert_eq!(contents(&back), contents(&net));
    }
}

#[test]
fn tensors_with_ambiguous_names_are_refused() {
    let files = Files::new();
    let out = files.path("x.caffemodel");
    let (transposed, archive) = (files.path("transposed.safetensors"), files.path("names.npz"));
    let net = torch_net(&files, TRANSPOSE);
    convert(&[], &net, &transposed);
    let text = refuse(&[], &transposed, &out);
    assert!(
        text.contains("\"fc.weight\" is transposed") && text.contains("--names caffe"),
        "{text}"
    );
    convert(&["--only=norm.*"], &net, &archive);
    let text = refuse(&[], &archive, &out);
    assert!(text.contains("\"norm.weight\" belongs to the BatchNorm \"norm\""), "{text}");
    assert!(text.contains("--names caffe"), "{text}");
    convert(&["--only=norm.running_*"], &archive, &out);
    assert_eq!(contents(&out).1[0].2.len(), 3);

    let (alone, changed) = (files.path("alone.safetensors"), files.path("changed.caffemodel"));
    convert(&["--only=alone.*"], &net, &alone);
    let mut bytes = fs::read(&alone).unwrap();
    let one = 1.0_f32.to_le_bytes();
    let last = bytes.len() - 4; // alone.weight is the last tensor
    assert_eq!(bytes[last..], one);
    bytes[last] = 1;
    fs::write(&alone, &bytes).unwrap();
    let text = refuse(&[], &alone, &changed);
    assert!(text.contains("\"alone.weight\" is not a blob of the net"), "{text}");
    convert(&["--only=*.running_*"], &alone, &changed);
}

#[test]
fn blobs_of_an_unreadable_net_are_converted_without_its_names() {
    let files = Files::new();
    let net = torch_net(&files, &[0x38]); // a truncated field
    let out = files.path("out.npz");
    let text = refuse(&[], &net, &out);
    assert!(text.contains("--names caffe converts the blobs as they are"), "{text}");
    convert(&["--names=caffe"], &net, &out);
}

#[test]
fn a_scale_factor_is_applied_as_in_caffe() {
    let files = Files::new();
    for factor in [999.98236_f32, 0.0] {
        let (net, back) = (normed_net(&files, factor), files.path("back.caffemodel"));
        let inverse = if factor == 0.0 { 0.0 } else { 1.0 / factor };
        let expected = [[0.1 * inverse, -3.7 * inverse], [7.0 * inverse, 1e-3 * inverse]];
        // The file `between` contains no factor, so the factor in `back` is 1.
        for (between, only) in [("n.safetensors", "*"), ("n.npz", "*.running_*")] {
            convert(&["-f", "--only", only], &net, &files.path(between));
            convert(&["-f"], &files.path(between), &back);
            let (_, layers, _) = contents(&back);
            let (_, kind, blobs) = &layers[0];
            assert_eq!((&**kind, blobs.len()), ("BatchNorm", 3));
            for (blob, values) in blobs.iter().zip(expected) {
                assert_eq!(blob.2, values.map(|value| u64::from(value.to_bits())));
            }
            assert_eq!(blobs[2].2, [u64::from(1.0_f32.to_bits())]);
        }
    }
}

#[test]
fn types_are_rounded_and_overflow_is_reported() {
    let files = Files::new();
    let values = [1.0_f32, 65504.0, 65520.0, -1e30, f32::INFINITY, 0.1];
    let mean = files.mean("m.binaryproto", &[6], &values);
    let (half, back) = (files.path("m.npy"), files.path("back.binaryproto"));
    let text = convert(&["--dtype", "f16"], &mean, &half);
    assert!(text.contains("2 values in 1 tensors, the first of them \"blob\""), "{text}");
    convert(&[], &half, &back);
    let expected = [1.0, 65504.0, f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY, 0.099975586];
    let (_, _, blobs) = contents(&back);
    assert_eq!(blobs[0].2, expected.map(|value: f32| u64::from(value.to_bits())));
    assert_eq!(convert(&["--dtype", "f64", "-f"], &mean, &back), "");
    assert_eq!(contents(&back).2[0].1, Dtype::F64);
    let text = refuse(&["--dtype=bf16"], &mean, &files.path("x.npy"));
    assert!(text.contains("NumPy has no bf16"), "{text}");
    let text = refuse(&["--dtype=f16"], &mean, &files.path("x.binaryproto"));
    assert!(text.contains("f32 and f64, not f16; use --dtype f32"), "{text}");
}

#[test]
fn a_program_converts_as_the_command_does() {
    let files = Files::new();
    let (net, by_command) = (normed_net(&files, 2.0), files.path("command.safetensors"));
    let options = ["--dtype=f16", "--only=*.running_*"];
    convert(&options, &net, &by_command);
    let torch = Conversion::new().names(Scheme::Torch).dtype(Dtype::F16);
    let torch = torch.only("*.running_*").unwrap();
    let by_program = files.path("program");
    let refused = torch.run(&net, &by_program).unwrap_err().to_string();
    assert!(refused.contains("set the format with --to"), "{refused}");
    let torch = torch.to(FileFormat::Safetensors);
    assert_eq!(torch.run(&net, &by_program), Ok(vec![]));
    assert_eq!(fs::read(&by_program).unwrap(), fs::read(&by_command).unwrap());

    let refused = torch.run(&net, &by_program).unwrap_err().to_string();
    assert!(refused.contains("program: the file exists already: --force"), "{refused}");
    assert_eq!(torch.clone().force(true).run(&net, &by_program), Ok(vec![]));
    let refused = torch.force(true).from(FileFormat::Npy).run(&net, &by_program).unwrap_err();
    assert!(refused.to_string().contains("normed.caffemodel: "), "{refused}");
    assert_eq!(fs::read(&by_program).unwrap(), fs::read(&by_command).unwrap());
}

#[test]
fn a_conversion_returns_its_losses_and_refusals() {
    let files = Files::new();
    let (mean, out) = (files.mean("m.binaryproto", &[2], &[1.0, 65520.0]), files.path("m.npy"));
    let losses = Conversion::new().dtype(Dtype::F16).run(&mean, &out).unwrap();
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(losses[0].starts_with("1 values in 1 tensors"), "{losses:?}");
    let refused = Conversion::new().dtype(Dtype::I32).force(true).run(&mean, &out).unwrap_err();
    assert!(refused.to_string().contains("f16, bf16, f32 or f64, not i32"), "{refused}");
    assert!(Conversion::new().only("[").unwrap_err().to_string().contains("--only '['"));
}

#[test]
fn only_selects_whole_layers_for_a_caffemodel() {
    let files = Files::new();
    let (net, part) = (normed_net(&files, 2.0), files.path("part.caffemodel"));
    convert(&["--only", "scale.*"], &net, &part);
    let (_, layers, _) = contents(&part);
    assert_eq!((layers.len(), &*layers[0].0, layers[0].2.len()), (1, "scale", 2));
    let text = refuse(&["--only", "scale.1"], &net, &files.path("x.caffemodel"));
    assert!(text.contains("\"scale\" would have blob 1 and no blob 0"), "{text}");
    let bias = files.path("bias.safetensors");
    convert(&["--only", "scale.bias"], &net, &bias);
    let text = refuse(&[], &bias, &files.path("x.caffemodel"));
    assert!(text.contains("no blob 0"), "{text}");
    let text = refuse(&["--only", "conv*"], &net, &files.path("x.npz"));
    assert!(text.contains("--only matches none of 6 tensors, such as \"bn.weight\""), "{text}");
    let text = refuse(&[], &net, &files.path("x.npy"));
    assert!(text.contains("one tensor, not 5"), "{text}");
    convert(&["--only", "bn.1"], &net, &files.path("bn.npy"));
}

#[test]
fn names_without_metadata_make_layers_or_are_refused() {
    let files = Files::new();
    let net = normed_net(&files, 2.0);
    let (archive, out) = (files.path("n.npz"), files.path("x.caffemodel"));
    let mean = files.mean("m.binaryproto", &[1], &[1.0]);
    convert(&[], &mean, &files.path("m.npy"));
    let text = refuse(&[], &files.path("m.npy"), &out);
    assert!(text.contains("\"blob\" is not the name of a blob"), "{text}");
    convert(&["--only=*.running_*", "--only=scale.*"], &net, &archive);
    convert(&[], &archive, &out);
    let types: Vec<_> = contents(&out).1.into_iter().map(|layer| layer.1).collect();
    assert_eq!(types, ["BatchNorm", ""]);
}

// --- the output file -------------------------------------------------------------

#[cfg(unix)]
#[test]
fn a_link_to_a_missing_file_is_followed() {
    let files = Files::new();
    let (mean, link) = (files.mean("m.binaryproto", &[1], &[2.0]), files.path("link.npy"));
    symlink("second.npy", &link).unwrap();
    symlink("made.npy", files.path("second.npy")).unwrap();
    convert(&[], &mean, &link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::symlink_metadata(files.path("second.npy")).unwrap().is_symlink());
    assert!(fs::read(files.path("made.npy")).unwrap().starts_with(b"\x93NUMPY"));
    let round = files.path("round.npy");
    symlink("round.npy", &round).unwrap();
    refuse(&["--force"], &mean, &round);
    assert!(fs::symlink_metadata(&round).unwrap().is_symlink());
}

#[cfg(unix)]
#[test]
fn owner_and_group_are_kept_if_the_process_may_set_them() {
    let files = Files::new();
    let (mean, out) = (files.mean("m.binaryproto", &[1], &[2.0]), files.write("m.npy", b"old"));
    if chown(&out, Some(12345), Some(23456)).is_err() {
        println!("skipped: only root may change a file's owner");
        return;
    }
    fs::set_permissions(&out, fs::Permissions::from_mode(0o4640)).unwrap();
    convert(&["--force"], &mean, &out);
    let info = fs::metadata(&out).unwrap();
    assert_eq!((info.uid(), info.gid(), info.mode() & 0o7777), (12345, 23456, 0o640));
}

#[cfg(unix)]
#[test]
fn the_target_of_a_link_is_replaced_and_keeps_its_permissions() {
    let files = Files::new();
    let (mean, out) = (files.mean("m.binaryproto", &[1], &[2.0]), files.write("m.npy", b"old"));
    fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
    let link = files.path("link.npy");
    symlink("m.npy", &link).unwrap();
    convert(&["--force"], &mean, &link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read(&out).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn an_existing_file_needs_force() {
    let files = Files::new();
    let (mean, out) = (files.mean("m.binaryproto", &[1], &[2.0]), files.write("m.npy", b"old"));
    assert!(refuse(&[], &mean, &out).contains("--force replaces it"));
    assert_eq!(fs::read(&out).unwrap(), b"old");
    convert(&["--force"], &mean, &out);
    assert!(fs::read(&out).unwrap().starts_with(b"\x93NUMPY"));
    if cfg!(unix) {
        // Windows cannot replace an open file.
        convert(&["--force", "--dtype=f64"], &mean, &mean);
        assert_eq!(contents(&mean).2[0].1, Dtype::F64);
    }
    let folder = files.path("folder.npy");
    fs::create_dir(&folder).unwrap();
    assert!(refuse(&["--force"], &mean, &folder).contains("not a regular file"));
    let (status, _, err) = run(command("convert", &[], &[&mean, &files.path("none/m.npy")]));
    assert_eq!((status, err.contains("there is no folder")), (1, true), "{err}");
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_permissions_that_the_umask_allows() {
    let files = Files::new();
    let mean = files.mean("m.binaryproto", &[1], &[2.0]);
    for name in ["m.npy", "m.npz", "m.safetensors", "again.binaryproto"] {
        let script = format!(
            "umask 027; exec \"$1\" convert '{}' '{}'",
            mean.display(),
            files.path(name).display()
        );
        let program = env!("CARGO_BIN_EXE_syncblob");
        let run = std::process::Command::new("sh").args(["-c", &script, "sh", program]).status();
        assert!(run.unwrap().success());
        let mode = fs::metadata(files.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    let files = Files::new();
    let mean = files.mean("m.binaryproto", &[1], &[2.0]);
    let (mean, out) = (mean.to_str().unwrap(), files.path("m.npy"));
    let out = out.to_str().unwrap();
    for arguments in [
        &["convert", mean][..],
        &["convert", mean, "name-without-extension"],
        &["convert", mean, out, "--dtype", "f8"],
        &["convert", mean, out, "--only", "[a"],
        &["convert", mean, out, "--from", "onnx"],
    ] {
        let (status, out, err) = run(arguments);
        assert_eq!((status, out.as_str(), err.is_empty()), (2, "", false), "{arguments:?}");
    }
    let (status, help, _) = run(["convert", "--help"]);
    assert_eq!((status, help.contains("syncblob convert resnet.caffemodel")), (0, true));
}

/// The file is sparse: its values are 0 and use no disk space.
fn hole(files: &Files, name: &str, shape: &[u64]) -> PathBuf {
    let bytes = 4 * shape.iter().product::<u64>();
    let mut header = format!(
        "{{\"fc.0\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[0,{bytes}]}}}}"
    );
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut file = File::create(files.path(name)).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + bytes).unwrap();
    files.path(name)
}

#[test]
fn tensors_too_large_for_caffe_are_refused_before_writing() {
    let files = Files::new();
    let large = hole(&files, "large.safetensors", &[600, 1 << 20]); // 2.3 GiB
    let out = files.write("x.caffemodel", b"old");
    for options in [&["--force"][..], &["--force", "--dry-run"]] {
        let text = refuse(options, &large, &out);
        assert!(text.contains("2 GiB") && text.contains("write .safetensors instead"), "{text}");
    }
    assert_eq!(fs::read(&out).unwrap(), b"old");
}
