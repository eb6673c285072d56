//! How files begin that are no message of Caffe's, and what is said of them.

pub const KINDS: &[(&[u8], &str)] = &[
    (b"<!DOCTYPE html>\n<html lang=\"en\">", "an HTML page, not the file that it shows"),
    (b"<?xml version=\"1.0\"?>\n<Error>", "an XML document"),
    (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 243862418\n",
        "a Git LFS pointer to 243862418 bytes that are not here: `git lfs pull` fetches them",
    ),
    (b"\x1f\x8b\x08\x08\xbf\x15\x03\x6b\0\x03a.txt\0", "gzip data: unpack it first"),
    (b"BZh91AY&SY\xc1\xc0\x80\xe2", "bzip2 data: unpack it first"),
    (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0", "xz data: unpack it first"),
    (b"\x28\xb5\x2f\xfd\x24\x06\x31\0\0hello\n", "zstd data: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07\x01\0", "a RAR archive: unpack it first"),
    (b"PK\x03\x04\x0a\0\0\0\0\0\x44\x82\x76\x5d", "a zip archive: unpack it first"),
    (
        b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0w.npy",
        "an archive of NumPy arrays (.npz)",
    ),
    (
        b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl",
        "a PyTorch file",
    ),
    (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e\x80\x02", "a PyTorch file"),
    (b"\x80\x02}q\0X\x01\0\0\0aq\x01cnumpy", "a Python pickle"),
    (b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", "an HDF5 file, as Caffe's .h5 snapshots are"),
    (b"name: \"CaffeNet\"\nlayer {\n", "protobuf's text format (.prototxt)"),
    (
        b"\x08\x07\x12\x07pytorch\x1a\x05\x32.1.0\x3a\x0b\x0a\x06\x0a\x01x\x12\x01y\x12\x01g\x42\x02\x10\x0d",
        "an ONNX model",
    ),
    (b"\x38\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",", "a safetensors file"),
    (b"\x93NUMPY\x01\0v\0{'descr': '<f4', ", "a NumPy array (.npy)"),
    (b"\x1c\0\0\0TFL3\x14\0\x20\0", "a TensorFlow Lite model"),
    (b"{\n  \"message\": \"Not Found\"\n}\n", "JSON"),
    (b"\0\x05\x16\x07\0\x02\0\0Mac OS X        ", "an AppleDouble file"),
    (&[0; 64], "nothing but 64 zeros"),
    (b"404: Not Found", "text, which begins \"404: Not Found\""),
    (b"", "empty: there are no bytes"),
    (
        b"\x0a\x03net\xa2\x06\x40\x0a\x04conv\x12\x0bConvolution\x3a\x80",
        "the beginning of a caffemodel: the rest was cut off",
    ),
];
