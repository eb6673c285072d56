/* Compares every backend with plain loops: slot by slot, for each dtype and size. Each row of
   backends[] is a device; a new accelerator adds a row. The host's arithmetic is a row too: a table
   without streams. */
#include "support.h"

#include "aligned.h"
#include "context/context.h"
#include "host/arithmetic.h"
#include "sim/device.h"
#include "sim/table.h"

#include <math.h>

/* --- the host as a backend ----------------------------------------------------- */

static const struct sb__parallel alone = {NULL, NULL};

static sb_status host_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    *out = (void *)(uintptr_t)&alone;
    return SB_OK;
}

static void host_close(void *device) {
}

static sb_status host_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    *out = test_aligned_alloc(64, bytes);
    if (*out)
        return SB_OK;
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
}

static void host_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    test_aligned_free(ptr);
}

static sb_status host_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    sb__host_zero(&alone, dst, bytes);
    return SB_OK;
}

static sb_status host_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                           sb_error *err) {
    sb__host_copy(&alone, dst, src, bytes);
    return SB_OK;
}

static sb_status host_prepare(void *device, sb_error *err) {
    return SB_OK;
}

static sb_status host_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    sb__host_axpy(&alone, dtype, count, alpha, x, y);
    return SB_OK;
}

static sb_status host_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                            sb_stream stream, sb_error *err) {
    sb__host_scale(&alone, dtype, count, alpha, x);
    return SB_OK;
}

static sb_status host_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    *out = sb__host_asum(&alone, dtype, count, x);
    return SB_OK;
}

static sb_status host_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                            sb_stream stream, sb_error *err) {
    *out = sb__host_sumsq(&alone, dtype, count, x);
    return SB_OK;
}

static const sb_backend host_backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .name = "host",
    .open = host_open,
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .zero = host_zero,
    .upload = host_copy,
    .download = host_copy,
    .copy = host_copy,
    .prepare_arithmetic = host_prepare,
    .axpy = host_axpy,
    .scale = host_scale,
    .asum = host_asum,
    .sumsq = host_sumsq,
};

/* --- the rows -------------------------------------------------------------------- */

static void sim_lazy(void *device) {
    ((struct sb__sim *)device)->schedule = SB_SIM_LAZY;
}

static void sim_random(void *device) {
    ((struct sb__sim *)device)->schedule = SB_SIM_RANDOM;
}

struct row {
    const char *name;
    const sb_backend *table;
    void (*tune)(void *device); /* after open; may be NULL */
};

static const struct row backends[] = {
    {"host", &host_backend, NULL},
    {"sim, eager", &sb__sim_backend, NULL},
    {"sim, lazy", &sb__sim_backend, sim_lazy},
    {"sim, random", &sb__sim_backend, sim_random},
};

static const int64_t sizes[] = {1, 2, 7, 255, 256, 257, 1025, 8193, (1 << 18) + 1, (1 << 20) + 1};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define GUARD           ((int64_t)19) /* elements on either side that no call may write */

struct device {
    const struct row *row;
    void *handle;
    sb_stream stream;
};

static void device_open(struct device *d, const struct row *row) {
    *d = (struct device){.row = row};
    assert_ok(row->table->open(row->table->user, 0, &d->handle, &err));
    if (row->tune)
        row->tune(d->handle);
    if (row->table->own_stream)
        d->stream = row->table->own_stream(d->handle);
}

static void *device_alloc(struct device *d, size_t bytes) {
    void *ptr = NULL;
    assert_ok(d->row->table->alloc(d->handle, bytes, d->stream, &ptr, &err));
    assert_non_null(ptr);
    assert_int_equal((uintptr_t)ptr % 64, 0);
    return ptr;
}

static void device_free(struct device *d, void *ptr, size_t bytes) {
    d->row->table->free(d->handle, ptr, bytes, d->stream);
}

static void device_wait(struct device *d) {
    if (d->row->table->stream_synchronize)
        assert_ok(d->row->table->stream_synchronize(d->handle, d->stream, &err));
}

static void upload(struct device *d, void *dst, const void *src, size_t bytes) {
    assert_ok(d->row->table->upload(d->handle, dst, src, bytes, d->stream, &err));
}

static void download(struct device *d, void *dst, const void *src, size_t bytes) {
    assert_ok(d->row->table->download(d->handle, dst, src, bytes, d->stream, &err));
    device_wait(d);
}

/* --- arrays with guards on either side -------------------------------------------- */

/* `count` values between two guards, on the host and the device. first() is on the device. */
struct array {
    struct device *device;
    int32_t dtype;
    int64_t count;
    size_t element, bytes; /* bytes with the guards */
    char *host, *on_device;
};

static size_t guard_bytes(const struct array *a) {
    return (size_t)GUARD * a->element;
}

static size_t value_bytes(const struct array *a) {
    return (size_t)a->count * a->element;
}

static void *first(const struct array *a) {
    return a->on_device + guard_bytes(a);
}

static double value_at(const struct array *a, int64_t i) {
    const char *at = a->host + (size_t)(GUARD + i) * a->element;
    float f;
    double v;
    if (a->dtype == SB_DTYPE_F64) {
        memcpy(&v, at, sizeof v);
        return v;
    }
    memcpy(&f, at, sizeof f);
    return (double)f;
}

static void set_value(struct array *a, int64_t i, double v) {
    char *at = a->host + (size_t)(GUARD + i) * a->element;
    float f = (float)v;
    if (a->dtype == SB_DTYPE_F64)
        memcpy(at, &v, sizeof v);
    else
        memcpy(at, &f, sizeof f);
}

static struct array array_make(struct device *d, int32_t dtype, int64_t count, uint64_t seed) {
    struct array a = {.device = d, .dtype = dtype, .count = count, .element = sb_dtype_size(dtype)};
    a.bytes = value_bytes(&a) + 2 * guard_bytes(&a);
    a.host = malloc(a.bytes);
    assert_non_null(a.host);
    for (int64_t i = -GUARD; i < count + GUARD; i++)
        set_value(&a, i, (double)(int64_t)(test_random(&seed) >> 11) * 0x1p-52 - 1.0);
    a.on_device = device_alloc(d, a.bytes);
    upload(d, a.on_device, a.host, a.bytes);
    device_wait(d);
    return a;
}

/* Copies the device's bytes into an array that only has a host side. */
static struct array array_read(const struct array *a) {
    struct array read = *a;
    read.host = malloc(a->bytes);
    read.on_device = NULL;
    assert_non_null(read.host);
    download(a->device, read.host, a->on_device, a->bytes);
    return read;
}

static void array_free(struct array *a) {
    if (a->on_device)
        device_free(a->device, a->on_device, a->bytes);
    free(a->host);
}

#define differs(a, slot, ...)                                                                      \
    (fprintf(stderr, "%s: %s of %lld %s: ", (a)->device->row->name, slot, (long long)(a)->count,   \
             sb_dtype_name((a)->dtype)),                                                           \
     fail_with(__VA_ARGS__))

/* Checks that the guards are unchanged and, with `values`, that the values are unchanged too. */
static void assert_unchanged(const struct array *a, const char *slot, bool values) {
    struct array now = array_read(a);
    size_t tail = a->bytes - guard_bytes(a);
    if (memcmp(now.host, a->host, guard_bytes(a)) != 0 ||
        memcmp(now.host + tail, a->host + tail, guard_bytes(a)) != 0)
        differs(a, slot, "wrote beside its range");
    if (values && memcmp(now.host, a->host, a->bytes) != 0)
        differs(a, slot, "wrote to its source");
    array_free(&now);
}

/* --- the claims --------------------------------------------------------------------- */

typedef void (*claim)(struct device *d, int32_t dtype, int64_t count);

static void on_every_backend(claim holds) {
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        device_open(&d, &backends[r]);
        for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++)
            for (size_t s = 0; s < COUNT_OF(sizes) && !(test_is_quick() && sizes[s] > 10000); s++)
                holds(&d, dtype, sizes[s]);
        d.row->table->close(d.handle);
    }
}

static void bytes_return(struct device *d, int32_t dtype, int64_t count) {
    struct array a = array_make(d, dtype, count, 1);
    assert_unchanged(&a, "upload and download", true);
    struct array part = array_read(&a);
    memset(part.host, 0x77, part.bytes);
    download(d, part.host + guard_bytes(&a), first(&a), value_bytes(&a));
    if (memcmp(part.host + guard_bytes(&a), a.host + guard_bytes(&a), value_bytes(&a)) != 0)
        differs(&a, "download", "other bytes came back");
    array_free(&part);
    array_free(&a);
}

TEST(uploaded_bytes_return) {
    on_every_backend(bytes_return);
}

static void bytes_are_zero(struct device *d, int32_t dtype, int64_t count) {
    struct array a = array_make(d, dtype, count, 2);
    assert_ok(d->row->table->zero(d->handle, first(&a), value_bytes(&a), d->stream, &err));
    assert_unchanged(&a, "zero", false);
    struct array now = array_read(&a);
    for (size_t i = 0; i < value_bytes(&a); i++)
        if (now.host[guard_bytes(&a) + i])
            differs(&a, "zero", "byte %zu is not zero", i);
    array_free(&now);
    array_free(&a);
}

TEST(zero_clears_its_range_alone) {
    on_every_backend(bytes_are_zero);
}

static void bytes_are_copied(struct device *d, int32_t dtype, int64_t count) {
    struct array from = array_make(d, dtype, count, 3);
    struct array to = array_make(d, dtype, count, 4);
    assert_ok(d->row->table->copy(d->handle, first(&to), first(&from), value_bytes(&to), d->stream,
                                  &err));
    assert_unchanged(&to, "copy", false);
    assert_unchanged(&from, "copy", true);
    struct array now = array_read(&to);
    if (memcmp(now.host + guard_bytes(&to), from.host + guard_bytes(&to), value_bytes(&to)) != 0)
        differs(&to, "copy", "other bytes than the source's");
    array_free(&now);
    array_free(&to);
    array_free(&from);
}

TEST(copy_moves_its_range_alone) {
    on_every_backend(bytes_are_copied);
}

/* Returns the error bound of two roundings: half a unit in the last place for each. */
static double rounding(const struct array *a, double magnitude) {
    return magnitude * (a->dtype == SB_DTYPE_F32 ? 0x1.01p-23 : 0x1.01p-52);
}

static void check_axpy(const struct array *x, const struct array *y, double alpha) {
    struct array now = array_read(y);
    if (y->dtype == SB_DTYPE_F32)
        alpha = (double)(float)alpha;
    for (int64_t i = 0; i < y->count; i++) {
        long double product = (long double)alpha * (long double)value_at(x, i);
        double expected = (double)(product + (long double)value_at(y, i));
        double magnitude = (double)fabsl(product) + fabs(value_at(y, i));
        if (!(fabs(value_at(&now, i) - expected) <= rounding(y, magnitude)))
            differs(y, "axpy", "alpha %g: y[%lld] is %.17g, not %.17g", alpha, (long long)i,
                    value_at(&now, i), expected);
    }
    array_free(&now);
}

static void axpy_holds(struct device *d, int32_t dtype, int64_t count) {
    static const double alphas[] = {-1.0, 1.0, 0.3, 0.0};
    for (size_t k = 0; k < COUNT_OF(alphas); k++) {
        struct array x = array_make(d, dtype, count, 5);
        struct array y = array_make(d, dtype, count, 6);
        assert_ok(d->row->table->axpy(d->handle, dtype, count, alphas[k], first(&x), first(&y),
                                      d->stream, &err));
        assert_unchanged(&x, "axpy", true);
        assert_unchanged(&y, "axpy", false);
        check_axpy(&x, &y, alphas[k]);
        array_free(&y);
        array_free(&x);
    }
}

TEST(axpy_adds_a_multiple) {
    on_every_backend(axpy_holds);
}

static void axpy_in_place_holds(struct device *d, int32_t dtype, int64_t count) {
    static const double alphas[] = {-1.0, 0.3};
    for (size_t k = 0; k < COUNT_OF(alphas); k++) {
        struct array y = array_make(d, dtype, count, 7);
        assert_ok(d->row->table->axpy(d->handle, dtype, count, alphas[k], first(&y), first(&y),
                                      d->stream, &err));
        assert_unchanged(&y, "axpy", false);
        check_axpy(&y, &y, alphas[k]);
        array_free(&y);
    }
}

TEST(axpy_may_add_an_array_to_itself) {
    on_every_backend(axpy_in_place_holds);
}

static void scale_holds(struct device *d, int32_t dtype, int64_t count) {
    static const double alphas[] = {-1.0, 0.3, 1.0, 0.0};
    for (size_t k = 0; k < COUNT_OF(alphas); k++) {
        struct array x = array_make(d, dtype, count, 8);
        double alpha = dtype == SB_DTYPE_F32 ? (double)(float)alphas[k] : alphas[k];
        assert_ok(
            d->row->table->scale(d->handle, dtype, count, alphas[k], first(&x), d->stream, &err));
        assert_unchanged(&x, "scale", false);
        struct array now = array_read(&x);
        for (int64_t i = 0; i < count; i++) {
            double expected = alpha * value_at(&x, i);
            if (!(fabs(value_at(&now, i) - expected) <= rounding(&x, fabs(expected))))
                differs(&x, "scale", "alpha %g: x[%lld] is %.17g, not %.17g", alpha, (long long)i,
                        value_at(&now, i), expected);
        }
        array_free(&now);
        array_free(&x);
    }
}

TEST(scale_multiplies) {
    on_every_backend(scale_holds);
}

static void check_sum(const struct array *x, const char *slot, double found, long double expected) {
    double bound = x->dtype == SB_DTYPE_F32 ? 2e-7 : 1e-13;
    if (!(fabsl((long double)found - expected) <= (long double)bound * expected))
        differs(x, slot, "%.17g, not %.17Lg", found, expected);
}

static void sums_hold(struct device *d, int32_t dtype, int64_t count) {
    struct array x = array_make(d, dtype, count, 9);
    long double asum = 0;
    long double sumsq = 0;
    double found = -1;
    for (int64_t i = 0; i < count; i++) {
        asum += (long double)fabs(value_at(&x, i));
        sumsq += (long double)value_at(&x, i) * (long double)value_at(&x, i);
    }
    assert_ok(d->row->table->asum(d->handle, dtype, count, first(&x), &found, d->stream, &err));
    check_sum(&x, "asum", found, asum);
    assert_ok(d->row->table->sumsq(d->handle, dtype, count, first(&x), &found, d->stream, &err));
    check_sum(&x, "sumsq", found, sumsq);
    assert_unchanged(&x, "asum and sumsq", true);
    array_free(&x);
}

TEST(sums_are_close_to_exact) {
    on_every_backend(sums_hold);
}

TEST(sums_wait_for_work_before_them) {
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        double found = -1;
        const float value = 3;
        device_open(&d, &backends[r]);
        void *x = device_alloc(&d, sizeof value);
        upload(&d, x, &value, sizeof value);
        assert_ok(d.row->table->scale(d.handle, SB_DTYPE_F32, 1, -2, x, d.stream, &err));
        assert_ok(d.row->table->sumsq(d.handle, SB_DTYPE_F32, 1, x, &found, d.stream, &err));
        assert_true(found == 36);
        device_free(&d, x, sizeof value);
        d.row->table->close(d.handle);
    }
}

/* Stream 2 waits for an event behind the work on stream 1; the host waits for stream 2. */
TEST(events_order_streams) {
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        const sb_backend *table = backends[r].table;
        const double values[2] = {1.5, -2.5};
        double result[2] = {0};
        void *event = NULL;
        void *last = NULL;
        int32_t done = 1; /* for tables without event_query */
        if (!table->event_record)
            continue;
        device_open(&d, &backends[r]);
        void *x = device_alloc(&d, sizeof values);
        upload(&d, x, values, sizeof values);
        assert_ok(table->event_record(d.handle, d.stream, &event, &err));
        assert_ok(table->check_stream(d.handle, NULL, &err));
        assert_ok(table->stream_wait(d.handle, NULL, event, &err));
        assert_ok(table->download(d.handle, result, x, sizeof values, NULL, &err));
        assert_ok(table->event_record(d.handle, NULL, &last, &err));
        table->event_destroy(d.handle, event);
        if (table->event_query) /* done may be 0 or 1 */
            assert_ok(table->event_query(d.handle, last, &done, &err));
        assert_ok(table->event_wait(d.handle, last, &err));
        assert_ok(table->event_wait(d.handle, last, &err)); /* a second wait succeeds */
        if (table->event_query)
            assert_ok(table->event_query(d.handle, last, &done, &err));
        assert_int_equal(done, 1);
        assert_memory_equal(result, values, sizeof values);
        table->event_destroy(d.handle, last);
        device_free(&d, x, sizeof values);
        table->close(d.handle);
    }
}

TEST(pinned_memory_takes_part_in_copies) {
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        enum { BYTES = 100003 };
        const sb_backend *table = backends[r].table;
        void *pinned = NULL;
        if (!table->alloc_pinned)
            continue;
        device_open(&d, &backends[r]);
        assert_ok(table->alloc_pinned(d.handle, BYTES, &pinned, &err));
        assert_int_equal((uintptr_t)pinned % 64, 0);
        memset(pinned, 0x3c, BYTES);
        char *x = device_alloc(&d, BYTES);
        upload(&d, x, pinned, BYTES);
        assert_ok(table->zero(d.handle, x, 1, d.stream, &err));
        download(&d, pinned, x, BYTES);
        assert_int_equal(*(char *)pinned, 0);
        assert_int_equal(((char *)pinned)[BYTES - 1], 0x3c);
        table->free_pinned(d.handle, pinned, BYTES);
        device_free(&d, x, BYTES);
        table->close(d.handle);
    }
}

TEST(foreign_pointers_are_refused) {
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        int local = 0;
        const sb_backend *table = backends[r].table;
        if (!table->check_pointer)
            continue;
        device_open(&d, &backends[r]);
        char *x = device_alloc(&d, 1000);
        assert_ok(table->check_pointer(d.handle, x, 1000, &err));
        assert_ok(table->check_pointer(d.handle, x + 999, 1, &err));
        assert_status(SB_ERR_WRONG_DEVICE, table->check_pointer(d.handle, &local, 4, &err));
        device_free(&d, x, 1000);
        table->close(d.handle);
    }
}

/* Counts past 2^31, if the machine has the memory: the values at the far end take part. */
TEST(counts_past_2_31_are_right) {
    const int64_t count = ((int64_t)1 << 31) + 5;
    const size_t bytes = (size_t)count * sizeof(float);
    const float far_end[2] = {-3, 5};
    float scaled[2] = {0};
    if (!test_is_full()) {
        print_message("skipped: takes long: SYNCBLOB_TEST_FULL=1 runs it\n");
        test_skip();
    }
    skip_without_memory(bytes, 2 * bytes);
    for (size_t r = 0; r < COUNT_OF(backends); r++) {
        struct device d;
        const sb_backend *table = backends[r].table;
        double sum = 0;
        void *memory;
        device_open(&d, &backends[r]);
        sb_status st = table->alloc(d.handle, bytes, d.stream, &memory, &err);
        if (st == SB_ERR_OUT_OF_MEMORY) { /* the device is too small */
            print_message("skipped: %s has no %zu bytes\n", table->name, bytes);
            table->close(d.handle);
            continue;
        }
        assert_ok(st);
        char *x = memory;
        char *end = x + bytes - sizeof far_end;
        assert_ok(table->zero(d.handle, x, bytes, d.stream, &err));
        upload(&d, end, far_end, sizeof far_end);
        assert_ok(table->scale(d.handle, SB_DTYPE_F32, count, 2, x, d.stream, &err));
        assert_ok(table->asum(d.handle, SB_DTYPE_F32, count, x, &sum, d.stream, &err));
        assert_true(sum == 16);
        assert_ok(table->axpy(d.handle, SB_DTYPE_F32, count, 1, x, x, d.stream, &err));
        assert_ok(table->sumsq(d.handle, SB_DTYPE_F32, count, x, &sum, d.stream, &err));
        assert_true(sum == 144 + 400);
        download(&d, scaled, end, sizeof scaled);
        assert_true(scaled[0] == -12 && scaled[1] == 20);
        device_free(&d, x, bytes);
        table->close(d.handle);
    }
}
