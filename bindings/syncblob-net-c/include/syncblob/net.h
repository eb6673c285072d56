/**
 * libsyncblob-net, over libsyncblob. sb_net: the net that a prototxt or a caffemodel describes,
 * layer by layer, with the shapes of all blobs; and the same net as an ONNX file, which OpenCV,
 * onnxruntime and others run.
 *
 * Names are bytes with a size, as in base.h, followed by a NUL that does not count. Bytes of a net
 * that are not UTF-8 are escaped in its names as in a text of C, and so are those that a caller
 * passes.
 *
 * A net has one owner (open, destroy). Calls on a const net are safe beside each other, as long as
 * calls on the model that it was opened with are.
 *
 * The library is written in Rust. Its own memory comes from malloc, past the context: if there is
 * no more, the process ends (abort). What a net takes is bounded by the limits of sb_net_options; a
 * conversion takes a part of that again, whatever the weights are. INTERNAL is a bug of the
 * library: its message is also written to the standard error.
 */
#ifndef SYNCBLOB_NET_H
#define SYNCBLOB_NET_H

/* cbindgen made this file of bindings/syncblob-net-c/src: change it there. */
/* clang-format off */

#include <syncblob/model.h>

SB_BEGIN_DECLS

/** A net in phase TEST: layers joined by named blobs, in the order in which they run. Layers that
 *  only training, data and losses need are left out. */
typedef struct sb_net sb_net;

/** A blob of a net, and the shape that it shall have. */
typedef struct sb_net_blob {
    /** [borrowed] the blob's name */
    sb_text name;
    /** [borrowed, nullable when num_axes is 0] `num_axes` dimensions */
    const int64_t *shape;
    /** 0 to SB_MAX_AXES */
    int32_t num_axes;
    /** 0 */
    int32_t reserved;
} sb_net_blob;

/** How a net is read. Limits of 0 are the defaults. */
typedef struct sb_net_options {
    /** sizeof(sb_net_options) of the caller */
    size_t struct_size;
    /** [borrowed, nullable when num_inputs is 0] shapes that replace those of the net, and are
     *  needed where only the data would give the shape */
    const sb_net_blob *inputs;
    /** inputs with a shape here */
    int64_t num_inputs;
    /** [borrowed, nullable when num_stages is 0] stages that layers' rules are compared with,
     *  beside those that the net lists */
    const sb_text *stages;
    /** stages here */
    int64_t num_stages;
    /** the size of the batch, which is the first axis of the first input and of each input whose
     *  first axis is as long; 0: as the net has it */
    int64_t batch;
    /** the level that layers' rules are compared with */
    int32_t level;
    /** messages inside each other; 0: 32 */
    int32_t max_depth;
    /** bytes of a prototxt, and of a model's messages without their blobs; 0: 16 MiB */
    size_t max_bytes;
    /** layers; 0: 100,000 */
    int64_t max_layers;
    /** values of all fields, each of which takes some hundred bytes; 0: 2,000,000 */
    int64_t max_fields;
} sb_net_options;

/** A net. Its texts and lists live as long as the net. */
typedef struct sb_net_summary {
    /** sizeof(sb_net_summary) of the caller */
    size_t struct_size;
    /** [borrowed] empty when there is none */
    sb_text name;
    /** [borrowed] names of the blobs that the caller gives */
    const sb_text *inputs;
    /** how many */
    int64_t num_inputs;
    /** [borrowed] names of the blobs that no layer reads, in the order of their bytes */
    const sb_text *outputs;
    /** how many */
    int64_t num_outputs;
    /** [borrowed] sentences about omitted or changed parts */
    const sb_text *warnings;
    /** how many */
    int64_t num_warnings;
    /** layers, without those that only training and data need */
    int64_t num_layers;
} sb_net_summary;

/** A layer of a net. Its texts and lists live as long as the net. */
typedef struct sb_net_layer {
    /** sizeof(sb_net_layer) of the caller */
    size_t struct_size;
    /** [borrowed] may be empty */
    sb_text name;
    /** [borrowed] such as "Convolution" */
    sb_text type;
    /** [borrowed] names of the blobs that it reads */
    const sb_text *bottoms;
    /** how many */
    int64_t num_bottoms;
    /** [borrowed] names of the blobs that it writes; one of its bottoms, if it works in place */
    const sb_text *tops;
    /** how many */
    int64_t num_tops;
} sb_net_layer;

/** An entry of a file's metadata. */
typedef struct sb_onnx_entry {
    /** [borrowed] UTF-8 */
    sb_text key;
    /** [borrowed] UTF-8 */
    sb_text value;
} sb_onnx_entry;

/** A layer that cannot be converted, as a reporter is passed it. All is borrowed for the call. */
typedef struct sb_net_problem {
    /** sizeof(sb_net_problem) of the library */
    size_t struct_size;
    /** [borrowed] the layer's name */
    sb_text layer;
    /** [borrowed] its type */
    sb_text type;
    /** [borrowed] the error, in UTF-8 */
    sb_text reason;
} sb_net_problem;

/** Is passed each layer that cannot be converted, on the thread of the call. It must not throw or
 *  longjmp. */
typedef void (*sb_net_reporter)(void *user, const sb_net_problem *problem);

/** Is passed a sentence, on the thread of the call, [borrowed] for its time. It must not throw or
 *  longjmp. */
typedef void (*sb_net_warner)(void *user, sb_text text);

/** How a net is converted into ONNX. A mean, a scale and swap_rb are Caffe's preprocessing of
 *  pixels; they become the first nodes after every input of four axes. */
typedef struct sb_onnx_options {
    /** sizeof(sb_onnx_options) of the caller */
    size_t struct_size;
    /** [borrowed, nullable when num_outputs is 0] names of the blobs to compute; layers that they
     *  do not need are left out */
    const sb_text *outputs;
    /** names there; 0: the outputs of the net */
    int64_t num_outputs;
    /** [borrowed] the name of the batch's axis, which then has no fixed size; empty: it has */
    sb_text batch;
    /** [borrowed, nullable when num_mean is 0] the mean, in the net's order of channels: a number
     *  for each channel or, with mean_height and mean_width, for each pixel */
    const float *mean;
    /** numbers there: channels * mean_height * mean_width; 0: no mean */
    int64_t num_mean;
    /** rows of a mean image; 0: one number a channel */
    int64_t mean_height;
    /** columns of a mean image; 0 with mean_height */
    int64_t mean_width;
    /** the factor of the difference; 0: none */
    float scale;
    /** 1: images have the channel order RGB, and the net needs BGR */
    int32_t swap_rb;
    /** 1: weights are halves, and the net computes with them; inputs and outputs stay floats */
    int32_t half;
    /** 1: a layer that cannot be converted becomes a node of its type and of the domain "caffe",
     *  with its bottoms, then its weights as inputs and its parameters as attributes */
    int32_t custom;
    /** [borrowed, nullable when num_shapes is 0] shapes of blobs that such layers make; without one
     *  a blob's shape stays open: then it is not an output, and no layer that must know it may
     *  read it */
    const sb_net_blob *shapes;
    /** shapes there */
    int64_t num_shapes;
    /** [borrowed, nullable when num_metadata is 0] entries for the file's metadata */
    const sb_onnx_entry *metadata;
    /** entries there */
    int64_t num_metadata;
    /** [nullable] is passed all layers that cannot be converted, before the call returns
     *  UNSUPPORTED; the error's message has only the first */
    sb_net_reporter report;
    /** passed to `report` and to `warn` */
    void *user;
    /** [nullable] is passed what differs in a file that was written from the net, before the call
     *  returns OK: outputs with other names, weights that became infinite as halves */
    sb_net_warner warn;
} sb_onnx_options;

/** Opens a net: the layers of a prototxt, of any of Caffe's generations, with the weights of a
 *  model, or the layers that the model itself carries.
 *  @param prototxt [borrowed, nullable] `prototxt_size` bytes; NULL: the net in `model`, which
 *      rarely contains the shapes of inputs: set them by options
 *  @param model [borrowed, nullable] a caffemodel, which must outlive the net unchanged; open one
 *      in memory by sb_model_open_bytes. NULL: a net without weights
 *  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
 *  @param out [owned] sb_net_destroy
 *  Errors: INVALID_ARGUMENT (neither a prototxt nor a model, a count or a limit below 0, options
 *  that do not fit the net), ABI_MISMATCH (options of another version), UNSUPPORTED (options with
 *  an unknown tail, a layer type that its old generation lacks, a model that is not a net),
 *  MALFORMED (a text that is not a net, a net that contradicts itself), DATA_LIMIT, OVER_LIMIT (a
 *  layer's message over 2^31 - 1 bytes), IO, BAD_SHAPE, DATA_OVERFLOW (the last three if the
 *  model's file has changed), OUT_OF_MEMORY, CANCELLED (both a source's), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_open(const void *prototxt,
                      size_t prototxt_size,
                      const sb_model *model,
                      const sb_net_options *options,
                      sb_net **out,
                      sb_error *err);

/** The same of files. The model's file stays open until the net ends.
 *  @param prototxt [borrowed, nullable] a path that ends in NUL; NULL: the net that the model
 *      carries
 *  @param model [borrowed, nullable] a path that ends in NUL; NULL: a net without weights
 *  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
 *  @param out [owned] sb_net_destroy
 *  Errors: as sb_net_open, as sb_model_open_file. */
SB_API SB_MUST_CHECK
sb_status sb_net_open_file(const char *prototxt,
                           const char *model,
                           const sb_net_options *options,
                           sb_net **out,
                           sb_error *err);

/** Ends the net. @param net [owned, nullable] */
SB_API void sb_net_destroy(sb_net *net);

/** Describes the net.
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: ABI_MISMATCH (a struct_size of no known version), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_info(const sb_net *net,
                      sb_net_summary *out,
                      sb_error *err);

/** Describes a layer.
 *  @param layer 0..num_layers-1
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (a struct_size of no known version), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_layer_info(const sb_net *net,
                            int64_t layer,
                            sb_net_layer *out,
                            sb_error *err);

/** The shape of a blob by Caffe's rules, after all layers have run.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes
 *  @param out_shape [borrowed] as long as the net: `out_num_axes` dimensions
 *  @param out_num_axes 0 to SB_MAX_AXES
 *  Errors: NOT_FOUND, UNSUPPORTED (the layer that writes the blob, or one before it, is unknown or
 *  invalid), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_blob_shape(const sb_net *net,
                            const char *name,
                            size_t name_size,
                            const int64_t **out_shape,
                            int32_t *out_num_axes,
                            sb_error *err);

/** The net as an ONNX file of opset 17, in a buffer. Asking for the size reads no weights.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param buffer [borrowed, nullable when capacity is 0] receives the file; unspecified after a
 *      failure other than BUFFER_TOO_SMALL
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL those needed
 *  Errors: INVALID_ARGUMENT (a count below 0, options that do not fit the net), ABI_MISMATCH
 *  (options of another version), UNSUPPORTED (options with an unknown tail; layers that cannot be
 *  converted; an announced blob), MALFORMED (a net or weights that contradict themselves),
 *  DTYPE_MISMATCH (weights that are not floats), BUFFER_TOO_SMALL, OVER_LIMIT (above 2 GiB, the
 *  limit of an ONNX file), DATA_LIMIT, IO, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW (the last
 *  four if the model's file has changed), OUT_OF_MEMORY, CANCELLED (both a source's), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx(const sb_net *net,
                           const sb_onnx_options *options,
                           void *buffer,
                           size_t capacity,
                           size_t *out_size,
                           sb_error *err);

/** The same into a sink; see sb_sink for the sink's contents after a failure.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param sink [borrowed]
 *  Errors: as sb_net_save_onnx, UNSUPPORTED (a sink with an unknown tail), ABI_MISMATCH (a sink of
 *  another version), OUT_OF_MEMORY, CANCELLED (both the sink's). */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx_sink(const sb_net *net,
                                const sb_onnx_options *options,
                                const sb_sink *sink,
                                sb_error *err);

/** The same into a file, as a whole or not at all: whatever happens, it is the old file or the
 *  whole new one. Above 2 GiB the weights are in a second file beside it, of the same name with
 *  ".data" behind, which is there first. The file is written under a name that begins with
 *  ".syncblob-" and takes its place; a process that is killed may leave that. A symbolic link to a
 *  file is followed.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param path [borrowed] NUL-terminated
 *  Errors: as sb_net_save_onnx, IO (errno in device_code). */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx_file(const sb_net *net,
                                const sb_onnx_options *options,
                                const char *path,
                                sb_error *err);

/** The defaults, as an initialiser. */
#define SB_NET_OPTIONS_INIT {sizeof(sb_net_options), NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0}

/** Nothing known, as an initialiser. */
#define SB_NET_SUMMARY_INIT {sizeof(sb_net_summary), {NULL, 0}, NULL, 0, NULL, 0, NULL, 0, 0}

/** Nothing known, as an initialiser. */
#define SB_NET_LAYER_INIT {sizeof(sb_net_layer), {NULL, 0}, {NULL, 0}, NULL, 0, NULL, 0}

/** The defaults, as an initialiser. */
#define SB_ONNX_OPTIONS_INIT                                                                       \
    {sizeof(sb_onnx_options), NULL, 0, {NULL, 0}, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0,     \
     NULL, NULL, NULL}

SB_END_DECLS

#endif
