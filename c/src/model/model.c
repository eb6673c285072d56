#include "model/model.h"

#include "base/error.h"
#include "base/options.h"
#include "format/detect.h"
#include "format/open.h"
#include "format/refusal.h"

#include <string.h>

/* --- opening --------------------------------------------------------------------- */

static sb_status check_format(int32_t format, int32_t lowest, sb_error *err) {
    if (format >= lowest && format <= SB_FORMAT_BLOB_VECTOR)
        return SB_OK;
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "format is %d, which this call does not accept",
                    format);
}

/* Fails if the file has no field of its format: protobuf accepts a message of only unknown
   fields. */
static sb_status check_claim(const sb_model *model, const struct sb__model_index *counted,
                             sb_error *err) {
    if (counted->recognised || model->source.size == 0 || model->format == SB_FORMAT_BLOB)
        return SB_OK;
    return sb__fail_at(err, SB_ERR_MALFORMED, 0, "none of the fields belongs to a %s",
                       sb__format_name(model->format));
}

/* Refuses the caller's format if the fields are recognised as fields of another format. */
static sb_status check_named(const sb_model *model, sb_error *err) {
    bool is_of_another;
    if (model->format == SB_FORMAT_BLOB)
        return SB_OK; /* a blob file was checked while its index was built */
    sb_status st = sb__refusal_is_of_another(&model->source, model->format, &is_of_another, err);
    if (!is_of_another)
        return st;
    return sb__fail_at(err, SB_ERR_MALFORMED, 0, "the fields do not belong to a %s",
                       sb__format_name(model->format));
}

/* Refuses messages of other programs, whatever format the caller passed. A net or a solver state
   that has blobs needs no check; a vector needs the check, because its blobs may be messages of any
   kind. A blob file was checked while its index was built. */
static sb_status check_foreign(const sb_model *model, const struct sb__model_index *counted,
                               sb_error *err) {
    const bool is_ours = counted->num_blobs > 0 && model->format != SB_FORMAT_BLOB_VECTOR;
    bool is_foreign = false;
    sb_status st =
        is_ours ? (sb_status)SB_OK : sb__refusal_is_foreign(&model->source, &is_foreign, err);
    return is_foreign ? sb__refusal_of_foreign(err) : st;
}

struct opening {
    const sb_model *model;
    bool is_found; /* the library detected the format, so check_named need not run */
};

/* Runs the checks that precede the allocation of the index. If a check fails and the file has
   changed since it was opened, reports the change instead. */
static sb_status check_counted(const struct sb__model_index *counted, const void *user,
                               sb_error *err) {
    const struct opening *opening = user;
    const sb_model *model = opening->model;
    sb_error reason;
    sb_status st = check_claim(model, counted, &reason);
    if (st == SB_OK)
        st = check_foreign(model, counted, &reason);
    if (st == SB_OK && !opening->is_found)
        st = check_named(model, &reason);
    if (st == SB_OK)
        return SB_OK;
    const sb_status changed = sb__source_check(&model->source, err);
    if (changed != SB_OK)
        return changed;
    if (err)
        *err = reason;
    return st;
}

static sb_status index_source(sb_model *model, struct sb__reader *reader, sb_error *err) {
    const struct opening opening = {model, model->format == SB_FORMAT_AUTO};
    sb_status st = SB_OK;
    if (opening.is_found) {
        st = sb__detect_format(reader, &model->format, err);
        sb__progress_next_walk(reader->progress);
    }
    if (st == SB_OK)
        st = sb__model_index_build(&model->index, model->context, model->format, reader,
                                   &model->limits, sizeof *model, check_counted, &opening, err);
    if (st != SB_OK)
        return st;
    st = sb__source_check(&model->source, err);
    if (st == SB_OK)
        st = sb__progress_end(reader->progress, err);
    if (st != SB_OK)
        sb__model_index_free(&model->index, model->context);
    return st;
}

/* Opens a model, which owns the source on success. */
static sb_status open_source(sb_context *context, int32_t format, const struct sb__source *source,
                             const sb_limits *limits, const sb_progress *progress, sb_model **out,
                             sb_error *err) {
    void *object;
    struct sb__progress state;
    struct sb__reader reader;
    if (limits->max_memory < sizeof(sb_model))
        return sb__fail(err, SB_ERR_DATA_LIMIT, "a model exceeds the memory limit of %zu bytes",
                        limits->max_memory);
    sb_status st = sb__object_alloc(context, sizeof(sb_model), &object, err);
    if (st != SB_OK)
        return st;
    sb_model *model = object;
    model->context = context;
    model->format = format;
    model->source = *source;
    model->limits = *limits;
    struct sb__progress *watch = sb__progress_begin(&state, progress, source->size);
    if (watch)
        watch->walks = format == SB_FORMAT_AUTO ? 3 : format == SB_FORMAT_BLOB ? 1 : 2;
    sb__reader_init(&reader, &model->source);
    sb__reader_watch(&reader, watch);
    st = index_source(model, &reader, err);
    if (st != SB_OK) {
        sb__refusal_explain(st, format, &reader, err);
        sb__object_free(context, model, sizeof *model);
        return st;
    }
    sb_context_retain(context);
    *out = model;
    return SB_OK;
}

sb_status sb_model_open_bytes(sb_context *context, sb_format format, const void *bytes, size_t size,
                              const sb_limits *limits, sb_deleter deleter, void *user,
                              sb_model **out, sb_error *err) {
    sb_limits resolved;
    struct sb__source source;
    context = sb__context(context);
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = check_format(format, SB_FORMAT_AUTO, err);
    if (st == SB_OK)
        st = sb__limits_resolve(context, limits, &resolved, err);
    if (st == SB_OK)
        st = sb__source_of_bytes(&source, bytes, size, err);
    if (st == SB_OK)
        st = open_source(context, format, &source, &resolved, NULL, out, err);
    if (st != SB_OK)
        return st;
    (*out)->deleter = deleter;
    (*out)->deleter_user = user;
    return SB_OK;
}

sb_status sb_model_open_file(sb_context *context, sb_format format, const char *path,
                             uint32_t flags, const sb_limits *limits, sb_model **out,
                             sb_error *err) {
    sb_limits resolved;
    struct sb__source source;
    context = sb__context(context);
    if (!path || !out)
        return sb__fail_null(err, path ? "out" : "path");
    if (flags & ~(uint32_t)SB_OPEN_MAPPED)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "flags are %u, only SB_OPEN_MAPPED is known",
                        flags);
    sb_status st = check_format(format, SB_FORMAT_AUTO, err);
    if (st == SB_OK)
        st = sb__limits_resolve(context, limits, &resolved, err);
    if (st == SB_OK)
        st = sb__source_open(&source, path, flags & SB_OPEN_MAPPED, err);
    if (st != SB_OK)
        return st;
    st = open_source(context, format, &source, &resolved, NULL, out, err);
    if (st != SB_OK)
        sb__source_close(&source);
    return st;
}

sb_status sb_model_open_source(sb_context *context, sb_format format, const sb_source *source,
                               const sb_limits *limits, const sb_progress *progress, sb_model **out,
                               sb_error *err) {
    sb_limits resolved;
    sb_progress to;
    struct sb__source taken;
    context = sb__context(context);
    if (!source || !out)
        return sb__fail_null(err, source ? "out" : "source");
    sb_status st = check_format(format, SB_FORMAT_AUTO, err);
    if (st == SB_OK)
        st = sb__limits_resolve(context, limits, &resolved, err);
    if (st == SB_OK)
        st = sb__progress_adopt(&to, progress, err);
    if (st == SB_OK)
        st = sb__source_of(&taken, source, err);
    if (st != SB_OK)
        return st;
    return open_source(context, format, &taken, &resolved, &to, out, err);
}

sb_status sb_model_create(sb_context *context, sb_format format, sb_model **out, sb_error *err) {
    void *object;
    context = sb__context(context);
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = check_format(format, SB_FORMAT_BLOB, err);
    if (st == SB_OK)
        st = sb__object_alloc(context, sizeof(sb_model), &object, err);
    if (st != SB_OK)
        return st;
    sb_model *model = object;
    model->context = sb_context_retain(context);
    model->format = format;
    model->limits = context->limits;
    model->index.name.bytes = model->index.solver.learned_net.bytes = "";
    *out = model;
    return SB_OK;
}

static void free_edits(sb_model *model) {
    sb_context *context = model->context;
    for (size_t i = 0; i < model->edits.count; i++)
        sb__edit_free(&model->edits.items[i], context);
    sb__edits_free(&model->edits, context);
    sb__new_layers_free(model);
    sb__own_text_free(&model->name, context);
    sb__own_text_free(&model->learned_net, context);
}

void sb_model_destroy(sb_model *model) {
    if (!model)
        return;
    sb_context *context = model->context;
    if (model->deleter)
        model->deleter(model->deleter_user, (void *)model->source.bytes);
    sb__source_close(&model->source);
    free_edits(model);
    sb__model_index_free(&model->index, context);
    sb__object_free(context, model, sizeof *model);
    sb_context_release(context);
}

sb_status sb_model_set_progress(sb_model *model, const sb_progress *progress, sb_error *err) {
    if (!model)
        return sb__fail_null(err, "model");
    return sb__progress_adopt(&model->progress, progress, err);
}

/* --- contents ------------------------------------------------------------------ */

sb_format sb_model_format(const sb_model *model) {
    return model ? model->format : SB_FORMAT_AUTO;
}

sb_status sb_model_name(const sb_model *model, sb_text *out, sb_error *err) {
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    *out = model->name.bytes ? (sb_text){model->name.bytes, model->name.size} : model->index.name;
    return SB_OK;
}

int64_t sb_model_num_layers(const sb_model *model) {
    return model ? model->index.num_layers + model->num_new_layers : 0;
}

static void describe_layer(const sb_model *model, int64_t layer, sb_layer_info *out) {
    const struct sb__layer *l = layer < model->index.num_layers
                                    ? &model->index.layers[layer]
                                    : &model->new_layers[layer - model->index.num_layers];
    out->name = (sb_text){l->name, l->name_size};
    out->type = (sb_text){l->type, l->type_size};
    out->generation = (sb_layer_generation)l->generation;
}

#define FIRST_LAYER_INFO_SIZE (offsetof(sb_layer_info, reserved) + sizeof(int32_t))

sb_status sb_model_layer_info(const sb_model *model, int64_t layer, sb_layer_info *out,
                              sb_error *err) {
    sb_layer_info info = SB_LAYER_INFO_INIT;
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    sb_status st = sb__check_struct(out->struct_size, FIRST_LAYER_INFO_SIZE, "sb_layer_info", err);
    if (st != SB_OK)
        return st;
    if (!sb__has_layer(model, layer))
        return sb__fail_layer(model, layer, err);
    describe_layer(model, layer, &info);
    info.num_blobs = sb__num_blobs(model, layer);
    sb__give_struct(out, out->struct_size, &info, sizeof info);
    return SB_OK;
}

static int64_t find_layer(const sb_model *model, const char *name, size_t size) {
    int64_t found = sb__names_find(&model->index.names, model->index.layers, name, size);
    if (found >= 0)
        return found;
    found = sb__names_find(&model->new_names, model->new_layers, name, size);
    return found < 0 ? found : model->index.num_layers + found;
}

/* Not inlined: keeps the stack frame of a search small. */
__attribute__((noinline)) static sb_status fail_name(const char *name, size_t size, sb_error *err) {
    char text[64];
    return sb__fail(err, SB_ERR_NOT_FOUND, "no layer is named \"%s\"",
                    sb__escape(name, size, text, sizeof text));
}

sb_status sb_model_find_layer(const sb_model *model, const char *name, size_t name_size,
                              int64_t *out, sb_error *err) {
    if (!model || (!name && name_size > 0) || !out)
        return sb__fail_null(err, !model ? "model" : !out ? "out" : "name");
    const int64_t found = find_layer(model, name, name_size);
    if (found < 0)
        return fail_name(name, name_size, err);
    *out = found;
    return SB_OK;
}

int64_t sb__num_blobs(const sb_model *model, int64_t layer) {
    int64_t first;
    int64_t blobs = sb__model_index_blobs(&model->index, model->format, layer, &first);
    const struct sb__edit *last = sb__edits_last_of(&model->edits, layer);
    return last && last->index >= blobs ? (int64_t)last->index + 1 : blobs;
}

sb_status sb_model_solver_info(const sb_model *model, sb_solver_info *out, sb_error *err) {
    if (!model || !out)
        return sb__fail_null(err, model ? "out" : "model");
    sb_status st =
        sb__check_struct(out->struct_size, SB__FIRST_SOLVER_INFO_SIZE, "sb_solver_info", err);
    if (st != SB_OK)
        return st;
    if (model->format != SB_FORMAT_SOLVERSTATE)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "a %s has no solver state",
                        sb__format_name(model->format));
    const sb_solver_info *info = model->solver_set ? &model->solver : &model->index.solver;
    sb__give_struct(out, out->struct_size, info, sizeof *info);
    return SB_OK;
}
