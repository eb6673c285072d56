//! Tests the messages for users' mistakes.

mod program;

use std::fs;

use program::{run, Files};

/// The command line, the status, a part of the message, and a text that the message must not
/// contain.
const MISTAKES: [(&str, i32, &str, &str); 30] = [
    (
        "verify models",
        1,
        "models: it is a folder: `syncblob verify -r` checks the files",
        "Is a directory; check the path",
    ),
    (
        "verify -r empty",
        1,
        "empty: it is a folder: `syncblob verify -r` checks the files",
        "unexpected argument '-r'",
    ),
    ("info models", 1, "`syncblob verify -r` on the folder", "Is a directory; check the path"),
    ("verify -q --json models/a.caffemodel", 2, "cannot be used with", "unexpected argument '-q'"),
    ("verify short", 1, "short: SB_ERR_LENGTH_MISMATCH", "`syncblob verify` lists every such blob"),
    (
        "verify net.prototxt",
        1,
        "net.prototxt: this is protobuf's text format",
        "prototxt: SB_ERR_MALFORMED",
    ),
    (
        "convert net.prototxt x.npz",
        2,
        "a prototxt has no weights: give the model, too",
        "prototxt: SB_ERR_MALFORMED",
    ),
    (
        "convert net.prototxt models/a.caffemodel",
        2,
        "and the name of the .onnx",
        "prototxt: SB_ERR_MALFORMED",
    ),
    (
        "convert net.prototxt models/a.caffemodel -o x.npz",
        2,
        "leave the prototxt out",
        "more than one file to read",
    ),
    ("convert fc.prototxt x.onnx", 1, "the .caffemodel comes after the prototxt", ""),
    (
        "convert fc.prototxt fc.caffemodel -o x.onnx --outputs fcc",
        1,
        "mean \"fc\"?",
        "no blob 'fcc'\n",
    ),
    (
        "convert typo.prototxt x.onnx --outputs Act",
        1,
        "the layer of this name makes the blob 'fc'",
        "no blob 'Act'\n",
    ),
    (
        "convert typo.prototxt fc.caffemodel -o x.onnx",
        1,
        "weights of this shape for 'act'",
        "its fillers make the weights",
    ),
    (
        "convert fc.prototxt a.npy -o x.onnx",
        1,
        "convert this file to one first",
        "npy: SB_ERR_MALFORMED",
    ),
    (
        "convert fc.prototxt models -o x.onnx",
        1,
        "; it is a folder: give a file",
        "Is a directory; check the path",
    ),
    (
        "info lfs.caffemodel",
        1,
        "lfs.caffemodel: this is a Git LFS pointer to 5 bytes",
        "lfs.caffemodel: SB_ERR_MALFORMED",
    ),
    (
        "info net.caffemodel.h5",
        1,
        "net.caffemodel.h5: this is an HDF5 file",
        "h5: SB_ERR_MALFORMED",
    ),
    (
        "convert net.caffemodel.h5 x.npz",
        1,
        "\n  numpy.savez(\"net.npz\", **arrays)",
        "h5: SB_ERR_MALFORMED",
    ),
    (
        "convert models/a.caffemodel none/x.npz",
        1,
        "there is no folder \"none\"",
        "No such file or directory",
    ),
    (
        "report models/a.caffemodel -o none/x.html",
        1,
        "there is no folder \"none\"",
        "No such file or directory",
    ),
    (
        "convert models/a.caffemodel x.pt",
        2,
        "it writes .onnx, .safetensors, .npz",
        "'x.pt' does not",
    ),
    ("convert models/a.caffemodel x.h5", 2, "Usage: syncblob convert", "Usage: syncblob <COMMAND>"),
    (
        "convert models/a.caffemodel x.npz --only conv1",
        1,
        "did you mean \"conv_1.weight\"?",
        "such as \"conv_1.weight\"",
    ),
    (
        "convert models/a.caffemodel x.npz --only conv_1",
        1,
        "did you mean \"conv_1.*\"?",
        "such as \"conv_1.weight\"",
    ),
    (
        "show models/a.caffemodel --layer conv1",
        1,
        "did you mean \"conv_1\"?",
        "`syncblob info` lists them\n",
    ),
    ("show models/a.caffemodel -o x.jpg", 1, "x.jpg: the picture is a PNG", ""),
    ("devices --backend none.so", 1, "SB_ERR_IO: \"none.so\" cannot be opened", ""),
    ("devices --backend a.npy", 1, "SB_ERR_IO: \"a.npy\" cannot be opened: ", ""),
    ("devices --backend models", 1, "\"models\" cannot be opened", "syncblob verify -r"),
    ("devices opencl:0", 2, "Usage: syncblob devices", "SB_ERR"),
];

fn files() -> Files {
    let files = Files::new();
    for folder in ["models", "models/deep", "empty"] {
        fs::create_dir(files.path(folder)).unwrap();
    }
    for name in ["models/a.caffemodel", "models/deep/b.CAFFEMODEL"] {
        files.net(name, &[("conv_1", "Convolution", &[1, 1, 2, 2], &[0.5_f32; 4])]);
    }
    files.write("models/notes.txt", b"not a model");
    files.write("net.prototxt", b"name: \"net\"\nlayer { name: \"data\" type: \"Input\" }\n");
    let fc = "input: 'data' input_shape { dim: 1 dim: 4 } layer { name: 'fc' type: 'InnerProduct' \
              bottom: 'data' top: 'fc' inner_product_param { num_output: 2 bias_term: false } }";
    let typo = format!("{fc} layer {{ name: 'Act' type: 'PReLU' bottom: 'fc' top: 'fc' }}");
    files.write("fc.prototxt", fc.as_bytes());
    files.write("typo.prototxt", typo.as_bytes());
    let act: (&str, &str, &[usize], &[f32]) = ("act", "PReLU", &[2], &[0.5; 2]);
    files.net("fc.caffemodel", &[("fc", "InnerProduct", &[2, 4], &[0.5; 8]), act]);
    files.write(
        "a.npy",
        b"\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
    );
    files.write("net.caffemodel.h5", b"\x89HDF\r\n\x1a\n");
    files.write(
        "lfs.caffemodel",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 5\n",
    );
    fs::rename(files.short(), files.path("short")).unwrap();
    files
}

#[test]
fn each_mistake_has_a_message_that_helps() {
    let files = files();
    let place = format!("{}/", files.path("").to_str().unwrap().trim_end_matches('/'));
    let is_file = |word: &str| word.contains('.') || ["models", "empty", "short"].contains(&word);
    for (line, wanted, words, before) in MISTAKES {
        let arguments: Vec<_> = line
            .split(' ')
            .map(|word| if is_file(word) { format!("{place}{word}") } else { word.into() })
            .collect();
        let (status, out, err) = run(&arguments);
        let output = (out + &err).replace(&place, "");
        assert_eq!(status, wanted, "{line}: {output}");
        assert!(output.contains(words), "{line}: {output}");
        assert!(before.is_empty() || !output.contains(before), "{line}: {output}");
    }
}

#[test]
fn the_files_of_a_folder_are_checked_with_a_summary() {
    let files = files();
    let folder = files.path("models");
    let folder = folder.to_str().unwrap();
    let (status, out, err) = run(["verify", "-r", folder]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("2 files: nothing found\n") && out.lines().count() == 3, "{out}");
    assert_eq!(run(["verify", "-q", "-r", folder]), (0, String::new(), String::new()));

    files.net("models/c.caffemodel", &[("ip", "InnerProduct", &[2], &[f32::NAN; 2])]);
    let (status, out, _) = run(["verify", "-r", folder]);
    assert!(status == 1 && out.ends_with("3 files: 1 finding in 1\n"), "{out}");
    let (status, out, _) = run(["verify", "--quiet", "-r", folder]);
    assert!(status == 1 && out.lines().count() == 1 && out.contains("NaN"), "{out}");
}

#[test]
fn info_lists_the_tensors_of_other_formats() {
    let files = files();
    let model = files.path("models/a.caffemodel");
    for name in ["x.safetensors", "x.npz"] {
        let path = files.path(name);
        let (from, to) = (model.to_str().unwrap(), path.to_str().unwrap());
        assert_eq!(run(["convert", from, to]).0, 0);
        let (status, out, err) = run(["info", to]);
        assert_eq!((status, err.as_str()), (0, ""));
        assert!(out.contains("1 tensor\n") && out.contains("1x1x2x2"), "{out}");
        let (_, out, _) = run(["info", "--json", to]);
        let line: serde_json::Value = serde_json::from_str(&out).unwrap();
        let tensor = serde_json::json!(
            {"name": "conv_1.weight", "shape": [1, 1, 2, 2], "count": 4, "dtype": "f32"});
        assert_eq!(line["tensors"], serde_json::json!([tensor]));
    }
}
