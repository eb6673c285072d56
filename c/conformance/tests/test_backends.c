/* Runs the conformance test on the backends of this library that need no driver. */
#include "support.h"

#include "conforming.h"
#include "sim_tables.h"

TEST(the_host_conforms) {
    const sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    assert_conforms("host", &host_backend, &options);
}

TEST(the_simulated_device_conforms_with_every_schedule) {
    static const char *const names[] = {"sim, eager", "sim, lazy", "sim, random"};
    const sb_conformance_options options = simulated_options();
    for (sb_sim_schedule schedule = SB_SIM_EAGER; schedule <= SB_SIM_RANDOM; schedule++) {
        const sb_backend table = simulated_backend(schedule);
        assert_conforms(names[schedule], &table, &options);
    }
}

static uint32_t not_coherent(void *device) {
    return SB_DEVICE_LACKS_HOST_COHERENT;
}

TEST(devices_with_host_coherent_memory_conform) {
    const sb_conformance_options options = simulated_options(), none = SB_CONFORMANCE_OPTIONS_INIT;
    sb_backend table = host_backend;
    table.flags |= SB_BACKEND_HOST_COHERENT;
    assert_conforms("host, coherent", &table, &none);
    for (sb_sim_schedule schedule = SB_SIM_EAGER; schedule <= SB_SIM_RANDOM; schedule++) {
        table = simulated_backend(schedule);
        table.flags |= SB_BACKEND_HOST_COHERENT;
        table.user = coherent_table()->user;
        assert_conforms("sim, coherent", &table, &options);
    }
    table.user = NULL; /* without coherent memory, the host must not access the device's memory */
    table.lacks = not_coherent;
    assert_conforms("sim, without coherent memory", &table, &options);
}

/* The copy loses the device. If `later`, the next call loses the device instead. */
static void lose_at_copy(void *user, void *device, int32_t later) {
    const sb_sim_device *sim = simulated_controls(device);
    int32_t count;
    sim->lock(device);
    sb_sim_fault *fault = sim->faults(device, &count);
    if (!fault->countdown)
        *fault = (sb_sim_fault){SB_SIM_ANY, SB_SIM_FAIL_STICKY, later ? 2 : 1};
    sim->unlock(device);
}

TEST(a_device_that_its_first_failure_loses_conforms) {
    const sb_backend table = simulated_backend(SB_SIM_LAZY);
    sb_conformance_options options = simulated_options();
    options.fail_copy = lose_at_copy;
    assert_conforms("lost at once", &table, &options);
}

static sb_status refuse_f64(sb_dtype dtype, sb_error *err) {
    return dtype == SB_DTYPE_F32 ? (sb_status)SB_OK
                                 : sb_error_fill(err, SB_ERR_UNSUPPORTED, 0, "no doubles");
}

#define F32_ONLY(slot, parameters, ...)                                                            \
    static sb_status slot##_f32 parameters {                                                       \
        sb_status st = refuse_f64(dtype, err);                                                     \
        return st == SB_OK ? host_backend.slot(__VA_ARGS__) : st;                                  \
    }
F32_ONLY(axpy, SLOT_AXPY, device, dtype, count, alpha, x, y, stream, err)
F32_ONLY(scale, SLOT_SCALE, device, dtype, count, alpha, x, stream, err)
F32_ONLY(asum, SLOT_SUM, device, dtype, count, x, out, stream, err)
F32_ONLY(sumsq, SLOT_SUM, device, dtype, count, x, out, stream, err)

static uint32_t no_doubles(void *device) {
    return SB_DEVICE_LACKS_F64;
}

TEST(a_device_without_doubles_conforms) {
    const sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    sb_backend table = host_backend;
    int32_t failed = -1;
    table.axpy = axpy_f32;
    table.scale = scale_f32;
    table.asum = asum_f32;
    table.sumsq = sumsq_f32;
    assert_conforms("no doubles", &table, &options);
    table.lacks = no_doubles;
    assert_conforms("no doubles, declared", &table, &options);
    table.lacks = NULL;
    table.sumsq = host_backend.sumsq;
    assert_ok(sb_conformance_run(&table, &options, NULL, NULL, &failed, &err));
    assert_int_equal(failed, 1);
}

static sb_status prepare_nothing(void *device, sb_error *err) {
    return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0, "this device cannot compute");
}

TEST(a_device_without_arithmetic_conforms) {
    const sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    sb_backend table = host_backend;
    table.prepare_arithmetic = prepare_nothing;
    assert_conforms("no arithmetic", &table, &options);
}

static void copy_failure(void *user, const sb_conformance_result *result) {
    if (result->outcome == SB_CONFORMANCE_FAILED)
        (void)snprintf(user, sizeof err.message, "%s", result->detail);
}

TEST(a_device_that_must_not_open_is_reported) {
    char detail[sizeof err.message] = "";
    int32_t failed = -1;
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    options.only = "open returns NO_DEVICE";
    options.devices = 3; /* host_backend opens a device for every ordinal */
    assert_ok(sb_conformance_run(&host_backend, &options, copy_failure, detail, &failed, &err));
    assert_int_equal(failed, 1);
    assert_string_equal(detail, "open of device 3 returned SB_OK, not SB_ERR_NO_DEVICE");
}

static void count_outcomes(void *user, const sb_conformance_result *result) {
    int32_t *counts = user;
    counts[result->outcome]++;
}

TEST(a_table_without_a_slot_fails_one_claim) {
    int32_t counts[3] = {0}, failed = -1;
    sb_backend table = host_backend;
    table.copy = NULL;
    assert_ok(sb_conformance_run(&table, NULL, count_outcomes, counts, &failed, &err));
    assert_int_equal(failed, 1);
    assert_int_equal(counts[SB_CONFORMANCE_FAILED], 1);
    assert_int_equal(counts[SB_CONFORMANCE_PASSED], 0);
    table = host_backend;
    table.struct_size = sizeof(size_t);
    assert_ok(sb_conformance_run(&table, NULL, NULL, NULL, &failed, &err));
    assert_int_equal(failed, 1);
}

TEST(arguments_are_checked) {
    int32_t failed = -1;
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    assert_names_null("table", sb_conformance_run(NULL, NULL, NULL, NULL, &failed, &err));
    assert_names_null("out_failed",
                      sb_conformance_run(&host_backend, NULL, NULL, NULL, NULL, &err));
    options.ordinal = -1;
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_conformance_run(&host_backend, &options, NULL, NULL, &failed, &err));
    options = (sb_conformance_options)SB_CONFORMANCE_OPTIONS_INIT;
    options.only = "zero claims of this";
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_conformance_run(&host_backend, &options, NULL, NULL, &failed, &err));
    assert_string_equal(err.message, "no claim contains \"zero claims of this\"");
    options = simulated_options();
    options.stream_destroy = NULL;
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_conformance_run(&host_backend, &options, NULL, NULL, &failed, &err));
    options.struct_size = 8;
    assert_status(SB_ERR_ABI_MISMATCH,
                  sb_conformance_run(&host_backend, &options, NULL, NULL, &failed, &err));
    struct {
        sb_conformance_options known;
        size_t unknown;
    } newer = {SB_CONFORMANCE_OPTIONS_INIT, 1};
    newer.known.struct_size = sizeof newer;
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_conformance_run(&host_backend, &newer.known, NULL, NULL, &failed, &err));
    assert_int_equal(failed, -1);
}

static const char *last_begun;

static void remember_claim(void *user, const char *claim) {
    last_begun = claim;
}

static void check_claim(void *user, const sb_conformance_result *result) {
    assert_ptr_equal(result->claim, last_begun);
    count_outcomes(user, result);
}

TEST(claims_are_listed_and_chosen) {
    int32_t counts[3] = {0}, failed = -1, listed = 0;
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    assert_null(sb_conformance_claim(-1));
    while (sb_conformance_claim(listed))
        listed++;
    options.only = "zero clears";
    options.begin = remember_claim;
    assert_ok(sb_conformance_run(&host_backend, &options, check_claim, counts, &failed, &err));
    /* the first claim always runs, too */
    assert_int_equal(counts[SB_CONFORMANCE_PASSED], 2);
    assert_non_null(strstr(last_begun, "zero clears"));
    options.begin = NULL;
    options.only = "";
    assert_ok(sb_conformance_run(&host_backend, &options, count_outcomes, counts, &failed, &err));
    assert_int_equal(counts[0] + counts[1] + counts[2], 2 + listed);
}
