#include "kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_COUNT (((int64_t)1 << 20) + 1)
/* The size of sb_conformance_options in version 0.1. */
#define FIRST_OPTIONS_SIZE sizeof(sb_conformance_options)
/* No version of any struct is larger than this number of bytes. */
#define MAX_STRUCT_SIZE 4096

static const char opens[] = "A context accepts the table and opens the device";

static const struct sb__claim *const groups[] = {
    sb__kit_memory_claims,  sb__kit_stream_claims, sb__kit_arithmetic_claims,
    sb__kit_failure_claims, sb__kit_blob_claims,   sb__kit_machine_claims,
};

static const struct sb__claim *claim_at(int32_t index) {
    for (size_t g = 0; g < SB__KIT_COUNT_OF(groups); g++)
        for (const struct sb__claim *claim = groups[g]; claim->text; claim++)
            if (index-- == 0)
                return claim;
    return NULL;
}

const char *sb_conformance_claim(int32_t index) {
    if (index == 0)
        return opens;
    const struct sb__claim *claim = index > 0 ? claim_at(index - 1) : NULL;
    return claim ? claim->text : NULL;
}

/* --- arguments ------------------------------------------------------------------------ */

static sb_status fail(sb_error *err, sb_status status, const char *format, ...)
    SB__KIT_PRINTF(3, 4);

static sb_status fail(sb_error *err, sb_status status, const char *format, ...) {
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sb_error_fill(err, status, 0, text);
}

static bool is_chosen(const char *only, const char *claim) {
    return !only || strstr(claim, only);
}

static sb_status check_only(const char *only, sb_error *err) {
    const char *claim;
    for (int32_t i = 0; (claim = sb_conformance_claim(i)) != NULL; i++)
        if (is_chosen(only, claim))
            return SB_OK;
    return fail(err, SB_ERR_INVALID_ARGUMENT, "no claim contains \"%.100s\"", only);
}

static sb_status adopt_options(sb_conformance_options *ours, const sb_conformance_options *theirs,
                               sb_error *err) {
    const size_t given = theirs->struct_size;
    if (given < FIRST_OPTIONS_SIZE || given > MAX_STRUCT_SIZE || given % sizeof given)
        return fail(err, SB_ERR_ABI_MISMATCH, "the options have an unknown size, %zu", given);
    for (size_t i = sizeof *ours; i < given; i++)
        if (((const unsigned char *)theirs)[i])
            return fail(err, SB_ERR_UNSUPPORTED,
                        "the options set a member at byte %zu that this version does not know", i);
    *ours = *theirs;
    if (!ours->stream_create != !ours->stream_destroy)
        return fail(err, SB_ERR_INVALID_ARGUMENT,
                    "the options set only one of stream_create and stream_destroy");
    if (ours->ordinal < 0 || ours->max_count < 0 || ours->devices < 0 || ours->reserved)
        return fail(err, SB_ERR_INVALID_ARGUMENT,
                    "ordinal is %d, max_count is %lld, devices is %d, reserved is %d",
                    ours->ordinal, (long long)ours->max_count, ours->devices, ours->reserved);
    return check_only(ours->only, err);
}

/* --- running -------------------------------------------------------------------------- */

struct run {
    struct sb__kit kit;
    sb_conformance_report report;
    void *user;
    int32_t failed;
};

static void begin_claim(struct run *run, const char *claim) {
    if (run->kit.options.begin)
        run->kit.options.begin(run->kit.options.user, claim);
    run->kit.outcome = SB_CONFORMANCE_PASSED;
    run->kit.may_be_lost = run->kit.wait_lost = run->kit.is_lost = false;
    run->kit.detail[0] = '\0';
}

static void report(struct run *run, const char *claim) {
    const sb_conformance_result result = {sizeof result, claim, run->kit.detail, run->kit.outcome,
                                          0};
    run->failed += result.outcome == SB_CONFORMANCE_FAILED;
    if (run->report)
        run->report(run->user, &result);
}

/* Tests the first claim, even if it was not chosen, since the other claims depend on it. Until the
   core has checked the table, this function reads only the members before the first slot. */
static bool test_table(struct run *run, const sb_backend *table) {
    struct sb__kit *kit = &run->kit;
    const size_t given = table->struct_size;
    const bool has_name = given >= offsetof(sb_backend, user) && table->name;
    begin_claim(run, opens);
    sb_context *context = sb__kit_context(kit, table, has_name ? table->name : "unnamed");
    if (context) {
        sb_context_release(context);
        memcpy(&kit->table, table, given < sizeof kit->table ? given : sizeof kit->table);
        kit->table.struct_size = sizeof kit->table;
    }
    report(run, opens);
    return context != NULL;
}

static void test_claim(struct run *run, const struct sb__claim *claim, bool has_device) {
    struct sb__kit *kit = &run->kit;
    begin_claim(run, claim->text);
    if (!has_device)
        sb__kit_skip(kit, "the context did not open the device");
    sb__kit_open(kit, &kit->device, &kit->stream);
    kit->lacks = kit->device && kit->table.lacks ? kit->table.lacks(kit->device) : 0;
    kit->other = kit->table.flags & SB_BACKEND_NO_DEFAULT_STREAM ? kit->stream : NULL;
    if (sb__kit_goes(kit))
        claim->test(kit);
    sb__kit_close(kit, kit->device);
    kit->device = NULL;
    sb__kit_memory_end(kit);
    report(run, claim->text);
}

sb_status sb_conformance_run(const sb_backend *table, const sb_conformance_options *options,
                             sb_conformance_report report_result, void *user, int32_t *out_failed,
                             sb_error *err) {
    struct run run = {
        .kit = {.options = SB_CONFORMANCE_OPTIONS_INIT}, .report = report_result, .user = user};
    if (!table || !out_failed)
        return fail(err, SB_ERR_INVALID_ARGUMENT, "%s is NULL", table ? "out_failed" : "table");
    const sb_status st = options ? adopt_options(&run.kit.options, options, err) : (sb_status)SB_OK;
    if (st != SB_OK)
        return st;
    if (!run.kit.options.max_count)
        run.kit.options.max_count = DEFAULT_MAX_COUNT;
    const bool has_device = test_table(&run, table);
    const struct sb__claim *claim;
    for (int32_t i = 0; (claim = claim_at(i)) != NULL; i++)
        if (is_chosen(run.kit.options.only, claim->text))
            test_claim(&run, claim, has_device);
    *out_failed = run.failed;
    return SB_OK;
}
