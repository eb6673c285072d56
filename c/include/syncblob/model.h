/**
 * sb_model: an opened .caffemodel (current `layer`, V1 `layers`, V0 nested
 * layers), .solverstate or BlobProto file. Opening indexes the bytes and
 * checks them; payloads stay where they are until a blob is loaded. Blobs can
 * be replaced and the model saved, every other byte kept as it was.
 *
 * Blobs are addressed by (layer, index). Layer SB_NO_LAYER holds the blobs of
 * no layer: a solver state's history, a blob file's one blob, the blobs of a
 * BlobProtoVector. A V1 layer with a V0 layer in it is one layer; its blobs are those of both, in
 * the order of the file's bytes.
 *
 * If bytes are refused and it is certain what they are instead, such as a web page, an archive or
 * the beginning of a file, the message ends in "; this is ..." and that, however many they are.
 *
 * A model has one owner (open or create, destroy). Calls on a const model are
 * safe beside each other.
 */
#ifndef SYNCBLOB_MODEL_H
#define SYNCBLOB_MODEL_H

#include <syncblob/blob.h>
#include <syncblob/io.h>

SB_BEGIN_DECLS

/** A model file, opened or being made. */
typedef struct sb_model sb_model;

/** What a file is, SB_FORMAT_*. */
typedef int32_t sb_format;

/** What a file is. */
enum {
    SB_FORMAT_AUTO = 0,        /**< found out from the bytes */
    SB_FORMAT_BLOB = 1,        /**< BlobProto: mean.binaryproto */
    SB_FORMAT_CAFFEMODEL = 2,  /**< NetParameter */
    SB_FORMAT_SOLVERSTATE = 3, /**< SolverState */
    SB_FORMAT_BLOB_VECTOR = 4 /**< BlobProtoVector; found by AUTO where the first blob has values: a
                                 net that is nothing but a name of such bytes is taken for one */
};

/** Which of Caffe's generations a layer is written in, SB_LAYER_*. */
typedef int32_t sb_layer_generation;

/** Which of Caffe's generations a layer is written in. */
enum {
    SB_LAYER_CURRENT = 2, /**< NetParameter.layer */
    SB_LAYER_V1 = 1,      /**< NetParameter.layers */
    SB_LAYER_V0 = 0       /**< NetParameter.layers[i].layer */
};

/** The layer of blobs that are of no layer. */
#define SB_NO_LAYER (-1)

/** Flag of sb_model_open_file. */
enum {
    SB_OPEN_MAPPED = 1 << 7 /**< the file is mapped, not read: faster for many small loads; a file
                            that shrinks then raises SIGBUS */
};

/** Opens bytes as a model.
 *  @param context [borrowed, nullable] retained
 *  @param format SB_FORMAT_*; bytes with no field of a format that is named here are MALFORMED,
 *      and so are bytes that are certainly of another format or another program, unless they pass
 *      a limit before that is known (DATA_LIMIT); no bytes at all are an empty message of each
 *  @param bytes [borrowed, nullable when size is 0] must stay as they are until the model is
 *      destroyed
 *  @param limits [borrowed, nullable] the context's
 *  @param deleter [nullable] runs once when the model lets go of the bytes; not
 *      at all when this call fails
 *  @param user passed to `deleter`
 *  @param out [owned] sb_model_destroy
 *  Errors: INVALID_ARGUMENT (no format, a limit below 0), UNSUPPORTED (limits with an unknown
 * tail), ABI_MISMATCH (limits of another version), MALFORMED, LENGTH_MISMATCH, BAD_SHAPE,
 * DATA_OVERFLOW, DATA_LIMIT, OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_open_bytes(sb_context *context, sb_format format,
                                                   const void *bytes, size_t size,
                                                   const sb_limits *limits, sb_deleter deleter,
                                                   void *user, sb_model **out, sb_error *err);

/** Opens a file as a model; it stays open until the model is destroyed.
 *  @param context [borrowed, nullable] retained
 *  @param format SB_FORMAT_*
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_OPEN_MAPPED
 *  @param limits [borrowed, nullable] the context's
 *  @param out [owned] sb_model_destroy
 *  Errors: as sb_model_open_bytes, INVALID_ARGUMENT (unknown flag), IO (errno in device_code). */
SB_API SB_MUST_CHECK sb_status sb_model_open_file(sb_context *context, sb_format format,
                                                  const char *path, uint32_t flags,
                                                  const sb_limits *limits, sb_model **out,
                                                  sb_error *err);

/** Opens a source as a model.
 *  @param context [borrowed, nullable] retained
 *  @param format SB_FORMAT_*
 *  @param source [borrowed] copied; its `close` runs when the model is destroyed, and not at
 *      all when this call fails
 *  @param limits [borrowed, nullable] the context's
 *  @param progress [borrowed, nullable] told of this call alone; see sb_model_set_progress
 *  @param out [owned] sb_model_destroy
 *  Errors: as sb_model_open_bytes, IO, CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_open_source(sb_context *context, sb_format format,
                                                    const sb_source *source,
                                                    const sb_limits *limits,
                                                    const sb_progress *progress, sb_model **out,
                                                    sb_error *err);

/** Who is told of the calls on this model that take long, from now on: each load of a blob and
 *  each read of its values, of the bytes of its message, and each save, of those of the model.
 *  Calls on several threads each tell of their own, on their thread.
 *  @param progress [borrowed, nullable] copied; NULL: nobody
 *  Errors: UNSUPPORTED (unknown tail), ABI_MISMATCH (of another version). */
SB_API SB_MUST_CHECK sb_status sb_model_set_progress(sb_model *model, const sb_progress *progress,
                                                     sb_error *err);

/** An empty model, to be built in memory and saved.
 *  @param context [borrowed, nullable] retained
 *  @param format SB_FORMAT_*, not AUTO
 *  @param out [owned] sb_model_destroy
 *  Errors: INVALID_ARGUMENT (no format, or AUTO), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_create(sb_context *context, sb_format format,
                                               sb_model **out, sb_error *err);

/** Ends the model, closes its file or source or lets go of its bytes. @param model [owned,
 * nullable] */
SB_API void sb_model_destroy(sb_model *model);

/** SB_FORMAT_*, found out or given. */
SB_API sb_format sb_model_format(const sb_model *model);

/** A text of the file: `size` bytes, followed by a NUL that does not count;
 *  it may hold any byte. */
typedef struct sb_text {
    const char *bytes; /**< [borrowed] lives as long as the model, or until the text is set or its
                          layer popped */
    size_t size;       /**< without the NUL */
} sb_text;

/** The net's name; empty when there is none.
 *  @param out [borrowed] its bytes are, until the name is set or the model ends
 *  Errors: none. */
SB_API SB_MUST_CHECK sb_status sb_model_name(const sb_model *model, sb_text *out, sb_error *err);

/** Layers, those without blobs included. */
SB_API int64_t sb_model_num_layers(const sb_model *model);

/** What a layer is. */
typedef struct sb_layer_info {
    size_t struct_size; /**< sizeof(sb_layer_info) of the caller */
    sb_text name;       /**< may be empty, and another layer's too */
    sb_text type;       /**< as text; a V1 layer's enum by its name ("CONVOLUTION"), an unknown
                             number as decimal digits */
    int64_t num_blobs;  /**< 0 for most layers without weights */
    sb_layer_generation generation; /**< SB_LAYER_* */
    int32_t reserved;               /**< 0 */
} sb_layer_info;

/** Nothing known, as an initialiser. */
#define SB_LAYER_INFO_INIT                                                                         \
    { sizeof(sb_layer_info), {NULL, 0}, {NULL, 0}, 0, 0, 0 }

/** What a layer is. @param layer 0..num_layers-1
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (struct_size is no version's). */
SB_API SB_MUST_CHECK sb_status sb_model_layer_info(const sb_model *model, int64_t layer,
                                                   sb_layer_info *out, sb_error *err);

/** The first layer of that name: one step, however many layers there are and whatever
 *  their names are.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, of any value
 *  @param out its index
 *  Errors: NOT_FOUND. */
SB_API SB_MUST_CHECK sb_status sb_model_find_layer(const sb_model *model, const char *name,
                                                   size_t name_size, int64_t *out, sb_error *err);

/** A layer's message (LayerParameter; V1LayerParameter of an old net, see sb_layer_info) without
 * its blobs: what readers of a net's topology need. All other fields are those of the file, unknown
 *  ones included. Of a file or source little more is read than what is returned.
 *  @param layer 0..num_layers-1; SB_NO_LAYER: the message of the model itself, without layers and
 *      blobs (of a net its name, inputs and state)
 *  @param buffer [borrowed, nullable when capacity is 0] receives the message
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL those needed
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (a file that is one blob), BUFFER_TOO_SMALL, OVER_LIMIT
 *  (over 2^31 - 1, protobuf's limit), IO,
 *  MALFORMED, DATA_LIMIT (these three where the file is not what it was), OUT_OF_MEMORY, CANCELLED
 *  (both a source's). */
SB_API SB_MUST_CHECK sb_status sb_model_layer_message(const sb_model *model, int64_t layer,
                                                      void *buffer, size_t capacity,
                                                      size_t *out_size, sb_error *err);

/** Blobs of a layer or of SB_NO_LAYER. Errors: INDEX_OUT_OF_RANGE. */
SB_API SB_MUST_CHECK sb_status sb_model_num_blobs(const sb_model *model, int64_t layer,
                                                  int64_t *out, sb_error *err);

/** How the values of a blob are stored, SB_ENCODING_*. */
typedef int32_t sb_encoding;

/** How the values of a blob are stored. */
enum {
    SB_ENCODING_NONE = 0, /**< there are none, or not yet (an announced blob) */
    SB_ENCODING_LITTLE_ENDIAN =
        1,                     /**< one after the other, little-endian: may be copied as they are */
    SB_ENCODING_SCATTERED = 2, /**< in several pieces, between other bytes */
    SB_ENCODING_MEMORY = 3     /**< not in the file: the blob was set or added */
};

/** What a blob is, without loading it. */
typedef struct sb_blob_info {
    size_t struct_size;  /**< sizeof(sb_blob_info) of the caller */
    int64_t count;       /**< elements of its shape */
    int64_t data_count;  /**< values of data present, of sb_dtype_size(dtype) bytes; 0: none */
    int64_t diff_count;  /**< values of diff present, of sb_dtype_size(diff_dtype); 0: none */
    int64_t offset;      /**< where its message begins in the file, -1 if not from a file */
    size_t size;         /**< bytes of its message in the file; 0 if not from a file */
    sb_dtype dtype;      /**< what its data (or, without data, its diff) is stored as: SB_DTYPE_F32,
                             F64, and in NVCaffe's raw_data also F16, I32, U32. Loading takes any
                             into floats or integers, and F16 into F16 */
    int32_t legacy;      /**< 1 if the shape came from num, channels, height, width */
    int32_t num_axes;    /**< 0 to SB_MAX_AXES */
    sb_dtype diff_dtype; /**< what its diff is stored as; without one, dtype */
    int64_t data_offset; /**< where the values of data begin in the file: data_count of dtype, with
                              SB_ENCODING_LITTLE_ENDIAN; else -1 */
    int64_t diff_offset; /**< the same of diff: diff_count of diff_dtype */
    sb_encoding data_encoding;  /**< SB_ENCODING_* */
    sb_encoding diff_encoding;  /**< SB_ENCODING_* */
    int64_t shape[SB_MAX_AXES]; /**< num_axes dimensions, then zeros */
} sb_blob_info;

/** Nothing known, as an initialiser. */
#define SB_BLOB_INFO_INIT                                                                          \
    {                                                                                              \
        sizeof(sb_blob_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {                             \
            0                                                                                      \
        }                                                                                          \
    }

/** What a blob is. @param layer a layer or SB_NO_LAYER
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: INDEX_OUT_OF_RANGE, ABI_MISMATCH (struct_size is no version's), IO, MALFORMED,
 *  BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT (all but the first two where the file is not what it was),
 *  OUT_OF_MEMORY, CANCELLED (both a source's). */
SB_API SB_MUST_CHECK sb_status sb_model_blob_info(const sb_model *model, int64_t layer,
                                                  int64_t index, sb_blob_info *out, sb_error *err);

/** Loads a blob into `blob`, which takes its shape. Conversions, and where the
 *  values go, as in sb_blob_from_proto; a file's as in sb_blob_load_file. A blob
 *  without payload is LENGTH_MISMATCH unless its count is 0. A replaced blob is
 *  copied.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (target of BF16; an announced blob), DTYPE_MISMATCH (as
 *  there), MALFORMED, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT, OUT_OF_MEMORY,
 *  CAP_REACHED, IO, CANCELLED, UNINITIALIZED (a LOST memory with room for more than the count),
 *  DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_model_load_blob(const sb_model *model, int64_t layer,
                                                  int64_t index, sb_blob *blob, sb_error *err);

/** Reads values of a blob, a range of its elements, without loading all. They are converted as by
 *  sb_model_load_blob. Of a file or source the values of the range are read, and of those before
 *  them what the encoding demands (sb_blob_info).
 *  @param layer a layer or SB_NO_LAYER
 *  @param part SB_DATA or SB_DIFF
 *  @param first the first value, by its linear index
 *  @param count values; 0 is fine where the part has values
 *  @param dtype a float or an integer, or SB_DTYPE_F16 where halves are stored
 *  @param buffer [borrowed, nullable when count is 0] `count` values of `dtype`; unspecified
 *      after a failure
 *  @param capacity bytes of `buffer`
 *  Errors: INVALID_ARGUMENT (no part), INDEX_OUT_OF_RANGE (the layer, the blob, a value),
 *  BUFFER_TOO_SMALL, UNSUPPORTED (another dtype; an announced blob), DTYPE_MISMATCH (as in
 *  sb_blob_from_proto), MALFORMED, LENGTH_MISMATCH (a part without values, too), BAD_SHAPE,
 *  DATA_OVERFLOW, DATA_LIMIT, IO, OUT_OF_MEMORY (a source's), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_read_values(const sb_model *model, int64_t layer,
                                                    int64_t index, sb_part part, int64_t first,
                                                    int64_t count, sb_dtype dtype, void *buffer,
                                                    size_t capacity, sb_error *err);

/** Replaces a blob in the model by a copy of `blob` as it is now.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: INDEX_OUT_OF_RANGE, as sb_blob_proto_size, as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_model_set_blob(sb_model *model, int64_t layer, int64_t index,
                                                 const sb_blob *blob, uint32_t flags,
                                                 sb_error *err);

/** Adds a blob at the end of a layer's, or of SB_NO_LAYER's; otherwise as
 *  sb_model_set_blob.
 *  @param layer a layer or SB_NO_LAYER
 *  @param blob [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: as sb_model_set_blob, UNSUPPORTED (a layer in a solver state, a second blob in a
 *  blob file). */
SB_API SB_MUST_CHECK sb_status sb_model_add_blob(sb_model *model, int64_t layer,
                                                 const sb_blob *blob, uint32_t flags,
                                                 sb_error *err);

/** Adds a layer without blobs in the current form, at the end. Name and type are bytes of any
 *  value, NUL among them. Who reads them allows max_name_bytes each (sb_limits), 65536 unless
 *  more was asked for.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, copied
 *  @param type [borrowed, nullable when type_size is 0] `type_size` bytes, copied
 *  @param out_layer [nullable] its index
 *  Errors: UNSUPPORTED (not a caffemodel), OVER_LIMIT (a text over 2^31 - 1 bytes, protobuf's
 *  limit), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_add_layer(sb_model *model, const char *name,
                                                  size_t name_size, const char *type,
                                                  size_t type_size, int64_t *out_layer,
                                                  sb_error *err);

/** Takes the last layer away again, with its blobs, if it was added and is not the file's: for
 *  whoever adds a layer and its blobs, and wants both or neither.
 *  Errors: UNSUPPORTED (no layer was added). */
SB_API SB_MUST_CHECK sb_status sb_model_pop_layer(sb_model *model, sb_error *err);

/** Names the net, by bytes as of sb_model_add_layer.
 *  @param name [borrowed, nullable when name_size is 0] `name_size` bytes, copied
 *  Errors: as sb_model_add_layer. */
SB_API SB_MUST_CHECK sb_status sb_model_set_name(sb_model *model, const char *name,
                                                 size_t name_size, sb_error *err);

/** A solver state beside its history. */
typedef struct sb_solver_info {
    size_t struct_size;   /**< sizeof(sb_solver_info) of the caller */
    sb_text learned_net;  /**< file that stores the net; empty when there is none */
    int32_t iter;         /**< 0 when there is none */
    int32_t current_step; /**< 0 when there is none */
} sb_solver_info;

/** Nothing, as an initialiser. */
#define SB_SOLVER_INFO_INIT                                                                        \
    { sizeof(sb_solver_info), {NULL, 0}, 0, 0 }

/** What a solver state holds beside its history.
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: UNSUPPORTED (not a solver state), ABI_MISMATCH (struct_size is no version's). */
SB_API SB_MUST_CHECK sb_status sb_model_solver_info(const sb_model *model, sb_solver_info *out,
                                                    sb_error *err);

/** Sets iter, learned_net and current_step of a solver state.
 *  @param info [borrowed] learned_net is copied
 *  Errors: UNSUPPORTED (not a solver state; an unknown tail that is not zero), ABI_MISMATCH
 *  (struct_size is no version's), OVER_LIMIT (learned_net is over 2^31 - 1 bytes), OUT_OF_MEMORY,
 *  CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_set_solver_info(sb_model *model, const sb_solver_info *info,
                                                        sb_error *err);

/** Bytes that the model takes when saved.
 *  Errors: OVER_LIMIT (over 2^31 - 1, protobuf's limit), IO, MALFORMED, DATA_LIMIT (these three
 *  where the file is not what it was), OUT_OF_MEMORY (of a source), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_model_size(const sb_model *model, size_t *out, sb_error *err);

/** The model as bytes: what was not replaced is copied verbatim, unknown
 *  fields included. A file that is not what it was is found before a byte is
 *  written; if it changes meanwhile, the buffer's contents are unspecified.
 *  @param buffer [borrowed, nullable when capacity is 0] at least sb_model_size bytes
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL those needed
 *  Errors: as sb_model_size, BUFFER_TOO_SMALL, UNSUPPORTED (an announced blob). */
SB_API SB_MUST_CHECK sb_status sb_model_save(const sb_model *model, void *buffer, size_t capacity,
                                             size_t *out_size, sb_error *err);

/** The same into a file, atomically, as in sb_blob_save_file; it may be the one
 *  the model was opened from.
 *  @param path [borrowed] NUL-terminated
 *  Errors: as sb_model_size, IO, UNSUPPORTED (an announced blob). */
SB_API SB_MUST_CHECK sb_status sb_model_save_file(const sb_model *model, const char *path,
                                                  sb_error *err);

/** The same into a sink; io.h says what a failure leaves there.
 *  @param sink [borrowed]
 *  Errors: as sb_model_size, UNSUPPORTED (an announced blob, a sink with an unknown tail),
 *  ABI_MISMATCH (a sink of another version). */
SB_API SB_MUST_CHECK sb_status sb_model_save_sink(const sb_model *model, const sb_sink *sink,
                                                  sb_error *err);

#ifdef SB_EXPERIMENTAL

/** Adds a blob like sb_model_add_blob, but without its values, which
 *  sb_model_save_file_from asks for: so a model can be saved that memory would not
 *  hold. Other ways to save or load the blob are UNSUPPORTED until it is set.
 *  @param layer a layer or SB_NO_LAYER
 *  @param like [borrowed] of its dtype and shape; its bytes are not touched
 *  Errors: INDEX_OUT_OF_RANGE, UNSUPPORTED (as in sb_model_add_blob), OVER_LIMIT (2^31 - 1 bytes),
 *  OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_model_announce_blob(sb_model *model, int64_t layer,
                                                      const sb_blob *like, sb_error *err);

/** Lends the values of an announced blob, once each, in the file's order.
 *  @param layer a layer or SB_NO_LAYER
 *  @param out [borrowed] a blob of the announced dtype and shape, which stays as it
 *      is until the next call or the end of the save
 *  @return SB_OK, or a status that the save ends with; then it has written `err`, if not NULL */
typedef sb_status (*sb_blob_lender)(void *user, int64_t layer, int64_t index, const sb_blob **out,
                                    sb_error *err);

/** As sb_model_save_file, the values of announced blobs asked for one at a time.
 *  @param path [borrowed] NUL-terminated
 *  @param lender [borrowed]
 *  @param user passed to `lender`
 *  Errors: as sb_model_size, IO, the lender's, DTYPE_MISMATCH, SHAPE_MISMATCH (what it lent is not
 *  what was announced), as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_model_save_file_from(const sb_model *model, const char *path,
                                                       sb_blob_lender lender, void *user,
                                                       sb_error *err);

#endif /* SB_EXPERIMENTAL */

SB_END_DECLS

#endif
