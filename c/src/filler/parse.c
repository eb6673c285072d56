#include "filler/filler.h"

#include "base/error.h"
#include "base/options.h"
#include "format/open.h"
#include "wire/wire.h"

#include <string.h>

static const struct sb__field_name fields[] = {{SB__FILLER_TYPE, "type"},
                                               {SB__FILLER_VALUE, "value"},
                                               {SB__FILLER_MIN, "min"},
                                               {SB__FILLER_MAX, "max"},
                                               {SB__FILLER_MEAN, "mean"},
                                               {SB__FILLER_STD, "std"},
                                               {SB__FILLER_SPARSE, "sparse"},
                                               {SB__FILLER_VARIANCE_NORM, "variance_norm"},
                                               {0, NULL}};
static const struct sb__path path = {NULL, "", -1, fields};

#define MAX_NAME 24 /* longer than every type's name */

/* The fields of a message before they are checked. */
struct claims {
    sb_filler filler;
    bool has[SB__FILLER_VARIANCE_NORM + 1];
    uint32_t offsets[SB__FILLER_VARIANCE_NORM + 1];
    size_t name_size; /* size of the type's name; `name` stores at most MAX_NAME bytes */
    char name[MAX_NAME];
};

static double *number_of(sb_filler *filler, uint32_t field) {
    switch (field) {
    case SB__FILLER_VALUE:
        return &filler->value;
    case SB__FILLER_MIN:
        return &filler->min;
    case SB__FILLER_MAX:
        return &filler->max;
    case SB__FILLER_MEAN:
        return &filler->mean;
    default:
        return &filler->std;
    }
}

static void gather_number(const struct sb__field *field, struct claims *claims) {
    const uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    *number_of(&claims->filler, field->number) = (double)value;
}

static sb_status gather_type(const struct sb__reader *reader, const struct sb__field *field,
                             struct claims *claims, sb_error *err) {
    claims->name_size = field->end - field->begin;
    const size_t kept = claims->name_size < MAX_NAME ? claims->name_size : MAX_NAME;
    return sb__reader_copy(reader, field->begin, claims->name, kept, err);
}

/* Returns whether a field has the wire type that belongs to its number. The parser ignores all
   other fields. */
static bool is_known(const struct sb__field *field) {
    if (field->number == SB__FILLER_TYPE)
        return field->type == SB__WIRE_BYTES;
    if (field->number == SB__FILLER_SPARSE || field->number == SB__FILLER_VARIANCE_NORM)
        return field->type == SB__WIRE_VARINT;
    return field->number < SB__FILLER_SPARSE && field->type == SB__WIRE_FIXED32;
}

static sb_status gather(const struct sb__reader *reader, const struct sb__field *field,
                        struct claims *claims, sb_error *err) {
    if (!is_known(field))
        return SB_OK;
    claims->has[field->number] = true;
    claims->offsets[field->number] = field->offset;
    switch (field->number) {
    case SB__FILLER_TYPE:
        return gather_type(reader, field, claims, err);
    case SB__FILLER_SPARSE:
        claims->filler.sparse = (int32_t)(uint32_t)field->value;
        return SB_OK;
    case SB__FILLER_VARIANCE_NORM:
        claims->filler.variance_norm = (int32_t)(uint32_t)field->value;
        return SB_OK;
    default:
        gather_number(field, claims);
        return SB_OK;
    }
}

static sb_status judge_type(struct claims *claims, sb_error *err) {
    if (!claims->has[SB__FILLER_TYPE])
        return SB_OK;
    for (int32_t type = SB_FILLER_CONSTANT; type <= SB_FILLER_BILINEAR; type++) {
        const char *name = sb_filler_type_name(type);
        if (strlen(name) != claims->name_size || memcmp(name, claims->name, claims->name_size) != 0)
            continue;
        claims->filler.type = type;
        return SB_OK;
    }
    char text[4 * MAX_NAME];
    const size_t kept = claims->name_size < MAX_NAME ? claims->name_size : MAX_NAME;
    return sb__wire_fail(&path, SB__FILLER_TYPE, SB_ERR_MALFORMED, claims->offsets[SB__FILLER_TYPE],
                         err, "there is no filler \"%s\"%s",
                         sb__escape(claims->name, kept, text, sizeof text),
                         claims->name_size > MAX_NAME ? "..." : "");
}

static sb_status judge(struct claims *claims, sb_error *err) {
    struct sb__filler_fault fault;
    sb_status st = judge_type(claims, err);
    if (st != SB_OK || sb__filler_check(&claims->filler, &fault))
        return st;
    const uint32_t field = claims->has[fault.field] ? fault.field : fault.other;
    return sb__wire_fail(&path, field, SB_ERR_MALFORMED, claims->offsets[field], err, "%s",
                         fault.text);
}

static sb_status read_claims(const struct sb__source *source, struct claims *claims,
                             sb_error *err) {
    struct sb__reader reader;
    struct sb__field field = {.end = 0};
    sb_status st = SB_OK;
    sb__reader_init(&reader, source);
    while (st == SB_OK &&
           (st = sb__wire_next(&reader, &path, source->size, &field, err)) == SB_OK &&
           field.number != 0)
        st = gather(&reader, &field, claims, err);
    return st == SB_OK ? judge(claims, err) : st;
}

sb_status sb_filler_parse(const void *bytes, size_t size, sb_filler *out, sb_error *err) {
    struct sb__source source;
    struct claims claims = {.filler = SB_FILLER_INIT};
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__check_struct(out->struct_size, SB__FIRST_FILLER_SIZE, "sb_filler", err);
    if (st == SB_OK)
        st = sb__source_of_bytes(&source, bytes, size, err);
    if (st == SB_OK)
        st = read_claims(&source, &claims, err);
    if (st != SB_OK)
        return st;
    sb__give_struct(out, out->struct_size, &claims.filler, sizeof claims.filler);
    return SB_OK;
}
