/* Reads the input as a FillerParameter, and fills blobs with every accepted filler. */
#include "fields.h"
#include "watched.h"
#include "wire_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void encode(const sb_filler *filler, struct wire *out) {
    const double numbers[] = {filler->value, filler->min, filler->max, filler->mean, filler->std};
    wire_text(out, 1, sb_filler_type_name(filler->type));
    for (uint32_t i = 0; i < 5; i++)
        wire_float(out, 2 + i, (float)numbers[i]);
    wire_number(out, 7, (uint64_t)(int64_t)filler->sparse);
    wire_number(out, 8, (uint64_t)(int64_t)filler->variance_norm);
}

/* The type is the last text with the field number 1, unless the text is empty. */
static void check_type(const sb_filler *filler, const uint8_t *bytes, size_t size) {
    const char *name = sb_filler_type_name(filler->type);
    struct fields fields = fields_parse(bytes, size);
    sb_text type = {NULL, 0};
    for (size_t i = 0; i < fields.count; i++)
        if (fields.list[i].number == 1 && fields.list[i].type == BYTES)
            type = (sb_text){(const char *)fields.list[i].bytes, fields.list[i].size};
    if (type.size > 0)
        fuzz_check(same_text(type, (sb_text){name, strlen(name)}), "%.*s is read as %s",
                   (int)type.size, type.bytes, name);
    free(fields.list);
}

static void check_round_trip(const sb_filler *filler) {
    struct wire message = {0};
    sb_filler again = SB_FILLER_INIT;
    encode(filler, &message);
    check_ok(sb_filler_parse(message.bytes, message.size, &again, &call_error));
    wire_free(&message);
    fuzz_check(memcmp(filler, &again, sizeof again) == 0, "the parsed filler is different");
}

/* --- values of a filler--------------------------------------------------------------------- */

static const int64_t shapes[][4] = {{0},          {35},         {8, 36},      {2, 3, 4},
                                    {2, 2, 5, 5}, {2, 0, 3, 3}, {1, 2, 4, 5}, {1, 2, 5, 4}};
static const int32_t axes[] = {0, 1, 2, 3, 4, 4, 4, 4};

static bool fits(const sb_filler *filler, const int64_t *shape, int32_t num_axes) {
    switch (filler->type) {
    case SB_FILLER_POSITIVE_UNITBALL:
    case SB_FILLER_XAVIER:
    case SB_FILLER_MSRA:
        return num_axes > 0;
    case SB_FILLER_BILINEAR:
        return num_axes == 4 && shape[2] == shape[3];
    default:
        return filler->sparse <= (num_axes > 0 ? shape[0] : 1);
    }
}

static bool in_range(const sb_filler *filler, double x) {
    switch (filler->type) {
    case SB_FILLER_CONSTANT:
        return x == filler->value;
    case SB_FILLER_UNIFORM:
        return x >= filler->min && x <= filler->max;
    case SB_FILLER_GAUSSIAN: /* the Box-Muller transform stays within 9 std of the mean */
        return x == 0 || fabs(x - filler->mean) <= 9 * filler->std + 1e-6 * fabs(filler->mean);
    case SB_FILLER_POSITIVE_UNITBALL:
    case SB_FILLER_BILINEAR:
        return x >= 0 && x <= 1;
    default:
        return fabs(x) <= 15;
    }
}

static void check_values(const sb_filler *filler, const sb_blob *blob) {
    const double *data = NULL;
    check_ok(sb_blob_cpu_f64(blob, SB_DATA, &data, &call_error));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        fuzz_check(in_range(filler, data[i]), "%s: element %lld is %g",
                   sb_filler_type_name(filler->type), (long long)i, data[i]);
}

static void check_fill(sb_context *context, const sb_filler *filler, size_t shape, uint64_t seed) {
    sb_blob *blob;
    check_ok(sb_blob_create_shaped(context, SB_DTYPE_F64, shapes[shape], axes[shape], &blob,
                                   &call_error));
    const bool expected = sb_blob_count(blob) == 0 || fits(filler, shapes[shape], axes[shape]);
    sb_status st = status_of(sb_blob_fill(blob, filler, seed, &call_error));
    fuzz_check((st == SB_OK) == expected, "%s on shape %zu: %s", sb_filler_type_name(filler->type),
               shape, sb_status_name(st));
    if (st == SB_OK)
        check_values(filler, blob);
    sb_blob_destroy(blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct watched watched;
    sb_filler filler = SB_FILLER_INIT;
    filler.type = SB_FILLER_MSRA;
    const sb_filler before = filler;
    sb_status st = status_of(sb_filler_parse(data, size, &filler, &call_error));
    check_read_status(st, size);
    if (st != SB_OK) {
        fuzz_check(memcmp(&filler, &before, sizeof filler) == 0, "a refusal wrote the filler");
        return 0;
    }
    check_type(&filler, data, size);
    check_round_trip(&filler);
    watched_begin(&watched);
    for (size_t shape = 0; shape < sizeof axes / sizeof *axes; shape++)
        check_fill(watched.context, &filler, shape, size);
    watched_end(&watched);
    return 0;
}
