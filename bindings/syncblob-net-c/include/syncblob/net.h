/**
 * libsyncblob-net reads Caffe's nets, and uses libsyncblob. An sb_net is the net that a prototxt or
 * a caffemodel describes: its layers and the shapes of all blobs. The library also converts nets
 * into ONNX files, which OpenCV, onnxruntime and other programs run.
 *
 * A name is an sb_text (see base.h): a pointer to bytes, and their number. A NUL follows the bytes,
 * and is not counted. If a name in a net or in an argument is not UTF-8, the library escapes the
 * name as in a C string.
 *
 * The caller of sb_net_open owns the net, and destroys it by sb_net_destroy. Calls on a const net
 * may run concurrently if calls on the net's model may run concurrently.
 *
 * The library is written in Rust, and allocates memory by malloc, not by an sb_context. If malloc
 * fails, the process aborts. The limits of sb_net_options bound the memory of a net and of its
 * conversion. This memory does not grow with the size of the weights. The status INTERNAL reports a
 * bug of the library. The message is also written to standard error.
 */
#ifndef SYNCBLOB_NET_H
#define SYNCBLOB_NET_H

/* cbindgen made this file of bindings/syncblob-net-c/src: change it there. */
/* clang-format off */

#include <syncblob/model.h>

SB_BEGIN_DECLS

/** A net in phase TEST: layers that are connected by named blobs, in the order in which they run.
 *  Layers for training, data and losses are omitted. */
typedef struct sb_net sb_net;

/** The name and the shape of a blob. */
typedef struct sb_net_blob {
    /** [borrowed] the blob's name */
    sb_text name;
    /** [borrowed, nullable when num_axes is 0] `num_axes` dimensions */
    const int64_t *shape;
    /** number of dimensions, 0 to SB_MAX_AXES */
    int32_t num_axes;
    /** must be 0 */
    int32_t reserved;
} sb_net_blob;

/** Options for reading a net. A limit of 0 means the default. */
typedef struct sb_net_options {
    /** sizeof(sb_net_options) of the caller */
    size_t struct_size;
    /** [borrowed, nullable when num_inputs is 0] shapes of inputs, which replace the shapes in the
     *  net. A shape is required for each input whose shape the net lacks */
    const sb_net_blob *inputs;
    /** elements of `inputs` */
    int64_t num_inputs;
    /** [borrowed, nullable when num_stages is 0] stages for the layers' `include` and `exclude`
     *  rules, in addition to the stages that the net lists */
    const sb_text *stages;
    /** elements of `stages` */
    int64_t num_stages;
    /** a new size for the first axis of the first input, and of each other input whose first axis
     *  has the same size. 0 keeps the sizes in the net */
    int64_t batch;
    /** the level for the layers' `include` and `exclude` rules */
    int32_t level;
    /** the maximum depth of nested messages, by default 32 */
    int32_t max_depth;
    /** the maximum size in bytes of a prototxt, and of a model's messages without blobs, by
     *  default 16 MiB */
    size_t max_bytes;
    /** the maximum number of layers, by default 100,000 */
    int64_t max_layers;
    /** the maximum number of values in all fields, by default 2,000,000. A value needs some 100
     *  bytes of memory */
    int64_t max_fields;
} sb_net_options;

/** The description of a net. The texts and lists are valid until the net is destroyed. */
typedef struct sb_net_summary {
    /** sizeof(sb_net_summary) of the caller */
    size_t struct_size;
    /** [borrowed] the net's name; may be empty */
    sb_text name;
    /** [borrowed] names of the input blobs */
    const sb_text *inputs;
    /** elements of `inputs` */
    int64_t num_inputs;
    /** [borrowed] names of the blobs that no layer reads, sorted by their bytes */
    const sb_text *outputs;
    /** elements of `outputs` */
    int64_t num_outputs;
    /** [borrowed] sentences about the parts of the net that were omitted or changed */
    const sb_text *warnings;
    /** elements of `warnings` */
    int64_t num_warnings;
    /** number of layers, without layers for training, data and losses */
    int64_t num_layers;
} sb_net_summary;

/** The description of a layer. The texts and lists are valid until the net is destroyed. */
typedef struct sb_net_layer {
    /** sizeof(sb_net_layer) of the caller */
    size_t struct_size;
    /** [borrowed] the layer's name; may be empty */
    sb_text name;
    /** [borrowed] the layer's type, such as "Convolution" */
    sb_text type;
    /** [borrowed] names of the blobs that the layer reads */
    const sb_text *bottoms;
    /** elements of `bottoms` */
    int64_t num_bottoms;
    /** [borrowed] names of the blobs that the layer writes. A layer that works in place writes one
     *  of its bottoms */
    const sb_text *tops;
    /** elements of `tops` */
    int64_t num_tops;
} sb_net_layer;

/** An entry of a file's metadata. */
typedef struct sb_onnx_entry {
    /** [borrowed] UTF-8 */
    sb_text key;
    /** [borrowed] UTF-8 */
    sb_text value;
} sb_onnx_entry;

/** A layer that cannot be converted. The texts are valid until the callback returns. */
typedef struct sb_net_problem {
    /** sizeof(sb_net_problem) of the library */
    size_t struct_size;
    /** [borrowed] the layer's name */
    sb_text layer;
    /** [borrowed] the layer's type */
    sb_text type;
    /** [borrowed] the reason, in UTF-8 */
    sb_text reason;
} sb_net_problem;

/** A callback for each layer that cannot be converted. The callback runs on the thread that
 *  converts, and must not throw or longjmp. */
typedef void (*sb_net_reporter)(void *user, const sb_net_problem *problem);

/** A callback for a warning. The callback runs on the thread that converts, and must not throw or
 *  longjmp. `text` is [borrowed] until the callback returns. */
typedef void (*sb_net_warner)(void *user, sb_text text);

/** Options for converting a net into ONNX. `mean`, `scale` and `swap_rb` describe Caffe's
 *  preprocessing of pixels. The ONNX net preprocesses every input with four axes. */
typedef struct sb_onnx_options {
    /** sizeof(sb_onnx_options) of the caller */
    size_t struct_size;
    /** [borrowed, nullable when num_outputs is 0] names of the blobs to compute. Layers that these
     *  blobs do not need are omitted */
    const sb_text *outputs;
    /** elements of `outputs`, or 0 for the outputs of the net */
    int64_t num_outputs;
    /** [borrowed] a name for the inputs' first axis, which makes the size of this axis variable.
     *  If the name is empty, the size is fixed */
    sb_text batch;
    /** [borrowed, nullable when num_mean is 0] the mean, in the net's order of channels: one
     *  number for each channel if mean_height is 0, else an image of channels, rows, columns */
    const float *mean;
    /** number of elements in `mean`: channels, or channels * mean_height * mean_width. 0 without a
     *  mean */
    int64_t num_mean;
    /** rows of a mean image, or 0 if `mean` has one number for each channel */
    int64_t mean_height;
    /** columns of a mean image, or 0 if mean_height is 0 */
    int64_t mean_width;
    /** the factor for pixels, applied after the mean is subtracted, or 0 for no factor */
    float scale;
    /** 1 if images have the channel order RGB, although the net needs BGR */
    int32_t swap_rb;
    /** 1 to store weights and compute results as 16-bit floats. Inputs and outputs stay 32-bit */
    int32_t half;
    /** 1 to write a layer that cannot be converted as a node with the layer's type in the domain
     *  "caffe". The node's inputs are the layer's bottoms, then the weights. The attributes are
     *  the layer's parameters */
    int32_t custom;
    /** [borrowed, nullable when num_shapes is 0] shapes of blobs that custom nodes write. A blob of
     *  unknown shape can be neither an output nor a bottom of a layer that needs the shape */
    const sb_net_blob *shapes;
    /** elements of `shapes` */
    int64_t num_shapes;
    /** [borrowed, nullable when num_metadata is 0] entries for the file's metadata */
    const sb_onnx_entry *metadata;
    /** elements of `metadata` */
    int64_t num_metadata;
    /** [nullable] called for each layer that cannot be converted, before the conversion returns
     *  UNSUPPORTED. The error's message describes only the first such layer */
    sb_net_reporter report;
    /** passed to `report` and to `warn` */
    void *user;
    /** [nullable] called before the conversion returns OK, for each difference between the file and
     *  the net: an output that was renamed, or weights that became infinite as 16-bit floats */
    sb_net_warner warn;
} sb_onnx_options;

/** Opens the net of a prototxt, in any of Caffe's generations, with the weights of a model. Without
 *  a prototxt, opens the net that is stored in the model.
 *  @param prototxt [borrowed, nullable] `prototxt_size` bytes. NULL: the net stored in `model`,
 *      which rarely contains the shapes of its inputs, so `options` must usually contain them
 *  @param model [borrowed, nullable] a caffemodel, which must live and stay unchanged until the
 *      net is destroyed. sb_model_open_bytes opens a caffemodel in memory. NULL: a net without
 *      weights
 *  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
 *  @param out [owned] sb_net_destroy
 *  Errors: INVALID_ARGUMENT (neither a prototxt nor a model, a negative count or limit, options
 *  that do not fit the net), ABI_MISMATCH (options of another version), UNSUPPORTED (options that
 *  set an unknown member, a layer type that the old generation lacks, a model without a net),
 *  MALFORMED (a text that is not a net, a net that contradicts itself), DATA_LIMIT, OVER_LIMIT (a
 *  layer's message above 2^31 - 1 bytes), IO, BAD_SHAPE, DATA_OVERFLOW (the last three if the
 *  model's file has changed), OUT_OF_MEMORY, CANCELLED (both from a source), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_open(const void *prototxt,
                      size_t prototxt_size,
                      const sb_model *model,
                      const sb_net_options *options,
                      sb_net **out,
                      sb_error *err);

/** Opens a net like sb_net_open, but from files. The model's file stays open until the net is
 *  destroyed.
 *  @param prototxt [borrowed, nullable] a NUL-terminated path. NULL: the net stored in the model
 *  @param model [borrowed, nullable] a NUL-terminated path. NULL: a net without weights
 *  @param options [borrowed, nullable] NULL: SB_NET_OPTIONS_INIT
 *  @param out [owned] sb_net_destroy
 *  Errors: as sb_net_open, as sb_model_open_file. */
SB_API SB_MUST_CHECK
sb_status sb_net_open_file(const char *prototxt,
                           const char *model,
                           const sb_net_options *options,
                           sb_net **out,
                           sb_error *err);

/** Destroys the net. @param net [owned, nullable] */
SB_API void sb_net_destroy(sb_net *net);

/** Describes the net.
 *  @param out the caller sets `struct_size`; the function writes at most that many bytes
 *  Errors: ABI_MISMATCH (a struct_size of no known version), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_info(const sb_net *net,
                      sb_net_summary *out,
                      sb_error *err);

/** Describes a layer.
 *  @param layer 0..num_layers-1
 *  @param out the caller sets `struct_size`; the function writes at most that many bytes
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (a struct_size of no known version), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_layer_info(const sb_net *net,
                            int64_t layer,
                            sb_net_layer *out,
                            sb_error *err);

/** Computes by Caffe's rules the shape that a blob has after all layers have run.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes
 *  @param out_shape [borrowed] `out_num_axes` dimensions, valid until the net is destroyed
 *  @param out_num_axes 0 to SB_MAX_AXES
 *  Errors: NOT_FOUND, UNSUPPORTED (the layer that writes the blob, or an earlier layer, is unknown
 *  or invalid), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_blob_shape(const sb_net *net,
                            const char *name,
                            size_t name_size,
                            const int64_t **out_shape,
                            int32_t *out_num_axes,
                            sb_error *err);

/** Writes the net as an ONNX file of opset 17 into a buffer. If capacity is 0, writes nothing, but
 *  stores the size of the file in out_size and returns BUFFER_TOO_SMALL.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param buffer [borrowed, nullable when capacity is 0] receives the file. The contents are
 *      unspecified after a failure other than BUFFER_TOO_SMALL
 *  @param capacity the size of `buffer` in bytes
 *  @param out_size [nullable] the bytes written, or after BUFFER_TOO_SMALL the needed capacity
 *  Errors: INVALID_ARGUMENT (a negative count, options that do not fit the net), ABI_MISMATCH
 *  (options of another version), UNSUPPORTED (options that set an unknown member; layers that
 *  cannot be converted; an announced blob), MALFORMED (a net or weights that contradict
 *  themselves), DTYPE_MISMATCH (weights that are not floats), BUFFER_TOO_SMALL, OVER_LIMIT (above
 *  2 GiB), DATA_LIMIT, IO, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW (the last four if the model's
 *  file has changed), OUT_OF_MEMORY, CANCELLED (both from a source), INTERNAL. */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx(const sb_net *net,
                           const sb_onnx_options *options,
                           void *buffer,
                           size_t capacity,
                           size_t *out_size,
                           sb_error *err);

/** Like sb_net_save_onnx, but writes into a sink. See sb_sink for the sink's contents after a
 *  failure.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param sink [borrowed]
 *  Errors: as sb_net_save_onnx, UNSUPPORTED (a sink that sets an unknown member), ABI_MISMATCH (a
 *  sink of another version), OUT_OF_MEMORY, CANCELLED (both from the sink). */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx_sink(const sb_net *net,
                                const sb_onnx_options *options,
                                const sb_sink *sink,
                                sb_error *err);

/** Like sb_net_save_onnx, but writes a file. An existing file is either replaced completely or left
 *  unchanged. If one file would exceed 2 GiB, the weights are in a second file, whose path is
 *  `path` with ".data" appended. Files are written under temporary names, which begin with
 *  ".syncblob-", and then renamed, the second file first. A process that is killed may leave a
 *  temporary file. If the path is a symbolic link, the file that it points to is replaced.
 *  @param options [borrowed, nullable] NULL: SB_ONNX_OPTIONS_INIT
 *  @param path [borrowed] NUL-terminated
 *  Errors: as sb_net_save_onnx, IO (errno in device_code). */
SB_API SB_MUST_CHECK
sb_status sb_net_save_onnx_file(const sb_net *net,
                                const sb_onnx_options *options,
                                const char *path,
                                sb_error *err);

/** Initialises options with the defaults. */
#define SB_NET_OPTIONS_INIT {sizeof(sb_net_options), NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0}

/** Initialises an empty description of a net. */
#define SB_NET_SUMMARY_INIT {sizeof(sb_net_summary), {NULL, 0}, NULL, 0, NULL, 0, NULL, 0, 0}

/** Initialises an empty description of a layer. */
#define SB_NET_LAYER_INIT {sizeof(sb_net_layer), {NULL, 0}, {NULL, 0}, NULL, 0, NULL, 0}

/** Initialises options with the defaults. */
#define SB_ONNX_OPTIONS_INIT                                                                       \
    {sizeof(sb_onnx_options), NULL, 0, {NULL, 0}, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0,     \
     NULL, NULL, NULL}

SB_END_DECLS

#endif
