#include "model/index.h"

#include "base/checked.h"
#include "base/error.h"
#include "proto/blob_index.h"

#include <stdio.h>
#include <string.h>

/* Two walks over the same bytes build the index: the first checks and counts, the second fills the
   index. The second walk does not trust the counts, since the file may change between the walks. */
struct span {
    uint32_t begin, end;
};

struct texts {
    struct span name, type; /* the last occurrence of each field */
    bool numbered;          /* the type is a V1 number */
    bool has_window;        /* the layer has a field with the number of V1's convolution_param or
                               pooling_param; decides between the layer types of C3D and V1 */
    int32_t type_number;
};

struct builder {
    struct sb__reader *reader;
    const sb_limits *limits;
    struct sb__model_index index;
    bool filling;
    bool is_c3d; /* the net has blobs or layers of C3D 1.0 */
    int64_t room_layers, room_blobs;
    char *text;
    size_t text_bytes, room_text;
    struct span learned_net;
};

/* --- texts -------------------------------------------------------------------- */

static sb_status note_text(const struct builder *b, const struct sb__path *path,
                           const struct sb__field *field, struct span *out, sb_error *err) {
    if (field->end - field->begin > b->limits->max_name_bytes)
        return sb__wire_fail(path, field->number, SB_ERR_DATA_LIMIT, field->offset, err,
                             "%u bytes exceed the limit of %zu for a text",
                             field->end - field->begin, b->limits->max_name_bytes);
    *out = (struct span){field->begin, field->end};
    return SB_OK;
}

/* Reserves `size` bytes and a NUL in the index; sets `*out` only in the second walk. */
static sb_status take_text(struct builder *b, size_t size, char **out, sb_error *err) {
    size_t used = b->text_bytes;
    b->text_bytes += size + 1;
    if (!b->filling)
        return SB_OK;
    if (b->text_bytes > b->room_text)
        return sb__source_changed(err);
    *out = b->text + used;
    return SB_OK;
}

static sb_status keep_text(struct builder *b, struct span span, const char **bytes,
                           uint32_t *out_size, sb_error *err) {
    char *text = NULL;
    uint32_t size = span.end - span.begin;
    *bytes = "";
    *out_size = size;
    if (size == 0)
        return SB_OK;
    sb_status st = take_text(b, size, &text, err);
    if (st != SB_OK || !b->filling)
        return st;
    *bytes = text;
    return sb__reader_copy(b->reader, span.begin, text, size, err);
}

static sb_status keep_type_number(struct builder *b, int32_t number, struct sb__layer *layer,
                                  sb_error *err) {
    char digits[16], *text = NULL;
    layer->type = sb__layer_type_name(number, b->is_c3d);
    if (layer->type) {
        layer->type_size = (uint32_t)strlen(layer->type);
        return SB_OK;
    }
    size_t size = (size_t)snprintf(digits, sizeof digits, "%d", number);
    sb_status st = take_text(b, size, &text, err);
    if (st != SB_OK || !b->filling)
        return st;
    layer->type = memcpy(text, digits, size);
    layer->type_size = (uint32_t)size;
    return SB_OK;
}

static sb_status keep_sb_text(struct builder *b, struct span span, sb_text *out, sb_error *err) {
    uint32_t size;
    sb_status st = keep_text(b, span, &out->bytes, &size, err);
    out->size = size;
    return st;
}

/* --- blobs and layers ------------------------------------------------------------ */

static sb_status add_blob(struct builder *b, const struct sb__path *path,
                          const struct sb__field *field, int64_t first, sb_error *err) {
    struct sb__blob_index blob;
    int64_t index = b->index.num_blobs;
    if (index >= b->limits->max_blobs)
        return sb__wire_fail(path, field->number, SB_ERR_DATA_LIMIT, field->offset, err,
                             "the limit of %lld blobs is exceeded",
                             (long long)b->limits->max_blobs);
    if (b->filling && index >= b->room_blobs)
        return sb__source_changed(err);
    b->index.num_blobs++;
    if (b->filling) {
        b->index.blobs[index] = field->offset;
        return SB_OK;
    }
    const struct sb__path inside = {path, sb__field_name(path->fields, field->number),
                                    index - first, sb__blob_fields};
    sb_status st =
        sb__blob_index(b->reader, &inside, field->begin, field->end, b->limits, &blob, err);
    if (st != SB_OK)
        return st;
    b->is_c3d = b->is_c3d || blob.is_c3d;
    return sb__blob_index_check(&blob, &inside, false, err);
}

static sb_status walk_layer(struct builder *b, const struct sb__layout *layout,
                            const struct sb__path *path, uint32_t begin, uint32_t end,
                            struct sb__layer *layer, struct texts *texts, sb_error *err);

static sb_status walk_layer_field(struct builder *b, const struct sb__layout *layout,
                                  const struct sb__path *path, const struct sb__field *field,
                                  struct sb__layer *layer, struct texts *texts, sb_error *err) {
    if (sb__field_is_bytes(field, layout->blobs))
        return add_blob(b, path, field, layer->first_blob, err);
    if (sb__field_is_bytes(field, layout->name))
        return note_text(b, path, field, &texts->name, err);
    if (sb__field_is_bytes(field, layout->type))
        return note_text(b, path, field, &texts->type, err);
    if (sb__field_is_varint(field, layout->type_number))
        texts->type_number = (int32_t)field->value;
    if (sb__field_is_bytes(field, SB__V1_CONVOLUTION_PARAM) ||
        sb__field_is_bytes(field, SB__V1_POOLING_PARAM))
        texts->has_window = true;
    const struct sb__layout *child = sb__layout_child(layout, field);
    if (!child)
        return SB_OK;
    const struct sb__path inside = {path, "layer", -1, child->fields};
    return walk_layer(b, child, &inside, field->begin, field->end, layer, texts, err);
}

static sb_status walk_layer(struct builder *b, const struct sb__layout *layout,
                            const struct sb__path *path, uint32_t begin, uint32_t end,
                            struct sb__layer *layer, struct texts *texts, sb_error *err) {
    struct sb__field field = {.end = begin};
    sb_status st;
    layer->generation = (uint32_t)layout->generation & 3;
    texts->numbered = layout->type_number != 0;
    while ((st = sb__wire_next(b->reader, path, end, &field, err)) == SB_OK && field.number != 0) {
        st = walk_layer_field(b, layout, path, &field, layer, texts, err);
        if (st != SB_OK)
            return st;
    }
    return st;
}

static sb_status add_layer(struct builder *b, const struct sb__layout *layout,
                           const struct sb__path *path, const struct sb__field *field,
                           sb_error *err) {
    struct texts texts = {.type_number = 0};
    int64_t index = b->index.num_layers;
    struct sb__layer layer = {.offset = field->offset,
                              .first_blob = (uint32_t)b->index.num_blobs & 0x3fffffff};
    if (index >= b->limits->max_layers)
        return sb__wire_fail(path, field->number, SB_ERR_DATA_LIMIT, field->offset, err,
                             "the limit of %lld layers is exceeded",
                             (long long)b->limits->max_layers);
    if (b->filling && index >= b->room_layers)
        return sb__source_changed(err);
    b->index.num_layers++;
    const struct sb__path inside = {path, sb__field_name(path->fields, field->number), index,
                                    layout->fields};
    sb_status st = walk_layer(b, layout, &inside, field->begin, field->end, &layer, &texts, err);
    b->is_c3d = b->is_c3d || (texts.has_window && sb__layer_type_is_c3d(texts.type_number));
    if (st == SB_OK)
        st = keep_text(b, texts.name, &layer.name, &layer.name_size, err);
    if (st == SB_OK && texts.numbered)
        st = keep_type_number(b, texts.type_number, &layer, err);
    else if (st == SB_OK)
        st = keep_text(b, texts.type, &layer.type, &layer.type_size, err);
    if (st != SB_OK || !b->filling)
        return st;
    b->index.layers[index] = layer;
    sb__names_add(&b->index.names, b->index.layers, (uint32_t)index);
    return SB_OK;
}

/* --- whole files ---------------------------------------------------------------------- */

static sb_status walk_file_field(struct builder *b, const struct sb__layout *layout,
                                 const struct sb__path *path, const struct sb__field *field,
                                 struct span *name, sb_error *err) {
    const struct sb__layout *child = sb__layout_child(layout, field);
    bool is_blob = sb__field_is_bytes(field, layout->blobs);
    bool is_name = sb__field_is_bytes(field, layout->name);
    bool is_net = sb__field_is_bytes(field, layout->learned_net);
    bool is_iter = sb__field_is_varint(field, layout->iter);
    bool is_step = sb__field_is_varint(field, layout->current_step);
    if (child || is_blob || is_name || is_net || is_iter || is_step)
        b->index.recognised = true;
    if (child)
        return add_layer(b, child, path, field, err);
    if (is_blob)
        return add_blob(b, path, field, 0, err);
    if (is_name)
        return note_text(b, path, field, name, err);
    if (is_net)
        return note_text(b, path, field, &b->learned_net, err);
    if (is_iter)
        b->index.solver.iter = (int32_t)field->value;
    if (is_step)
        b->index.solver.current_step = (int32_t)field->value;
    return SB_OK;
}

static sb_status walk_file(struct builder *b, const struct sb__layout *layout, sb_error *err) {
    const struct sb__path path = {.fields = layout->fields};
    struct sb__field field = {.end = 0};
    struct span name = {0, 0};
    sb_status st;
    while ((st = sb__wire_next(b->reader, &path, b->reader->source->size, &field, err)) == SB_OK &&
           field.number != 0) {
        st = walk_file_field(b, layout, &path, &field, &name, err);
        if (st != SB_OK)
            return st;
    }
    if (st == SB_OK)
        st = keep_sb_text(b, name, &b->index.name, err);
    if (st == SB_OK)
        st = keep_sb_text(b, b->learned_net, &b->index.solver.learned_net, err);
    return st;
}

static sb_status index_blob_file(struct builder *b, sb_error *err) {
    static const struct sb__path path = {.fields = sb__blob_fields};
    struct sb__blob_index blob;
    sb_status st =
        sb__blob_index(b->reader, &path, 0, b->reader->source->size, b->limits, &blob, err);
    b->index.num_blobs = 1;
    if (st == SB_OK)
        st = sb__blob_index_check_source(&blob, b->reader->source, err);
    return st == SB_OK ? sb__blob_index_check(&blob, &path, false, err) : st;
}

/* Allocates one block for the table of names, the layers, the blobs and the texts, in the order of
   decreasing alignment. */
static sb_status allocate(struct builder *b, sb_context *context, size_t held, sb_error *err) {
    struct sb__model_index *index = &b->index;
    size_t layer_bytes, name_bytes, blob_bytes, total;
    if (!sb__bytes_of(index->num_layers, sizeof *index->layers, &layer_bytes) ||
        !sb__names_bytes(index->num_layers, &name_bytes) ||
        !sb__bytes_of(index->num_blobs, sizeof *index->blobs, &blob_bytes) ||
        !sb__add_size(layer_bytes, name_bytes, &total) ||
        !sb__add_size(total, blob_bytes, &total) ||
        !sb__add_size(total, b->text_bytes, &index->block_bytes) ||
        !sb__add_size(index->block_bytes, held, &total) || total > b->limits->max_memory)
        return sb__fail(err, SB_ERR_DATA_LIMIT,
                        "the index of %lld layers and %lld blobs exceeds the memory limit of %zu "
                        "bytes",
                        (long long)index->num_layers, (long long)index->num_blobs,
                        b->limits->max_memory);
    if (index->block_bytes == 0)
        return SB_OK;
    sb_status st = sb__object_alloc(context, index->block_bytes, &index->block, err);
    if (st != SB_OK)
        return st;
    sb__names_begin(&index->names, index->block,
                    index->num_layers); /* first, because each group of slots is a cache line */
    index->layers = (struct sb__layer *)(void *)((char *)index->block + name_bytes);
    index->blobs = (uint32_t *)(void *)((char *)index->block + layer_bytes + name_bytes);
    b->text = (char *)index->block + layer_bytes + name_bytes + blob_bytes;
    return SB_OK;
}

static sb_status fill(struct builder *b, const struct sb__layout *layout, sb_context *context,
                      size_t held, sb_error *err) {
    sb_status st = allocate(b, context, held, err);
    if (st != SB_OK)
        return st;
    b->filling = true;
    sb__progress_next_walk(b->reader->progress);
    b->room_layers = b->index.num_layers;
    b->room_blobs = b->index.num_blobs;
    b->room_text = b->text_bytes;
    b->index.num_layers = b->index.num_blobs = 0;
    b->text_bytes = 0;
    st = walk_file(b, layout, err);
    if (st == SB_OK &&
        (b->index.num_layers != b->room_layers || b->index.num_blobs != b->room_blobs))
        return sb__source_changed(err);
    return st;
}

sb_status sb__model_index_build(struct sb__model_index *out, sb_context *context, int32_t format,
                                struct sb__reader *reader, const sb_limits *limits, size_t held,
                                sb__index_check *check, const void *user, sb_error *err) {
    const struct sb__layout *layout = sb__format_layout(format);
    struct builder b = {.reader = reader, .limits = limits};
    b.index.name.bytes = b.index.solver.learned_net.bytes = "";
    sb_status st = layout ? walk_file(&b, layout, err) : index_blob_file(&b, err);
    if (st == SB_OK)
        st = check(&b.index, user, err);
    if (st == SB_OK && layout)
        st = fill(&b, layout, context, held, err);
    if (st == SB_OK)
        *out = b.index;
    else
        sb__model_index_free(&b.index, context);
    return st;
}

void sb__model_index_free(struct sb__model_index *index, sb_context *context) {
    sb__object_free(context, index->block, index->block_bytes);
}

int64_t sb__model_index_blobs(const struct sb__model_index *index, int32_t format, int64_t layer,
                              int64_t *first) {
    *first = 0;
    if (layer == SB_NO_LAYER)
        return format == SB_FORMAT_CAFFEMODEL ? 0 : index->num_blobs;
    if (layer < 0 || layer >= index->num_layers)
        return 0;
    *first = index->layers[layer].first_blob;
    int64_t end =
        layer + 1 < index->num_layers ? index->layers[layer + 1].first_blob : index->num_blobs;
    return end - *first;
}
