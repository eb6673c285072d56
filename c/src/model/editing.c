#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "model/model.h"
#include "proto/encode.h"

#include <string.h>

#define SMALL_BYTES ((size_t)4096)

/* Returns the flags of an allocation. Small buffers are allocated as objects, because object
   allocations are cheaper and a net has many small buffers. */
static uint32_t flags_of(size_t size) {
    return size < SMALL_BYTES ? SB_ALLOC_OBJECT : 0;
}

void sb__edit_free(const struct sb__edit *edit, sb_context *context) {
    if (edit->bytes)
        sb__ordinary_free(context, edit->bytes, edit->size, flags_of(edit->size));
    sb_blob_destroy(edit->announced);
}

static sb_status reserve_edit(sb_model *model, sb_error *err) {
    return sb__edits_reserve(&model->edits, model->context, err);
}

/* Replaces or adds an edit. The caller has reserved room. */
static void put_edit(sb_model *model, struct sb__edit edit) {
    struct sb__edit *place = sb__edits_find(&model->edits, edit.layer, edit.index);
    if (!place) {
        sb__edits_add(&model->edits, &edit);
        return;
    }
    const struct sb__edit old = *place;
    edit.before = old.before;
    edit.behind = old.behind;
    *place = edit;
    sb__edit_free(&old, model->context);
}

/* --- blobs ----------------------------------------------------------------------------- */

static sb_status put_blob(sb_model *model, int64_t layer, int64_t index, const sb_blob *blob,
                          uint32_t flags, sb_error *err) {
    struct sb__encoding encoding;
    struct sb__retired retired = {NULL, NULL};
    void *bytes;
    sb_status st = sb__encode_measure(&encoding, blob, flags, err);
    if (st == SB_OK)
        st = reserve_edit(model, err);
    if (st == SB_OK)
        st =
            sb__ordinary_alloc(model->context, encoding.size, flags_of(encoding.size), &bytes, err);
    if (st != SB_OK)
        return st;
    st = sb__encode_fetch(&encoding, &retired, err);
    if (st == SB_OK) {
        struct sb__sink sink = sb__sink_memory(bytes, encoding.size);
        sb__encode_pack(&encoding, &sink);
        put_edit(model, (struct sb__edit){.layer = (int32_t)layer,
                                          .index = (int32_t)index,
                                          .bytes = bytes,
                                          .size = encoding.size});
    } else {
        sb__ordinary_free(model->context, bytes, encoding.size, flags_of(encoding.size));
    }
    sb__retired_end(&retired); /* last, because a caller's deleter may edit the model */
    return st;
}

sb_status sb_model_set_blob(sb_model *model, int64_t layer, int64_t index, const sb_blob *blob,
                            uint32_t flags, sb_error *err) {
    if (!model)
        return sb__fail_null(err, "model");
    if (index < 0 || index >= sb__num_blobs(model, layer))
        return sb__fail_blob(model, layer, index, err);
    return put_blob(model, layer, index, blob, flags, err);
}

static sb_status check_add(const sb_model *model, int64_t layer, sb_error *err) {
    bool net = model->format == SB_FORMAT_CAFFEMODEL;
    if (net != (layer != SB_NO_LAYER))
        return sb__fail(err, SB_ERR_UNSUPPORTED, "a %s has blobs %s",
                        sb__format_name(model->format), net ? "in layers only" : "outside layers");
    if (net && !sb__has_layer(model, layer))
        return sb__fail_layer(model, layer, err);
    if (model->format == SB_FORMAT_BLOB && sb__num_blobs(model, SB_NO_LAYER) > 0)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "a blob file has one blob, which exists already");
    return SB_OK;
}

sb_status sb_model_add_blob(sb_model *model, int64_t layer, const sb_blob *blob, uint32_t flags,
                            sb_error *err) {
    if (!model)
        return sb__fail_null(err, "model");
    sb_status st = check_add(model, layer, err);
    if (st != SB_OK)
        return st;
    return put_blob(model, layer, sb__num_blobs(model, layer), blob, flags, err);
}

/* Creates a blob with the dtype and shape of `like`. Allocates no memory for values. */
static sb_status make_announced(sb_context *context, const sb_blob *like, sb_blob **out,
                                sb_error *err) {
    sb_status st = sb_blob_create(context, sb_blob_dtype(like), out, err);
    if (st == SB_OK && sb_blob_is_shaped(like)) /* cannot fail: `like` has this shape */
        sb__ignore(sb_blob_reshape(*out, sb_blob_shape(like), sb_blob_num_axes(like), NULL, NULL));
    return st;
}

sb_status sb_model_announce_blob(sb_model *model, int64_t layer, const sb_blob *like,
                                 sb_error *err) {
    struct sb__encoding encoding;
    sb_blob *blob;
    if (!model || !like)
        return sb__fail_null(err, model ? "like" : "model");
    sb_status st = check_add(model, layer, err);
    if (st == SB_OK)
        st = sb__encode_measure(&encoding, like, 0, err);
    if (st == SB_OK)
        st = reserve_edit(model, err);
    if (st == SB_OK)
        st = make_announced(model->context, like, &blob, err);
    if (st != SB_OK)
        return st;
    int64_t index = sb__num_blobs(model, layer);
    put_edit(model, (struct sb__edit){.layer = (int32_t)layer,
                                      .index = (int32_t)index,
                                      .announced = blob,
                                      .size = encoding.size});
    return SB_OK;
}

/* --- texts --------------------------------------------------------------------------------- */

static sb_status check_text(size_t size, sb_error *err) {
    if (size <= SB__MAX_MESSAGE_BYTES)
        return SB_OK;
    return sb__fail(err, SB_ERR_OVER_LIMIT,
                    "a text of %zu bytes is more than a protobuf message can have, 2147483647",
                    size);
}

/* Copies a text and a NUL. Returns the address after the NUL. */
static char *put_text(char *to, const char *bytes, size_t size) {
    if (size > 0)
        memcpy(to, bytes, size);
    to[size] = '\0';
    return to + size + 1;
}

void sb__own_text_free(struct sb__own_text *text, sb_context *context) {
    sb__object_free(context, text->bytes, text->size + 1);
}

static sb_status set_text(sb_model *model, struct sb__own_text *text, const char *bytes,
                          size_t size, sb_error *err) {
    void *copy;
    sb_status st = check_text(size, err);
    if (st == SB_OK)
        st = sb__object_alloc(model->context, size + 1, &copy, err);
    if (st != SB_OK)
        return st;
    (void)put_text(copy, bytes, size);
    sb__own_text_free(text, model->context);
    *text = (struct sb__own_text){copy, size};
    return SB_OK;
}

static sb_status check_net(const sb_model *model, const char *what, sb_error *err) {
    if (model->format == SB_FORMAT_CAFFEMODEL)
        return SB_OK;
    return sb__fail(err, SB_ERR_UNSUPPORTED, "a %s has no %s", sb__format_name(model->format),
                    what);
}

sb_status sb_model_set_name(sb_model *model, const char *name, size_t name_size, sb_error *err) {
    if (!model || (!name && name_size > 0))
        return sb__fail_null(err, model ? "name" : "model");
    sb_status st = check_net(model, "name", err);
    return st == SB_OK ? set_text(model, &model->name, name, name_size, err) : st;
}

sb_status sb_model_set_solver_info(sb_model *model, const sb_solver_info *info, sb_error *err) {
    if (!model || !info)
        return sb__fail_null(err, model ? "info" : "model");
    sb_solver_info set = SB_SOLVER_INFO_INIT;
    sb_status st = sb__adopt_struct(&set, sizeof set, SB__FIRST_SOLVER_INFO_SIZE, info,
                                    info->struct_size, "sb_solver_info", err);
    if (st != SB_OK)
        return st;
    if (!set.learned_net.bytes && set.learned_net.size > 0)
        return sb__fail_null(err, "learned_net");
    if (model->format != SB_FORMAT_SOLVERSTATE)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "a %s has no solver state",
                        sb__format_name(model->format));
    st = set_text(model, &model->learned_net, set.learned_net.bytes, set.learned_net.size, err);
    if (st != SB_OK)
        return st;
    set.learned_net.bytes = model->learned_net.bytes;
    model->solver = set;
    model->solver_set = true;
    return SB_OK;
}

/* --- layers --------------------------------------------------------------------------------- */

static sb_status reserve_layer(sb_model *model, sb_error *err) {
    const int64_t room = 2 * model->room_new_layers + 4;
    struct sb__names names;
    size_t layer_bytes, name_bytes, bytes;
    void *block = NULL;
    if (model->num_new_layers < model->room_new_layers)
        return SB_OK;
    if (!sb__bytes_of(room, sizeof *model->new_layers, &layer_bytes) ||
        !sb__names_bytes(room, &name_bytes) || !sb__add_size(layer_bytes, name_bytes, &bytes))
        return sb__fail_memory(err, SIZE_MAX);
    sb_status st = sb__object_grow(model->context, &block, 0, bytes, err);
    if (st != SB_OK)
        return st;
    if (model->new_layers)
        memcpy(block, model->new_layers, (size_t)model->num_new_layers * sizeof *model->new_layers);
    memset((char *)block + layer_bytes, 0, name_bytes);
    sb__names_begin(&names, (char *)block + layer_bytes, room);
    sb__names_move(&names, &model->new_names);
    sb__object_free(model->context, model->new_layers, model->new_layers_bytes);
    model->new_layers = block;
    model->new_layers_bytes = bytes;
    model->room_new_layers = room;
    model->new_names = names;
    return SB_OK;
}

static size_t text_bytes(const struct sb__layer *layer) {
    return (size_t)layer->name_size + 1 + layer->type_size + 1;
}

void sb__new_layers_free(sb_model *model) {
    sb__texts_free(&model->new_texts, model->context);
    sb__object_free(model->context, model->new_layers, model->new_layers_bytes);
}

sb_status sb_model_pop_layer(sb_model *model, sb_error *err) {
    if (!model)
        return sb__fail_null(err, "model");
    if (model->num_new_layers == 0)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "the model has no added layer to remove");
    const int64_t last = --model->num_new_layers, layer = model->index.num_layers + last;
    for (const struct sb__edit *edit;
         (edit = sb__edits_last(&model->edits)) && edit->layer == layer;) {
        const struct sb__edit popped = sb__edits_pop(&model->edits);
        sb__edit_free(&popped, model->context);
    }
    sb__names_take_back(&model->new_names, model->new_layers, (uint32_t)last);
    sb__texts_release(&model->new_texts, model->context, text_bytes(&model->new_layers[last]));
    return SB_OK;
}

sb_status sb_model_add_layer(sb_model *model, const char *name, size_t name_size, const char *type,
                             size_t type_size, int64_t *out_layer, sb_error *err) {
    char *texts;
    if (!model || (!name && name_size > 0) || (!type && type_size > 0))
        return sb__fail_null(err, !model ? "model" : !type && type_size > 0 ? "type" : "name");
    sb_status st = check_net(model, "layers", err);
    if (st == SB_OK)
        st = check_text(name_size, err);
    if (st == SB_OK)
        st = check_text(type_size, err);
    if (st == SB_OK)
        st = reserve_layer(model, err);
    if (st == SB_OK)
        st = sb__texts_take(&model->new_texts, model->context, name_size + 1 + type_size + 1,
                            &texts, err);
    if (st != SB_OK)
        return st;
    if (out_layer)
        *out_layer = sb_model_num_layers(model);
    const int64_t at = model->num_new_layers++;
    model->new_layers[at] = (struct sb__layer){.name = texts,
                                               .type = put_text(texts, name, name_size),
                                               .name_size = (uint32_t)name_size,
                                               .type_size = (uint32_t)type_size,
                                               .generation = SB_LAYER_CURRENT};
    (void)put_text(texts + name_size + 1, type, type_size);
    sb__names_add(&model->new_names, model->new_layers, (uint32_t)at);
    return SB_OK;
}
