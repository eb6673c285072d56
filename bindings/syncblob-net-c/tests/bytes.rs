//! Tests that the C functions write the same bytes as the crate.

use std::ffi::CString;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use syncblob::Model;
use syncblob_net::{Net, NetOptions, OnnxOptions};
use syncblob_net_c as c;
use syncblob_sys as sys;

fn real(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SYNCBLOB_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(name);
    match path.is_file() {
        true => Some(path),
        false => {
            println!("skipped: no file {}", path.display());
            None
        }
    }
}

fn by_c(prototxt: &PathBuf, model: &PathBuf) -> Vec<u8> {
    let path = |path: &PathBuf| CString::new(path.to_str().unwrap()).unwrap();
    let (prototxt, model) = (path(prototxt), path(model));
    let (mut net, mut size) = (ptr::null_mut(), 0);
    let none = ptr::null_mut();
    // SAFETY: paths end in NUL, results have memory, and the buffer has `size` bytes.
    unsafe {
        let (prototxt, model) = (prototxt.as_ptr(), model.as_ptr());
        assert_eq!(c::sb_net_open_file(prototxt, model, ptr::null(), &mut net, none), sys::SB_OK);
        let status = c::sb_net_save_onnx(net, ptr::null(), ptr::null_mut(), 0, &mut size, none);
        assert_eq!(status, sys::SB_ERR_BUFFER_TOO_SMALL);
        let mut bytes = vec![0_u8; size];
        let buffer = bytes.as_mut_ptr().cast();
        let status = c::sb_net_save_onnx(net, ptr::null(), buffer, size, &mut size, none);
        assert_eq!((status, size), (sys::SB_OK, bytes.len()));
        c::sb_net_destroy(net);
        bytes
    }
}

#[test]
fn the_bytes_equal_those_of_the_crate() {
    for net in ["det1", "det2", "det3"] {
        let Some(prototxt) = real(&format!("nets/mtcnn_kpzhang93_{net}.prototxt")) else { return };
        let Some(model) = real(&format!("mtcnn_kpzhang93_{net}.caffemodel")) else { return };
        let text = std::fs::read(&prototxt).unwrap();
        let opened = Net::from_prototxt(&text, &NetOptions::default()).unwrap();
        let opened = opened.with_weights(Arc::new(Model::open(&model).unwrap())).unwrap();
        let bytes = opened.to_onnx(&OnnxOptions::default()).unwrap().to_bytes().unwrap();
        assert!(by_c(&prototxt, &model) == bytes, "{net}");
    }
}
