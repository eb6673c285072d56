/* Every short message, right before a page that cannot be read: all readers answer with a status
   that bytes may cause, and where fuzz/support/decoder.h, a second reader, can tell, with its
   answer. */
#include "support.h"

#include "format/layout.h"

#include "decoder.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes that mean something to Caffe's messages, at the places where they do: 0 to 2 as values and
   lengths; field 1 as a number, as bytes, as a group's begin and end; fields 2, 5 and 7 as bytes
   (blobs, data, shape); field 5 as one value; field 100, a net's layers, in two bytes; a varint
   that goes on, and one that goes on with all bits. */
static const uint8_t alphabet[] = {0x00, 0x01, 0x02, 0x08, 0x0a, 0x0b, 0x0c, 0x12,
                                   0x2a, 0x2d, 0x3a, 0xa2, 0x06, 0x80, 0xff};

struct world {
    uint8_t *page_end; /* nothing can be read from here on */
    size_t page_bytes;
    sb_blob *blob;
    int64_t messages, accepted;
};

typedef struct decoded_file (*decoder)(const uint8_t *, size_t, const struct decoder_limits *);

/* --- one message -------------------------------------------------------------- */

static void fail_message(const uint8_t *bytes, size_t size, const char *reader, sb_status st,
                         unsigned faults) {
    char text[32] = "";
    for (size_t i = 0; i < size; i++)
        (void)snprintf(text + 3 * i, sizeof text - 3 * i, "%02x ", bytes[i]);
    fail_with("%s of %s: %s, faults %#x", reader, text, sb_status_name(st), faults);
}

static bool is_of_data(sb_status st) {
    return st == SB_OK || (st <= -100 && st > -200);
}

static void check_status(const uint8_t *bytes, size_t size, const char *reader, sb_status st) {
    if (!is_of_data(st))
        fail_message(bytes, size, reader, st, 0);
}

/* Whether nobody would take the bytes for this format, though they are a message of it. */
static bool is_of_another(const uint8_t *bytes, size_t size, int32_t format) {
    sb_model *model = NULL;
    const sb_status st =
        sb_model_open_bytes(NULL, SB_FORMAT_AUTO, bytes, size, NULL, NULL, NULL, &model, NULL);
    const bool is_another = st != SB_OK || sb_model_format(model) != format;
    sb_model_destroy(model);
    return is_another;
}

static void check_blob(struct world *world, const uint8_t *bytes, size_t size) {
    struct decoded_file file = decode_blob(bytes, size, &decoder_default_limits);
    unsigned faults = file.faults | decoded_blob_load_faults(&file.blobs[0], sizeof(float));
    const sb_status st = sb_blob_from_proto(world->blob, bytes, size, SB_PROTO_RESHAPE, NULL, NULL);
    if (st == SB_ERR_MALFORMED && is_of_another(bytes, size, SB_FORMAT_BLOB))
        faults |= DECODER_MALFORMED;
    if (!decoder_explains(faults, st))
        fail_message(bytes, size, "BlobProto", st, faults);
    if (st == SB_OK && sb_blob_count(world->blob) != file.blobs[0].count)
        fail_message(bytes, size, "count of BlobProto", st, faults);
    world->accepted += st == SB_OK;
    decoded_file_free(&file);
}

static void check_model(struct world *world, const uint8_t *bytes, size_t size, int32_t format,
                        decoder decode) {
    struct decoded_file file = decode(bytes, size, &decoder_default_limits);
    sb_model *model = NULL;
    const sb_status st =
        sb_model_open_bytes(NULL, format, bytes, size, NULL, NULL, NULL, &model, NULL);
    if ((!file.recognised && size > 0) ||
        (st == SB_ERR_MALFORMED && is_of_another(bytes, size, format)))
        file.faults |= DECODER_MALFORMED;
    if (!decoder_explains(file.faults, st))
        fail_message(bytes, size, sb__format_name(format), st, file.faults);
    if (st == SB_OK && (size_t)sb_model_num_layers(model) != file.num_layers)
        fail_message(bytes, size, "layers", st, file.faults);
    world->accepted += st == SB_OK;
    sb_model_destroy(model);
    decoded_file_free(&file);
}

static void check_message(struct world *world, const uint8_t *message, size_t size) {
    uint8_t *bytes = world->page_end - size;
    int32_t equal;
    sb_filler filler = SB_FILLER_INIT;
    memcpy(bytes, message, size);
    check_status(bytes, size, "shape_equals_proto",
                 sb_blob_shape_equals_proto(world->blob, bytes, size, &equal, NULL));
    check_status(bytes, size, "reshape_proto",
                 sb_blob_reshape_proto(world->blob, bytes, size, NULL, NULL));
    check_status(bytes, size, "filler", sb_filler_parse(bytes, size, &filler, NULL));
    check_blob(world, bytes, size);
    check_model(world, bytes, size, SB_FORMAT_BLOB, decode_blob);
    check_model(world, bytes, size, SB_FORMAT_CAFFEMODEL, decode_net);
    check_model(world, bytes, size, SB_FORMAT_SOLVERSTATE, decode_solver_state);
    check_model(world, bytes, size, SB_FORMAT_BLOB_VECTOR, decode_blob_vector);
    world->messages++;
}

/* --- all of them ---------------------------------------------------------------- */

/* Every `stride`-th message of `size` letters. */
static void check_all(struct world *world, const uint8_t *letters, size_t num_letters, size_t size,
                      int64_t stride) {
    int64_t count = 1;
    uint8_t message[8];
    for (size_t i = 0; i < size; i++)
        count *= (int64_t)num_letters;
    for (int64_t number = 0; number < count; number += stride) {
        int64_t rest = number;
        for (size_t i = 0; i < size; i++, rest /= (int64_t)num_letters)
            message[i] = letters[rest % (int64_t)num_letters];
        check_message(world, message, size);
    }
}

static int make_world(void **state) {
    static struct world world;
    memset(&world, 0, sizeof world);
    world.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 2 * world.page_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return -1;
    world.page_end = pages + world.page_bytes;
    *state = &world;
    return mprotect(world.page_end, world.page_bytes, PROT_NONE) ||
           sb_blob_create(NULL, SB_DTYPE_F32, &world.blob, NULL) != SB_OK;
}

static int end_world(void **state) {
    struct world *world = *state;
    sb_blob_destroy(world->blob);
    return munmap(world->page_end - world->page_bytes, 2 * world->page_bytes);
}

TEST_WITH(make_world, end_world, test_every_message_of_three_bytes) {
    struct world *world = *state;
    uint8_t letters[256];
    for (int i = 0; i < 256; i++)
        letters[i] = (uint8_t)i;
    for (size_t size = 0; size <= 2; size++)
        check_all(world, letters, 256, size, test_is_quick() && size == 2 ? 101 : 1);
    check_all(world, letters, 256, 3, test_is_full() ? 1 : test_is_quick() ? 50021 : 251);
    print_message("%lld messages, %lld accepted\n", (long long)world->messages,
                  (long long)world->accepted);
    assert_true(world->accepted > 0 && world->accepted < world->messages * 5);
}

TEST_WITH(make_world, end_world, test_every_message_of_six_letters) {
    struct world *world = *state;
    const size_t longest = test_is_full() ? 6 : 5;
    for (size_t size = 3; size <= longest; size++)
        check_all(world, alphabet, sizeof alphabet, size,
                  test_is_full()    ? 1
                  : test_is_quick() ? 5003
                  : size == 5       ? 17
                                    : 1);
    print_message("%lld messages, %lld accepted\n", (long long)world->messages,
                  (long long)world->accepted);
    assert_true(world->accepted > 0);
}
