//! Saves a net as ONNX.

use std::ffi::{c_char, c_void};
use std::io::{self, BufWriter, Write};
use std::ptr;

use syncblob_net::{Mean, Onnx, OnnxOptions, Preprocessing};
use syncblob_sys as sys;
use syncblob_sys::{sb_error, sb_status, sb_text};

use crate::failure::{guard, Failure, Result};
use crate::net::{sb_net, shapes};
use crate::pointers::{adopt, list, object, path, put, text, texts};
use crate::sink::Sink;
use crate::types::{sb_net_problem, sb_onnx_options};

/// Writes the net as an ONNX file of opset 17 into a buffer. If capacity is 0, writes nothing, but
///  stores the size of the file in out_size and returns BUFFER_TOO_SMALL.
///  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
///  @param buffer [borrowed, nullable when capacity is 0] receives the file. The contents are
///      unspecified after a failure other than BUFFER_TOO_SMALL
///  @param capacity the size of `buffer` in bytes
///  @param out_size [nullable] the bytes written, or after BUFFER_TOO_SMALL the needed capacity
///  Errors: INVALID_ARGUMENT (a negative count, options that do not fit the net), ABI_MISMATCH
///  (options of another version), UNSUPPORTED (options that set an unknown member; layers that
///  cannot be converted; an announced blob), MALFORMED (a net or weights that contradict
///  themselves), DTYPE_MISMATCH (weights that are not floats), BUFFER_TOO_SMALL, OVER_LIMIT (above
///  2 GiB), DATA_LIMIT, IO, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW (the last four if the model's
///  file has changed), OUT_OF_MEMORY, CANCELLED (both from a source), INTERNAL.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_save_onnx(
    net: *const sb_net,
    options: *const sb_onnx_options,
    buffer: *mut c_void,
    capacity: usize,
    out_size: *mut usize,
    err: *mut sb_error,
) -> sb_status {
    let save = || {
        if buffer.is_null() && capacity != 0 {
            return Err(Failure::null("buffer"));
        }
        // SAFETY: the caller keeps the contract of net.h.
        let (onnx, given) = unsafe { convert(net, options)? };
        let size = size_of_one_file(&onnx)?;
        if size > capacity {
            // SAFETY: the caller keeps the contract of net.h.
            unsafe { put(out_size, size) };
            let text = format!("the file has {size} bytes, the buffer {capacity}");
            return Err(Failure::new(sys::SB_ERR_BUFFER_TOO_SMALL, text));
        }
        onnx.write(Buffer { at: buffer.cast(), left: size })?;
        // SAFETY: the caller keeps the contract of net.h.
        unsafe {
            put(out_size, size);
            warn(&given, &onnx);
        }
        Ok(())
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, save) }
}

/// Like sb_net_save_onnx, but writes into a sink. See sb_sink for the sink's contents after a
///  failure.
///  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
///  @param sink [borrowed]
///  Errors: as sb_net_save_onnx, UNSUPPORTED (a sink that sets an unknown member), ABI_MISMATCH (a
///  sink of another version), OUT_OF_MEMORY, CANCELLED (both from the sink).
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_save_onnx_sink(
    net: *const sb_net,
    options: *const sb_onnx_options,
    sink: *const sys::sb_sink,
    err: *mut sb_error,
) -> sb_status {
    let save = || {
        // SAFETY: the caller keeps the contract of net.h.
        let (mut sink, (onnx, given)) = unsafe { (Sink::new(sink)?, convert(net, options)?) };
        size_of_one_file(&onnx)?;
        let mut out = BufWriter::with_capacity(4096, &mut sink);
        let written = onnx.write(&mut out).and_then(|()| Ok(out.flush()?));
        drop(out.into_parts()); // discards the bytes that are not written
        match written {
            Ok(()) => {
                // SAFETY: the caller keeps the contract of net.h.
                unsafe { warn(&given, &onnx) };
                Ok(())
            }
            Err(error) => Err(sink.failure().unwrap_or_else(|| error.into())),
        }
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, save) }
}

/// Like sb_net_save_onnx, but writes a file. An existing file is either replaced completely or left
///  unchanged. If one file would exceed 2 GiB, the weights are in a second file, whose path is
///  `path` with ".data" appended. Files are written under temporary names, which begin with
///  ".syncblob-", and then renamed, the second file first. A process that is killed may leave a
///  temporary file. If the path is a symbolic link, the file that it points to is replaced.
///  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
///  @param path [borrowed] NUL-terminated
///  Errors: as sb_net_save_onnx, IO (errno in device_code).
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_save_onnx_file(
    net: *const sb_net,
    options: *const sb_onnx_options,
    path: *const c_char,
    err: *mut sb_error,
) -> sb_status {
    let save = || {
        // SAFETY: the caller keeps the contract of net.h.
        let (path, (onnx, given)) = unsafe { (self::path(path, "path")?, convert(net, options)?) };
        onnx.save(path)?;
        // SAFETY: the caller keeps the contract of net.h.
        unsafe { warn(&given, &onnx) };
        Ok(())
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, save) }
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn convert(
    net: *const sb_net,
    options: *const sb_onnx_options,
) -> Result<(Onnx, sb_onnx_options)> {
    // SAFETY: the caller keeps this function's contract.
    let (net, given) =
        unsafe { (object(net, "net")?, adopt(options, sb_onnx_options::default())?) };
    // SAFETY: the caller keeps this function's contract.
    let options = unsafe { onnx_options(&given)? };
    let converted = net.net.to_onnx(&options);
    if let Err(error) = &converted {
        // SAFETY: the caller keeps this function's contract.
        error.problems().iter().for_each(|problem| unsafe { report(&given, problem) });
    }
    Ok((converted?, given))
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn warn(options: &sb_onnx_options, onnx: &Onnx) {
    let Some(warn) = options.warn else { return };
    let overflow = onnx.overflow().map(|overflow| overflow.to_string());
    let texts =
        crate::names::Texts::new(onnx.warnings().iter().chain(&overflow).map(String::as_str));
    // SAFETY: the caller keeps this function's contract, and the texts outlive the call.
    texts.all().iter().for_each(|text| unsafe { warn(options.user, *text) });
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn report(options: &sb_onnx_options, problem: &syncblob_net::Problem) {
    let Some(report) = options.report else { return };
    let texts = crate::names::Texts::new([&*problem.layer, &*problem.layer_type, &*problem.reason]);
    let [layer, layer_type, reason] = texts.all() else { return };
    let problem = sb_net_problem {
        struct_size: size_of::<sb_net_problem>(),
        layer: *layer,
        r#type: *layer_type,
        reason: *reason,
    };
    // SAFETY: the caller keeps net.h's contract. The problem and its texts outlive the call.
    unsafe { report(options.user, &problem) };
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn onnx_options(given: &sb_onnx_options) -> Result<OnnxOptions> {
    let mut options = OnnxOptions::default();
    // SAFETY: the caller keeps this function's contract.
    unsafe {
        options.outputs = texts(given.outputs, given.num_outputs, "outputs")?;
        options.batch = Some(text(given.batch, "batch")?).filter(|name| !name.is_empty());
        options.preprocessing = preprocessing(given)?;
        options.shapes = shapes(given.shapes, given.num_shapes, "shapes")?;
        let metadata = list(given.metadata, given.num_metadata, "metadata")?;
        let entries = metadata.iter().map(|entry| {
            let part = |part: sb_text| text(part, "metadata");
            Ok((part(entry.key)?, part(entry.value)?))
        });
        options.metadata = entries.collect::<Result<_>>()?;
    }
    options.half = flag(given.half, "half")?;
    options.custom = flag(given.custom, "custom")?;
    Ok(options)
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn preprocessing(given: &sb_onnx_options) -> Result<Preprocessing> {
    let mut preprocessing = Preprocessing::default();
    preprocessing.swap_rb = flag(given.swap_rb, "swap_rb")?;
    preprocessing.scale = Some(given.scale).filter(|&scale| scale != 0.0);
    // SAFETY: the caller keeps this function's contract.
    let values = unsafe { list(given.mean, given.num_mean, "numbers of a mean")? }.to_vec();
    preprocessing.mean = match (given.mean_height, given.mean_width) {
        _ if values.is_empty() => None,
        (0, 0) => Some(Mean::Channels(values)),
        (height, width) => Some(mean_image(values, height, width)?),
    };
    Ok(preprocessing)
}

fn mean_image(values: Vec<f32>, height: i64, width: i64) -> Result<Mean> {
    let count = values.len() as i64;
    let pixels = height.checked_mul(width).filter(|&pixels| height > 0 && pixels > 0);
    match pixels.filter(|pixels| count % pixels == 0) {
        Some(pixels) => Ok(Mean::Image { shape: [count / pixels, height, width], values }),
        None => Err(Failure::argument(format!(
            "a mean of {count} numbers is not an image of channels x {height} x {width}"
        ))),
    }
}

fn flag(value: i32, name: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::argument(format!("{name} is {value}, not 0 or 1"))),
    }
}

fn size_of_one_file(onnx: &Onnx) -> Result<usize> {
    if onnx.needs_external() {
        let text = "more than 2 GiB of weights, which one ONNX file cannot contain: \
                    sb_net_save_onnx_file writes two";
        return Err(Failure::new(sys::SB_ERR_OVER_LIMIT, text));
    }
    usize::try_from(onnx.size())
        .map_err(|_| Failure::new(sys::SB_ERR_OVER_LIMIT, "the file exceeds the address space"))
}

/// The part of the caller's buffer that is still to be written.
struct Buffer {
    at: *mut u8,
    left: usize,
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = bytes.len().min(self.left);
        // SAFETY: the caller's buffer has `left` bytes at `at`, and nothing else uses it.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, size);
            self.at = self.at.add(size);
        }
        self.left -= size;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
