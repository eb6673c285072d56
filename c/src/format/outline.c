#include "format/outline.h"

#include "format/layout.h"

#include <syncblob/model.h>

#define VARINT (1u << SB__WIRE_VARINT)
#define BYTES  (1u << SB__WIRE_BYTES)
#define FLOATS (BYTES | 1u << SB__WIRE_FIXED32)
#define WIDES  (BYTES | 1u << SB__WIRE_FIXED64)
#define LAYER  (SB__OUTLINE_FIELDS - 1) /* the index of field 100 */

static const struct sb__field_name no_names[] = {{0, NULL}};
static const struct sb__path path = {NULL, "", -1, no_names};

static void note(struct sb__outline *outline, const struct sb__field *field, uint32_t begin,
                 uint32_t end) {
    const uint32_t at = field->number == 100 ? LAYER : field->number;
    if (at > LAYER || (at == LAYER && field->number != 100)) {
        outline->others = true;
        return;
    }
    if (outline->seen[at] == 0) {
        outline->first[at].begin = begin;
        outline->first[at].end = end;
    }
    outline->seen[at] |= 1u << field->type;
}

sb_status sb__outline_read(struct sb__reader *reader, uint32_t begin, uint32_t end, size_t fields,
                           struct sb__outline *out, sb_error *err) {
    struct sb__field field = {.end = begin};
    sb_error reason = {.offset = 0};
    sb_status st = SB_OK;
    *out = (struct sb__outline){.others = false};
    while (fields-- > 0 && st == SB_OK) {
        st = sb__wire_next(reader, &path, end, &field, &reason);
        if (field.number == 0)
            break;
        if (st == SB_OK)
            note(out, &field, field.begin, field.end);
        else
            note(out, &field, reader->at, end); /* the part of the field that is present */
    }
    if (st == SB_ERR_MALFORMED || st == SB_ERR_DATA_LIMIT)
        out->state = reason.offset == end ? SB__CUT : SB__BROKEN;
    else if (st != SB_OK && err)
        *err = reason;
    return st == SB_OK || out->state != SB__WHOLE ? SB_OK : st;
}

static sb_status read_inside(struct sb__reader *reader, const struct sb__outline *outline,
                             int field, struct sb__outline *out, sb_error *err) {
    return sb__outline_read(reader, outline->first[field].begin, outline->first[field].end,
                            SB__OUTLINE_MANY, out, err);
}

/* Returns whether each field that is present has one of its allowed wire types. A field without
   allowed wire types must be absent. */
static bool fits(const struct sb__outline *outline, const uint32_t types[SB__OUTLINE_FIELDS]) {
    for (int i = 1; i < SB__OUTLINE_FIELDS; i++)
        if ((outline->seen[i] & ~types[i]) != 0)
            return false;
    return !outline->others && outline->seen[0] == 0;
}

/* --- Caffe's messages ------------------------------------------------------------------------- */

static const uint32_t blob_types[SB__OUTLINE_FIELDS] = {
    [1] = VARINT, VARINT, VARINT, VARINT, FLOATS | VARINT, FLOATS, BYTES,
    WIDES,        WIDES,  VARINT, VARINT, BYTES,           BYTES};

/* Recognises a blob: it has values, and either all legacy dimensions or a shape. */
static bool is_blob(const struct sb__outline *outline) {
    const uint32_t *seen = outline->seen;
    const bool any = seen[1] || seen[2] || seen[3] || seen[4],
               all = seen[1] && seen[2] && seen[3] && seen[4];
    if (seen[SB__C3D_WIDTH] & VARINT)
        return fits(outline, blob_types) && all && (seen[SB__C3D_DATA] || seen[SB__C3D_DIFF]);
    return fits(outline, blob_types) && any == all && all != (seen[SB__BLOB_SHAPE] != 0) &&
           (seen[SB__BLOB_DATA] || seen[SB__BLOB_DIFF] || seen[SB__BLOB_DOUBLE_DATA] ||
            seen[SB__BLOB_DOUBLE_DIFF] || seen[SB__BLOB_RAW_DATA] || seen[SB__BLOB_RAW_DIFF]);
}

static bool holds(const struct sb__outline *outline, int field, uint32_t least, uint32_t most) {
    const uint32_t size = outline->first[field].end - outline->first[field].begin;
    return outline->seen[field] == BYTES && size >= least && size <= most;
}

/* Recognises a scalar: it has one packed value, and no dimensions. */
static bool is_scalar(const struct sb__outline *outline) {
    const uint32_t *seen = outline->seen;
    return fits(outline, blob_types) && !seen[1] && !seen[2] && !seen[3] && !seen[4] &&
           !seen[SB__BLOB_SHAPE] &&
           (holds(outline, SB__BLOB_DATA, 4, 4) || holds(outline, SB__BLOB_DOUBLE_DATA, 8, 8) ||
            (seen[SB__BLOB_RAW_DATA_TYPE] && holds(outline, SB__BLOB_RAW_DATA, 2, 8)));
}

/* Recognises a solver state: it has iter, and history that begins with a blob. */
static sb_status is_solver_state(const struct sb__outline *outline, struct sb__reader *reader,
                                 bool *out, sb_error *err) {
    static const uint32_t types[SB__OUTLINE_FIELDS] = {[1] = VARINT, BYTES, BYTES, VARINT};
    struct sb__outline inside;
    *out = false;
    if (!fits(outline, types) || !outline->seen[1] || !outline->seen[3])
        return SB_OK;
    sb_status st = read_inside(reader, outline, 3, &inside, err);
    *out = st == SB_OK && is_blob(&inside);
    return st;
}

/* Recognises a net: it has layers, and the first layer has a name and a type. */
static sb_status is_net(const struct sb__outline *outline, struct sb__reader *reader, bool *out,
                        sb_error *err) {
    static const uint32_t types[SB__OUTLINE_FIELDS] = {
        [1] = BYTES, BYTES, BYTES, VARINT | BYTES, VARINT, BYTES, VARINT, BYTES, [LAYER] = BYTES};
    struct sb__outline inside;
    const bool is_new = outline->seen[LAYER] != 0;
    *out = false;
    if (!fits(outline, types) || (!is_new && !outline->seen[2]))
        return SB_OK;
    sb_status st = read_inside(reader, outline, is_new ? LAYER : 2, &inside, err);
    if (st == SB_OK)
        *out = is_new ? inside.seen[1] == BYTES && inside.seen[2] == BYTES
                      : inside.seen[4] == BYTES && inside.seen[5] == VARINT;
    return st;
}

/* Recognises a vector: it has only blobs, and the first blob has values. A net's name has the same
   field number, but almost never has the form of a blob. */
sb_status sb__outline_is_vector(const struct sb__outline *outline, struct sb__reader *reader,
                                bool *out, sb_error *err) {
    static const uint32_t types[SB__OUTLINE_FIELDS] = {[1] = BYTES};
    struct sb__outline inside;
    *out = false;
    if (!fits(outline, types) || !outline->seen[1])
        return SB_OK;
    sb_status st = read_inside(reader, outline, 1, &inside, err);
    *out = st == SB_OK && inside.state == SB__WHOLE && (is_blob(&inside) || is_scalar(&inside));
    return st;
}

sb_status sb__outline_format(const struct sb__outline *outline, struct sb__reader *reader,
                             int32_t *out, sb_error *err) {
    bool is_it = false;
    *out = is_blob(outline) ? SB_FORMAT_BLOB : SB_FORMAT_AUTO;
    if (*out != SB_FORMAT_AUTO)
        return SB_OK;
    sb_status st = is_net(outline, reader, &is_it, err);
    if (is_it)
        *out = SB_FORMAT_CAFFEMODEL;
    if (st != SB_OK || is_it)
        return st;
    st = sb__outline_is_vector(outline, reader, &is_it, err);
    if (is_it)
        *out = SB_FORMAT_BLOB_VECTOR;
    if (st != SB_OK || is_it)
        return st;
    st = is_solver_state(outline, reader, &is_it, err);
    if (is_it)
        *out = SB_FORMAT_SOLVERSTATE;
    return st;
}

/* --- messages of other programs --------------------------------------------------------- */

/* Recognises an ONNX node: it has an operation's name, and an input or output. */
static bool is_onnx_node(const struct sb__outline *node) {
    static const uint32_t types[SB__OUTLINE_FIELDS] = {[1] = BYTES, BYTES, BYTES, BYTES, BYTES,
                                                       BYTES,       BYTES, BYTES, BYTES, BYTES};
    return fits(node, types) && holds(node, 4, 1, UINT32_MAX) && (node->seen[1] || node->seen[2]);
}

/* Recognises an ONNX graph. A graph has nodes, which come first, and a name or constants. If the
   outline of a large graph ends before the name and constants, the first node decides. */
static sb_status is_onnx_graph(const struct sb__outline *graph, struct sb__reader *reader,
                               bool *out, sb_error *err) {
    struct sb__outline node;
    *out = graph->seen[1] == BYTES && (graph->seen[2] == BYTES || graph->seen[5] == BYTES);
    if (graph->seen[1] != BYTES || *out)
        return SB_OK;
    sb_status st = read_inside(reader, graph, 1, &node, err);
    *out = st == SB_OK && is_onnx_node(&node);
    return st;
}

/* Recognises an ONNX model by ir_version and a graph. */
sb_status sb__outline_is_onnx(const struct sb__outline *outline, struct sb__reader *reader,
                              bool *out, sb_error *err) {
    static const uint32_t types[SB__OUTLINE_FIELDS] = {[1] = VARINT, BYTES, BYTES, BYTES,
                                                       VARINT,       BYTES, BYTES, BYTES};
    struct sb__outline graph, whole = *outline;
    whole.others = false; /* a model may also have metadata and functions */
    *out = false;
    if (!fits(&whole, types) || !outline->seen[1] || !outline->seen[7])
        return SB_OK;
    sb_status st = read_inside(reader, outline, 7, &graph, err);
    return st == SB_OK ? is_onnx_graph(&graph, reader, out, err) : st;
}
