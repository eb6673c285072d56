/* Tests the simulated device: its memory, streams and schedules, and the functions that control
   it. */
#include "child.h"
#include "sim_fixture.h"

#include "sim/table.h"

#include <dirent.h>
#include <signal.h>

static const int32_t schedules[] = {SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM};

static void touch_read(void *ptr) {
    (void)signal(SIGSEGV, SIG_DFL);
    (void)*(volatile char *)ptr;
}

static void touch_write(void *ptr) {
    (void)signal(SIGSEGV, SIG_DFL);
    *(volatile char *)ptr = 1;
}

TEST_ON(sim, the_host_cannot_touch_device_memory) {
    char *small = new_memory(f, 100, f->own), *large = new_memory(f, (size_t)64 << 20, f->own);
    char local = 0;
    in_child(touch_write, &local);
    assert_int_equal(WTERMSIG(status_in_child(touch_read, small)), SIGSEGV);
    assert_int_equal(WTERMSIG(status_in_child(touch_write, small)), SIGSEGV);
    assert_int_equal(WTERMSIG(status_in_child(touch_read, large + ((size_t)32 << 20))), SIGSEGV);
    free_memory(f, small, 100, f->own);
    assert_int_equal(WTERMSIG(status_in_child(touch_read, small)), SIGSEGV);
}

TEST_ON(sim, fresh_memory_holds_rubbish) {
    static const size_t sizes[] = {1, 100, 4097, (size_t)1 << 20, ((size_t)16 << 20) + 5};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        sim_reopen(f, SB_SIM_EAGER, 0);
        void *pinned = NULL;
        unsigned char *seen = malloc(sizes[s]);
        assert_non_null(seen);
        char *ptr = new_memory(f, sizes[s], f->own);
        peek(f, seen, ptr, sizes[s]);
        assert_ok(f->table->alloc_pinned(f->device, sizes[s], &pinned, &err));
        for (size_t i = 0; i < sizes[s]; i++)
            if (seen[i] != 0xCB || ((unsigned char *)pinned)[i] != 0xCB)
                fail_with("byte %zu of %zu is not rubbish", i, sizes[s]);
        f->table->free_pinned(f->device, pinned, sizes[s]);
        free(seen);
    }
}

TEST_ON(sim, large_memory_uses_only_the_pages_that_are_written) {
    const size_t bytes = ((size_t)8 << 30) + 12345;
    const char mark[4] = "end";
    char found[4] = "";
    size_t before = process_memory_now().resident;
    char *ptr = new_memory(f, bytes, f->own);
    upload(f, ptr + bytes - sizeof mark, mark, sizeof mark, f->own);
    download(f, found, ptr + bytes - sizeof mark, sizeof mark, f->own);
    assert_string_equal(found, "end");
    peek(f, found, ptr + bytes / 2, sizeof found);
    assert_memory_equal(found, "\xCB\xCB\xCB\xCB", 4);
    assert_true(process_memory_now().resident < before + ((size_t)64 << 20));
}

TEST_ON(sim, impossible_sizes_are_out_of_memory) {
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 8 * 7};
    void *ptr = NULL;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        assert_status(SB_ERR_OUT_OF_MEMORY,
                      f->table->alloc(f->device, sizes[s], f->own, &ptr, &err));
        assert_status(SB_ERR_OUT_OF_MEMORY,
                      f->table->alloc_pinned(f->device, sizes[s], &ptr, &err));
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_sim_malloc(f->context, sizes[s], &ptr, &err));
    }
    assert_null(ptr);
}

TEST_ON(sim, an_alloc_waits_for_queued_frees_before_it_fails) {
    void *ptr = NULL;
    sim_reopen(f, SB_SIM_LAZY, 0);
    char *freed = new_memory(f, 100, f->own);
    synchronize(f, f->own);
    free_memory(f, freed, 100, f->own);
    assert_non_null(sb_sim_address(f->context, freed, 100));
    assert_status(SB_ERR_OUT_OF_MEMORY, f->table->alloc(f->device, SIZE_MAX, f->own, &ptr, &err));
    assert_null(sb_sim_address(f->context, freed, 100));
}

static int open_files(void) {
    DIR *files = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(files);
    while (readdir(files))
        count++;
    (void)closedir(files);
    return count;
}

/* The blocks need three address ranges of 4 GiB. No block spans two ranges. */
TEST(closing_the_device_frees_its_memory_and_files) {
    const size_t gib = (size_t)1 << 30, before = process_memory_now().mapped;
    skip_on_32_bits("the addresses cannot express 10 GiB");
    const int files = open_files();
    struct sim f;
    sim_open(&f);
    char *good = new_memory(&f, 64, f.own);
    for (int i = 0; i < 10; i++) {
        char *ptr = new_memory(&f, gib, f.own);
        assert_status(SB_ERR_DEVICE_FAILURE, /* `ptr` is not a host address */
                      f.table->upload(f.device, good, ptr + gib - 64, 64, f.own, &err));
    }
    assert_true(process_memory_now().mapped >= before + 12 * gib);
    sim_close(&f);
    assert_true(process_memory_now().mapped < before + gib);
    assert_int_equal(open_files(), files);
}

TEST_ON(sim, allocations_never_overlap) {
    enum { LIVE = 64, ROUNDS = 4000 };
    const uint64_t most = sizeof(size_t) == 4 ? 1 << 22 : 1 << 30;
    struct {
        char *ptr;
        size_t bytes;
        uint32_t mark;
    } live[LIVE] = {{0}};
    uint64_t seed = 7;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        size_t i = test_random(&seed) % LIVE;
        if (live[i].ptr) {
            uint32_t ends[2];
            peek(f, &ends[0], live[i].ptr, 4);
            peek(f, &ends[1], live[i].ptr + live[i].bytes - 4, 4);
            assert_true(ends[0] == live[i].mark && ends[1] == live[i].mark);
            free_memory(f, live[i].ptr, live[i].bytes, f->own);
        }
        /* Some blocks are so large that addresses must be reused. */
        bool large = test_random(&seed) % 32 == 0;
        live[i].bytes = 8 + (size_t)(test_random(&seed) % (large ? most : 5000));
        live[i].ptr = new_memory(f, live[i].bytes, f->own);
        live[i].mark = round;
        poke(f, live[i].ptr, &round, 4);
        poke(f, live[i].ptr + live[i].bytes - 4, &round, 4);
        for (size_t k = 0; k < LIVE; k++)
            assert_true(k == i || !live[k].ptr || live[k].ptr + live[k].bytes < live[i].ptr ||
                        live[i].ptr + live[i].bytes < live[k].ptr);
    }
}

TEST_ON(sim, freed_addresses_are_not_used_again_soon) {
    char *first = new_memory(f, 1000, f->own);
    free_memory(f, first, 1000, f->own);
    for (int i = 0; i < 100; i++) {
        char *next = new_memory(f, 1000, f->own);
        assert_ptr_not_equal(next, first);
        free_memory(f, next, 1000, f->own);
    }
}

static const struct operation {
    int32_t op;
    const char *name;
    bool writes_device, reads_device, writes_host, reads_host;
} operations[] = {
    {SB_SIM_ZERO, "zero", true, false, false, false},
    {SB_SIM_UPLOAD, "upload", true, false, false, true},
    {SB_SIM_DOWNLOAD, "download", false, true, true, false},
    {SB_SIM_COPY, "copy", true, true, false, false},
    {SB_SIM_AXPY, "axpy", true, true, false, false},
    {SB_SIM_SCALE, "scale", true, false, false, false},
    {SB_SIM_ASUM, "asum", false, true, false, false},
    {SB_SIM_SUMSQ, "sumsq", false, true, false, false},
};

TEST_ON(sim, bad_pointers_are_device_failures) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++) {
        sim_reopen(f, schedules[s], 3);
        char host[128];
        char *good = new_memory(f, 64, f->own);
        char *other = new_memory(f, 64, f->own);
        char *freed = new_memory(f, 64, f->own);
        synchronize(f, f->own);
        free_memory(f, freed, 64, f->own);
        synchronize(f, f->own);
        void *bad[] = {good - 1, good + 1, good + 64, freed, host, (void *)8};
        for (size_t k = 0; k < COUNT_OF(operations); k++) {
            const struct operation *o = &operations[k];
            void *dst = o->writes_host ? (void *)host : good;
            void *src = o->reads_host ? (void *)host : other;
            assert_ok(operate(f, o->op, dst, src, f->own, &err));
            for (size_t b = 0; b < COUNT_OF(bad); b++) {
                if (o->writes_device) {
                    assert_status(SB_ERR_DEVICE_FAILURE,
                                  operate(f, o->op, bad[b], src, f->own, &err));
                    assert_memory_equal(err.message, o->name, strlen(o->name));
                    assert_non_null(strstr(err.message, "bytes at"));
                    assert_int_not_equal(err.device_code, 0);
                }
                if (o->reads_device)
                    assert_status(SB_ERR_DEVICE_FAILURE,
                                  operate(f, o->op, dst, bad[b], f->own, &err));
            }
            if (o->writes_host)
                assert_status(SB_ERR_DEVICE_FAILURE, operate(f, o->op, good, src, f->own, &err));
            if (o->reads_host)
                assert_status(SB_ERR_DEVICE_FAILURE, operate(f, o->op, dst, good, f->own, &err));
            if (o->writes_host || o->reads_host)
                assert_memory_equal(err.message, o->name, strlen(o->name));
        }
        assert_status(SB_ERR_DEVICE_FAILURE,
                      f->table->copy(f->device, good, good, 64, f->own, &err));
        assert_memory_equal(err.message, "copy of 64", 10);
        /* These ranges are adjacent and do not overlap. */
        assert_ok(f->table->copy(f->device, good, good + 32, 32, f->own, &err));
        assert_ok(f->table->copy(f->device, good + 32, good, 32, f->own, &err));
        synchronize(f, f->own); /* succeeds, because the failed calls queued nothing */
    }
}

struct fill {
    const sb_context *context;
    char *ptr;
    size_t bytes;
    bool found;
};

static void fill(void *user) {
    struct fill *job = user;
    char *p = sb_sim_address(job->context, job->ptr, job->bytes);
    job->found = p != NULL;
    if (p)
        memset(p, 0x66, job->bytes);
}

TEST_ON(sim, memory_belongs_to_its_stream_until_synchronised) {
    char bytes[64] = {1};
    for (int ordered = 0; ordered < 2; ordered++) {
        sim_reopen(f, SB_SIM_LAZY, 0);
        sb_stream other = new_stream(f);
        char *ptr = new_memory(f, 64, f->own);
        upload(f, ptr, bytes, 64, f->own);
        if (ordered)
            order(f, f->own, other);
        struct fill kernel = {f->context, ptr, 64, !ordered};
        assert_ok(sb_sim_launch(f->context, other, fill, &kernel, &err));
        download(f, bytes, ptr, 64, other);
        assert_status(ordered ? SB_OK : SB_ERR_DEVICE_FAILURE, try_synchronize(f, other));
        assert_int_equal(kernel.found, ordered);
        if (!ordered)
            assert_memory_equal(err.message, "download of 64", 14);
        synchronize(f, f->own);
        free_memory(f, ptr, 64, f->own);
    }
}

TEST_ON(sim, an_invalid_free_loses_the_device) {
    enum stream { OWN, OTHER, NONE };
    static const struct {
        const char *fault;
        size_t offset, bytes;
        enum stream stream;
        int times;
        bool is_lazy, is_lent;
    } rows[] = {
        {"twice", 0, 64, OWN, 2, false, false},
        {"twice, before the first free has run", 0, 64, OWN, 2, true, false},
        {"with another size", 0, 32, OWN, 1, false, false},
        {"not from the start of a block", 1, 63, OWN, 1, false, false},
        {"of memory that the caller allocated", 0, 64, OWN, 1, false, true},
        {"before the memory is allocated on the stream", 0, 64, OTHER, 1, true, false},
        {"on a stream that does not exist", 0, 64, NONE, 1, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        sim_reopen(f, rows[i].is_lazy ? SB_SIM_LAZY : SB_SIM_EAGER, 0);
        const sb_stream streams[] = {f->own, new_stream(f), (sb_stream)(uintptr_t)0x10};
        void *lent = NULL;
        assert_ok(sb_sim_malloc(f->context, 64, &lent, &err));
        char *ptr = new_memory(f, 64, f->own);
        for (int n = 0; n < rows[i].times; n++)
            free_memory(f, rows[i].is_lent ? lent : ptr + rows[i].offset, rows[i].bytes,
                        streams[rows[i].stream]);
        if (rows[i].stream == OTHER) {
            void *event = record(f, streams[OTHER]);
            assert_status(SB_ERR_DEVICE_LOST, try_event_wait(f, event));
            event_destroy(f, event);
        }
        support_poison_error(&err);
        const sb_status st = try_synchronize(f, f->own);
        support_check_status(SB_ERR_DEVICE_LOST, st, &err, rows[i].fault, __FILE__, __LINE__);
    }
}

/* An invalid free loses the device. */
TEST_ON(sim, a_loss_is_reported_instead_of_an_earlier_failure) {
    set_schedule(f, SB_SIM_LAZY, 0);
    sb_stream other = new_stream(f);
    char *ptr = new_memory(f, 64, f->own), *zeroed = new_memory(f, 64, other);
    fail_call(f, SB_SIM_ZERO, 1, SB_SIM_FAIL_LATER);
    assert_ok(f->table->zero(f->device, zeroed, 64, other, &err));
    free_memory(f, ptr, 64, other); /* for `other`, the allocation has not run yet */
    void *event = record(f, other);
    assert_status(SB_ERR_DEVICE_LOST, try_synchronize(f, other));
    assert_status(SB_ERR_DEVICE_LOST, try_event_wait(f, event));
    event_destroy(f, event);
}

TEST_ON(sim, a_lost_device_does_not_write_to_an_invalid_pointer) {
    char *ptr = new_memory(f, 64, f->own);
    fail_call(f, SB_SIM_DOWNLOAD, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST, /* a write to this target would crash the host */
                  f->table->download(f->device, ptr, ptr, 64, f->own, &err));
}

TEST_ON(sim, a_count_beyond_any_memory_is_a_device_failure) {
    double sum = -1;
    char *ptr = new_memory(f, 64, f->own);
    assert_status(SB_ERR_DEVICE_FAILURE,
                  f->table->scale(f->device, SB_DTYPE_F32, INT64_MAX, 2, ptr, f->own, &err));
    assert_status(SB_ERR_DEVICE_FAILURE,
                  f->table->asum(f->device, SB_DTYPE_F64, INT64_MAX, ptr, &sum, f->own, &err));
    assert_true(sum == -1);
}

struct step {
    struct trace *trace;
    char name;
};

struct trace {
    char order[64];
    int length, launched;
    struct step steps[12];
};

static void note(void *user) {
    const struct step *s = user;
    s->trace->order[s->trace->length++] = s->name;
}

static void launch(struct sim *f, sb_stream stream, struct trace *trace, char name) {
    struct step *s = &trace->steps[trace->launched++];
    *s = (struct step){trace, name};
    assert_ok(sb_sim_launch(f->context, stream, note, s, &err));
}

static bool holds(struct sim *f, const char *ptr, const char bytes[64]) {
    char seen[64];
    peek(f, seen, ptr, 64);
    return memcmp(seen, bytes, 64) == 0;
}

TEST_ON(sim, a_missing_wait_gives_wrong_bytes) {
    set_schedule(f, SB_SIM_LAZY, 0);
    char source[64], target[64], right[64];
    memset(source, 0x11, 64);
    memset(target, 0x11, 64); /* the expected bytes, until the queued download writes rubbish */
    memset(right, 0x11, 64);
    char *from = new_memory(f, 64, f->own), *to = new_memory(f, 64, f->own);
    poke(f, from, right, 64);
    poke(f, to, right, 64);

    download(f, target, from, 64, f->own);
    for (int i = 0; i < 64; i++)
        assert_int_not_equal(target[i], right[i]);
    synchronize(f, f->own);
    assert_memory_equal(target, right, 64);

    upload(f, to, source, 64, f->own);
    assert_false(holds(f, to, right));
    source[0] = 0; /* the copy has not read `source` yet */
    synchronize(f, f->own);
    assert_true(holds(f, to, source));

    assert_ok(f->table->copy(f->device, to, from, 64, f->own, &err));
    assert_false(holds(f, to, right));
    synchronize(f, f->own);
    assert_true(holds(f, to, right));

    assert_ok(f->table->zero(f->device, to, 64, f->own, &err));
    peek(f, target, to, 64);
    assert_int_not_equal(target[63], 0);
    synchronize(f, f->own);
    peek(f, target, to, 64);
    assert_int_equal(target[63], 0);
}

TEST_ON(sim, rubbish_is_written_when_earlier_work_is_done) {
    set_schedule(f, SB_SIM_LAZY, 0);
    char host[64], old[64];
    sb_stream stream = new_stream(f);
    memset(host, 1, 64);
    memset(old, 1, 64);
    char *a = new_memory(f, 64, stream), *b = new_memory(f, 64, stream);
    poke(f, a, old, 64);
    assert_ok(f->table->copy(f->device, b, a, 64, stream, &err));
    void *copied = record(f, stream);
    upload(f, a, host, 64, stream);
    assert_true(holds(f, a, old));
    event_wait(f, copied);
    assert_false(holds(f, a, old));
    synchronize(f, stream);
    assert_true(holds(f, a, host));

    upload(f, a, host, 64, stream);
    void *first = record(f, stream);
    upload(f, a, host, 64, stream);
    event_wait(f, first);
    assert_false(holds(f, a, host));
    synchronize(f, stream);
    assert_true(holds(f, a, host));
    event_destroy(f, first);
    event_destroy(f, copied);
}

static struct trace random_run(struct sim *f, uint64_t seed) {
    struct trace trace = {.length = 0};
    sim_reopen(f, SB_SIM_RANDOM, seed);
    sb_stream streams[3];
    for (int s = 0; s < 3; s++)
        streams[s] = new_stream(f);
    for (int i = 0; i < 12; i++) {
        launch(f, streams[i % 3], &trace, (char)('a' + i));
        if (i == 4)
            order(f, streams[1], streams[2]); /* e must run before f */
    }
    int at_once = trace.length;
    synchronize(f, streams[0]);
    synchronize(f, streams[1]);
    synchronize(f, streams[2]);
    assert_int_equal(trace.length, 12);
    for (int i = 3; i < 12; i++)
        assert_true(strchr(trace.order, 'a' + i - 3) < strchr(trace.order, 'a' + i));
    assert_true(strchr(trace.order, 'e') < strchr(trace.order, 'f'));
    trace.length = at_once;
    return trace;
}

TEST_ON(sim, a_random_schedule_repeats_for_its_seed) {
    bool some_late = false, some_at_once = false;
    int orders = 0;
    struct trace first = random_run(f, 0);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct trace once = random_run(f, seed);
        struct trace again = random_run(f, seed);
        assert_string_equal(once.order, again.order);
        assert_int_equal(once.length, again.length);
        some_late |= once.length < 12;
        some_at_once |= once.length > 0;
        orders += strcmp(once.order, first.order) != 0;
    }
    assert_true(some_late && some_at_once && orders > 25);
}

TEST_ON(sim, a_new_schedule_applies_to_later_work) {
    struct trace trace = {.length = 0};
    set_schedule(f, SB_SIM_LAZY, 0);
    sb_stream one = new_stream(f), two = new_stream(f);
    launch(f, one, &trace, 'a');
    set_schedule(f, SB_SIM_RANDOM, 5);
    for (int i = 0; i < 20; i++)
        event_destroy(f, record(f, two)); /* runs some queued work */
    assert_string_equal(trace.order, ""); /* `a` was queued under the lazy schedule */
    set_schedule(f, SB_SIM_EAGER, 0);
    launch(f, two, &trace, 'b');
    assert_string_equal(trace.order, "b");
    launch(f, one, &trace, 'c');
    assert_string_equal(trace.order, "bac");
}

TEST_ON(sim, blocking_streams_are_ordered_and_others_are_not) {
    struct trace trace = {.length = 0};
    set_schedule(f, SB_SIM_LAZY, 0);
    sb_stream apart = new_stream(f);
    launch(f, apart, &trace, 'x');
    launch(f, f->own, &trace, 'a');
    launch(f, NULL, &trace, 'b');
    launch(f, f->own, &trace, 'c');
    launch(f, NULL, &trace, 'd');
    void *event = record(f, NULL);
    launch(f, apart, &trace, 'x');
    event_wait(f, event);
    assert_string_equal(trace.order, "abcd");
    synchronize(f, apart);
    assert_string_equal(trace.order, "abcdxx");
    launch(f, NULL, &trace, 'a');
    launch(f, f->own, &trace, 'b');
    synchronize(f, f->own);
    assert_string_equal(trace.order, "abcdxxab");
    event_destroy(f, event);
}

TEST_ON(sim, long_chains_of_waits_run) {
    enum { LENGTH = 20000 };
    set_schedule(f, SB_SIM_LAZY, 0);
    float one = 0;
    sb_stream streams[2] = {new_stream(f), new_stream(f)};
    char *ptr = new_memory(f, sizeof one, streams[0]);
    upload(f, ptr, &one, sizeof one, streams[0]);
    one = 1;
    for (int i = 0; i < LENGTH; i++) {
        order(f, streams[i & 1], streams[~i & 1]);
        assert_ok(f->table->scale(f->device, SB_DTYPE_F32, 1, -1, ptr, streams[~i & 1], &err));
    }
    download(f, &one, ptr, sizeof one, streams[LENGTH & 1]);
    synchronize(f, streams[LENGTH & 1]);
    assert_true(one == 1);
}

TEST_ON(sim, a_destroyed_stream_and_a_closed_device_run_their_work) {
    struct trace trace = {.length = 0};
    set_schedule(f, SB_SIM_LAZY, 0);
    sb_stream one = new_stream(f), two = new_stream(f);
    launch(f, one, &trace, 'a');
    launch(f, two, &trace, 'b');
    void *event = record(f, one);
    assert_ok(sb_sim_stream_destroy(f->context, one, &err));
    assert_string_equal(trace.order, "a");
    event_wait(f, event);
    stream_wait(f, two, event);
    event_destroy(f, event);
    launch(f, f->own, &trace, 'c');
    sim_reopen(f, SB_SIM_EAGER, 0);
    assert_int_equal(trace.length, 3);
}

TEST_ON(sim, unknown_streams_are_of_the_wrong_device) {
    struct sim g;
    void *out = NULL;
    char host[64] = {0};
    sim_open(&g);
    sb_stream gone = new_stream(f);
    assert_ok(sb_sim_stream_destroy(f->context, gone, &err));
    sb_stream unknown[] = {new_stream(&g), g.own, gone, (sb_stream)&err};
    char *a = new_memory(f, 64, f->own), *b = new_memory(f, 64, f->own);
    void *event = record(f, f->own);
    void *foreign = record(&g, g.own);
    assert_ok(f->table->check_stream(f->device, NULL, &err));
    assert_ok(f->table->check_stream(f->device, f->own, &err));
    assert_ok(f->table->check_stream(f->device, new_stream(f), &err));
    for (size_t s = 0; s < COUNT_OF(unknown); s++) {
        sb_stream stream = unknown[s];
        for (size_t k = 0; k < COUNT_OF(operations); k++) {
            const struct operation *o = &operations[k];
            assert_status(SB_ERR_WRONG_DEVICE, operate(f, o->op, o->writes_host ? host : a,
                                                       o->reads_host ? host : b, stream, &err));
        }
        assert_status(SB_ERR_WRONG_DEVICE, f->table->check_stream(f->device, stream, &err));
        assert_status(SB_ERR_WRONG_DEVICE, f->table->alloc(f->device, 64, stream, &out, &err));
        assert_status(SB_ERR_WRONG_DEVICE, try_synchronize(f, stream));
        assert_status(SB_ERR_WRONG_DEVICE, f->table->event_record(f->device, stream, &out, &err));
        assert_status(SB_ERR_WRONG_DEVICE, f->table->stream_wait(f->device, stream, event, &err));
        assert_status(SB_ERR_WRONG_DEVICE, sb_sim_launch(f->context, stream, note, NULL, &err));
        assert_status(SB_ERR_WRONG_DEVICE, sb_sim_stream_destroy(f->context, stream, &err));
    }
    assert_status(SB_ERR_WRONG_DEVICE, f->table->stream_wait(f->device, f->own, foreign, &err));
    assert_int_equal(err.device_code, 0);
    assert_null(out);
    g.table->event_destroy(g.device, foreign);
    event_destroy(f, event);
    sim_close(&g);
}

TEST_ON(sim, callers_can_allocate_device_memory) {
    struct sim g;
    char bytes[8] = "1234567", seen[8] = "";
    void *ptr = NULL, *empty = NULL;
    sim_open(&g);
    assert_ok(sb_sim_malloc(f->context, 8, &ptr, &err));
    assert_ok(sb_sim_malloc(f->context, 0, &empty, &err)); /* an empty block has a unique address */
    assert_non_null(empty);
    assert_ok(f->table->check_pointer(f->device, empty, 1, &err));
    assert_status(SB_ERR_WRONG_DEVICE, f->table->check_pointer(f->device, empty, 2, &err));
    poke(f, ptr, bytes, 8);
    download(f, seen, ptr, 8, f->own);
    assert_string_equal(seen, "1234567");
    assert_ok(f->table->check_pointer(f->device, ptr, 8, &err));
    assert_ok(f->table->check_pointer(f->device, (char *)ptr + 8, 0, &err));
    assert_status(SB_ERR_WRONG_DEVICE, f->table->check_pointer(f->device, ptr, 9, &err));
    assert_int_equal(err.device_code, 0); /* the driver returned no error */
    assert_status(SB_ERR_WRONG_DEVICE, g.table->check_pointer(g.device, ptr, 8, &err));
    assert_status(SB_ERR_WRONG_DEVICE, f->table->check_pointer(f->device, bytes, 8, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_peek(f->context, seen, ptr, 9, &err));
    assert_true(sb_sim_address(f->context, ptr, 8) && !sb_sim_address(f->context, ptr, 9));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_poke(f->context, (char *)ptr + 1, bytes, 8, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_free(f->context, (char *)ptr + 1, &err));
    /* sb_sim_free refuses memory that the library has allocated. */
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_free(f->context, new_memory(f, 8, f->own), &err));
    assert_ok(sb_sim_free(f->context, ptr, &err));
    assert_ok(sb_sim_free(f->context, empty, &err));
    assert_ok(sb_sim_free(f->context, NULL, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_free(f->context, ptr, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_peek(f->context, seen, ptr, 8, &err));
    assert_status(SB_ERR_WRONG_DEVICE, f->table->check_pointer(f->device, ptr, 8, &err));
    sim_close(&g);
}

static void assert_all_refuse(sb_status expected, sb_context *context) {
    int64_t calls[SB_SIM_OP_COUNT];
    sb_stream stream;
    void *ptr;
    char byte = 0;
    assert_status(expected, sb_sim_set_schedule(context, SB_SIM_LAZY, 0, &err));
    assert_status(expected, sb_sim_fail(context, SB_SIM_ANY, 1, SB_SIM_FAIL_NOW, &err));
    assert_status(expected, sb_sim_fail_also(context, SB_SIM_ANY, 1, SB_SIM_FAIL_NOW, &err));
    assert_status(expected, sb_sim_calls(context, calls, SB_SIM_OP_COUNT, &err));
    assert_status(expected, sb_sim_stream_create(context, &stream, &err));
    assert_status(expected, sb_sim_stream_destroy(context, (sb_stream)&byte, &err));
    assert_status(expected, sb_sim_launch(context, NULL, note, NULL, &err));
    assert_status(expected, sb_sim_malloc(context, 8, &ptr, &err));
    assert_status(expected, sb_sim_free(context, NULL, &err));
    assert_status(expected, sb_sim_peek(context, &byte, &byte, 1, &err));
    assert_status(expected, sb_sim_poke(context, &byte, &byte, 1, &err));
    assert_null(sb_sim_address(context, &byte, 1));
}

/* If two faults are due at the same call, the fault that was armed first takes effect. */
TEST_ON(sim, several_faults_may_be_armed) {
    sb_context *context = f->context;
    fail_call(f, SB_SIM_STREAM_SYNCHRONIZE, 2, SB_SIM_FAIL_NOW);
    assert_ok(sb_sim_fail_also(context, SB_SIM_ANY, 3, SB_SIM_FAIL_NOW, &err));
    assert_ok(sb_sim_fail_also(context, SB_SIM_ANY, 3, SB_SIM_FAIL_STICKY, &err));
    for (int i = 0; i < 4; i++) {
        sb_status expected = i == 0 || i == 3 ? SB_OK : SB_ERR_DEVICE_FAILURE;
        assert_status(expected, try_synchronize(f, f->own));
    }
    fail_call(f, SB_SIM_STREAM_SYNCHRONIZE, 1, SB_SIM_FAIL_NOW);
    assert_ok(sb_sim_fail_also(context, SB_SIM_STREAM_SYNCHRONIZE, 3, SB_SIM_FAIL_NOW, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, try_synchronize(f, f->own));
    assert_ok(sb_sim_fail_also(context, SB_SIM_STREAM_SYNCHRONIZE, 2, SB_SIM_FAIL_STICKY, &err));
    synchronize(f, f->own);
    assert_status(SB_ERR_DEVICE_FAILURE, try_synchronize(f, f->own));
    for (int i = 0; i < 16; i++)
        assert_ok(sb_sim_fail_also(context, SB_SIM_ALLOC, 9, SB_SIM_FAIL_NOW, &err));
    assert_status(SB_ERR_OVER_LIMIT,
                  sb_sim_fail_also(context, SB_SIM_ALLOC, 9, SB_SIM_FAIL_NOW, &err));
    fail_call(f, SB_SIM_ALLOC, 0, SB_SIM_FAIL_NOW); /* removes all faults */
    assert_ok(sb_sim_fail_also(context, SB_SIM_ALLOC, 1, SB_SIM_FAIL_NOW, &err));
}

TEST(other_contexts_are_refused) {
    sb_context *host = NULL, *other = NULL;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_backend table = sb__sim_backend;
    table.extension = NULL;
    options.device = "sim:0";
    options.backend = &table;
    assert_ok(sb_context_create(NULL, &host, &err));
    assert_ok(sb_context_create(&options, &other, &err));
    assert_all_refuse(SB_ERR_NO_DEVICE, host);
    assert_all_refuse(SB_ERR_UNSUPPORTED, other);
    assert_all_refuse(SB_ERR_NO_DEVICE, NULL);
    sb_context_release(host);
    sb_context_release(other);
}

/* A program built with a later version's headers may pass an array for more operations. */
TEST_ON(sim, the_count_of_an_unknown_operation_is_zero) {
    int64_t calls[SB_SIM_OP_COUNT + 2];
    memset(calls, -1, sizeof calls);
    synchronize(f, f->own);
    assert_ok(sb_sim_calls(f->context, calls, 0, &err));
    assert_int_equal(calls[0], -1);
    assert_ok(sb_sim_calls(f->context, calls, SB_SIM_OP_COUNT + 1, &err));
    assert_true(calls[SB_SIM_STREAM_SYNCHRONIZE] > 0);
    assert_int_equal(calls[SB_SIM_OP_COUNT], 0);
    assert_int_equal(calls[SB_SIM_OP_COUNT + 1], -1);
}

TEST_ON(sim, bad_arguments_are_refused) {
    int64_t calls[SB_SIM_OP_COUNT];
    char byte = 0;
    assert_status(INVALID, sb_sim_set_schedule(f->context, 3, 0, &err));
    assert_status(INVALID, sb_sim_set_schedule(f->context, -1, 0, &err));
    assert_int_equal(err.device_code, 0); /* no device returned an error */
    assert_status(INVALID, sb_sim_fail(f->context, SB_SIM_OP_COUNT, 1, 0, &err));
    assert_status(INVALID, sb_sim_fail(f->context, -2, 1, 0, &err));
    assert_status(INVALID, sb_sim_fail(f->context, SB_SIM_ANY, -1, 0, &err));
    assert_status(INVALID, sb_sim_fail(f->context, SB_SIM_ANY, 1, 3, &err));
    assert_status(INVALID, sb_sim_fail(f->context, SB_SIM_ANY, 1, -1, &err));
    assert_status(INVALID, sb_sim_fail_also(f->context, SB_SIM_ANY, 0, 0, &err));
    assert_status(INVALID, sb_sim_calls(f->context, calls, -1, &err));
    assert_int_equal(sb_sim_peek(f->context, NULL, &byte, 1, NULL), INVALID);
}

TEST_ON(sim, streams_of_the_device_itself_are_not_destroyed) {
    const void *table = NULL;
    void *device = NULL;
    assert_ok(sb_context_extension(f->context, SB_SIM_DEVICE, &table, &device, &err));
    assert_status(INVALID, sb_sim_stream_destroy(f->context, NULL, &err));
    assert_status(INVALID, sb_sim_stream_destroy(f->context, f->own, &err));
    const sb_sim_device *sim = table;
    assert_int_equal(sim->struct_size, sizeof *sim);
    sim->lock(device);
    assert_status(INVALID, sim->stream_destroy(device, NULL, &err));
    assert_status(INVALID, sim->stream_destroy(device, f->own, &err));
    assert_int_equal(err.device_code, 0); /* no device returned an error */
    sim->unlock(device);
}
