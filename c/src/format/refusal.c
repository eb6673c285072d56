#include "format/refusal.h"

#include "base/error.h"
#include "format/detect.h"
#include "format/foreign.h"
#include "format/layout.h"
#include "format/outline.h"

#include <syncblob/model.h>

#include <stdio.h>
#include <string.h>

#define FEW_FIELDS 64 /* enough to distinguish Caffe's formats */

/* Returns whether the data may have caused a status. This includes SHAPE_MISMATCH, because readers
   compare a blob's shape before they notice that the blob's values are missing. */
static bool is_of_data(sb_status status) {
    return (status <= SB_ERR_MALFORMED && status > SB_ERR_OUT_OF_MEMORY) ||
           status == SB_ERR_SHAPE_MISMATCH;
}

/* Appends to err->message, which has room for a reader's longest message and SB__WORDS_BYTES more
   bytes. */
static void append(sb_error *err, const char *words) {
    const size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof err->message - used, "; this is %s", words);
}

/* Reads the first bytes of a source. Uses bytes in memory in place, so that AddressSanitizer
   detects reads beyond their end. */
static sb_status read_head(const struct sb__source *source, uint64_t total, struct sb__head *out,
                           sb_error *err) {
    const bool is_here = !sb__source_may_change(source);
    out->total = total;
    out->size = source->size < sizeof out->room ? source->size : sizeof out->room;
    out->bytes = is_here ? source->bytes : out->room;
    return is_here ? (sb_status)SB_OK : sb__source_read(source, 0, out->room, out->size, err);
}

static const char *format_words(int32_t format) {
    switch (format) {
    case SB_FORMAT_BLOB:
        return "a blob such as a mean file";
    case SB_FORMAT_CAFFEMODEL:
        return "a caffemodel";
    case SB_FORMAT_SOLVERSTATE:
        return "a solver state";
    default:
        return "a vector of blobs";
    }
}

/* Describes a file of another format of Caffe, or a truncated file. */
static bool caffe_words(const struct sb__outline *outline, int32_t wanted,
                        struct sb__reader *reader, char *out) {
    int32_t format;
    if (sb__outline_format(outline, reader, &format, NULL) != SB_OK || format == SB_FORMAT_AUTO)
        return false;
    if (wanted != SB_FORMAT_AUTO && wanted != format)
        (void)snprintf(out, SB__WORDS_BYTES, "%s, not %s", format_words(format),
                       format_words(wanted));
    else if (outline->state == SB__CUT)
        (void)snprintf(out, SB__WORDS_BYTES, "the beginning of %s: the rest was cut off",
                       format_words(format));
    else
        return false;
    return true;
}

/* Sets `*out` to a description of another program's message, or to NULL if it is unknown. */
static sb_status message_words(const struct sb__head *head, const struct sb__outline *outline,
                               struct sb__reader *reader, const char **out, sb_error *err) {
    bool is_onnx;
    sb_status st = sb__outline_is_onnx(outline, reader, &is_onnx, err);
    *out = st == SB_OK && is_onnx ? "an ONNX model" : sb__foreign_message(head);
    return st;
}

/* Describes a file of `total` bytes. If the outermost fields are complete, the bytes may be a Caffe
   message with unknown fields; then looks only for messages, not for other kinds of files. */
static bool find_words(const struct sb__outline *outline, int32_t wanted, struct sb__reader *reader,
                       uint64_t total, char *out) {
    struct sb__head head;
    const char *words;
    if (read_head(reader->source, total, &head, NULL) != SB_OK)
        return false;
    if (outline->state != SB__WHOLE && sb__foreign_words(&head, out))
        return true;
    (void)message_words(&head, outline, reader, &words, NULL);
    if (!words)
        return caffe_words(outline, wanted, reader, out);
    (void)snprintf(out, SB__WORDS_BYTES, "%s", words);
    return true;
}

sb_status sb__refusal_is_foreign(const struct sb__source *source, bool *out, sb_error *err) {
    struct sb__reader reader;
    struct sb__outline outline;
    struct sb__head head;
    const char *words = NULL;
    *out = false;
    if (source->size == 0)
        return SB_OK;
    sb__reader_init(&reader, source);
    sb_status st = sb__outline_read(&reader, 0, source->size, SB__OUTLINE_MANY, &outline, err);
    if (st == SB_OK)
        st = read_head(source, source->size, &head, err);
    if (st == SB_OK)
        st = message_words(&head, &outline, &reader, &words, err);
    *out = st == SB_OK && words;
    return st;
}

sb_status sb__refusal_of_foreign(sb_error *err) {
    return sb__fail_at(err, SB_ERR_MALFORMED, 0,
                       "the fields do not belong to a Caffe model, solver state or blob");
}

static sb_status check_format(const struct sb__source *source, sb_error *err) {
    struct sb__reader reader;
    int32_t format = SB_FORMAT_BLOB;
    sb_error reason;
    sb__reader_init(&reader, source);
    sb_status st = sb__detect_format(&reader, &format, &reason);
    if (st == SB_OK && format != SB_FORMAT_BLOB)
        return sb__fail_at(err, SB_ERR_MALFORMED, 0,
                           "the fields do not belong to a blob but to a %s",
                           sb__format_name(format));
    if (st == SB_OK || st == SB_ERR_MALFORMED)
        return SB_OK;
    if (err)
        *err = reason;
    return st;
}

sb_status sb__refusal_check_blob(const struct sb__source *source, bool has_values, bool is_doubtful,
                                 sb_error *err) {
    bool is_foreign = false;
    sb_status st = has_values ? (sb_status)SB_OK : sb__refusal_is_foreign(source, &is_foreign, err);
    if (st != SB_OK)
        return st;
    if (is_foreign)
        return sb__refusal_of_foreign(err);
    return is_doubtful ? check_format(source, err) : (sb_status)SB_OK;
}

sb_status sb__refusal_is_of_another(const struct sb__source *source, int32_t wanted, bool *out,
                                    sb_error *err) {
    struct sb__reader reader;
    struct sb__outline outline;
    int32_t format = SB_FORMAT_AUTO;
    sb__reader_init(&reader, source);
    sb_status st = sb__outline_read(&reader, 0, source->size, FEW_FIELDS, &outline, err);
    if (st == SB_OK)
        st = sb__outline_format(&outline, &reader, &format, err);
    *out = false;
    if (st != SB_OK || format == SB_FORMAT_AUTO || format == wanted)
        return st;
    /* Later fields may contradict the outline. */
    sb_error reason;
    st = sb__detect_format(&reader, &format, &reason);
    *out = st == SB_OK && format != wanted;
    if (st == SB_OK || st == SB_ERR_MALFORMED)
        return SB_OK;
    if (err)
        *err = reason;
    return st;
}

void sb__refusal_explain(sb_status status, int32_t wanted, struct sb__reader *reader,
                         sb_error *err) {
    const struct sb__source *source = reader->source;
    struct sb__outline outline;
    char words[SB__WORDS_BYTES];
    if (!err || !is_of_data(status))
        return;
    if (source->size == 0) {
        append(err, "empty: there are no bytes");
        return;
    }
    sb__reader_init(reader, source);
    (void)sb__outline_read(reader, 0, source->size, SB__OUTLINE_MANY, &outline, NULL);
    if (find_words(&outline, wanted, reader, source->size, words))
        append(err, words);
}

void sb__refusal_explain_size(const struct sb__source *first, uint64_t total, sb_error *err) {
    struct sb__reader reader;
    struct sb__outline outline;
    char words[SB__WORDS_BYTES];
    if (!err)
        return;
    sb__reader_init(&reader, first);
    (void)sb__outline_read(&reader, 0, first->size, FEW_FIELDS, &outline, NULL);
    outline.state = SB__BROKEN; /* a message cannot have so many bytes */
    if (find_words(&outline, SB_FORMAT_AUTO, &reader, total, words))
        append(err, words);
}
