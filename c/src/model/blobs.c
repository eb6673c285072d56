#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "blob/blob.h"
#include "format/open.h"
#include "model/model.h"
#include "proto/read_blob.h"

#include <string.h>

static const sb_blob *announced(const sb_model *model, int64_t layer, int64_t index) {
    const struct sb__edit *edit = sb__edits_find(&model->edits, layer, index);
    return edit ? edit->announced : NULL;
}

static sb_status fail_announced(int64_t layer, int64_t index, sb_error *err) {
    return sb__fail(err, SB_ERR_UNSUPPORTED,
                    "blob %lld of layer %lld was announced, but its values are not in the model",
                    (long long)index, (long long)layer);
}

/* Where a blob's message is: in the file, or in an edit. */
struct located {
    struct sb__source source; /* the bytes of an edit, if `edited` */
    uint32_t begin, end;
    bool edited;
    struct sb__path file, layer, blob; /* each path is nested in the previous path */
};

static const struct sb__field_name *layer_fields(const sb_model *model, int64_t layer) {
    const struct sb__layout *v1 = sb__format_layout(SB_FORMAT_CAFFEMODEL)->children[1].layout;
    int32_t generation = (int32_t)model->index.layers[layer].generation;
    return generation == SB_LAYER_CURRENT ? sb__layer_layout.fields : v1->fields;
}

/* Sets the paths that error messages give for the blob. For an edit the paths remain empty, because
   the library has encoded the edit's bytes. */
static void locate_path(const sb_model *model, int64_t layer, int64_t index, struct located *at) {
    const struct sb__layout *layout = sb__format_layout(model->format);
    at->blob = (struct sb__path){.fields = sb__blob_fields};
    if (!layout || at->edited)
        return;
    at->file = (struct sb__path){.fields = layout->fields};
    at->blob.parent = &at->file;
    at->blob.index = index;
    at->blob.name = sb__field_name(layout->fields, layout->blobs);
    if (layer == SB_NO_LAYER)
        return;
    at->layer = (struct sb__path){&at->file, "layer", layer, layer_fields(model, layer)};
    at->blob.parent = &at->layer;
    at->blob.name = "blobs";
}

static sb_status locate_indexed(const sb_model *model, int64_t index, struct sb__reader *reader,
                                struct located *at, sb_error *err) {
    at->begin = 0;
    at->end = model->source.size;
    if (model->format == SB_FORMAT_BLOB)
        return SB_OK;
    struct sb__field field = {.end = model->index.blobs[index]};
    sb_status st = sb__wire_next(reader, at->blob.parent, model->source.size, &field, err);
    if (st != SB_OK)
        return st;
    if (field.type != SB__WIRE_BYTES)
        return sb__source_changed(err);
    at->begin = field.begin;
    at->end = field.end;
    return SB_OK;
}

bool sb__has_layer(const sb_model *model, int64_t layer) {
    return layer >= 0 && layer < sb_model_num_layers(model);
}

sb_status sb__fail_layer(const sb_model *model, int64_t layer, sb_error *err) {
    return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                    "the model has no layer %lld; its number of layers is %lld", (long long)layer,
                    (long long)sb_model_num_layers(model));
}

sb_status sb__fail_blob(const sb_model *model, int64_t layer, int64_t index, sb_error *err) {
    if (layer != SB_NO_LAYER && !sb__has_layer(model, layer))
        return sb__fail_layer(model, layer, err);
    const long long blobs = (long long)sb__num_blobs(model, layer);
    if (layer == SB_NO_LAYER)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                        "there is no blob %lld outside of layers; the number of such blobs is %lld",
                        (long long)index, blobs);
    return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                    "layer %lld has no blob %lld; its number of blobs is %lld", (long long)layer,
                    (long long)index, blobs);
}

sb_status sb_model_num_blobs(const sb_model *model, int64_t layer, int64_t *out, sb_error *err) {
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    if (layer != SB_NO_LAYER && !sb__has_layer(model, layer))
        return sb__fail_layer(model, layer, err);
    *out = sb__num_blobs(model, layer);
    return SB_OK;
}

static sb_status locate(const sb_model *model, int64_t layer, int64_t index,
                        struct sb__reader *reader, struct located *at, sb_error *err) {
    int64_t first, blobs = sb__num_blobs(model, layer);
    if (index < 0 || index >= blobs)
        return sb__fail_blob(model, layer, index, err);
    const struct sb__edit *edit = sb__edits_find(&model->edits, layer, index);
    at->edited = edit != NULL;
    locate_path(model, layer, index, at);
    if (edit) {
        at->begin = 0;
        at->end = (uint32_t)edit->size;
        (void)sb__source_of_bytes(&at->source, edit->bytes, edit->size, err); /* cannot fail: the
                                                                                 size fits */
        sb__reader_init(reader, &at->source);
        return SB_OK;
    }
    (void)sb__model_index_blobs(&model->index, model->format, layer, &first);
    sb__reader_init(reader, &model->source);
    return locate_indexed(model, first + index, reader, at, err);
}

/* Sets the encoding of a payload's values. Returns the offset of values that are contiguous in the
   file, else -1. */
static int64_t place(const struct sb__payload *payload, bool edited, sb_encoding *encoding) {
    const bool together = payload->parts == 1;
    *encoding = payload->count == 0 ? SB_ENCODING_NONE
                : edited            ? SB_ENCODING_MEMORY
                : together          ? SB_ENCODING_LITTLE_ENDIAN
                                    : SB_ENCODING_SCATTERED;
    return *encoding == SB_ENCODING_LITTLE_ENDIAN ? (int64_t)payload->begin : -1;
}

static void describe(const struct sb__blob_index *blob, const struct located *at,
                     sb_blob_info *out) {
    *out = (sb_blob_info){.count = blob->shape.count,
                          .data_count = blob->data.count,
                          .diff_count = blob->diff.count,
                          .offset = at->edited ? -1 : (int64_t)at->begin,
                          .size = at->edited ? 0 : at->end - at->begin,
                          .dtype = sb__blob_index_dtype(blob),
                          .legacy = blob->legacy,
                          .num_axes = blob->shape.num_axes};
    out->diff_dtype = blob->diff.count > 0 ? blob->diff.dtype : out->dtype;
    out->data_offset = place(&blob->data, at->edited, &out->data_encoding);
    out->diff_offset = place(&blob->diff, at->edited, &out->diff_encoding);
    memcpy(out->shape, blob->shape.dims, (size_t)out->num_axes * sizeof *out->shape);
}

static void describe_announced(const sb_blob *blob, sb_blob_info *out) {
    *out = (sb_blob_info){.count = sb_blob_count(blob),
                          .offset = -1,
                          .data_offset = -1,
                          .diff_offset = -1,
                          .dtype = sb_blob_dtype(blob),
                          .diff_dtype = sb_blob_dtype(blob),
                          .num_axes = sb_blob_num_axes(blob)};
    memcpy(out->shape, sb__blob_shape(blob)->dims, (size_t)out->num_axes * sizeof *out->shape);
}

#define FIRST_INFO_SIZE (offsetof(sb_blob_info, shape) + SB_MAX_AXES * sizeof(int64_t))

sb_status sb_model_blob_info(const sb_model *model, int64_t layer, int64_t index, sb_blob_info *out,
                             sb_error *err) {
    struct sb__reader reader;
    struct located at;
    struct sb__blob_index blob;
    sb_blob_info info;
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    sb_status st = sb__check_struct(out->struct_size, FIRST_INFO_SIZE, "sb_blob_info", err);
    if (st != SB_OK)
        return st;
    if (announced(model, layer, index)) {
        describe_announced(announced(model, layer, index), &info);
    } else {
        st = locate(model, layer, index, &reader, &at, err);
        if (st == SB_OK)
            st = sb__blob_index(&reader, &at.blob, at.begin, at.end, &model->limits, &blob, err);
        if (st != SB_OK)
            return st;
        describe(&blob, &at, &info);
    }
    sb__give_struct(out, out->struct_size, &info, sizeof info);
    return SB_OK;
}

sb_status sb_model_load_blob(const sb_model *model, int64_t layer, int64_t index, sb_blob *blob,
                             sb_error *err) {
    struct sb__reader reader;
    struct sb__progress progress;
    struct located at;
    if (!model || !blob)
        return sb__fail_null(err, model ? "blob" : "model");
    const struct sb__read_blob how = {true, false, sizeof *model + model->index.block_bytes,
                                      &model->limits};
    if (announced(model, layer, index))
        return fail_announced(layer, index, err);
    sb_status st = sb__check_read_dtype(sb_blob_dtype(blob), err);
    if (st == SB_OK)
        st = locate(model, layer, index, &reader, &at, err);
    if (st != SB_OK)
        return st;
    sb__reader_watch(&reader, sb__progress_begin(&progress, &model->progress, at.end - at.begin));
    return sb__read_blob(blob, &reader, &at.blob, at.begin, at.end, &how, err);
}

sb_status sb_model_read_values(const sb_model *model, int64_t layer, int64_t index, sb_part part,
                               int64_t first, int64_t count, sb_dtype dtype, void *buffer,
                               size_t capacity, sb_error *err) {
    struct sb__reader reader;
    struct sb__progress progress;
    struct located at;
    size_t bytes;
    if (!model)
        return sb__fail_null(err, "model");
    sb_status st = sb__check_part(part, err);
    if (st == SB_OK)
        st = sb__check_read_dtype(dtype, err);
    if (st != SB_OK)
        return st;
    if (first < 0 || count < 0 || first > INT64_MAX - count)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                        "the range of %lld values from value %lld on is negative or too large",
                        (long long)count, (long long)first);
    if (!sb__bytes_of(count, sb_dtype_size(dtype), &bytes) || bytes > capacity)
        return sb__fail(err, SB_ERR_BUFFER_TOO_SMALL, "%zu bytes are too few for %lld values of %s",
                        capacity, (long long)count, sb_dtype_name(dtype));
    if (count > 0 && !buffer)
        return sb__fail_null(err, "buffer");
    if (announced(model, layer, index))
        return fail_announced(layer, index, err);
    st = locate(model, layer, index, &reader, &at, err);
    if (st != SB_OK)
        return st;
    sb__reader_watch(&reader, sb__progress_begin(&progress, &model->progress, at.end - at.begin));
    const struct sb__values wanted = {part, first, count, dtype};
    return sb__read_values(&reader, &at.blob, at.begin, at.end, &model->limits, &wanted, buffer,
                           err);
}
