/* A reader at any place of a message, and the contracts of wire.c's functions. `bytes` begins at
   offset 0, or ends at the largest offset, where sums of offsets could wrap. */
#ifndef SB_TESTS_PROOFS_WIRE_READER_H
#define SB_TESTS_PROOFS_WIRE_READER_H

#include "proof.h"

#include "wire/wire.h"

/* The functions read at most ten bytes from reader.at on, and at most one byte before
   reader.at. */
#define NEAR 24

extern unsigned char bytes[NEAR]; /* only declared: ESBMC tries all values */
extern struct sb__source source;
extern struct sb__reader reader;
static uint32_t base;
static uint64_t number_read; /* the number that sb__wire_varint_contract returned */
static const struct sb__path path = {NULL, "", -1, NULL};

static bool is_window(void) {
    return reader.source == &source && reader.begin <= reader.end && reader.end <= source.size;
}

/* If `size` is not 0, the window contains `size` bytes from reader.at on. */
static void move_window(uint32_t size) {
    reader.begin = any_u32();
    reader.end = any_u32();
    assume(is_window() && base <= reader.begin && reader.end <= base + NEAR);
    assume(size == 0 || (reader.begin <= reader.at && reader.at + size <= reader.end));
    reader.bytes = bytes + (reader.begin - base);
}

static uint32_t any_reader(void) {
    uint32_t end = any_u32();
    source.size = any_u32();
    source.bytes = any_bool() ? bytes : NULL;
    base = source.bytes || any_bool() ? 0 : SB__MAX_MESSAGE_BYTES - NEAR;
    assume(source.size <= base + NEAR && base <= source.size && end <= source.size);
    reader.source = &source;
    reader.at = any_u32();
    assume(base <= reader.at && reader.at <= end);
    move_window(0);
    return end;
}

/* A source in a file can fail, and a progress callback can cancel. */
static bool is_of_source(sb_status st) {
    return (!source.bytes && (st == SB_ERR_IO || st == SB_ERR_OUT_OF_MEMORY)) ||
           ((!source.bytes || reader.progress) && st == SB_ERR_CANCELLED);
}

/* Every failure must have been passed to sb__fail. */
static bool is_failure(sb_status st, uint32_t end) {
    return st == last_failure && reader.at <= end && is_window() &&
           (st == SB_ERR_MALFORMED || st == SB_ERR_DATA_LIMIT || is_of_source(st));
}

/* --- contracts: each is proved for its function and assumed by the function's callers --------- */

static bool varint_holds(uint32_t at, uint32_t end) {
    return at < reader.at && reader.at <= end && reader.at - at <= 10;
}

static bool tag_holds(const struct sb__field *field, uint32_t at, uint32_t end) {
    return field->offset == at && field->number >= 1 && field->number < 1u << 29 &&
           field->type <= 7 && at < reader.at && reader.at <= end;
}

static bool value_holds(const struct sb__field *field, uint32_t at, uint32_t end) {
    return at <= field->begin && field->begin <= field->end && field->end <= end &&
           reader.at == field->end;
}

/* Replaces any call that advances the reader or fails. */
static sb_status step(uint32_t end) {
    uint32_t at = reader.at;
    sb_status st = any_i32();
    reader.at = any_u32();
    assume(at <= reader.at && reader.at <= end);
    last_failure = st;
    assume(st == SB_OK || is_failure(st, end));
    return st;
}

static inline sb_status fetch_contract(struct sb__reader *of, uint32_t size, sb_error *err) {
    claim(of == &reader && size <= 8);
    claim(reader.at <= source.size && size <= source.size - reader.at);
    const sb_status st = any_i32();
    assume(st == SB_OK || is_of_source(st));
    move_window(st == SB_OK ? size : 0);
    return st == SB_OK ? SB_OK : (last_failure = st);
}

static inline sb_status sb__wire_varint_contract(struct sb__reader *of, const struct sb__path *in,
                                                 uint32_t end, uint32_t field, uint64_t *out,
                                                 sb_error *err) {
    uint32_t at = reader.at;
    claim(of == &reader && at <= end);
    sb_status st = step(end);
    if (st == SB_OK) {
        assume(varint_holds(at, end));
        *out = number_read = any_u64();
    }
    return st;
}

static inline sb_status read_tag_contract(struct sb__reader *of, const struct sb__path *in,
                                          uint32_t end, struct sb__field *field, sb_error *err) {
    uint32_t at = reader.at;
    claim(of == &reader && at <= end);
    field->number = any_u32();
    field->type = any_u32();
    field->offset = any_u32();
    field->value = 0;
    sb_status st = step(end);
    assume(st != SB_OK || tag_holds(field, at, end));
    return st;
}

static inline sb_status read_value_contract(struct sb__reader *of, const struct sb__path *in,
                                            uint32_t end, struct sb__field *field, sb_error *err) {
    uint32_t at = reader.at;
    claim(of == &reader && at <= end);
    field->begin = any_u32();
    field->end = any_u32();
    field->value = any_u64();
    sb_status st = step(end);
    assume(st != SB_OK || value_holds(field, at, end));
    assume(st != SB_OK || field->type < SB__WIRE_GROUP_BEGIN || field->type == SB__WIRE_FIXED32);
    return st;
}

#define sb__wire_fail_contract(path, field, status, offset, ...) report(status, offset)

static inline sb_status report(sb_status status, uint32_t offset) {
    claim(status != SB_OK && offset <= source.size);
    return last_failure = status;
}

#endif
