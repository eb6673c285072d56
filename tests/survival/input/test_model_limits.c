/* What a model may ask for, by the limits of the caller. test_memory.c has the defaults. */
#include "nets.h"
#include "rig.h"

#include <string.h>

static const int64_t two[] = {2};

static sb_status open_limited(sb_context *context, const struct wire *wire, int32_t format,
                              const sb_limits *limits, sb_model **out, sb_error *err) {
    return sb_model_open_bytes(context, format, wire->bytes, wire->size, limits, NULL, NULL, out,
                               err);
}

/* Five layers of two blobs each; a name of 10 bytes. */
static void five_layers(struct wire *net) {
    wire_text(net, 1, "0123456789");
    for (int i = 0; i < 5; i++) {
        struct wire layer = {0};
        wire_text(&layer, 1, "0123456789");
        wire_text(&layer, 2, "0123456789");
        wire_blob_field(&layer, 7, two, 1, 0);
        wire_blob_field(&layer, 7, two, 1, 0);
        wire_message(net, 100, &layer);
        wire_free(&layer);
    }
}

TEST(test_each_limit_is_exact) {
    static const struct {
        const char *claim;
        sb_limits limits;
        sb_status status;
    } rows[] = {
        {"defaults", {sizeof(sb_limits), 0, 0, 0, 0, 0}, SB_OK},
        {"5 layers of 5", {sizeof(sb_limits), 0, 5, 0, 0, 0}, SB_OK},
        {"5 layers of 4", {sizeof(sb_limits), 0, 4, 0, 0, 0}, SB_ERR_DATA_LIMIT},
        {"10 blobs of 10", {sizeof(sb_limits), 0, 0, 10, 0, 0}, SB_OK},
        {"10 blobs of 9", {sizeof(sb_limits), 0, 0, 9, 0, 0}, SB_ERR_DATA_LIMIT},
        {"names of 10", {sizeof(sb_limits), 0, 0, 0, 10, 0}, SB_OK},
        {"names of 10, of 9", {sizeof(sb_limits), 0, 0, 0, 9, 0}, SB_ERR_DATA_LIMIT},
        {"1 axis of 1", {sizeof(sb_limits), 0, 0, 0, 0, 1}, SB_OK},
        {"memory for no index", {sizeof(sb_limits), 100, 0, 0, 0, 0}, SB_ERR_DATA_LIMIT},
    };
    struct wire wire = {0};
    five_layers(&wire);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        sb_model *model = NULL;
        rig_open_on(&rig, NULL, SB_CONTEXT_NO_HOST_CACHE);
        print_message("  %s\n", rows[i].claim);
        assert_status(rows[i].status, open_limited(rig.context, &wire, SB_FORMAT_AUTO,
                                                   &rows[i].limits, &model, &err));
        sb_model_destroy(model);
        rig_close(&rig);
    }
    wire_free(&wire);
}

TEST(test_texts_of_solver_states_are_limited) {
    sb_limits limits = SB_LIMITS_INIT;
    struct wire wire = {0};
    sb_model *model;
    limits.max_name_bytes = 3;
    wire_text(&wire, 2, "four");
    assert_status(SB_ERR_DATA_LIMIT,
                  open_limited(NULL, &wire, SB_FORMAT_SOLVERSTATE, &limits, &model, &err));
    assert_true(strstr(err.message, "learned_net: 4 bytes exceed the limit of 3") != NULL);
    wire_free(&wire);
}

TEST(test_an_empty_model_takes_its_object) {
    const struct wire none = {0};
    struct rig rig;
    sb_limits limits = SB_LIMITS_INIT;
    sb_model *model = NULL;
    rig_open_on(&rig, NULL, SB_CONTEXT_NO_HOST_CACHE);
    const size_t before = rig.counting.live_bytes;
    while (!model && limits.max_memory++ < 4000)
        (void)open_limited(rig.context, &none, SB_FORMAT_CAFFEMODEL, &limits, &model, &err);
    assert_int_equal(rig.counting.live_bytes - before, limits.max_memory);
    sb_model_destroy(model);
    rig_close(&rig);
}

TEST(test_the_contexts_limits_are_the_default) {
    sb_limits limits = SB_LIMITS_INIT;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    struct wire wire = {0};
    sb_model *model;
    limits.max_layers = 4;
    options.limits = &limits;
    assert_ok(sb_context_create(&options, &context, &err));
    five_layers(&wire);
    assert_status(SB_ERR_DATA_LIMIT,
                  open_limited(context, &wire, SB_FORMAT_AUTO, NULL, &model, &err));
    limits.max_layers = 5;
    assert_ok(open_limited(context, &wire, SB_FORMAT_AUTO, &limits, &model, &err));
    sb_model_destroy(model);
    sb_context_release(context);
    wire_free(&wire);
}
