/* Copies a layer's message without its blobs, or the file's outermost message without layers and
   blobs. Programs read the net's topology from the copies. Reads no values. */
#include "base/error.h"
#include "model/model.h"
#include "model/save.h"

struct message {
    const sb_model *model;
    struct sb__reader *reader;
    struct sb__sink *sink;
};

static sb_status put_fields(const struct message *m, const struct sb__layout *layout,
                            uint32_t begin, uint32_t end, sb_error *err);

/* Does nothing unless the V0 layer inside a V1 layer (`field`) has blobs. Copies the V1 layer's
   bytes from `*begin` to the end of `field`, without these blobs. Sets `*begin` to that end. */
static sb_status put_inner(const struct message *m, const struct sb__layout *layout,
                           const struct sb__field *field, uint32_t *begin, sb_error *err) {
    struct sb__sink count = sb__sink_count();
    const struct message counting = {m->model, m->reader, &count};
    sb_status st = put_fields(&counting, layout, field->begin, field->end, err);
    if (st != SB_OK || count.written == field->end - field->begin)
        return st;
    st = sb__sink_span(m->sink, &m->model->source, *begin, field->offset, err);
    if (st != SB_OK)
        return st;
    *begin = field->end;
    sb__sink_prefix(m->sink, field->number, count.written);
    return put_fields(m, layout, field->begin, field->end, err);
}

/* Copies fields, except blobs, the layers of a net and the fields that sb__save_head replaces. */
static sb_status put_fields(const struct message *m, const struct sb__layout *layout,
                            uint32_t begin, uint32_t end, sb_error *err) {
    const struct sb__path path = {.fields = layout->fields};
    const struct sb__source *source = &m->model->source;
    struct sb__field field = {.end = begin};
    sb_status st;
    while ((st = sb__wire_next(m->reader, &path, end, &field, err)) == SB_OK && field.number != 0) {
        const struct sb__layout *child = sb__layout_child(layout, &field);
        if (!child && !sb__field_is_bytes(&field, layout->blobs) &&
            !sb__save_is_in_head(m->model, layout, &field))
            continue;
        if (child && layout->is_layer) {
            st = put_inner(m, child, &field, &begin, err);
        } else {
            st = sb__sink_span(m->sink, source, begin, field.offset, err);
            begin = field.end;
        }
        if (st != SB_OK)
            return st;
    }
    return st == SB_OK ? sb__sink_span(m->sink, source, begin, end, err) : st;
}

static sb_status put_layer(const struct message *m, const struct sb__layer *layer, sb_error *err) {
    const struct sb__layout *net = sb__format_layout(m->model->format);
    const struct sb__path path = {.fields = net->fields};
    struct sb__field field = {.end = layer->offset};
    sb_status st = sb__wire_next(m->reader, &path, m->model->source.size, &field, err);
    if (st != SB_OK)
        return st;
    const struct sb__layout *layout = sb__layout_child(net, &field);
    return layout ? put_fields(m, layout, field.begin, field.end, err) : sb__source_changed(err);
}

static sb_status put(const struct message *m, int64_t layer, sb_error *err) {
    const sb_model *model = m->model;
    const int64_t old_layers = model->index.num_layers;
    if (layer >= old_layers) {
        const struct sb__layer *added = &model->new_layers[layer - old_layers];
        sb__pack_layer(m->sink, (sb_text){added->name, added->name_size},
                       (sb_text){added->type, added->type_size});
        return SB_OK;
    }
    if (layer != SB_NO_LAYER)
        return put_layer(m, &model->index.layers[layer], err);
    sb__save_head(model, m->sink);
    return put_fields(m, sb__format_layout(model->format), 0, model->source.size, err);
}

static sb_status check(const sb_model *model, int64_t layer, sb_error *err) {
    if (!model)
        return sb__fail_null(err, "model");
    if (!sb__format_layout(model->format))
        return sb__fail(err, SB_ERR_UNSUPPORTED, "a blob file has no message besides its blob");
    if (layer == SB_NO_LAYER || sb__has_layer(model, layer))
        return SB_OK;
    return sb__fail_layer(model, layer, err);
}

static sb_status put_whole(const sb_model *model, int64_t layer, struct sb__sink *sink,
                           sb_error *err) {
    struct sb__reader reader;
    const struct message m = {model, &reader, sink};
    sb__reader_init(&reader, &model->source);
    return put(&m, layer, err);
}

sb_status sb_model_layer_message(const sb_model *model, int64_t layer, void *buffer,
                                 size_t capacity, size_t *out_size, sb_error *err) {
    struct sb__sink count = sb__sink_count();
    sb_status st = check(model, layer, err);
    if (st == SB_OK)
        st = put_whole(model, layer, &count, err);
    if (st != SB_OK)
        return st;
    if (count.written > SB__MAX_MESSAGE_BYTES) /* possible if the program has set long texts */
        return sb__fail(err, SB_ERR_OVER_LIMIT,
                        "%llu bytes are more than a protobuf message can have, 2147483647",
                        (unsigned long long)count.written);
    const size_t size = (size_t)count.written;
    if (!buffer && capacity > 0)
        return sb__fail_null(err, "buffer");
    if (capacity < size)
        return sb__fail_buffer(err, capacity, size, out_size);
    struct sb__sink sink = sb__sink_memory(buffer, size);
    st = put_whole(model, layer, &sink, err);
    if (st == SB_OK)
        st = sb__source_check(&model->source, err);
    if (st == SB_OK && sink.written != size)
        st = sb__source_changed(err);
    if (st == SB_OK && out_size)
        *out_size = size;
    return st;
}
