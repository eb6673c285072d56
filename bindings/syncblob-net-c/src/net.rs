//! Opens, describes and destroys nets.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use syncblob::{Context, Model};
use syncblob_net::{Limits, Net, NetOptions, Shape};
use syncblob_sys as sys;
use syncblob_sys::{sb_error, sb_model, sb_status};

use crate::failure::{guard, Failure, Result};
use crate::names::{list, NetTexts, Shapes};
use crate::pointers::{self, adopt, bytes, give, object, put, text, texts};
use crate::types::{sb_net_blob, sb_net_layer, sb_net_options, sb_net_summary};

/// A net in phase TEST: layers that are connected by named blobs, in the order in which they run.
///  Layers for training, data and losses are omitted.
pub struct sb_net {
    pub(crate) net: Net,
    texts: NetTexts,
    shapes: OnceLock<Shapes>,
}

impl sb_net {
    /// Stores a new net in `out`. The caller then owns the net.
    ///
    /// # Safety
    /// `out` points to memory for a pointer.
    unsafe fn give(net: Net, out: *mut *mut Self) {
        let texts = NetTexts::new(&net);
        let net = Box::new(Self { net, texts, shapes: OnceLock::new() });
        // SAFETY: the caller promises that `out` is valid.
        unsafe { put(out, Box::into_raw(net)) };
    }

    fn has(&self, blob: &str) -> bool {
        let mut made = self.net.layers().iter().flat_map(|layer| layer.tops());
        made.any(|top| top == blob) || self.net.inputs().iter().any(|input| input.0 == blob)
    }

    fn shape(&self, blob: &str) -> Result<&[i64]> {
        let shown = blob.escape_default();
        if !self.has(blob) {
            return Err(Failure::new(
                sys::SB_ERR_NOT_FOUND,
                format!("the net has no blob '{shown}'"),
            ));
        }
        let shapes = self.shapes.get_or_init(|| Shapes::new(&self.net));
        shapes.get(blob).map_err(|reason| {
            let text = format!("the shape of '{shown}' is not known: {reason}");
            Failure::new(sys::SB_ERR_UNSUPPORTED, text)
        })
    }
}

/// Opens the net of a prototxt, in any of Caffe's generations, with the weights of a model. Without
///  a prototxt, opens the net that is stored in the model.
///  @param prototxt [borrowed, nullable] `prototxt_size` bytes. NULL: the net stored in `model`,
///      which rarely contains the shapes of its inputs, so `options` must usually contain them
///  @param model [borrowed, nullable] a caffemodel, which must live and stay unchanged until the
///      net is destroyed. sb_model_open_bytes opens a caffemodel in memory. NULL: a net without
///      weights
///  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
///  @param out [owned] sb_net_destroy
///  Errors: INVALID_ARGUMENT (neither a prototxt nor a model, a negative count or limit, options
///  that do not fit the net), ABI_MISMATCH (options of another version), UNSUPPORTED (options that
///  set an unknown member, a layer type that the old generation lacks, a model without a net),
///  MALFORMED (a text that is not a net, a net that contradicts itself), DATA_LIMIT, OVER_LIMIT (a
///  layer's message above 2^31 - 1 bytes), IO, BAD_SHAPE, DATA_OVERFLOW (the last three if the
///  model's file has changed), OUT_OF_MEMORY, CANCELLED (both from a source), INTERNAL.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_open(
    prototxt: *const c_void,
    prototxt_size: usize,
    model: *const sb_model,
    options: *const sb_net_options,
    out: *mut *mut sb_net,
    err: *mut sb_error,
) -> sb_status {
    let open = || {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller keeps the contract of net.h.
        let (options, text) =
            unsafe { (net_options(options)?, bytes(prototxt.cast(), prototxt_size, "prototxt")?) };
        let text = (!prototxt.is_null()).then_some(text);
        let model = NonNull::new(model.cast_mut()).map(|model| {
            // SAFETY: the caller keeps net.h's contract. The net calls only the model's const functions.
            unsafe { Model::borrow_raw(model, &Context::host()) }
        });
        let net = Net::open(text, model.map(Arc::new), &options)?;
        // SAFETY: the caller keeps the contract of net.h.
        unsafe { sb_net::give(net, out) };
        Ok(())
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, open) }
}

/// Opens a net like sb_net_open, but from files. The model's file stays open until the net is
///  destroyed.
///  @param prototxt [borrowed, nullable] a NUL-terminated path. NULL: the net stored in the model
///  @param model [borrowed, nullable] a NUL-terminated path. NULL: a net without weights
///  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
///  @param out [owned] sb_net_destroy
///  Errors: as sb_net_open, as sb_model_open_file.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_open_file(
    prototxt: *const c_char,
    model: *const c_char,
    options: *const sb_net_options,
    out: *mut *mut sb_net,
    err: *mut sb_error,
) -> sb_status {
    let open = || {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let path = |path: *const c_char| {
            // SAFETY: the caller keeps the contract of net.h.
            (!path.is_null()).then(|| unsafe { pointers::path(path, "path") }).transpose()
        };
        // SAFETY: the caller keeps the contract of net.h.
        let options = unsafe { net_options(options)? };
        let (prototxt, model) = (path(prototxt)?, path(model)?);
        let text = prototxt.map(|path| read_text(path, &options.limits)).transpose()?;
        let model = model.map(Model::open).transpose()?.map(Arc::new);
        let net = Net::open(text.as_deref(), model, &options)?;
        // SAFETY: the caller keeps the contract of net.h.
        unsafe { sb_net::give(net, out) };
        Ok(())
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, open) }
}

fn read_text(path: &Path, limits: &Limits) -> Result<Vec<u8>> {
    limits.read_prototxt(path).map_err(|error| Failure::file(path, &error))
}

/// # Safety The caller keeps the contract of net.h.
unsafe fn net_options(given: *const sb_net_options) -> Result<NetOptions> {
    // SAFETY: the caller keeps the contract of net.h.
    let given = unsafe { adopt(given, sb_net_options::default())? };
    let mut options = NetOptions::default();
    options.limits = limits(&given)?;
    options.level = given.level;
    options.batch = match given.batch {
        0 => None,
        1.. => Some(given.batch),
        _ => return Err(Failure::argument(format!("batch is {}, below 0", given.batch))),
    };
    // SAFETY: the caller keeps this function's contract.
    options.stages = unsafe { texts(given.stages, given.num_stages, "stages")? };
    // SAFETY: the caller keeps this function's contract.
    options.inputs = unsafe { shapes(given.inputs, given.num_inputs, "inputs")? };
    Ok(options)
}

fn limits(given: &sb_net_options) -> Result<Limits> {
    let mut limits = Limits::default();
    let given_limits = [
        (&mut limits.depth, i64::from(given.max_depth), "max_depth"),
        (&mut limits.layers, given.max_layers, "max_layers"),
        (&mut limits.fields, given.max_fields, "max_fields"),
    ];
    for (limit, given, name) in given_limits {
        match usize::try_from(given) {
            Ok(0) => {}
            Ok(given) => *limit = given,
            Err(_) => return Err(Failure::argument(format!("{name} is {given}"))),
        }
    }
    if given.max_bytes != 0 {
        limits.size = given.max_bytes;
    }
    Ok(limits)
}

/// Copies the names and shapes of blobs into the crate's types.
///
/// # Safety
/// The caller keeps the contract of net.h.
pub(crate) unsafe fn shapes(
    pointer: *const sb_net_blob,
    count: i64,
    what: &str,
) -> Result<Vec<(String, Shape)>> {
    // SAFETY: the caller keeps this function's contract.
    let blobs = unsafe { pointers::list(pointer, count, what)? };
    let shape = |blob: &sb_net_blob| {
        // SAFETY: the caller keeps this function's contract.
        unsafe {
            let shape = pointers::list(blob.shape, blob.num_axes.into(), "dimensions")?;
            Ok((text(blob.name, "name")?, shape.to_vec()))
        }
    };
    blobs.iter().map(shape).collect()
}

/// Destroys the net. @param net [owned, nullable]
#[no_mangle]
pub unsafe extern "C" fn sb_net_destroy(net: *mut sb_net) {
    if !net.is_null() {
        let end = || {
            // SAFETY: `sb_net::give` made the net, and the caller no longer uses the net.
            drop(unsafe { Box::from_raw(net) });
            Ok(())
        };
        // SAFETY: `guard` accepts NULL.
        unsafe { guard(std::ptr::null_mut(), end) };
    }
}

/// Describes the net.
///  @param out the caller sets `struct_size`; the function writes at most that many bytes
///  Errors: ABI_MISMATCH (a struct_size of no known version), INTERNAL.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_info(
    net: *const sb_net,
    out: *mut sb_net_summary,
    err: *mut sb_error,
) -> sb_status {
    let look = || {
        // SAFETY: the caller keeps the contract of net.h.
        let net = unsafe { object(net, "net")? };
        let (own, net) = (net.texts.own.all(), &net.net);
        let (name, rest) = own.split_at(1);
        let (inputs, rest) = rest.split_at(net.inputs().len());
        let (outputs, warnings) = rest.split_at(net.outputs().len());
        let (inputs, num_inputs) = list(inputs);
        let (outputs, num_outputs) = list(outputs);
        let (warnings, num_warnings) = list(warnings);
        let summary = sb_net_summary {
            struct_size: size_of::<sb_net_summary>(),
            name: name[0],
            inputs,
            num_inputs,
            outputs,
            num_outputs,
            warnings,
            num_warnings,
            num_layers: net.layers().len() as i64,
        };
        // SAFETY: the caller keeps the contract of net.h.
        unsafe { give(out, summary) }
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, look) }
}

/// Describes a layer.
///  @param layer 0..num_layers-1
///  @param out the caller sets `struct_size`; the function writes at most that many bytes
///  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (a struct_size of no known version), INTERNAL.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_layer_info(
    net: *const sb_net,
    layer: i64,
    out: *mut sb_net_layer,
    err: *mut sb_error,
) -> sb_status {
    let look = || {
        // SAFETY: the caller keeps the contract of net.h.
        let net = unsafe { object(net, "net")? };
        let found =
            usize::try_from(layer).ok().and_then(|at| Some((at, net.texts.layers.get(at)?)));
        let (at, texts) = found.ok_or_else(|| {
            let text = format!("no layer {layer}: the net has {} layers", net.texts.layers.len());
            Failure::new(sys::SB_ERR_INDEX_OUT_OF_RANGE, text)
        })?;
        let (name_and_type, blobs) = texts.all().split_at(2);
        let (bottoms, tops) = blobs.split_at(net.net.layers()[at].bottoms().len());
        let (bottoms, num_bottoms) = list(bottoms);
        let (tops, num_tops) = list(tops);
        let layer = sb_net_layer {
            struct_size: size_of::<sb_net_layer>(),
            name: name_and_type[0],
            r#type: name_and_type[1],
            bottoms,
            num_bottoms,
            tops,
            num_tops,
        };
        // SAFETY: the caller keeps the contract of net.h.
        unsafe { give(out, layer) }
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, look) }
}

/// Computes by Caffe's rules the shape that a blob has after all layers have run.
///  @param name [borrowed, nullable when name_size is 0] `name_size` bytes
///  @param out_shape [borrowed] `out_num_axes` dimensions, valid until the net is destroyed
///  @param out_num_axes 0 to SB_MAX_AXES
///  Errors: NOT_FOUND, UNSUPPORTED (the layer that writes the blob, or an earlier layer, is unknown
///  or invalid), INTERNAL.
#[must_use]
#[no_mangle]
pub unsafe extern "C" fn sb_net_blob_shape(
    net: *const sb_net,
    name: *const c_char,
    name_size: usize,
    out_shape: *mut *const i64,
    out_num_axes: *mut i32,
    err: *mut sb_error,
) -> sb_status {
    let look = || {
        // SAFETY: the caller keeps the contract of net.h.
        let (net, name) = unsafe {
            let name = sys::sb_text { bytes: name, size: name_size };
            (object(net, "net")?, text(name, "name")?)
        };
        if out_shape.is_null() {
            return Err(Failure::null("out_shape"));
        }
        if out_num_axes.is_null() {
            return Err(Failure::null("out_num_axes"));
        }
        let shape = net.shape(&name)?;
        // SAFETY: the caller keeps the contract of net.h.
        unsafe {
            put(out_shape, shape.as_ptr());
            put(out_num_axes, shape.len() as i32);
        }
        Ok(())
    };
    // SAFETY: the caller keeps the contract of net.h.
    unsafe { guard(err, look) }
}
