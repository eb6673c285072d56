/* Runs the cases of the table "Where the two differ" in c/guide/caffe.md with this library;
   prints a line "case: result" for each. caffe.cpp has the same cases. */
#include <syncblob/syncblob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sb_error err;

static void must(sb_status status) {
    if (status == SB_OK)
        return;
    fprintf(stderr, "%s: %s\n", sb_status_name(status), err.message);
    exit(1);
}

static void show(const char *what, const char *does) {
    printf("%s: %s\n", what, does);
}

static void show_number(const char *what, double number) {
    printf("%s: %.10g\n", what, number);
}

/* Prints a status without SB_ERR_, as the headers list it. */
static void show_status(const char *what, sb_status status) {
    const char *name = sb_status_name(status);
    show(what, strncmp(name, "SB_ERR_", 7) == 0 ? name + 7 : name);
}

static void show_shape(const char *what, const sb_blob *blob) {
    char text[100];
    must(sb_blob_shape_string(blob, text, sizeof text, NULL, &err));
    show(what, text);
}

/* The blobs of all cases; main destroys them. */
static sb_blob *blobs[32];
static int num_blobs;

static sb_blob *unshaped(sb_dtype dtype) {
    must(sb_blob_create(NULL, dtype, &blobs[num_blobs], &err));
    return blobs[num_blobs++];
}

static void shape_to(sb_blob *blob, int64_t count) {
    must(sb_blob_reshape(blob, &count, 1, NULL, &err));
}

static sb_blob *of(int64_t count) {
    sb_blob *blob = unshaped(SB_DTYPE_F32);
    shape_to(blob, count);
    return blob;
}

static const float *values_of(const sb_blob *blob, sb_part part) {
    const float *values;
    must(sb_blob_cpu_f32(blob, part, &values, &err));
    return values;
}

static sb_mem *memory_of(sb_blob *blob) {
    sb_mem *memory;
    must(sb_blob_mutable_mem(blob, SB_DATA, &memory, &err));
    return memory;
}

/* Writes 1, 2, 3, ... */
static void write_data(sb_blob *blob) {
    float *data;
    must(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        data[i] = (float)(i + 1);
}

static void write_diff(sb_blob *blob, int64_t at, float value) {
    float *diff;
    must(sb_blob_mutable_cpu_f32(blob, SB_DIFF, &diff, &err));
    diff[at] = value;
}

static void offsets(void) {
    sb_blob *blob = unshaped(SB_DTYPE_F32);
    int64_t at;
    float element;
    must(sb_blob_reshape_legacy(blob, 2, 1, 3, 4, NULL, &err));
    must(sb_blob_offset_legacy(blob, 0, 1, 0, 0, &at, &err));
    show_number("offset(0, 1) of a 2 x 1 x 3 x 4 blob", (double)at);
    show_status("offset(0, -1) of that blob", sb_blob_offset_legacy(blob, 0, -1, 0, 0, &at, &err));
    show_status("data_at(0, 1, 0, 0), where element 12 is 13",
                sb_blob_data_at_legacy(blob, 0, 1, 0, 0, &element, &err));
}

static void shapes(void) {
    sb_blob *never = unshaped(SB_DTYPE_F32), *blob = unshaped(SB_DTYPE_F32), *hollow = of(0);
    must(sb_blob_reshape_like(blob, never, NULL, &err));
    show_shape("shape after ReshapeLike with an unshaped blob", blob);
    must(sb_blob_copy_from(blob, SB_DATA, never, SB_COPY_RESHAPE, &err));
    show("CopyFrom an unshaped blob, with reshape",
         sb_blob_is_shaped(blob) ? "shaped" : "unshaped");
    show("cpu_data of an unshaped blob", values_of(never, SB_DATA) ? "no elements" : "NULL");
    show("cpu_data of a blob without elements",
         values_of(hollow, SB_DATA) ? "no elements" : "NULL");
}

static void capacity(void) {
    sb_blob *pair[] = {of(10), of(10)};
    (void)memory_of(pair[1]);
    for (int i = 0; i < 2; i++) {
        shape_to(pair[i], 5);
        write_data(pair[i]);
        shape_to(pair[i], 10);
    }
    show_number("10 elements, reshaped to 5, filled, reshaped to 10: element 4",
                (double)values_of(pair[0], SB_DATA)[4]);
    show_number("the same, but data() is called first", (double)values_of(pair[1], SB_DATA)[4]);
}

static void lent_room(void) {
    static float lent[20];
    sb_blob *blob = of(10);
    must(sb_blob_set_cpu(blob, SB_DATA, lent, sizeof lent, 0, NULL, NULL, &err));
    write_diff(blob, 4, 5);
    shape_to(blob, 20);
    show("a blob of 10, lent 20 elements, reshaped to 20: data",
         values_of(blob, SB_DATA) == lent ? "as lent" : "new");
    show("the same: diff", values_of(blob, SB_DIFF)[4] > 0 ? "as it was" : "new");
}

static void growth(void) {
    sb_blob *owner = of(10), *sharer = of(10), *large = of(20), *wide = of(20), *narrow = of(10);
    write_data(owner);
    must(sb_blob_share(sharer, SB_DATA, owner, &err));
    shape_to(owner, 40);
    show_number("B shares A's data, A grows to 40: element 4 of B",
                (double)values_of(sharer, SB_DATA)[4]);
    show("do A and B still share data", memory_of(owner) == memory_of(sharer) ? "yes" : "no");
    write_data(large);
    shape_to(large, 10);
    must(sb_blob_share(narrow, SB_DATA, large, &err));
    shape_to(narrow, 20);
    show("a blob of 10 shares a memory of 20, is reshaped to 20: does it still share",
         memory_of(narrow) == memory_of(large) ? "yes" : "no");
    write_data(wide);
    shape_to(wide, 10);
    must(sb_blob_share(wide, SB_DATA, sharer, &err));
    shape_to(wide, 20);
    show_number("a blob of 20, reshaped to 10, shares a memory of 10, is reshaped to 20: elements "
                "in its memory",
                (double)(sb_mem_size(memory_of(wide)) / sizeof(float)));
}

static void lending(void) {
    static float lent[10];
    static _Alignas(8) char bytes[44];
    sb_blob *owner = of(10), *sharer = of(10), *odd = of(10);
    write_data(owner);
    must(sb_blob_share(sharer, SB_DATA, owner, &err));
    lent[4] = 50;
    must(sb_blob_set_cpu(owner, SB_DATA, lent, sizeof lent, 0, NULL, NULL, &err));
    show_number("B shares A's data, A.set_cpu_data with 50: element 4 of B",
                (double)values_of(sharer, SB_DATA)[4]);
    must(sb_blob_share(owner, SB_DATA, sharer, &err));
    lent[4] = 60;
    must(sb_mem_set_cpu(memory_of(owner), lent, sizeof lent, 0, NULL, NULL, &err));
    show_number("the same with set_cpu_data of A's memory, and 60",
                (double)values_of(sharer, SB_DATA)[4]);
    show_status("set_cpu_data with a misaligned pointer",
                sb_blob_set_cpu(odd, SB_DATA, bytes + 1, 40, 0, NULL, NULL, &err));
    must(sb_mem_set_cpu(memory_of(odd), bytes + 1, 40, 0, NULL, NULL, &err));
    show("set_cpu_data of a memory with a misaligned pointer", "accepted");
}

static void copies(void) {
    sb_blob *from = of(2), *to = of(2), *never = of(2);
    must(sb_blob_copy_from(to, SB_DATA, from, 0, &err));
    show("the head of a source that was never written, after CopyFrom",
         sb_mem_head(memory_of(from)) == SB_HEAD_UNINITIALIZED ? "UNINITIALIZED" : "another");
    write_diff(to, 1, 3);
    must(sb_blob_update(to, &err));
    show_number("element 1 of the copy, after Update with diff 3",
                (double)values_of(to, SB_DATA)[1]);
    show_status("Update of a blob that was never written", sb_blob_update(never, &err));
}

static void arithmetic(void) {
    sb_blob *blob = of(1);
    float *data;
    must(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err));
    data[0] = NAN;
    must(sb_blob_scale(blob, SB_DATA, 0, &err));
    show("NaN after scale_data(0)", isnan(values_of(blob, SB_DATA)[0]) ? "NaN" : "0");
}

static void messages(void) {
    /* Both messages have data 1.9, -1.9 and one dimension: 2 in `small`, 2^32 + 2 in `large`. */
    static const unsigned char small[] =
        "\x2a\x08\x33\x33\xf3\x3f\x33\x33\xf3\xbf\x3a\x03\x0a\x01\x02";
    static const unsigned char large[] =
        "\x2a\x08\x33\x33\xf3\x3f\x33\x33\xf3\xbf\x3a\x07\x0a\x05\x82\x80\x80\x80\x10";
    sb_blob *whole = unshaped(SB_DTYPE_I32), *blob = of(0);
    show_status("a message with 1.9 and -1.9, read into a Blob<int>",
                sb_blob_from_proto(whole, small, sizeof small - 1, SB_PROTO_RESHAPE, NULL, &err));
    show_status("a message of 2^32 + 2 elements, with two values",
                sb_blob_from_proto(blob, large, sizeof large - 1, SB_PROTO_RESHAPE, NULL, &err));
}

int main(void) {
    offsets();
    shapes();
    capacity();
    lent_room();
    growth();
    lending();
    copies();
    arithmetic();
    messages();
    while (num_blobs > 0)
        sb_blob_destroy(blobs[--num_blobs]);
    return 0;
}
