/**
 * sb_model: an opened .caffemodel (current `layer`, V1 `layers`, V0 nested layers), .solverstate or
 * BlobProto file. Opening a model checks and indexes the bytes, and reads no values. Loading a blob
 * reads its values. A program can replace blobs and save the model. All other bytes are preserved.
 *
 * Blobs are addressed by (layer, index). The layer SB_NO_LAYER has the blobs that belong to no
 * layer. These are a solver state's history, the only blob of a blob file, or the blobs of a
 * BlobProtoVector. If a V1 layer contains a nested V0 layer, the two count as one layer. The layer
 * has the blobs of both layers, in the file's order.
 *
 * If the library refuses bytes, the library may recognise their actual format (a web page, an
 * archive, a truncated file). The message then ends in "; this is ..." with the name of the format.
 *
 * A model has one owner (open or create, destroy). Several threads may make calls on a const model
 * at the same time.
 */
#ifndef SYNCBLOB_MODEL_H
#define SYNCBLOB_MODEL_H

#include <syncblob/blob.h>
#include <syncblob/io.h>

SB_BEGIN_DECLS

/** A model: opened from bytes, or created by the program. */
typedef struct sb_model sb_model;

/** The format of a file, SB_FORMAT_*. */
typedef int32_t sb_format;

/** The format of a file. */
enum {
    SB_FORMAT_AUTO = 0,        /**< detected from the bytes */
    SB_FORMAT_BLOB = 1,        /**< BlobProto, for example mean.binaryproto */
    SB_FORMAT_CAFFEMODEL = 2,  /**< NetParameter */
    SB_FORMAT_SOLVERSTATE = 3, /**< SolverState; SB_FORMAT_AUTO detects this format by the field
                                    iter */
    SB_FORMAT_BLOB_VECTOR = 4  /**< BlobProtoVector; SB_FORMAT_AUTO detects this format if the first
                                    blob has values. A net that has only a name is wrongly detected
                                    as this format if the name's bytes happen to form such a blob */
};

/** The version of Caffe's format in which a layer is written, SB_LAYER_*. */
typedef int32_t sb_layer_generation;

/** The version of Caffe's format in which a layer is written. */
enum {
    SB_LAYER_CURRENT = 2, /**< NetParameter.layer */
    SB_LAYER_V1 = 1,      /**< NetParameter.layers */
    SB_LAYER_V0 = 0       /**< NetParameter.layers[i].layer */
};

/** The layer index of blobs that belong to no layer. */
#define SB_NO_LAYER (-1)

/** Flag of sb_model_open_file. */
enum {
    SB_OPEN_MAPPED = 1 << 7 /**< maps the file instead of reading it: faster for many small loads.
                                 If the file shrinks, an access raises SIGBUS */
};

/** Opens bytes as a model.
 *  @param context [borrowed, nullable] the model retains the context
 *  @param format SB_FORMAT_*. If the format is not AUTO, bytes without a field that the library
 *      reads (for a net: name, layer or layers) are MALFORMED. If the library recognises the bytes
 *      of another format or program, the bytes are also MALFORMED, or DATA_LIMIT if they exceed a
 *      limit first. An input of size 0 is an empty message of any format
 *  @param bytes [borrowed, nullable when size is 0] must not change until the model is destroyed
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  @param deleter [nullable] runs once when the model releases the bytes. Never runs if this call
 *      fails
 *  @param user passed to `deleter`
 *  @param out [owned] destroy with sb_model_destroy
 *  Errors: INVALID_ARGUMENT (unknown format, a limit below 0), UNSUPPORTED (limits with an
 *  unknown tail), ABI_MISMATCH (limits of another version), MALFORMED, LENGTH_MISMATCH,
 *  BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT, OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_open_bytes(sb_context *context, sb_format format,
                                                   const void *bytes, size_t size,
                                                   const sb_limits *limits, sb_deleter deleter,
                                                   void *user, sb_model **out, sb_error *err);

/** Opens a file as a model. The file stays open until the model is destroyed.
 *  @param context [borrowed, nullable] the model retains the context
 *  @param format SB_FORMAT_*
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_OPEN_MAPPED
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  @param out [owned] destroy with sb_model_destroy
 *  Errors: as sb_model_open_bytes, INVALID_ARGUMENT (unknown flag), IO (errno in device_code). */
SB_API SB_MUST_CHECK sb_status sb_model_open_file(sb_context *context, sb_format format,
                                                  const char *path, uint32_t flags,
                                                  const sb_limits *limits, sb_model **out,
                                                  sb_error *err);

/** Opens a source as a model.
 *  @param context [borrowed, nullable] the model retains the context
 *  @param format SB_FORMAT_*
 *  @param source [borrowed] the struct is copied. Its `close` runs when the model is destroyed, and
 *      never if this call fails
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  @param progress [borrowed, nullable] used during this call only. See sb_model_set_progress
 *  @param out [owned] destroy with sb_model_destroy
 *  Errors: as sb_model_open_bytes, IO, CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_open_source(sb_context *context, sb_format format,
                                                    const sb_source *source,
                                                    const sb_limits *limits,
                                                    const sb_progress *progress, sb_model **out,
                                                    sb_error *err);

/** Sets the progress callback of later calls on this model. A call that loads a blob or reads its
 *  values reports progress in bytes of the blob's message. A save reports progress in bytes of the
 *  model. If several threads call the model, each call reports its own progress on its own thread.
 *  @param progress [borrowed, nullable] the struct is copied; NULL: no progress callback
 *  Errors: UNSUPPORTED (unknown tail), ABI_MISMATCH (another version). */
SB_API SB_MUST_CHECK sb_status sb_model_set_progress(sb_model *model, const sb_progress *progress,
                                                     sb_error *err);

/** Creates an empty model, to be built in memory and saved.
 *  @param context [borrowed, nullable] the model retains the context
 *  @param format SB_FORMAT_*, not AUTO
 *  @param out [owned] destroy with sb_model_destroy
 *  Errors: INVALID_ARGUMENT (unknown format, or AUTO), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_create(sb_context *context, sb_format format,
                                               sb_model **out, sb_error *err);

/** Destroys the model. Closes its file or source, or releases its bytes.
 *  @param model [owned, nullable] */
SB_API void sb_model_destroy(sb_model *model);

/** Returns the format of the model, detected or passed, SB_FORMAT_*. */
SB_API sb_format sb_model_format(const sb_model *model);

/** A text of the file: `size` bytes of any value, then a NUL that `size` does not count. */
typedef struct sb_text {
    const char *bytes; /**< [borrowed] until the model is destroyed, the program sets the text, or
                            sb_model_pop_layer removes the text's layer */
    size_t size;       /**< without the NUL */
} sb_text;

/** Reads the net's name. The text is empty if the net has no name.
 *  @param out [borrowed] the name, until the program sets the name or destroys the model
 *  Errors: none. */
SB_API SB_MUST_CHECK sb_status sb_model_name(const sb_model *model, sb_text *out, sb_error *err);

/** Returns the number of layers, including layers without blobs. */
SB_API int64_t sb_model_num_layers(const sb_model *model);

/** A description of a layer. */
typedef struct sb_layer_info {
    size_t struct_size; /**< sizeof(sb_layer_info) of the caller */
    sb_text name;       /**< may be empty, and need not be unique */
    sb_text type;       /**< the name of the layer's type. For a V1 layer: the name of the enum's
                             value ("CONVOLUTION"), or decimal digits if the value is unknown */
    int64_t num_blobs;  /**< 0 for most layers without weights */
    sb_layer_generation generation; /**< SB_LAYER_* */
    int32_t reserved;               /**< 0 */
} sb_layer_info;

/** An empty description, as an initialiser. */
#define SB_LAYER_INFO_INIT                                                                         \
    { sizeof(sb_layer_info), {NULL, 0}, {NULL, 0}, 0, 0, 0 }

/** Describes a layer.
 *  @param layer 0..num_layers-1
 *  @param out the caller sets `struct_size`. The call writes at most `struct_size` bytes
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (a struct_size of no known version). */
SB_API SB_MUST_CHECK sb_status sb_model_layer_info(const sb_model *model, int64_t layer,
                                                   sb_layer_info *out, sb_error *err);

/** Finds the first layer named `name`, in constant time for any number of layers and any names.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, of any value
 *  @param out the layer's index
 *  Errors: NOT_FOUND. */
SB_API SB_MUST_CHECK sb_status sb_model_find_layer(const sb_model *model, const char *name,
                                                   size_t name_size, int64_t *out, sb_error *err);

/** Writes a layer's message (LayerParameter, or for an old net V1LayerParameter, see sb_layer_info)
 *  without its blobs: for readers of a net's topology. All other fields of the file's message are
 *  kept, including unknown fields. The call reads little more of the file than these fields.
 *  @param layer 0..num_layers-1; SB_NO_LAYER: the model's message without layers and blobs (for a
 *      net: name, inputs and state)
 *  @param buffer [borrowed, nullable when capacity is 0] receives the message
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL the bytes needed
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (a file that is one blob), BUFFER_TOO_SMALL, OVER_LIMIT
 *  (over 2^31 - 1 bytes, protobuf's limit), IO, MALFORMED, DATA_LIMIT (the last three if the file
 *  has changed), OUT_OF_MEMORY, CANCELLED (the last two: from a source). */
SB_API SB_MUST_CHECK sb_status sb_model_layer_message(const sb_model *model, int64_t layer,
                                                      void *buffer, size_t capacity,
                                                      size_t *out_size, sb_error *err);

/** Reads the number of blobs of a layer or of SB_NO_LAYER. Errors: INDEX_OUT_OF_RANGE. */
SB_API SB_MUST_CHECK sb_status sb_model_num_blobs(const sb_model *model, int64_t layer,
                                                  int64_t *out, sb_error *err);

/** How the values of a blob are stored, SB_ENCODING_*. */
typedef int32_t sb_encoding;

/** How the file stores the values of a blob. */
enum {
    SB_ENCODING_NONE = 0,          /**< no values are stored, or the program announced the blob and
                                        has not set it yet */
    SB_ENCODING_LITTLE_ENDIAN = 1, /**< contiguous, little-endian: a program may copy the values
                                        unchanged */
    SB_ENCODING_SCATTERED = 2,     /**< in several pieces, with other bytes between them */
    SB_ENCODING_MEMORY = 3         /**< not in the file: the blob was set or added */
};

/** A description of a blob in a model. Describing a blob does not load it. */
typedef struct sb_blob_info {
    size_t struct_size;  /**< sizeof(sb_blob_info) of the caller */
    int64_t count;       /**< number of elements, by the blob's shape */
    int64_t data_count;  /**< number of stored values of data, of sb_dtype_size(dtype) bytes each */
    int64_t diff_count;  /**< number of stored values of diff, each of type diff_dtype */
    int64_t offset;      /**< byte offset of the blob's message in the file, or -1 */
    size_t size;         /**< bytes of the blob's message; 0 if the blob is not in the file */
    sb_dtype dtype;      /**< the stored type of data, or of diff if there is no data: SB_DTYPE_F32
                              or F64. In NVCaffe's raw_data also F16, I32, U32. A load can convert
                              values of each type to any float or integer type. Values of F16 can
                              also be loaded as F16 */
    int32_t legacy;      /**< 1 if the message has legacy dimensions: num, channels, height, width.
                              Files of C3D 1.0 also have a length before the height */
    int32_t num_axes;    /**< 0 to SB_MAX_AXES */
    sb_dtype diff_dtype; /**< the stored type of diff; equal to dtype if there is no diff */
    int64_t data_offset; /**< if data_encoding is SB_ENCODING_LITTLE_ENDIAN, the byte offset in the
                              file of the values of data, else -1 */
    int64_t diff_offset; /**< as data_offset, for diff_encoding and the values of diff */
    sb_encoding data_encoding;  /**< SB_ENCODING_* */
    sb_encoding diff_encoding;  /**< SB_ENCODING_* */
    int64_t shape[SB_MAX_AXES]; /**< num_axes dimensions, then zeros */
} sb_blob_info;

/** An empty description, as an initialiser. */
#define SB_BLOB_INFO_INIT                                                                          \
    {                                                                                              \
        sizeof(sb_blob_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {                             \
            0                                                                                      \
        }                                                                                          \
    }

/** Describes a blob.
 *  @param layer a layer or SB_NO_LAYER
 *  @param out the caller sets `struct_size`. The call writes at most `struct_size` bytes
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (a struct_size of no known version), IO, MALFORMED,
 *  BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT (these five only if the file has changed), OUT_OF_MEMORY,
 *  CANCELLED (the last two: from a source). */
SB_API SB_MUST_CHECK sb_status sb_model_blob_info(const sb_model *model, int64_t layer,
                                                  int64_t index, sb_blob_info *out, sb_error *err);

/** Reshapes `blob` and loads the values of a blob of the model into it. Converts and stores the
 *  values as sb_blob_from_proto does, or for a file as sb_blob_load_file does. A blob without
 *  values results in LENGTH_MISMATCH, unless its count is 0. If the program has replaced or added
 *  the blob (sb_model_set_blob, sb_model_add_blob), the call copies the new blob.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (a `blob` of BF16; an announced blob), DTYPE_MISMATCH
 *  (as in sb_blob_from_proto), MALFORMED, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT,
 *  OUT_OF_MEMORY, CAP_REACHED, IO, CANCELLED, UNINITIALIZED (a LOST memory that is larger than the
 *  blob), DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_model_load_blob(const sb_model *model, int64_t layer,
                                                  int64_t index, sb_blob *blob, sb_error *err);

/** Reads a range of a blob's values without loading the blob. Converts the values as
 *  sb_model_load_blob does. From a file or source the call reads only the values of the range. Some
 *  encodings (sb_blob_info) require the call to read earlier values, too.
 *  @param layer a layer or SB_NO_LAYER
 *  @param part SB_DATA or SB_DIFF
 *  @param first linear index of the first value
 *  @param count number of values; 0 is allowed if the part has values
 *  @param dtype a float or an integer type, or SB_DTYPE_F16 if halves are stored
 *  @param buffer [borrowed, nullable when count is 0] `count` values of `dtype`; unspecified
 *      after a failure
 *  @param capacity bytes of `buffer`
 *  Errors: INVALID_ARGUMENT (unknown part), INDEX_OUT_OF_RANGE (the layer, the blob, a value),
 *  BUFFER_TOO_SMALL, UNSUPPORTED (another dtype; an announced blob), DTYPE_MISMATCH (as in
 *  sb_blob_from_proto), MALFORMED, LENGTH_MISMATCH (also a part without values), BAD_SHAPE,
 *  DATA_OVERFLOW, DATA_LIMIT, IO, OUT_OF_MEMORY (from a source), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_read_values(const sb_model *model, int64_t layer,
                                                    int64_t index, sb_part part, int64_t first,
                                                    int64_t count, sb_dtype dtype, void *buffer,
                                                    size_t capacity, sb_error *err);

/** Replaces a blob in the model by a copy of `blob`.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: INDEX_OUT_OF_RANGE, as sb_blob_proto_size, as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_model_set_blob(sb_model *model, int64_t layer, int64_t index,
                                                 const sb_blob *blob, uint32_t flags,
                                                 sb_error *err);

/** Appends a blob to the blobs of a layer or of SB_NO_LAYER. Otherwise the call works as
 *  sb_model_set_blob does.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: as sb_model_set_blob, UNSUPPORTED (a layer in a solver state, a second blob in a
 *  blob file). */
SB_API SB_MUST_CHECK sb_status sb_model_add_blob(sb_model *model, int64_t layer,
                                                 const sb_blob *blob, uint32_t flags,
                                                 sb_error *err);

/** Appends a layer without blobs, in the format SB_LAYER_CURRENT. Name and type may contain any
 *  bytes, including NUL. Readers refuse a name or type of more than sb_limits::max_name_bytes
 *  bytes, by default 65536.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, copied
 *  @param type [borrowed, nullable when type_size is 0] `type_size` bytes, copied
 *  @param out_layer [nullable] the layer's index
 *  Errors: UNSUPPORTED (not a caffemodel), OVER_LIMIT (a text over 2^31 - 1 bytes, protobuf's
 *  limit), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_add_layer(sb_model *model, const char *name,
                                                  size_t name_size, const char *type,
                                                  size_t type_size, int64_t *out_layer,
                                                  sb_error *err);

/** Removes the last layer and its blobs, if the program has added the layer. Meant to undo
 *  sb_model_add_layer if adding a blob fails.
 *  Errors: UNSUPPORTED (no layer was added). */
SB_API SB_MUST_CHECK sb_status sb_model_pop_layer(sb_model *model, sb_error *err);

/** Sets the net's name, which may contain any bytes, as in sb_model_add_layer.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, copied
 *  Errors: as sb_model_add_layer. */
SB_API SB_MUST_CHECK sb_status sb_model_set_name(sb_model *model, const char *name,
                                                 size_t name_size, sb_error *err);

/** All fields of a solver state except its history. */
typedef struct sb_solver_info {
    size_t struct_size;   /**< sizeof(sb_solver_info) of the caller */
    sb_text learned_net;  /**< name of the file that stores the net; empty if absent */
    int32_t iter;         /**< 0 if absent */
    int32_t current_step; /**< 0 if absent */
} sb_solver_info;

/** An empty struct, as an initialiser. */
#define SB_SOLVER_INFO_INIT                                                                        \
    { sizeof(sb_solver_info), {NULL, 0}, 0, 0 }

/** Reads all fields of a solver state except its history.
 *  @param out the caller sets `struct_size`. The call writes at most `struct_size` bytes
 *  Errors: UNSUPPORTED (not a solver state), ABI_MISMATCH (a struct_size of no known version). */
SB_API SB_MUST_CHECK sb_status sb_model_solver_info(const sb_model *model, sb_solver_info *out,
                                                    sb_error *err);

/** Sets iter, learned_net and current_step of a solver state.
 *  @param info [borrowed] learned_net is copied
 *  Errors: UNSUPPORTED (not a solver state; an unknown tail that is not zero), ABI_MISMATCH (a
 *  struct_size of no known version), OVER_LIMIT (learned_net is over 2^31 - 1 bytes),
 *  OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_set_solver_info(sb_model *model, const sb_solver_info *info,
                                                        sb_error *err);

/** Computes the size of the saved model in bytes.
 *  Errors: OVER_LIMIT (over 2^31 - 1 bytes, protobuf's limit), IO, MALFORMED, DATA_LIMIT (the last
 *  three if the file has changed), OUT_OF_MEMORY (from a source), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_size(const sb_model *model, size_t *out, sb_error *err);

/** Saves the model to a buffer. Bytes that were not replaced are copied verbatim, including unknown
 *  fields. If the file has changed since it was opened, the call fails before it writes a byte. If
 *  the file changes during the call, the buffer's contents are unspecified.
 *  @param buffer [borrowed, nullable when capacity is 0] at least sb_model_size bytes
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL the bytes needed
 *  Errors: as sb_model_size, BUFFER_TOO_SMALL, UNSUPPORTED (an announced blob). */
SB_API SB_MUST_CHECK sb_status sb_model_save(const sb_model *model, void *buffer, size_t capacity,
                                             size_t *out_size, sb_error *err);

/** Saves the model to a file, atomically, as in sb_blob_save_file. `path` may be the file that the
 *  model was opened from.
 *  @param path [borrowed] NUL-terminated
 *  Errors: as sb_model_size, IO, UNSUPPORTED (an announced blob). */
SB_API SB_MUST_CHECK sb_status sb_model_save_file(const sb_model *model, const char *path,
                                                  sb_error *err);

/** Saves the model to a sink. For the sink's contents after a failure see sb_sink.
 *  @param sink [borrowed]
 *  Errors: as sb_model_size, UNSUPPORTED (an announced blob, a sink with an unknown tail),
 *  ABI_MISMATCH (a sink of another version). */
SB_API SB_MUST_CHECK sb_status sb_model_save_sink(const sb_model *model, const sb_sink *sink,
                                                  sb_error *err);

#ifdef SB_EXPERIMENTAL

/** Appends a blob as sb_model_add_blob does, but without its values, so that a program can save a
 *  model that does not fit into memory. The function sb_model_save_file_from requests the values
 *  one blob at a time. Until the blob is set, other saves of the model and loads of the blob return
 *  UNSUPPORTED.
 *  @param layer a layer or SB_NO_LAYER
 *  @param like [borrowed] a blob of the same dtype and shape. The call does not access the blob's
 *      values
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (as in sb_model_add_blob), OVER_LIMIT (2^31 - 1 bytes),
 *  OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_announce_blob(sb_model *model, int64_t layer,
                                                      const sb_blob *like, sb_error *err);

/** A callback that lends the values of an announced blob. A save calls the callback once for each
 *  announced blob, in the file's order.
 *  @param layer a layer or SB_NO_LAYER
 *  @param out [borrowed] a blob of the announced dtype and shape. The blob must not change until
 *      the next call of the callback or the end of the save
 *  @return SB_OK, or an error, which the save returns. A callback that fails writes `err` unless
 *      `err` is NULL */
typedef sb_status (*sb_blob_lender)(void *user, int64_t layer, int64_t index, const sb_blob **out,
                                    sb_error *err);

/** As sb_model_save_file, but `lender` lends the values of announced blobs, one blob at a time.
 *  @param path [borrowed] NUL-terminated
 *  @param lender [borrowed]
 *  @param user passed to `lender`
 *  Errors: as sb_model_size, IO, the lender's, DTYPE_MISMATCH, SHAPE_MISMATCH (these two: the lent
 *  blob differs from the announced blob), as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_model_save_file_from(const sb_model *model, const char *path,
                                                       sb_blob_lender lender, void *user,
                                                       sb_error *err);

#endif /* SB_EXPERIMENTAL */

SB_END_DECLS

#endif
