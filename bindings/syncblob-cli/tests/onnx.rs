//! Tests `syncblob convert` to .onnx, and `syncblob prototxt`.

mod program;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use program::{fields, run, Files};
use serde_json::{json, Value};

fn prototxt(layers: &str) -> String {
    format!(
        "name: 'tiny' layer {{ name: 'data' type: 'Input' top: 'data' \
         input_param {{ shape {{ dim: 1 dim: 3 }} }} }} {layers}"
    )
}

const FC: &str = "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc' \
    inner_product_param { num_output: 2 bias_term: false } }";
const PROB: &str = "layer { name: 'prob' type: 'Softmax' bottom: 'fc' top: 'prob' }";

/// The net's weights are a matrix with two rows and three columns.
struct Folder {
    files: Files,
    model: PathBuf,
    out: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let files = Files::new();
        let model = files.carrying_net("net.caffemodel", 3, 2);
        files.write("deploy.prototxt", prototxt(&[FC, PROB].concat()).as_bytes());
        let out = files.path("net.onnx");
        Self { files, model, out }
    }

    fn words(&self, line: &str) -> Vec<OsString> {
        let word = |word: &str| match word.split_once('.') {
            Some((name, _)) if !name.starts_with(['-', '0', '1']) => self.files.path(word).into(),
            _ => OsString::from(word),
        };
        line.split(' ').filter(|word| !word.is_empty()).map(word).collect()
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        run(self.words(line))
    }

    fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.out.parent().unwrap()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

/// Returns the name and the shape of each input (`number` 11) or output (12) of an ONNX file.
fn ends(onnx: &[u8], number: u64) -> Vec<String> {
    let graph = fields(onnx, 7)[0];
    let end = |info: &&[u8]| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let shape = fields(fields(fields(info, 2)[0], 1)[0], 2)[0];
        let dims: Vec<String> = fields(shape, 1)
            .iter()
            .map(|dim| match fields(dim, 2).first() {
                Some(name) => text(name),
                None => dim[1].to_string(),
            })
            .collect();
        format!("{} {}", text(fields(info, 1)[0]), dims.join("x"))
    };
    fields(graph, number).iter().map(end).collect()
}

#[test]
fn nets_are_converted() {
    let folder = Folder::new();
    folder.files.mean("mean.binaryproto", &[1, 3, 1, 1], &[1.0, 2.0, 3.0]);
    let bare = prototxt("layer { name: 'out' type: 'ReLU' bottom: 'data' top: 'out' }");
    folder.files.write("bare.prototxt", bare.as_bytes());
    let image = prototxt(&FC.replace("data", "flat"))
        .replace("dim: 1 dim: 3 ", "dim: 1 dim: 3 dim: 1 dim: 1 ")
        + "layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'flat' }";
    let (head, flat) = image.split_at(image.rfind("layer").unwrap());
    let (input, fc) = head.split_at(head.rfind("layer").unwrap());
    folder.files.write("image.prototxt", [input, flat, fc].concat().as_bytes());
    let rows = [
        ("convert deploy.prototxt net.caffemodel net.onnx", "data 1x3", "prob 1x2"),
        ("convert deploy.prototxt net.caffemodel -o net.onnx", "data 1x3", "prob 1x2"),
        ("convert -o net.onnx deploy.prototxt net.caffemodel", "data 1x3", "prob 1x2"),
        ("convert net.caffemodel net.onnx", "data 1x3", "fc 1x2"),
        ("convert bare.prototxt net.onnx", "data 1x3", "out 1x3"),
        ("convert net.caffemodel -o net.onnx", "data 1x3", "fc 1x2"),
        ("convert net.caffemodel -o net.onnx --batch 4", "data 4x3", "fc 4x2"),
        ("convert net.caffemodel -o net.onnx --batch N", "data Nx3", "fc Nx2"),
        ("convert net.caffemodel -o net.onnx --input data=5x3", "data 5x3", "fc 5x2"),
        ("convert net.caffemodel -o net.onnx --input data=5x3 --batch 2", "data 2x3", "fc 2x2"),
        ("convert net.caffemodel -o net.onnx --fp16", "data 1x3", "fc 1x2"),
        ("convert deploy.prototxt net.caffemodel -o net.onnx --outputs fc", "data 1x3", "fc 1x2"),
        ("convert image.prototxt net.caffemodel -o net.onnx --mean mean.binaryproto", "data 1x3x1x1", "fc 1x2"),
        ("convert image.prototxt net.caffemodel -o net.onnx --mean 1,2.5,-3 --scale -0.5 --swap-rb", "data 1x3x1x1", "fc 1x2"),
    ];
    for (line, input, output) in rows {
        assert_eq!(folder.run(line), (0, String::new(), String::new()), "{line}");
        let onnx = fs::read(&folder.out).unwrap();
        assert_eq!(
            (ends(&onnx, 11), ends(&onnx, 12)),
            (vec![input.into()], vec![output.into()]),
            "{line}"
        );
        let (status, out, err) = folder.run(&format!("{line} --dry-run --force"));
        assert_eq!((status, &*err), (0, ""), "{line}");
        for (end, what) in [(input, "input"), (output, "output")] {
            assert!(out.contains(&end.replace(' ', &format!("  {what}  "))), "{line}: {out}");
        }
        fs::remove_file(&folder.out).unwrap();
        assert!(folder.run(&format!("{line} --dry-run")).0 == 0 && !folder.out.exists(), "{line}");
    }
}

#[test]
fn weights_are_written_as_floats_or_as_halves() {
    let folder = Folder::new();
    let values = [0.5_f32, -1.0, 2.0, 3.0, 1e-3, 65504.0];
    folder.files.net("net.caffemodel", &[("fc", "InnerProduct", &[2, 3], &values)]);
    let halves = values.map(|value| half::f16::from_f32(value).to_le_bytes()).concat();
    let floats = values.map(f32::to_le_bytes).concat();
    for (option, bytes) in [("", floats), ("--fp16", halves)] {
        let line = format!("convert --force deploy.prototxt net.caffemodel net.onnx {option}");
        assert_eq!(folder.run(&line).0, 0);
        let onnx = fs::read(&folder.out).unwrap();
        let tensors = fields(fields(&onnx, 7)[0], 5);
        assert!(tensors.iter().any(|tensor| fields(tensor, 9) == [&bytes[..]]), "{option}");
    }
}

#[test]
fn metadata_contains_the_sources() {
    let folder = Folder::new();
    let text = prototxt(FC);
    folder.files.write("deploy.prototxt", text.as_bytes());
    let digest = blake3::hash(text.as_bytes()).to_string();
    let of_text = [("caffe.prototxt", "deploy.prototxt"), ("caffe.prototxt.blake3", &digest)];
    let digest = blake3::hash(&fs::read(&folder.model).unwrap()).to_string();
    let of_model = [("caffe.model", "net.caffemodel"), ("caffe.model.blake3", &digest)];
    let rows = [
        ("deploy.prototxt net.caffemodel", [&of_text[..], &of_model].concat()),
        ("net.caffemodel", of_model.to_vec()),
    ];
    for (inputs, wanted) in rows {
        assert_eq!(folder.run(&format!("convert --force {inputs} net.onnx")).0, 0);
        let onnx = fs::read(&folder.out).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let pair = |one: &&[u8]| (text(fields(one, 1).concat()), text(fields(one, 2).concat()));
        let mut found: Vec<_> = fields(&onnx, 14).iter().map(pair).collect();
        let mut wanted: Vec<_> =
            wanted.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{inputs}");
        let producer = [2, 3].map(|number| text(fields(&onnx, number).concat()));
        assert_eq!(producer, ["syncblob-net", env!("CARGO_PKG_VERSION")]);
    }
}

/// A second opening of the pipe, for a digest, would read no bytes.
#[cfg(unix)]
#[test]
fn a_pipe_has_a_name_but_no_digest() {
    let folder = Folder::new();
    let pipe = folder.files.path("pipe.prototxt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn(move || fs::write(pipe, prototxt(FC)));
    assert_eq!(folder.run("convert pipe.prototxt net.caffemodel net.onnx").0, 0);
    writer.join().unwrap().unwrap();
    let onnx = fs::read(&folder.out).unwrap();
    let keys: Vec<_> = fields(&onnx, 14).iter().map(|one| fields(one, 1).concat()).collect();
    let wanted: [&[u8]; 3] = [b"caffe.prototxt", b"caffe.model", b"caffe.model.blake3"];
    assert_eq!(keys, wanted);
}

#[test]
fn omitted_layers_are_noted() {
    let folder = Folder::new();
    let text = prototxt(
        &[FC, "layer { name: 'acc' type: 'Accuracy' bottom: 'fc' bottom: 'label' top: 'acc' }"]
            .concat(),
    );
    folder.files.write("deploy.prototxt", text.as_bytes());
    let (status, out, err) = folder.run("convert deploy.prototxt net.caffemodel net.onnx");
    assert_eq!((status, &*out), (0, ""), "{err}");
    assert!(err.starts_with("syncblob: note: layer 'acc' (Accuracy): left out"), "{err}");
}

const UNKNOWN: &str = "layer { name: 'odd' type: 'Odd' bottom: 'data' top: 'odd' } \
    layer { name: 'py' type: 'Python' bottom: 'fc' top: 'py' } \
    layer { name: 'p' type: 'Pooling' bottom: 'image' top: 'p' pooling_param { kernel_size: 1 odd: 3 } }";

#[test]
fn all_layers_that_cannot_be_converted_are_listed_before_anything_is_written() {
    let folder = Folder::new();
    let image = "layer { name: 'image' type: 'Input' top: 'image' \
        input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }";
    let text = prototxt(&[image, FC, UNKNOWN].concat());
    folder.files.write("deploy.prototxt", text.as_bytes());
    fs::write(&folder.out, "old").unwrap();
    let before = folder.names();
    let (status, out, err) = folder.run("convert deploy.prototxt net.caffemodel net.onnx --force");
    assert_eq!((status, &*out), (1, ""));
    let parts = [
        ["layer 'odd' (Odd)", "not known"],
        ["layer 'py' (Python)", "not known"],
        ["layer 'p' (Pooling)", "'odd' (line 1, column"],
        ["nothing is written", "--custom"],
    ];
    assert_eq!(err.lines().count(), parts.len(), "{err}");
    for (line, parts) in err.lines().zip(parts) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
    assert_eq!((fs::read(&folder.out).unwrap(), folder.names()), (b"old".to_vec(), before));
    let (status, _, err) =
        folder.run("convert deploy.prototxt net.caffemodel net.onnx --force --outputs fc");
    assert_eq!(status, 0, "{err}");
    let custom = "convert deploy.prototxt net.caffemodel net.onnx --force --custom";
    let (status, _, err) = folder.run(custom);
    assert!(status == 1 && err.contains("output 'odd'") && err.contains("--shape odd="), "{err}");
    let line = format!("{custom} --shape odd=1x2 --shape py=4 --shape p=1x1x4x4");
    assert_eq!(folder.run(&line), (0, String::new(), String::new()));
    let onnx = fs::read(&folder.out).unwrap();
    assert_eq!(ends(&onnx, 12), ["odd 1x2", "p 1x1x4x4", "py 4"]);
    let domains: Vec<_> = fields(&onnx, 8).iter().map(|one| fields(one, 1).concat()).collect();
    assert_eq!(domains, [&b""[..], b"caffe"]);
}

#[test]
fn a_refusal_prints_its_reason_and_leaves_no_file() {
    let folder = Folder::new();
    let files = &folder.files;
    fs::create_dir(files.path("folder.prototxt")).unwrap();
    files.write("empty.prototxt", b"");
    files.write("large.prototxt", &vec![b'#'; 17 << 20]);
    files.write("broken.prototxt", b"layer {\n  name: 'a' }\n}");
    files.write("lost.prototxt", FC.as_bytes());
    files.write("zero.caffemodel", b"");
    files.write("there.onnx", b"old");
    for name in ["same.onnx", "x.onnx.data"] {
        fs::copy(&folder.model, files.path(name)).unwrap();
    }
    files.mean("mean.binaryproto", &[1, 3, 1, 1], &[1.0, 2.0, 3.0]);
    files.net("other.caffemodel", &[("fc", "InnerProduct", &[3, 3], &[0.0_f32; 9])]);
    files.net("none.caffemodel", &[("else", "InnerProduct", &[2, 3], &[0.0_f32; 6])]);
    let both = "deploy.prototxt net.caffemodel x.onnx";
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "net.caffemodel deploy.prototxt x.onnx",
            "",
            &["deploy.prototxt: this is a prototxt: it comes first"],
        ),
        ("deploy.prototxt x.onnx", "", &["layer 'fc' (InnerProduct): the layer needs weights"]),
        ("deploy.prototxt deploy.prototxt x.onnx", "", &["without weights"]),
        (
            "net.caffemodel net.caffemodel x.onnx",
            "",
            &["net.caffemodel: this is a model: the prototxt comes first"],
        ),
        ("folder.prototxt net.caffemodel x.onnx", "", &["folder.prototxt", "directory"]),
        ("empty.prototxt net.caffemodel x.onnx", "", &["empty.prototxt", "no layers"]),
        ("large.prototxt net.caffemodel x.onnx", "", &["large.prototxt", "16777216"]),
        ("broken.prototxt net.caffemodel x.onnx", "", &["broken.prototxt: line 3, column 1"]),
        (
            "absent.prototxt net.caffemodel x.onnx",
            "",
            &["absent.prototxt: No such file", "check the path"],
        ),
        ("deploy.prototxt absent.caffemodel x.onnx", "", &["absent.caffemodel", "No such file"]),
        ("deploy.prototxt zero.caffemodel x.onnx", "", &["zero.caffemodel", "empty"]),
        ("deploy.prototxt mean.binaryproto x.onnx", "", &["a blob has no layers"]),
        ("lost.prototxt net.caffemodel x.onnx", "", &["'fc' (InnerProduct)", "--input data=SHAPE"]),
        ("deploy.prototxt other.caffemodel x.onnx", "", &["[3, 3] in the model", "must be [2, 3]"]),
        ("deploy.prototxt none.caffemodel x.onnx", "", &["is of another net"]),
        (
            "deploy.prototxt net.caffemodel there.onnx",
            "",
            &["there.onnx: the file exists already: --force"],
        ),
        ("deploy.prototxt net.caffemodel absent.d/x.onnx", "", &["x.onnx"]),
        ("deploy.prototxt same.onnx same.onnx", "--force", &["same.onnx: it is", "the input file"]),
        ("deploy.prototxt x.onnx.data x.onnx", "", &["x.onnx.data: it is", "the input file"]),
        (both, "--input odd=1x3", &["no input 'odd'", "'data'"]),
        (both, "--input fc=1x3", &["'fc' is not an input"]),
        (both, "--outputs odd", &["no blob 'odd'"]),
        (both, "--mean absent.binaryproto", &["absent.binaryproto", "No such file"]),
        (both, "--mean net.caffemodel", &["net.caffemodel"]),
    ];
    let before = folder.names();
    for (inputs, options, parts) in rows {
        let line = format!("convert {inputs} {options}");
        let (status, out, err) = folder.run(&line);
        assert_eq!((status, &*out), (1, ""), "{line}: {err}");
        let last = err.lines().filter(|line| !line.contains("note: ")).collect::<Vec<_>>();
        let advice = usize::from(*inputs == "deploy.prototxt x.onnx");
        assert_eq!(last.len(), 1 + advice, "{line}: {err}");
        assert!(parts.iter().all(|part| last[0].contains(part)), "{line}: {err}");
        assert_eq!(folder.names(), before, "{line}");
    }
    assert_eq!(fs::read(files.path("there.onnx")).unwrap(), b"old");
}

#[test]
fn wrong_usage_is_status_2() {
    let folder = Folder::new();
    let both = "deploy.prototxt net.caffemodel x.onnx";
    let rows = [
        ("net.caffemodel x.npz --fp16", "OUT is not an .onnx"),
        ("net.caffemodel x.npz --outputs fc", "OUT is not an .onnx"),
        ("deploy.prototxt net.caffemodel x.npz", "make an .onnx"),
        ("net.caffemodel net.caffemodel x.npz", "more than one file to read"),
        ("deploy.prototxt net.caffemodel net.caffemodel x.onnx", "unexpected value"),
        ("x.onnx", "a file to read"),
        (&format!("{both} --names torch"), "--only apply only to files of weights"),
        (&format!("{both} --dtype f16"), "--only apply only to files of weights"),
        (&format!("{both} --only fc"), "--only apply only to files of weights"),
        (&format!("{both} --from caffemodel"), "--only apply only to files of weights"),
        (&format!("{both} --to npz"), "--only apply only to files of weights"),
        (&format!("{both} --batch 0"), "neither a size above 0 nor a name"),
        (&format!("{both} --batch=-1"), "neither a size above 0 nor a name"),
        (&format!("{both} --batch="), "value"),
        (&format!("{both} --input data"), "not NAME=SHAPE"),
        (&format!("{both} --input data=1x0"), "not a dimension"),
        (&format!("{both} --scale ten"), "invalid"),
        (&format!("{both} --shape odd=1"), "--custom"),
        (&format!("{both} --custom --shape odd"), "not NAME=SHAPE"),
    ];
    let before = folder.names();
    for (line, part) in rows {
        let (status, out, err) = folder.run(&format!("convert {line}"));
        assert_eq!((status, &*out), (2, ""), "{line}: {err}");
        assert!(err.contains(part), "{line}: {err}");
    }
    assert_eq!(folder.names(), before);
}

#[test]
fn the_prototxt_of_a_model_is_printed() {
    let folder = Folder::new();
    let (status, text, err) = folder.run("prototxt net.caffemodel");
    assert_eq!((status, &*err), (0, ""));
    for part in ["name: \"tiny\"", "type: \"InnerProduct\"", "num_output: 2", "bias_term: false"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("blobs"), "{text}");
    folder.files.write("found.prototxt", text.as_bytes());
    assert_eq!(folder.run("convert found.prototxt net.caffemodel found.onnx").0, 0);
    assert_eq!(folder.run("convert net.caffemodel net.onnx").0, 0);
    let graph = |path: &Path| fields(&fs::read(path).unwrap(), 7).concat();
    let graphs = [graph(&folder.files.path("found.onnx")), graph(&folder.out)];
    assert_eq!(graphs[0], graphs[1]);
    assert_eq!(folder.run("prototxt --upgrade found.prototxt"), (0, text, String::new()));
}

fn listed(folder: &Folder, file: &str) -> Value {
    let (status, out, err) = folder.run(&format!("info --json {file}"));
    assert_eq!((status, &*err, out.lines().count()), (0, "", 1));
    let mut line: Value = serde_json::from_str(&out).unwrap();
    line["net"].take()
}

#[test]
fn info_lists_nets_with_known_shapes() {
    let folder = Folder::new();
    let lost = [FC, PROB].concat();
    folder.files.write("lost.prototxt", lost.as_bytes());
    let odd = "layer { name: 'odd' type: 'Odd' bottom: 'fc' top: 'odd' }";
    folder.files.write("odd.prototxt", prototxt(&[FC, odd].concat()).as_bytes());
    let end = |name: &str, shape: Value| json!({"name": name, "shape": shape});
    let rows: [(&str, Value, Value, usize, &[&str]); 4] = [
        ("net.caffemodel", end("data", json!([1, 3])), end("fc", json!([1, 2])), 1, &["2x3"]),
        (
            "deploy.prototxt",
            end("data", json!([1, 3])),
            end("prob", json!([1, 2])),
            2,
            &["prototxt, \"tiny\", 2 layers", "InnerProduct", "1x2"],
        ),
        ("lost.prototxt", end("data", Value::Null), end("prob", Value::Null), 2, &["2 layers"]),
        (
            "odd.prototxt",
            end("data", json!([1, 3])),
            end("odd", Value::Null),
            2,
            &["layer 'odd' (Odd): layers of this type are not known"],
        ),
    ];
    for (file, input, output, layers, parts) in rows {
        let net = listed(&folder, file);
        assert_eq!(
            (&net["inputs"], &net["outputs"]),
            (&json!([input]), &json!([output])),
            "{file}"
        );
        assert_eq!(net["layers"].as_array().unwrap().len(), layers, "{file}");
        let fc = json!({"name": "fc", "type": "InnerProduct", "bottoms": ["data"],
            "tops": [end("fc", if input["shape"].is_null() { Value::Null } else { json!([1, 2]) })]});
        assert_eq!(net["layers"][0], fc, "{file}");
        let (status, out, err) = folder.run(&format!("info {file}"));
        assert_eq!((status, &*err), (0, ""), "{file}");
        let shown = |shape: &Value| match shape.as_array() {
            None => "?".into(),
            Some(dims) => dims.iter().map(Value::to_string).collect::<Vec<_>>().join("x"),
        };
        for (end, what) in [(input, "input"), (output, "output")] {
            let line =
                format!("{what} {}: {}", end["name"].as_str().unwrap(), shown(&end["shape"]));
            assert!(out.contains(&line), "{line} is not in\n{out}");
        }
        assert!(parts.iter().all(|part| out.contains(part)), "{out}");
    }
}

#[test]
fn info_lists_no_net_for_a_model_without_connections() {
    let folder = Folder::new();
    folder.files.net("weights.caffemodel", &[("fc", "InnerProduct", &[2, 3], &[0.0_f32; 6])]);
    assert_eq!(listed(&folder, "weights.caffemodel"), Value::Null);
    assert!(!folder.run("info weights.caffemodel").1.contains("input"));
    folder.files.write("broken.prototxt", b"layer {\n  name: 'a' }\n}");
    let (status, out, err) = folder.run("info broken.prototxt deploy.prototxt");
    assert_eq!((status, err.lines().count()), (1, 1), "{err}");
    assert!(err.contains("broken.prototxt: line 3, column 1") && out.contains("tiny"), "{err}");
}

#[test]
fn an_old_prototxt_is_upgraded_to_the_current_form() {
    let folder = Folder::new();
    let old = "input: 'data' input_dim: 1 input_dim: 3 input_dim: 1 input_dim: 1 \
        layers { name: 'fc' type: INNER_PRODUCT bottom: 'data' top: 'fc' blobs_lr: 1 \
        inner_product_param { num_output: 2 } }";
    folder.files.write("old.prototxt", old.as_bytes());
    let (status, text, err) = folder.run("prototxt --upgrade old.prototxt");
    assert_eq!((status, &*err), (0, ""));
    for part in ["type: \"Input\"", "type: \"InnerProduct\"", "lr_mult: 1", "dim: 3"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("layers") && !text.contains("input_dim"), "{text}");
}

#[test]
fn a_file_without_a_net_has_no_prototxt() {
    let folder = Folder::new();
    let files = &folder.files;
    files.mean("mean.binaryproto", &[1, 3, 1, 1], &[1.0, 2.0, 3.0]);
    files.write("zero.caffemodel", b"");
    files.write("broken.prototxt", b"layer {");
    files.write("large.prototxt", &vec![b'#'; 17 << 20]);
    fs::create_dir(files.path("folder.prototxt")).unwrap();
    let rows = [
        (
            "prototxt deploy.prototxt",
            "deploy.prototxt: this is a prototxt already: to convert it to the current form, use \
             --upgrade",
        ),
        (
            "prototxt --upgrade net.caffemodel",
            "net.caffemodel: this is a model: leave out --upgrade",
        ),
        ("prototxt mean.binaryproto", "a blob has no net"),
        ("prototxt zero.caffemodel", "empty"),
        ("prototxt absent.caffemodel", "No such file"),
        ("prototxt --upgrade absent.prototxt", "No such file"),
        ("prototxt --upgrade broken.prototxt", "line 1, column"),
        ("prototxt --upgrade large.prototxt", "16777216"),
        ("prototxt --upgrade folder.prototxt", "directory"),
    ];
    for (line, part) in rows {
        let (status, out, err) = folder.run(line);
        assert_eq!((status, &*out, err.lines().count()), (1, "", 1), "{line}: {err}");
        assert!(err.contains(part), "{line}: {err}");
    }
}

#[cfg(unix)]
#[test]
fn a_hostile_name_cannot_reach_the_terminal() {
    let folder = Folder::new();
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}";
    let text = prototxt(&format!(
        "layer {{ name: '{hostile}' type: 'Odd{hostile}' bottom: 'data' top: '{hostile}' }}"
    ));
    folder.files.write("hostile.prototxt", text.as_bytes());
    let fine = text.replace(&format!("Odd{hostile}"), "ReLU");
    folder.files.write("fine.prototxt", fine.as_bytes());
    for (line, wanted) in [
        ("convert hostile.prototxt net.caffemodel net.onnx", 1),
        ("convert fine.prototxt net.caffemodel net.onnx --dry-run", 0),
        ("prototxt --upgrade hostile.prototxt", 0),
        ("info hostile.prototxt", 0),
        ("info --json hostile.prototxt", 0),
    ] {
        let (status, out, err) = folder.run(line);
        assert_eq!(status, wanted, "{line}: {err}");
        let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(is_unsafe) && !err.contains(is_unsafe), "{line}: {out:?} {err:?}");
    }
}

/// The command finds the malformed weights only while it writes the .onnx file.
#[test]
fn unreadable_weights_leave_no_file() {
    let folder = Folder::new();
    let bytes = fs::read(&folder.model).unwrap();
    fs::write(&folder.model, &bytes[..bytes.len() - 4]).unwrap();
    let before = folder.names();
    let (status, _, err) = folder.run("convert deploy.prototxt net.caffemodel net.onnx");
    assert_eq!((status, err.lines().count()), (1, 1), "{err}");
    assert!(err.contains("net.caffemodel"), "{err}");
    assert_eq!(folder.names(), before);
}

#[test]
fn a_symbolic_link_is_followed_and_not_replaced() {
    let folder = Folder::new();
    #[cfg(unix)]
    {
        let link = folder.files.path("link.onnx");
        std::os::unix::fs::symlink(&folder.out, &link).unwrap();
        assert_eq!(folder.run("convert net.caffemodel link.onnx").0, 0);
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink() && Path::new(&folder.out).exists()
        );
        let model = fs::read(&folder.model).unwrap();
        std::os::unix::fs::symlink(&folder.model, folder.files.path("model.onnx")).unwrap();
        let (status, _, err) = folder.run("convert net.caffemodel model.onnx --force");
        assert!(status == 1 && err.contains("the input file"), "{err}");
        assert_eq!(fs::read(&folder.model).unwrap(), model);
    }
}
