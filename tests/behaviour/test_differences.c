/* Compares the library with its column of the table "Where the two differ" in c/guide/caffe.md.
   tests/users/caffe/edges.cpp runs the same cases with Caffe. */
#include "blobs.h"
#include "files.h"

#include <math.h>

static int num_shown;

static const char *read_table(void) {
    struct wire page = wire_of_file(SB_SOURCE_DIR "/c/guide/caffe.md");
    wire_raw(&page, "", 1);
    char *table = strstr((char *)page.bytes, "\n## Where the two differ\n"), *to = table;
    assert_non_null(table);
    *strstr(table + 1, "\n## ") = '\0';
    for (const char *from = table; *from != '\0'; from++)
        if (*from != '`')
            *to++ = *from;
    *to = '\0';
    return table;
}

static void show(const char *what, const char *does) {
    char begin[200], result[40];
    snprintf(begin, sizeof begin, "\n| %s | ", what);
    snprintf(result, sizeof result, " | %s | ", does);
    const char *row = strstr(read_table(), begin);
    const char *column = row ? strstr(row + strlen(begin), " | ") : NULL;
    if (!column || strncmp(column, result, strlen(result)) != 0)
        fail_with("%s: the guide has %.40s, not %s", what, column ? column : "no row", result);
    num_shown++;
}

static void show_number(const char *what, double number) {
    char text[32];
    snprintf(text, sizeof text, "%.10g", number);
    show(what, text);
}

static void show_status(const char *what, sb_status status) {
    show(what, status == SB_OK ? "OK" : sb_status_name(status) + strlen("SB_ERR_"));
}

static void shape_to(sb_blob *blob, int64_t count) {
    assert_ok(sb_blob_reshape(blob, &count, 1, NULL, &err));
}

static sb_blob *of(int64_t count) {
    return test_vector(NULL, SB_DTYPE_F32, count);
}

static double element(const sb_blob *blob, int64_t i) {
    return value_at(SB_DTYPE_F32, host_of(blob, SB_DATA), i);
}

static void write_part(sb_blob *blob, sb_part part) {
    fill_values(SB_DTYPE_F32, sb_blob_count(blob), 1, 1, host_to_write(blob, part));
}

TEST(offsets) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){2, 1, 3, 4});
    int64_t at;
    float value;
    assert_ok(sb_blob_offset_legacy(blob, 0, 1, 0, 0, &at, &err));
    show_number("offset(0, 1) of a 2 x 1 x 3 x 4 blob", (double)at);
    show_status("offset(0, -1) of that blob", sb_blob_offset_legacy(blob, 0, -1, 0, 0, &at, &err));
    show_status("data_at(0, 1, 0, 0), where element 12 is 13",
                sb_blob_data_at_legacy(blob, 0, 1, 0, 0, &value, &err));
}

TEST(shapes) {
    sb_blob *never = test_unshaped(NULL, SB_DTYPE_F32), *blob = test_unshaped(NULL, SB_DTYPE_F32);
    char text[100];
    assert_ok(sb_blob_reshape_like(blob, never, NULL, &err));
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, NULL, &err));
    show("shape after ReshapeLike with an unshaped blob", text);
    assert_ok(sb_blob_copy_from(blob, SB_DATA, never, SB_COPY_RESHAPE, &err));
    show("CopyFrom an unshaped blob, with reshape",
         sb_blob_is_shaped(blob) ? "shaped" : "unshaped");
    show("cpu_data of an unshaped blob", host_of(never, SB_DATA) ? "no elements" : "NULL");
    show("cpu_data of a blob without elements", host_of(of(0), SB_DATA) ? "no elements" : "NULL");
}

TEST(capacity) {
    sb_blob *pair[] = {of(10), of(10)};
    (void)data_of(pair[1]);
    for (int i = 0; i < 2; i++) {
        shape_to(pair[i], 5);
        write_part(pair[i], SB_DATA);
        shape_to(pair[i], 10);
    }
    show_number("10 elements, reshaped to 5, filled, reshaped to 10: element 4",
                element(pair[0], 4));
    show_number("the same, but data() is called first", element(pair[1], 4));
}

TEST(lent_room) {
    static float lent[20];
    sb_blob *blob = of(10);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent, sizeof lent, 0, NULL, NULL, &err));
    write_part(blob, SB_DIFF);
    shape_to(blob, 20);
    show("a blob of 10, lent 20 elements, reshaped to 20: data",
         host_of(blob, SB_DATA) == lent ? "as lent" : "new");
    show("diff of the same blob",
         value_at(SB_DTYPE_F32, host_of(blob, SB_DIFF), 4) > 0 ? "as it was" : "new");
}

TEST(growth) {
    sb_blob *owner = of(10), *sharer = of(10), *large = of(20), *wide = of(20), *narrow = of(10);
    write_part(owner, SB_DATA);
    assert_ok(sb_blob_share_data(sharer, owner, &err));
    shape_to(owner, 40);
    show_number("B shares A's data, A grows to 40: element 4 of B", element(sharer, 4));
    show("do A and B share data then", data_of(owner) == data_of(sharer) ? "yes" : "no");
    write_part(large, SB_DATA);
    shape_to(large, 10);
    assert_ok(sb_blob_share_data(narrow, large, &err));
    shape_to(narrow, 20);
    show("a blob of 10 shares a memory of 20, is reshaped to 20: does it still share",
         data_of(narrow) == data_of(large) ? "yes" : "no");
    write_part(wide, SB_DATA);
    shape_to(wide, 10);
    assert_ok(sb_blob_share_data(wide, sharer, &err));
    shape_to(wide, 20);
    show_number("a blob of 20, reshaped to 10, shares a memory of 10, is reshaped to 20: elements "
                "in its memory",
                (double)sb_mem_size(data_of(wide)) / sizeof(float));
}

TEST(lending) {
    static float lent[10];
    static _Alignas(8) char bytes[44];
    sb_blob *owner = of(10), *sharer = of(10), *odd = of(10);
    write_part(owner, SB_DATA);
    assert_ok(sb_blob_share_data(sharer, owner, &err));
    lent[4] = 50;
    assert_ok(sb_blob_set_cpu(owner, SB_DATA, lent, sizeof lent, 0, NULL, NULL, &err));
    show_number("B shares A's data, A.set_cpu_data with 50: element 4 of B", element(sharer, 4));
    assert_ok(sb_blob_share_data(owner, sharer, &err));
    lent[4] = 60;
    assert_ok(sb_mem_set_cpu(data_of(owner), lent, sizeof lent, 0, NULL, NULL, &err));
    show_number("the same, but A.data()->set_cpu_data with 60", element(sharer, 4));
    show_status("set_cpu_data with a misaligned pointer",
                sb_blob_set_cpu(odd, SB_DATA, bytes + 1, 40, 0, NULL, NULL, &err));
    assert_ok(sb_mem_set_cpu(data_of(odd), bytes + 1, 40, 0, NULL, NULL, &err));
    show("set_cpu_data of a memory with a misaligned pointer", "accepted");
}

TEST(copies) {
    sb_blob *from = of(2), *to = of(2);
    assert_ok(sb_blob_copy_from(to, SB_DATA, from, 0, &err));
    show("the head of a source that was never written, after CopyFrom",
         sb_mem_head(data_of(from)) == SB_HEAD_UNINITIALIZED ? "UNINITIALIZED" : "another");
    ((float *)host_to_write(to, SB_DIFF))[1] = 3;
    assert_ok(sb_blob_update(to, &err));
    show_number("element 1 of the copy, after Update with diff 3", element(to, 1));
    show_status("Update of a blob that was never written", sb_blob_update(of(2), &err));
}

TEST(arithmetic) {
    sb_blob *blob = of(1);
    *(float *)host_to_write(blob, SB_DATA) = NAN;
    assert_ok(sb_blob_scale_data(blob, 0, &err));
    show("NaN after scale_data(0)", isnan(element(blob, 0)) ? "NaN" : "0");
}

TEST(messages) {
    /* `small` has the dimension 2, `large` the dimension 2^32 + 2; their data is 1.9, -1.9. */
    static const struct wire small =
        W("\x2a\x08\x33\x33\xf3\x3f\x33\x33\xf3\xbf\x3a\x03\x0a\x01\x02");
    static const struct wire large =
        W("\x2a\x08\x33\x33\xf3\x3f\x33\x33\xf3\xbf\x3a\x07\x0a\x05\x82\x80\x80\x80\x10");
    show_status("a message with 1.9 and -1.9, read into a Blob<int>",
                sb_blob_from_proto(test_unshaped(NULL, SB_DTYPE_I32), small.bytes, small.size,
                                   SB_PROTO_RESHAPE, NULL, &err));
    show_status("a message of 2^32 + 2 elements, with two values",
                sb_blob_from_proto(of(0), large.bytes, large.size, SB_PROTO_RESHAPE, NULL, &err));
}

TEST(every_row_was_shown) {
    for (const char *row = read_table(); (row = strstr(row, "\n| ")); row++)
        num_shown--;
    assert_int_equal(num_shown, -2); /* the two lines of the table's header have no case */
}
