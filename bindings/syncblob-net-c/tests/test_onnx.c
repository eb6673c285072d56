/* Tests that nets are saved as ONNX to buffers, sinks and files. */
#include "files.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/net.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns NULL if the test data are missing. */
static sb_net *real_net(int number) {
    char name[64], prototxt[512], model[512];
    snprintf(name, sizeof name, "nets/mtcnn_kpzhang93_det%d.prototxt", number);
    if (!test_data_path(name, prototxt, sizeof prototxt))
        return NULL;
    snprintf(name, sizeof name, "mtcnn_kpzhang93_det%d.caffemodel", number);
    if (!test_data_path(name, model, sizeof model))
        return NULL;
    sb_net *net;
    assert_ok(sb_net_open_file(prototxt, model, NULL, &net, &err));
    return net;
}

static sb_net *det1(void) {
    sb_net *net = real_net(1);
    if (!net)
        skip();
    return net;
}

/* The caller frees the file with wire_free. */
static struct wire onnx_of(const sb_net *net, const sb_onnx_options *options) {
    struct wire file = {NULL, 0, 0};
    assert_status(SB_ERR_BUFFER_TOO_SMALL,
                  sb_net_save_onnx(net, options, NULL, 0, &file.size, &err));
    file.room = file.size;
    file.bytes = malloc(file.size);
    assert_non_null(file.bytes);
    test_own_loan(file.bytes, free);
    assert_ok(sb_net_save_onnx(net, options, file.bytes, file.size, &file.size, &err));
    assert_int_equal(file.size, file.room);
    return file;
}

static void assert_same(const struct wire *a, const struct wire *b) {
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->bytes, b->bytes, a->size);
}

static bool has(const struct wire *file, const char *text) {
    return memmem(file->bytes, file->size, text, strlen(text)) != NULL;
}

/* --- buffers --------------------------------------------------------------------------------- */

TEST(a_buffer_that_is_too_small_is_unchanged) {
    sb_net *net = det1();
    struct wire file = onnx_of(net, NULL);
    size_t size = 0;
    file.bytes[0] ^= 0xff;
    const uint8_t first = file.bytes[0];
    assert_status(SB_ERR_BUFFER_TOO_SMALL,
                  sb_net_save_onnx(net, NULL, file.bytes, file.size - 1, &size, &err));
    assert_int_equal(size, file.size);
    assert_int_equal(file.bytes[0], first);
    assert_ok(sb_net_save_onnx(net, NULL, file.bytes, file.size, NULL, &err));
    assert_int_not_equal(file.bytes[0], first);
    wire_free(&file);
    sb_net_destroy(net);
}

TEST(files_of_real_nets_contain_their_names) {
    static const char *const outputs[] = {"conv4-2", "conv5-2", "conv6-3"};
    for (int i = 0; i < 3; i++) {
        sb_net *net = real_net(i + 1);
        if (!net)
            skip();
        struct wire file = onnx_of(net, NULL);
        assert_true(has(&file, "prob1"));
        assert_true(has(&file, outputs[i]));
        wire_free(&file);
        sb_net_destroy(net);
    }
}

TEST(options_change_the_file) {
    sb_net *net = det1();
    const sb_text output = {"conv3", 5};
    const float mean[] = {104, 117, 123};
    const sb_onnx_entry entry = {{"whose", 5}, {"nobody's", 8}};
    struct wire whole = onnx_of(net, NULL);
    sb_onnx_options options = SB_ONNX_OPTIONS_INIT;

    options.outputs = &output;
    options.num_outputs = 1;
    struct wire file = onnx_of(net, &options);
    assert_true(has(&whole, "prob1") && !has(&file, "prob1") && has(&file, "conv3"));
    wire_free(&file);

    options = (sb_onnx_options)SB_ONNX_OPTIONS_INIT;
    options.batch = (sb_text){"images", 6};
    options.metadata = &entry;
    options.num_metadata = 1;
    file = onnx_of(net, &options);
    assert_true(has(&file, "images") && has(&file, "nobody's"));
    wire_free(&file);

    options = (sb_onnx_options)SB_ONNX_OPTIONS_INIT;
    options.mean = mean;
    options.num_mean = 3;
    options.scale = 0.0078125F;
    options.swap_rb = 1;
    file = onnx_of(net, &options);
    assert_true(has(&file, "data/preprocessed") && !has(&whole, "data/preprocessed"));
    wire_free(&file);

    options = (sb_onnx_options)SB_ONNX_OPTIONS_INIT;
    options.half = 1;
    file = onnx_of(net, &options);
    assert_true(file.size < whole.size * 2 / 3);
    wire_free(&file);
    wire_free(&whole);
    sb_net_destroy(net);
}

static const float numbers[4];
static const struct {
    const char *what;
    sb_onnx_options options;
    sb_status expected;
} wrong_options[] = {
    {"size", {.struct_size = 16}, SB_ERR_ABI_MISMATCH},
    {"outputs", {sizeof(sb_onnx_options), .num_outputs = 1}, SB_ERR_INVALID_ARGUMENT},
    {"outputs below 0", {sizeof(sb_onnx_options), .num_outputs = -1}, SB_ERR_INVALID_ARGUMENT},
    {"batch", {sizeof(sb_onnx_options), .batch = {NULL, 1}}, SB_ERR_INVALID_ARGUMENT},
    {"half", {sizeof(sb_onnx_options), .half = 2}, SB_ERR_INVALID_ARGUMENT},
    {"custom", {sizeof(sb_onnx_options), .custom = 2}, SB_ERR_INVALID_ARGUMENT},
    {"shapes", {sizeof(sb_onnx_options), .num_shapes = 1}, SB_ERR_INVALID_ARGUMENT},
    {"swap", {sizeof(sb_onnx_options), .swap_rb = -1}, SB_ERR_INVALID_ARGUMENT},
    {"mean", {sizeof(sb_onnx_options), .num_mean = 3}, SB_ERR_INVALID_ARGUMENT},
    {"metadata", {sizeof(sb_onnx_options), .num_metadata = 1}, SB_ERR_INVALID_ARGUMENT},
    {"channels",
     {sizeof(sb_onnx_options), .mean = numbers, .num_mean = 4},
     SB_ERR_INVALID_ARGUMENT},
    {"image",
     {sizeof(sb_onnx_options), .mean = numbers, .num_mean = 4, .mean_height = 3, .mean_width = 1},
     SB_ERR_INVALID_ARGUMENT},
    {"below 0",
     {sizeof(sb_onnx_options), .mean = numbers, .num_mean = 4, .mean_height = -2, .mean_width = -2},
     SB_ERR_INVALID_ARGUMENT},
    {"huge",
     {sizeof(sb_onnx_options), .mean = numbers, .num_mean = 4, .mean_height = INT64_MAX,
      .mean_width = INT64_MAX},
     SB_ERR_INVALID_ARGUMENT},
};

TEST(invalid_options_are_refused) {
    sb_net *net = det1();
    for (size_t i = 0; i < sizeof wrong_options / sizeof *wrong_options; i++) {
        size_t size = 5;
        const sb_status st = sb_net_save_onnx(net, &wrong_options[i].options, NULL, 0, &size, &err);
        if (st != wrong_options[i].expected || size != 5)
            fail_with("%s: %s", wrong_options[i].what, sb_status_name(st));
    }
    sb_net_destroy(net);
}

TEST(null_arguments_are_refused) {
    sb_net *net = det1();
    const sb_sink sink = SB_SINK_INIT;
    char buffer[1];
    assert_names_null("net", sb_net_save_onnx(NULL, NULL, buffer, 1, NULL, &err));
    assert_names_null("buffer", sb_net_save_onnx(net, NULL, NULL, 1, NULL, &err));
    assert_names_null("sink", sb_net_save_onnx_sink(net, NULL, NULL, &err));
    assert_names_null("write", sb_net_save_onnx_sink(net, NULL, &sink, &err));
    assert_names_null("path", sb_net_save_onnx_file(net, NULL, NULL, &err));
    assert_int_equal(sb_net_save_onnx(NULL, NULL, NULL, 0, NULL, NULL), SB_ERR_INVALID_ARGUMENT);
    sb_net_destroy(net);
}

/* --- layers that cannot be converted --------------------------------------------------------- */

struct found {
    int problems;
    char words[512];
};

static void count_problem(void *user, const sb_net_problem *problem) {
    struct found *found = user;
    const size_t used = strlen(found->words);
    found->problems++;
    snprintf(found->words + used, sizeof found->words - used, "%s (%s): %s\n", problem->layer.bytes,
             problem->type.bytes, problem->reason.bytes);
}

TEST(every_layer_that_cannot_be_converted_is_reported) {
    static const char prototxt[] =
        "input: \"data\" input_dim: 1 input_dim: 1 input_dim: 2 input_dim: 2"
        " layer { name: \"a\" type: \"Python\" bottom: \"data\" top: \"a\" }"
        " layer { name: \"b\" type: \"Newest\" bottom: \"data\" top: \"b\" }";
    struct found found = {0, ""};
    sb_onnx_options options = SB_ONNX_OPTIONS_INIT;
    options.report = count_problem;
    options.user = &found;
    sb_net *net;
    assert_ok(sb_net_open(prototxt, sizeof prototxt - 1, NULL, NULL, &net, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_net_save_onnx(net, &options, NULL, 0, NULL, &err));
    assert_int_equal(found.problems, 2);
    assert_non_null(strstr(found.words, "a (Python): "));
    assert_non_null(strstr(found.words, "b (Newest): "));
    assert_non_null(strstr(err.message, "layer 'a' (Python)"));
    assert_non_null(strstr(err.message, "; and 1 more"));
    assert_status(SB_ERR_UNSUPPORTED, sb_net_save_onnx_file(net, NULL, "never.onnx", &err));
    assert_int_not_equal(access("never.onnx", F_OK), 0);
    sb_net_destroy(net);
}

static void count_warning(void *user, sb_text text) {
    struct found *found = user;
    const size_t used = strlen(found->words);
    found->problems++;
    snprintf(found->words + used, sizeof found->words - used, "%s\n", text.bytes);
}

TEST(differences_of_the_file_are_reported) {
    static const char prototxt[] =
        "input: \"data\" input_shape { dim: 1 }"
        " layer { name: \"in\" type: \"Bias\" bottom: \"data\" top: \"data\""
        "         bias_param { axis: 0 filler { type: \"constant\" value: 1e6 } } }";
    struct found found = {0, ""};
    sb_onnx_options options = SB_ONNX_OPTIONS_INIT;
    options.half = 1;
    options.warn = count_warning;
    options.user = &found;
    sb_net *net;
    sb_model *model;
    sb_error err;
    assert_ok(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, &err));
    assert_ok(sb_net_open(prototxt, sizeof prototxt - 1, model, NULL, &net, &err));
    struct wire file = onnx_of(net, &options);
    assert_int_equal(found.problems, 2);
    assert_non_null(strstr(found.words, "the output 'data' is called"));
    assert_non_null(strstr(found.words, "are beyond the range of halves"));
    wire_free(&file);
    sb_net_destroy(net);
    sb_model_destroy(model);
}

TEST(a_custom_layer_becomes_a_node_of_the_domain_caffe) {
    static const char prototxt[] =
        "input: \"data\" input_shape { dim: 1 }"
        " layer { name: \"a\" type: \"Python\" bottom: \"data\" top: \"a\" }";
    const int64_t dims[] = {7};
    const sb_net_blob shape = {{"a", 1}, dims, 1, 0};
    sb_onnx_options options = SB_ONNX_OPTIONS_INIT;
    options.custom = 1;
    options.shapes = &shape;
    options.num_shapes = 1;
    sb_net *net;
    assert_ok(sb_net_open(prototxt, sizeof prototxt - 1, NULL, NULL, &net, &err));
    struct wire file = onnx_of(net, &options);
    assert_true(has(&file, "Python") && has(&file, "caffe"));
    wire_free(&file);
    sb_net_destroy(net);
}

/* --- sinks ----------------------------------------------------------------------------------- */

static sb_status gather(void *user, const void *bytes, size_t size, sb_error *err) {
    (void)err;
    wire_raw(user, bytes, size);
    return SB_OK;
}

TEST(a_sink_receives_the_same_bytes) {
    sb_net *net = det1();
    struct wire file = onnx_of(net, NULL), got = {0};
    const sb_sink sink = {sizeof sink, &got, gather};
    assert_ok(sb_net_save_onnx_sink(net, NULL, &sink, &err));
    assert_same(&file, &got);
    wire_free(&file);
    wire_free(&got);
    sb_net_destroy(net);
}

struct broken {
    int writes;
    sb_status status;
};

static sb_status fail_late(void *user, const void *bytes, size_t size, sb_error *err) {
    struct broken *broken = user;
    (void)bytes, (void)size;
    if (++broken->writes < 3)
        return SB_OK;
    return sb_error_fill(err, broken->status, 28, "the disk is full");
}

TEST(a_call_returns_the_failure_of_the_sink) {
    static const sb_status rows[][2] = {{SB_ERR_IO, SB_ERR_IO},
                                        {SB_ERR_OUT_OF_MEMORY, SB_ERR_OUT_OF_MEMORY},
                                        {SB_ERR_CANCELLED, SB_ERR_CANCELLED},
                                        {SB_ERR_SHARED, SB_ERR_IO},
                                        {-5000, SB_ERR_IO}};
    sb_net *net = det1();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct broken broken = {0, rows[i][0]};
        const sb_sink sink = {sizeof sink, &broken, fail_late};
        assert_status(rows[i][1], sb_net_save_onnx_sink(net, NULL, &sink, &err));
        assert_string_equal(err.message, "the disk is full");
        assert_int_equal(err.device_code, 28);
        assert_int_equal(broken.writes, 3);
    }
    sb_net_destroy(net);
}

/* --- files ----------------------------------------------------------------------------------- */

TEST(a_file_is_replaced_completely_or_unchanged) {
    sb_net *net = det1();
    char folder[] = "/tmp/syncblob-net-XXXXXX", path[64], link[64];
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/net.onnx", folder);
    snprintf(link, sizeof link, "%s/link.onnx", folder);
    file_write(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("net.onnx", link), 0);
    assert_status(SB_ERR_IO, sb_net_save_onnx_file(net, NULL, folder, &err));
    assert_true(file_holds(path, "old"));
    assert_ok(sb_net_save_onnx_file(net, NULL, link, &err));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    struct wire file = onnx_of(net, NULL), got = wire_of_file(path);
    assert_same(&file, &got);
    wire_free(&file);
    wire_free(&got);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(folder), 0); /* no temporary file is left */
    assert_status(SB_ERR_IO, sb_net_save_onnx_file(net, NULL, path, &err));
    assert_int_equal(err.device_code, 2);
    sb_net_destroy(net);
}

/* --- models that change ---------------------------------------------------------------------- */

TEST(a_model_whose_file_shrank_is_refused) {
    char prototxt[512], model[512], path[] = "/tmp/syncblob-net-XXXXXX";
    if (!test_data_path("nets/mtcnn_kpzhang93_det1.prototxt", prototxt, sizeof prototxt) ||
        !test_data_path("mtcnn_kpzhang93_det1.caffemodel", model, sizeof model))
        skip();
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    struct wire bytes = wire_of_file(model);
    file_write_wire(path, &bytes);
    sb_net *net;
    size_t size = 0;
    assert_ok(sb_net_open_file(prototxt, path, NULL, &net, &err));
    assert_int_equal(ftruncate(descriptor, 100), 0);
    char *buffer = malloc(2 * bytes.size);
    assert_non_null(buffer);
    assert_status(SB_ERR_IO, sb_net_save_onnx(net, NULL, buffer, 2 * bytes.size, &size, &err));
    free(buffer);
    sb_net_destroy(net);
    wire_free(&bytes);
    close(descriptor);
    assert_int_equal(unlink(path), 0);
}

TEST(a_call_returns_the_failure_of_the_source) {
    char prototxt[512], path[512];
    if (!test_data_path("nets/mtcnn_kpzhang93_det1.prototxt", prototxt, sizeof prototxt) ||
        !test_data_path("mtcnn_kpzhang93_det1.caffemodel", path, sizeof path))
        skip();
    struct wire bytes = wire_of_file(path), text = wire_of_file(prototxt);
    struct test_source source = {0};
    const sb_source reader = test_source_of(&source, &bytes);
    sb_model *model;
    sb_net *net;
    assert_ok(sb_model_open_source(NULL, SB_FORMAT_CAFFEMODEL, &reader, NULL, NULL, &model, &err));
    assert_ok(sb_net_open(text.bytes, text.size, model, NULL, &net, &err));
    struct wire file = onnx_of(net, NULL);
    source.fault.left = 3;
    source.fault.status = SB_ERR_CANCELLED;
    assert_status(SB_ERR_CANCELLED, sb_net_save_onnx(net, NULL, file.bytes, file.size, NULL, &err));
    source.fault.left = 0;
    assert_ok(sb_net_save_onnx(net, NULL, file.bytes, file.size, NULL, &err));
    sb_net_destroy(net);
    assert_int_equal(source.closes, 0); /* the caller owns the model */
    sb_model_destroy(model);
    wire_free(&file);
    wire_free(&bytes);
    wire_free(&text);
}

/* --- threads --------------------------------------------------------------------------------- */

struct work {
    const sb_net *net;
    struct wire file;
    const int64_t *shape;
};

static void *convert(void *user) {
    struct work *work = user;
    int32_t axes;
    if (sb_net_blob_shape(work->net, "prob1", 5, &work->shape, &axes, NULL) != SB_OK)
        return NULL;
    if (sb_net_save_onnx(work->net, NULL, work->file.bytes, work->file.size, NULL, NULL) != SB_OK)
        return NULL;
    return work;
}

TEST(two_threads_convert_the_same_net) {
    sb_net *net = det1();
    struct wire file = onnx_of(net, NULL);
    struct work works[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        works[i] = (struct work){net, {malloc(file.size), file.size, file.size}, NULL};
        test_own_loan(works[i].file.bytes, free);
        assert_int_equal(pthread_create(&threads[i], NULL, convert, &works[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        void *done;
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_non_null(done);
        assert_same(&file, &works[i].file);
        assert_ptr_equal(works[i].shape, works[0].shape);
        wire_free(&works[i].file);
    }
    wire_free(&file);
    sb_net_destroy(net);
}
