#include "model/save.h"

#include "base/error.h"
#include "blob/blob.h"
#include "proto/encode.h"
#include "wire/file_write.h"

/* Saving copies the opened bytes verbatim, except the fields that edits replace. A message that
   contains edits is written twice: first to a counter, to compute its new length. */
struct save {
    const sb_model *model;
    struct sb__reader *reader;
    struct sb__sink *sink;
    sb_blob_lender lender; /* returns the values of announced blobs, except while counting */
    void *user;
    struct sb__retired *retired; /* storage that was retired while lent blobs were read */
};

/* The position in the model's layers and blobs during a save. */
struct position {
    int64_t layer, next_blob; /* the current layer, and the index of its next blob */
    int64_t next_layer;
    bool appended; /* the layer's added blobs have been written */
    bool changed;  /* an edit was written */
};

/* --- edits ------------------------------------------------------------------ */

static sb_status check_lent(const struct sb__edit *edit, const sb_blob *blob, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "the lent blob");
    if (sb_blob_dtype(blob) != sb_blob_dtype(edit->announced))
        return sb__fail(
            err, SB_ERR_DTYPE_MISMATCH, "blob %lld of layer %lld was announced as %s, lent as %s",
            (long long)edit->index, (long long)edit->layer,
            sb_dtype_name(sb_blob_dtype(edit->announced)), sb_dtype_name(sb_blob_dtype(blob)));
    if (!sb__shape_same(sb__blob_shape(blob), sb__blob_shape(edit->announced)))
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH,
                        "blob %lld of layer %lld was announced with another shape than it now has",
                        (long long)edit->index, (long long)edit->layer);
    return SB_OK;
}

static sb_status put_announced(const struct save *save, const struct sb__edit *edit,
                               sb_error *err) {
    struct sb__encoding encoding;
    const sb_blob *blob = NULL;
    if (sb__sink_counts(save->sink)) {
        save->sink->written += edit->size;
        return SB_OK;
    }
    if (save->sink->status != SB_OK)
        return save->sink->status;
    sb_status st = save->lender(save->user, edit->layer, edit->index, &blob, err);
    if (st == SB_OK)
        st = check_lent(edit, blob, err);
    if (st == SB_OK)
        st = sb__encode_measure(&encoding, blob, 0, err);
    if (st == SB_OK)
        st = sb__encode_fetch(&encoding, save->retired, err);
    if (st == SB_OK)
        sb__encode_pack(&encoding, save->sink);
    return st;
}

static sb_status put_edit(const struct save *save, const struct sb__edit *edit, sb_error *err) {
    if (edit->announced)
        return put_announced(save, edit, err);
    sb__sink_bytes(save->sink, edit->bytes, edit->size);
    return SB_OK;
}

static sb_status put_blob(const struct save *save, uint32_t field, const struct sb__edit *edit,
                          sb_error *err) {
    sb__sink_prefix(save->sink, field, edit->size);
    return put_edit(save, edit, err);
}

/* Writes the edits from `*next` on that belong to the layer. Advances `*next` past these edits. */
static sb_status put_blobs(const struct save *save, uint32_t field, int64_t layer,
                           const struct sb__edit **next, sb_error *err) {
    sb_status st = SB_OK;
    for (; st == SB_OK && *next && (*next)->layer == layer;
         *next = sb__edits_next(&save->model->edits, *next))
        st = put_blob(save, field, *next, err);
    return st;
}

/* Writes the layer's added blobs, unless further blobs of the layer follow in the file. */
static sb_status append_blobs(const struct save *save, const struct sb__layout *layout,
                              struct position *position, sb_error *err) {
    int64_t first, blobs = sb__model_index_blobs(&save->model->index, save->model->format,
                                                 position->layer, &first);
    if (position->appended || position->next_blob < blobs)
        return SB_OK;
    position->appended = true;
    position->changed |= sb__num_blobs(save->model, position->layer) > blobs;
    const struct sb__edit *next = sb__edits_from(&save->model->edits, position->layer, blobs);
    return put_blobs(save, layout->blobs, position->layer, &next, err);
}

/* Writes an added layer and its edits, which begin at `*next`. Advances `*next` past these
   edits. */
static sb_status put_new_layer(const struct save *save, int64_t layer, const struct sb__edit **next,
                               sb_error *err) {
    const sb_model *model = save->model;
    const struct sb__layer *l = &model->new_layers[layer - model->index.num_layers];
    const sb_text name = {l->name, l->name_size}, type = {l->type, l->type_size};
    struct sb__sink count = sb__sink_count();
    const struct save counting = {.model = model, .reader = save->reader, .sink = &count};
    const struct sb__edit *counted = *next;
    sb__pack_layer(&count, name, type);
    (void)put_blobs(&counting, sb__layer_layout.blobs, layer, &counted, NULL); /* cannot fail: a
                                                                        counter accepts all bytes */
    sb__sink_prefix(save->sink, sb__format_layout(model->format)->children[0].field, count.written);
    sb__pack_layer(save->sink, name, type);
    return put_blobs(save, sb__layer_layout.blobs, layer, next, err);
}

void sb__save_head(const sb_model *model, struct sb__sink *sink) {
    if (model->name.bytes)
        sb__pack_net(sink, (sb_text){model->name.bytes, model->name.size});
    if (model->solver_set)
        sb__pack_solver(sink, &model->solver);
}

/* --- the opened bytes ----------------------------------------------------------------- */

struct action {
    bool replaces;                  /* the field is not copied verbatim */
    const struct sb__edit *edit;    /* not NULL: a blob that replaces the field */
    const struct sb__layout *child; /* not NULL: the layout of a message to rewrite */
    int64_t layer;                  /* the layer of the message to rewrite */
};

static bool is_edited(const sb_model *model, int64_t layer) {
    const struct sb__edit *edit = sb__edits_from(&model->edits, layer, 0);
    return edit && edit->layer == layer;
}

bool sb__save_is_in_head(const sb_model *model, const struct sb__layout *layout,
                         const struct sb__field *field) {
    if (layout->is_layer)
        return false;
    if (model->name.bytes && sb__field_is_bytes(field, layout->name))
        return true;
    return model->solver_set && (sb__field_is_bytes(field, layout->learned_net) ||
                                 sb__field_is_varint(field, layout->iter) ||
                                 sb__field_is_varint(field, layout->current_step));
}

static struct action decide(const sb_model *model, const struct sb__layout *layout,
                            const struct sb__field *field, struct position *position) {
    struct action action = {.layer = position->layer};
    const struct sb__layout *child = sb__layout_child(layout, field);
    if (child) {
        if (!layout->is_layer)
            action.layer = position->next_layer++;
        if (is_edited(model, action.layer))
            action.child = child;
    } else if (sb__field_is_bytes(field, layout->blobs)) {
        action.edit = sb__edits_find(&model->edits, position->layer, position->next_blob++);
    }
    action.replaces = action.child || action.edit || sb__save_is_in_head(model, layout, field);
    return action;
}

static sb_status put_message(const struct save *save, const struct sb__layout *layout,
                             uint32_t begin, uint32_t end, struct position *position,
                             sb_error *err);

/* Rewrites a nested message if it has edits, else copies it. A V1 layer that contains a V0 layer
   consists of two messages. Either message may contain all of the layer's edits. */
static sb_status put_child(const struct save *save, const struct sb__field *field,
                           const struct action *action, struct position *position, sb_error *err) {
    struct sb__sink count = sb__sink_count();
    const struct save counting = {.model = save->model, .reader = save->reader, .sink = &count};
    struct position counted = *position;
    counted.changed = false;
    sb_status st = put_message(&counting, action->child, field->begin, field->end, &counted, err);
    if (st != SB_OK)
        return st;
    if (!counted.changed) {
        counted.changed = position->changed;
        *position = counted;
        return sb__sink_span(save->sink, &save->model->source, field->offset, field->end, err);
    }
    sb__sink_prefix(save->sink, field->number, count.written);
    return put_message(save, action->child, field->begin, field->end, position, err);
}

static sb_status put_action(const struct save *save, const struct sb__layout *layout,
                            const struct sb__field *field, const struct action *action,
                            struct position *position, sb_error *err) {
    struct position inside = {.layer = action->layer};
    if (action->edit) {
        position->changed = true;
        return put_blob(save, field->number, action->edit, err);
    }
    if (!action->child)
        return SB_OK;
    return put_child(save, field, action, layout->is_layer ? position : &inside, err);
}

static sb_status put_message(const struct save *save, const struct sb__layout *layout,
                             uint32_t begin, uint32_t end, struct position *position,
                             sb_error *err) {
    const struct sb__path path = {.fields = layout->fields};
    const struct sb__source *source = &save->model->source;
    struct sb__field field = {.end = begin};
    sb_status st;
    while ((st = sb__wire_next(save->reader, &path, end, &field, err)) == SB_OK &&
           field.number != 0) {
        struct action action = decide(save->model, layout, &field, position);
        if (!action.replaces)
            continue;
        st = sb__sink_span(save->sink, source, begin, field.offset, err);
        if (st == SB_OK)
            st = put_action(save, layout, &field, &action, position, err);
        if (st != SB_OK)
            return st;
        begin = field.end;
    }
    if (st == SB_OK)
        st = sb__sink_span(save->sink, source, begin, end, err);
    if (st == SB_OK)
        st = append_blobs(save, layout, position, err);
    return st;
}

static sb_status put_blob_file(const struct save *save, sb_error *err) {
    const struct sb__edit *edit = sb__edits_find(&save->model->edits, SB_NO_LAYER, 0);
    if (!edit)
        return sb__sink_span(save->sink, &save->model->source, 0, save->model->source.size, err);
    return put_edit(save, edit, err);
}

struct saving {
    sb_blob_lender lender;
    void *user;
    struct sb__progress *progress;
    size_t size;
    struct sb__retired retired;
};

/* Writes the model. If `saving` is NULL, only counts its bytes. */
static sb_status put_model(const sb_model *model, struct sb__sink *sink, struct saving *saving,
                           sb_error *err) {
    struct sb__reader reader;
    struct save save = {.model = model, .reader = &reader, .sink = sink};
    if (saving) {
        save.lender = saving->lender;
        save.user = saving->user;
        save.retired = &saving->retired;
    }
    const struct sb__layout *layout = sb__format_layout(model->format);
    struct position position = {.layer = SB_NO_LAYER};
    if (!layout)
        return put_blob_file(&save, err);
    sb__reader_init(&reader, &model->source);
    sb__reader_watch(&reader, sink->progress);
    sb__save_head(model, sink);
    sb_status st = put_message(&save, layout, 0, model->source.size, &position, err);
    const struct sb__edit *next = sb__edits_from(&model->edits, model->index.num_layers, 0);
    for (int64_t i = model->index.num_layers; st == SB_OK && i < sb_model_num_layers(model); i++)
        st = put_new_layer(&save, i, &next, err);
    return st;
}

/* --- calls -------------------------------------------------------------------------------- */

static sb_status measure(const sb_model *model, struct sb__progress *progress, size_t *out,
                         sb_error *err) {
    struct sb__sink count = sb__sink_count();
    count.progress = progress;
    sb_status st = put_model(model, &count, NULL, err);
    if (st != SB_OK)
        return st;
    if (count.written > SB__MAX_MESSAGE_BYTES)
        return sb__fail(err, SB_ERR_OVER_LIMIT,
                        "%llu bytes are more than a protobuf message can have, 2147483647; write "
                        "safetensors, which has no such limit",
                        (unsigned long long)count.written);
    *out = (size_t)count.written;
    return SB_OK;
}

sb_status sb_model_size(const sb_model *model, size_t *out, sb_error *err) {
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    return measure(model, NULL, out, err);
}

static sb_status begin_saving(struct saving *saving, const sb_model *model,
                              struct sb__progress *progress, sb_error *err) {
    saving->progress = sb__progress_begin(progress, &model->progress, 0);
    sb_status st = measure(model, saving->progress, &saving->size, err);
    if (saving->progress)
        saving->progress->total = saving->size;
    return st;
}

/* Writes the model. If the number of written bytes is not saving->size, fails, because the source
   has changed. */
static sb_status put_whole(const sb_model *model, struct sb__sink *sink, struct saving *saving,
                           sb_error *err) {
    sink->progress = saving->progress;
    sink->err = err;
    sb_status st = put_model(model, sink, saving, err);
    if (st == SB_OK)
        st = sb__sink_end(sink);
    if (st == SB_OK)
        st = sb__source_check(&model->source, err);
    if (st == SB_OK && sink->written != saving->size)
        st = sb__source_changed(err);
    return st == SB_OK ? sb__progress_end(saving->progress, err) : st;
}

static sb_status check_values(const sb_model *model, sb_error *err) {
    for (size_t i = 0; i < model->edits.count; i++) {
        const struct sb__edit *edit = &model->edits.items[i];
        if (edit->announced)
            return sb__fail(err, SB_ERR_UNSUPPORTED,
                            "blob %lld of layer %lld was announced without values, which must be "
                            "passed to the save (sb_model_save_file_from)",
                            (long long)edit->index, (long long)edit->layer);
    }
    return SB_OK;
}

sb_status sb_model_save(const sb_model *model, void *buffer, size_t capacity, size_t *out_size,
                        sb_error *err) {
    struct sb__progress progress;
    struct saving saving = {.lender = NULL};
    if (!model)
        return sb__fail_null(err, "model");
    sb_status st = begin_saving(&saving, model, &progress, err);
    if (st == SB_OK)
        st = check_values(model, err);
    if (st != SB_OK)
        return st;
    if (!buffer && capacity > 0)
        return sb__fail_null(err, "buffer");
    if (capacity < saving.size)
        return sb__fail_buffer(err, capacity, saving.size, out_size);
    struct sb__sink sink = sb__sink_memory(buffer, saving.size);
    st = sb__source_check(&model->source, err);
    if (st == SB_OK)
        st = put_whole(model, &sink, &saving, err);
    if (st == SB_OK && out_size)
        *out_size = saving.size;
    return st;
}

/* Not inlined, so that the outlet and the buffers of sb__replacement_begin are not on the stack at
   the same time. */
__attribute__((noinline)) static sb_status put_to(const sb_model *model, const sb_sink *to,
                                                  struct saving *saving, sb_error *err) {
    struct sb__outlet outlet;
    struct sb__sink sink = sb__sink_outlet(&outlet, to);
    return put_whole(model, &sink, saving, err);
}

static sb_status save_file(const sb_model *model, const char *path, struct saving saving,
                           sb_error *err) {
    struct sb__replacement file;
    struct sb__progress progress;
    if (!path)
        return sb__fail_null(err, "path");
    if (!model)
        return sb__fail_null(err, "model");
    sb_status st = begin_saving(&saving, model, &progress, err);
    if (st == SB_OK)
        st = sb__file_write_begin(&file, path, err);
    if (st != SB_OK)
        return st;
    const sb_sink to = sb__file_write_sink(&file);
    st = put_to(model, &to, &saving, err);
    if (st == SB_OK)
        st = sb__file_write_commit(&file, err);
    else
        sb__replacement_cancel(&file);
    sb__retired_end(&saving.retired);
    return st;
}

sb_status sb_model_save_file(const sb_model *model, const char *path, sb_error *err) {
    sb_status st = model ? check_values(model, err) : sb__fail_null(err, "model");
    return st == SB_OK ? save_file(model, path, (struct saving){.lender = NULL}, err) : st;
}

sb_status sb_model_save_file_from(const sb_model *model, const char *path, sb_blob_lender lender,
                                  void *user, sb_error *err) {
    if (!lender)
        return sb__fail_null(err, "lender");
    return save_file(model, path, (struct saving){.lender = lender, .user = user}, err);
}

sb_status sb_model_save_sink(const sb_model *model, const sb_sink *sink, sb_error *err) {
    struct sb__progress progress;
    struct saving saving = {.lender = NULL};
    sb_sink to;
    if (!model || !sink)
        return sb__fail_null(err, model ? "sink" : "model");
    sb_status st = sb__sink_adopt(&to, sink, err);
    if (st == SB_OK)
        st = check_values(model, err);
    if (st == SB_OK)
        st = begin_saving(&saving, model, &progress, err);
    return st == SB_OK ? put_to(model, &to, &saving, err) : st;
}
