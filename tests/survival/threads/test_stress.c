/* Sixteen threads on shared objects of several contexts and schedules:
   readers of every kind beside each other, one writer at a time, bytes looked
   at by everybody. A lock of the test excludes a writer from the readers of
   its object, as the contract asks; nothing else is excluded.
   SYNCBLOB_STRESS_SECONDS says for how long (3). */
#include "aligned.h"
#include "blobs.h"
#include "nets.h"
#include "team.h"

#include <string.h>
#include <unistd.h>

enum { THREADS = 16, CONTEXTS = 5, OBJECTS = 4, STREAMS = 3, COUNT = 96 };
enum { LARGEST = 256 }; /* of all values: their squares add up exactly in floats */
#define BYTES (COUNT * sizeof(float))

/* --- the world ------------------------------------------------------------------------------- */

/* A blob whose data are all `value`, under its lock, and whose diff is all 1. */
struct object {
    pthread_rwlock_t lock;
    struct place *place;
    sb_blob *blob;
    float value;
};

struct place {
    sb_context *context;
    bool has_device;
    sb_stream streams[STREAMS];
    struct object objects[OBJECTS];
    _Atomic(sb_mem *) parked; /* an owner's share, left by one thread for another */
};

struct world {
    struct place places[CONTEXTS];
    struct wire net;
    sb_model *model;
    double end;
    _Atomic int64_t steps, kernels_queued, kernels_run, lent, given_back;
    _Atomic int wrong;
};

struct worker {
    struct world *world;
    uint64_t random;
};

static void count(_Atomic int64_t *counter) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void wrong(struct world *world, const char *what, int line) {
    if (atomic_fetch_add_explicit(&world->wrong, 1, memory_order_relaxed) < 10)
        print_error("line %d: %s\n", line, what);
}

/* What must hold; the thread goes on, the test fails. */
#define expect(w, condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            wrong((w)->world, #condition, __LINE__);                                               \
    } while (0)
#define expect_ok(w, call) expect(w, (call) == SB_OK)

static int draw(struct worker *w, int n) {
    return (int)(test_random(&w->random) % (uint64_t)n);
}

static bool all_are(const void *values, float value) {
    const float *x = values;
    for (int i = 0; i < COUNT; i++)
        if (x[i] != value)
            return false;
    return true;
}

static void set_all(void *values, float value) {
    float *x = values;
    for (int i = 0; i < COUNT; i++)
        x[i] = value;
}

static bool device_all_are(sb_context *context, const void *ptr, float value) {
    float values[COUNT];
    return sb_sim_peek(context, values, ptr, sizeof values, NULL) == SB_OK &&
           all_are(values, value);
}

/* Mostly one of the named streams, sometimes the legacy default one. */
static sb_stream draw_stream(struct worker *w, const struct place *place) {
    int i = draw(w, STREAMS + 1);
    return i == STREAMS ? NULL : place->streams[i];
}

/* --- kernels --------------------------------------------------------------------------------- */

/* Checks and then maybe writes device memory when its turn comes, and frees itself. */
struct job {
    struct world *world;
    sb_context *context;
    const void *ptr;
    float before, after;
    bool checks, writes;
};

static void kernel(void *user) {
    struct job *job = user;
    void *p = sb_sim_address(job->context, job->ptr, BYTES);
    if (!p || (job->checks && !all_are(p, job->before)))
        wrong(job->world, "a kernel found other bytes", __LINE__);
    if (p && job->writes)
        set_all(p, job->after);
    count(&job->world->kernels_run);
    free(job);
}

static void launch(struct worker *w, const struct place *place, sb_stream stream, struct job job) {
    struct job *queued = malloc(sizeof *queued);
    expect(w, queued != NULL);
    if (!queued)
        return;
    *queued = job;
    count(&w->world->kernels_queued);
    expect_ok(w, sb_sim_launch(place->context, stream, kernel, queued, NULL));
}

/* --- readers --------------------------------------------------------------------------------- */

static void read_host(struct worker *w, struct object *o) {
    const float *x = NULL;
    expect_ok(w, sb_blob_cpu_f32(o->blob, SB_DATA, &x, NULL));
    expect(w, x && all_are(x, o->value));
}

static void read_device(struct worker *w, struct object *o) {
    const void *ptr = NULL;
    expect_ok(w, sb_blob_gpu(o->blob, SB_DATA, &ptr, NULL));
    expect(w, device_all_are(o->place->context, ptr, o->value));
}

static void read_on_stream(struct worker *w, struct object *o) {
    const void *ptr = NULL;
    sb_stream stream = draw_stream(w, o->place);
    expect_ok(w, sb_blob_gpu_on(o->blob, SB_DATA, stream, &ptr, NULL));
    launch(w, o->place, stream,
           (struct job){w->world, o->place->context, ptr, o->value, 0, true, false});
}

static void read_element(struct worker *w, struct object *o) {
    float value = -1;
    expect_ok(w, sb_blob_at_f32(o->blob, SB_DATA, (int64_t[]){draw(w, COUNT)}, 1, &value, NULL));
    expect(w, value == o->value);
    expect_ok(w, sb_blob_at_f32(o->blob, SB_DIFF, (int64_t[]){draw(w, COUNT)}, 1, &value, NULL));
    expect(w, value == 1);
}

static void read_sums(struct worker *w, struct object *o) {
    double asum = -1, sumsq = -1;
    expect_ok(w, sb_blob_asum(o->blob, SB_DATA, &asum, NULL));
    expect_ok(w, sb_blob_sumsq(o->blob, SB_DATA, &sumsq, NULL));
    expect(w, asum == (double)COUNT * (double)o->value);
    expect(w, sumsq == (double)COUNT * (double)o->value * (double)o->value);
}

static void read_figures(struct worker *w, struct object *o) {
    sb_mem *mem = NULL;
    char text[32];
    sb_stats stats = SB_STATS_INIT;
    expect_ok(w, sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL));
    int32_t head = sb_mem_head(mem);
    expect(w, head > SB_HEAD_UNINITIALIZED && head < SB_HEAD_LOST);
    expect(w, sb_mem_size(mem) == BYTES && sb_mem_context(mem) == o->place->context);
    expect(w, head == SB_HEAD_AT_GPU || sb_mem_storage(mem, SB_SIDE_CPU) != SB_STORAGE_NONE);
    expect_ok(w, sb_blob_shape_string(o->blob, text, sizeof text, NULL, NULL));
    expect(w, strcmp(text, "96 (96)") == 0);
    expect_ok(w, sb_context_stats(o->place->context, &stats, NULL));
    expect(w, stats.host_bytes <= stats.host_peak && stats.device_bytes <= stats.device_peak);
}

static void start_transfer(struct worker *w, struct object *o) {
    sb_mem *mem = NULL;
    sb_stream stream = draw_stream(w, o->place);
    expect_ok(w, sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL));
    sb_status status = SB_OK;
    switch (draw(w, 5)) {
    case 0:
        status = sb_mem_prefetch_cpu(mem, stream, NULL);
        break;
    case 1:
        status = sb_mem_prefetch_gpu(mem, stream, NULL);
        break;
    case 2:
        status = sb_mem_async_gpu_push(mem, stream, NULL);
        break;
    case 3:
        status = sb_mem_async_cpu_pull(mem, stream, NULL);
        break;
    default:
        status = sb_mem_synchronize(mem, NULL);
        break;
    }
    /* pushing from the device and pulling from the host are refused */
    expect(w, status == SB_OK || status == SB_ERR_INVALID_ARGUMENT);
}

static void share_and_copy(struct worker *w, struct object *o) {
    struct place *to = &w->world->places[draw(w, CONTEXTS)];
    sb_blob *sharer = NULL, *copy = NULL;
    double sum = -1;
    const float *x = NULL;
    expect_ok(w, sb_blob_create(o->place->context, SB_DTYPE_F32, &sharer, NULL));
    expect_ok(w, sb_blob_reshape_like(sharer, o->blob, NULL, NULL));
    expect_ok(w, sb_blob_share(sharer, SB_DATA, o->blob, NULL));
    expect_ok(w, sb_blob_asum(sharer, SB_DATA, &sum, NULL));
    expect(w, sum == (double)COUNT * (double)o->value);
    expect_ok(w, sb_blob_create(to->context, SB_DTYPE_F32, &copy, NULL));
    expect_ok(w, sb_blob_copy_from(copy, SB_DATA, sharer, SB_COPY_RESHAPE, NULL));
    expect_ok(w, sb_blob_cpu_f32(copy, SB_DATA, &x, NULL));
    expect(w, x && all_are(x, o->value));
    sb_blob_destroy(sharer);
    sb_blob_destroy(copy);
}

/* One owner's share changes hands between threads. */
static void pass_on(struct worker *w, struct object *o) {
    sb_mem *mem = NULL;
    expect_ok(w, sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL));
    expect(w, sb_mem_size(mem) == BYTES);
    mem = atomic_exchange_explicit(&o->place->parked, sb_mem_retain(mem), memory_order_relaxed);
    expect(w, !mem || !sb_mem_is_unique(mem) || sb_mem_size(mem) == BYTES);
    sb_mem_release(mem);
}

/* Objects of the thread's own, on the shared context. */
static void live_alone(struct worker *w, struct object *o) {
    static const int64_t counts[] = {COUNT, 40000,
                                     70000}; /* the larger ones pass through the cache */
    sb_context *context = sb_context_retain(o->place->context);
    sb_blob *blob = NULL;
    float *x = NULL, value = 0;
    int64_t elements = counts[draw(w, 3)];
    expect_ok(w, sb_blob_create_shaped(context, SB_DTYPE_F32, &elements, 1, &blob, NULL));
    sb_context_release(context);
    expect_ok(w, sb_blob_at_f32(blob, SB_DATA, &(int64_t){elements - 1}, 1, &value, NULL));
    expect(w, value == 0);
    expect_ok(w, sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, NULL));
    for (int i = 0; x && i < COUNT; i++)
        x[i] = 3;
    if (o->place->has_device) {
        sb_mem *mem = NULL;
        expect_ok(w, sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL));
        expect_ok(w, sb_mem_async_gpu_push(mem, draw_stream(w, o->place), NULL));
    }
    sb_blob_destroy(blob);
    if (draw(w, 8) == 0)
        sb_context_trim(o->place->context);
    if (draw(w, 16) == 0)
        expect_ok(w, sb_context_synchronize(o->place->context, NULL));
}

static void read_model(struct worker *w, struct object *o) {
    static const char name[] = "conv";
    int64_t layer = -1;
    sb_blob_info info = SB_BLOB_INFO_INIT;
    sb_layer_info layer_info = SB_LAYER_INFO_INIT;
    const float *x = NULL;
    sb_blob *blob = NULL;
    const sb_model *model = w->world->model;
    expect_ok(w, sb_model_find_layer(model, name, sizeof name - 1, &layer, NULL));
    expect_ok(w, sb_model_layer_info(model, layer, &layer_info, NULL));
    expect(w, layer_info.num_blobs == 2);
    expect_ok(w, sb_model_blob_info(model, layer, 0, &info, NULL));
    expect(w, info.count == 6);
    char message[64];
    expect_ok(w, sb_model_layer_message(model, layer, message, sizeof message, NULL, NULL));
    float last = 0;
    expect_ok(w, sb_model_read_values(model, layer, 0, SB_DATA, 5, 1, SB_DTYPE_F32, &last,
                                      sizeof last, NULL));
    expect(w, last == 6);
    expect_ok(w, sb_blob_create(o->place->context, SB_DTYPE_F32, &blob, NULL));
    expect_ok(w, sb_model_load_blob(model, layer, 0, blob, NULL));
    expect_ok(w, sb_blob_cpu_f32(blob, SB_DATA, &x, NULL));
    for (int i = 0; x && i < 6; i++)
        expect(w, x[i] == (float)(i + 1));
    sb_blob_destroy(blob);
}

static void read_somehow(struct worker *w, struct object *o) {
    static void (*const host[])(struct worker *, struct object *) = {
        read_host,  read_element,   read_sums,  read_figures,
        live_alone, share_and_copy, read_model, pass_on};
    static void (*const device[])(struct worker *, struct object *) = {read_device, read_on_stream,
                                                                       start_transfer};
    int i = draw(w, o->place->has_device ? 14 : 8);
    (i < 8 ? host[i] : device[i % 3])(w, o);
}

/* --- the writer ------------------------------------------------------------------------------ */

static void write_host(struct worker *w, struct object *o, float value) {
    float *x = NULL;
    if (draw(w, 2)) {
        expect_ok(w, sb_blob_overwrite_cpu_f32(o->blob, SB_DATA, &x, NULL));
    } else {
        expect_ok(w, sb_blob_mutable_cpu_f32(o->blob, SB_DATA, &x, NULL));
        expect(w, x && all_are(x, o->value));
    }
    if (x)
        set_all(x, value);
    o->value = value;
}

static void write_device(struct worker *w, struct object *o, float value) {
    void *ptr = NULL;
    float values[COUNT];
    expect_ok(w, sb_blob_mutable_gpu(o->blob, SB_DATA, &ptr, NULL));
    expect(w, device_all_are(o->place->context, ptr, o->value));
    set_all(values, value);
    expect_ok(w, sb_sim_poke(o->place->context, ptr, values, sizeof values, NULL));
    o->value = value;
}

static void write_on_stream(struct worker *w, struct object *o, float value) {
    void *ptr = NULL;
    sb_stream stream = draw_stream(w, o->place);
    bool keeps = draw(w, 2);
    if (keeps)
        expect_ok(w, sb_blob_mutable_gpu_on(o->blob, SB_DATA, stream, &ptr, NULL));
    else
        expect_ok(w, sb_blob_overwrite_gpu_on(o->blob, SB_DATA, stream, &ptr, NULL));
    launch(w, o->place, stream,
           (struct job){w->world, o->place->context, ptr, o->value, value, keeps, true});
    o->value = value;
}

static void compute(struct worker *w, struct object *o, float value) {
    switch (draw(w, 3)) {
    case 0:
        expect_ok(w, sb_blob_scale(o->blob, SB_DATA, 2, NULL));
        o->value *= 2;
        break;
    case 1: /* the diff is all ones */
        expect_ok(w, sb_blob_update(o->blob, NULL));
        o->value -= 1;
        break;
    default:
        expect_ok(w, sb_blob_clear(o->blob, SB_DATA, NULL));
        o->value = 0;
        break;
    }
    if (o->value < 0 || o->value > LARGEST)
        write_host(w, o, value);
}

static void give_back(void *user, void *ptr) {
    struct world *world = user;
    count(&world->given_back);
    memset(ptr, 0xDD, BYTES);
    test_aligned_free(ptr);
}

static void lend(struct worker *w, struct object *o, float value) {
    sb_mem *mem = NULL;
    void *ptr = test_aligned_alloc(64, BYTES);
    expect(w, ptr != NULL);
    set_all(ptr, value);
    expect_ok(w, sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL));
    count(&w->world->lent);
    expect_ok(w, sb_mem_set_cpu(mem, ptr, BYTES, draw(w, 2) ? SB_READ_ONLY : 0, give_back, w->world,
                                NULL));
    o->value = value;
}

static void evict(struct worker *w, struct object *o, float value) {
    sb_mem *mem = NULL;
    (void)value;
    expect_ok(w, sb_blob_mutable_mem(o->blob, SB_DATA, &mem, NULL));
    sb_status status = draw(w, 2) ? sb_mem_evict_cpu(mem, NULL) : sb_mem_evict_gpu(mem, NULL);
    expect(w, status == SB_OK || status == SB_ERR_INVALID_ARGUMENT);
}

/* From another object, if no writer has that one. */
static void copy_other(struct worker *w, struct object *o, float value) {
    struct object *from = &w->world->places[draw(w, CONTEXTS)].objects[draw(w, OBJECTS)];
    (void)value;
    if (from == o || pthread_rwlock_tryrdlock(&from->lock) != 0)
        return;
    expect_ok(w, sb_blob_copy_from(o->blob, SB_DATA, from->blob, 0, NULL));
    o->value = from->value;
    (void)pthread_rwlock_unlock(&from->lock);
}

/* Lets go of the memory and starts with a new one. */
static void start_afresh(struct worker *w, struct object *o, float value) {
    sb_blob *fresh = NULL;
    expect_ok(w, sb_blob_create_shaped(o->place->context, SB_DTYPE_F32, &(int64_t){COUNT}, 1,
                                       &fresh, NULL));
    expect_ok(w, sb_blob_share(o->blob, SB_DATA, fresh, NULL));
    sb_blob_destroy(fresh);
    o->value = 0;
    read_host(w, o);
    write_host(w, o, value);
}

static void write_somehow(struct worker *w, struct object *o) {
    static void (*const host[])(struct worker *, struct object *,
                                float) = {write_host, compute, lend, copy_other, start_afresh};
    static void (*const device[])(struct worker *, struct object *,
                                  float) = {write_device, write_on_stream, evict};
    int i = draw(w, o->place->has_device ? 11 : 5);
    (i < 5 ? host[i] : device[i % 3])(w, o, (float)draw(w, LARGEST));
}

/* --- running --------------------------------------------------------------------------------- */

static void work(void *arg, int member) {
    struct world *world = arg;
    struct worker w = {world, (uint64_t)member * 1000003 + 17};
    while (stress_now() < world->end) {
        struct object *o = &world->places[draw(&w, CONTEXTS)].objects[draw(&w, OBJECTS)];
        bool writes = draw(&w, 6) == 0;
        (void)(writes ? pthread_rwlock_wrlock(&o->lock) : pthread_rwlock_rdlock(&o->lock));
        (writes ? write_somehow : read_somehow)(&w, o);
        (void)pthread_rwlock_unlock(&o->lock);
        count(&world->steps);
    }
}

static void object_open(struct object *o, struct place *place) {
    float *x;
    (void)pthread_rwlock_init(&o->lock, NULL);
    o->place = place;
    o->value = 5;
    o->blob = blob_of_count(place->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_overwrite_cpu_f32(o->blob, SB_DATA, &x, &err));
    set_all(x, o->value);
    assert_ok(sb_blob_overwrite_cpu_f32(o->blob, SB_DIFF, &x, &err));
    set_all(x, 1);
}

/* The last place is the host alone, the others have devices of different schedules. */
static void place_open(struct place *place, int i) {
    static const int32_t schedules[CONTEXTS] = {SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM,
                                                SB_SIM_RANDOM};
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    place->has_device = i < CONTEXTS - 1;
    options.device = place->has_device ? "sim:0" : "cpu";
    options.flags = i % 2 ? SB_CONTEXT_NO_PINNED : 0;
    options.max_cache_bytes = (size_t)1 << 20;
    assert_ok(sb_context_create(&options, &place->context, &err));
    for (int k = 0; place->has_device && k < STREAMS; k++)
        assert_ok(sb_sim_stream_create(place->context, &place->streams[k], &err));
    if (place->has_device)
        assert_ok(sb_sim_set_schedule(place->context, schedules[i], (uint64_t)i, &err));
    for (int k = 0; k < OBJECTS; k++)
        object_open(&place->objects[k], place);
}

static void place_close(struct world *world, struct place *place) {
    struct worker w = {world, 1};
    sb_stats stats = SB_STATS_INIT;
    for (int k = 0; k < OBJECTS; k++) {
        read_host(&w, &place->objects[k]);
        sb_blob_destroy(place->objects[k].blob);
        (void)pthread_rwlock_destroy(&place->objects[k].lock);
    }
    sb_mem_release(atomic_load(&place->parked));
    for (int k = 0; place->has_device && k < STREAMS; k++) {
        assert_ok(sb_context_forget_stream(place->context, place->streams[k], &err));
        assert_ok(sb_sim_stream_destroy(place->context, place->streams[k], &err));
    }
    assert_ok(sb_context_synchronize(place->context, &err));
    sb_context_trim(place->context);
    assert_ok(sb_context_stats(place->context, &stats, &err));
    assert_int_equal(stats.device_bytes + stats.pinned_bytes + stats.borrowed_bytes, 0);
}

TEST(every_reader_sees_the_last_writer_s_bytes) {
    static struct world world;
    for (int i = 0; i < CONTEXTS; i++)
        place_open(&world.places[i], i);
    net_current(&world.net);
    assert_ok(sb_model_open_bytes(world.places[0].context, SB_FORMAT_CAFFEMODEL, world.net.bytes,
                                  world.net.size, NULL, NULL, NULL, &world.model, &err));
    world.end = stress_now() + stress_seconds(3);
    team_run(THREADS, work, &world);
    sb_model_destroy(world.model);
    wire_free(&world.net);
    for (int i = 0; i < CONTEXTS; i++)
        place_close(&world, &world.places[i]);
    for (int i = 0; i < CONTEXTS; i++)
        sb_context_release(world.places[i].context);
    print_message("%lld steps, %lld kernels, %lld loans\n", (long long)world.steps,
                  (long long)world.kernels_run, (long long)world.lent);
    assert_int_equal(world.wrong, 0);
    assert_int_equal(world.kernels_run, world.kernels_queued);
    assert_int_equal(world.given_back, world.lent);
    assert_true(world.steps > THREADS);
}

/* --- one transfer ---------------------------------------------------------------------------- */

struct race {
    struct rig rig;
    sb_blob *blob;
    sb_stream streams[STREAMS];
    bool to_host;
    _Atomic int wrong;
};

static void come_at_once(void *arg, int member) {
    struct race *r = arg;
    sb_mem *mem = NULL;
    const void *in = NULL;
    float value = 4;
    sb_stream stream = r->streams[member % STREAMS];
    sb_status status = sb_blob_mutable_mem(r->blob, SB_DATA, &mem, NULL);
    if (status == SB_OK && r->to_host)
        status = member % 4 == 0   ? sb_mem_cpu(mem, &in, NULL)
                 : member % 4 == 1 ? sb_mem_prefetch_cpu(mem, stream, NULL)
                 : member % 4 == 2 ? sb_mem_async_cpu_pull(mem, stream, NULL)
                                   : sb_blob_at(r->blob, SB_DATA, &(int64_t){7}, 1, &value, NULL);
    else if (status == SB_OK)
        status = member % 4 == 0   ? sb_mem_gpu(mem, &in, NULL)
                 : member % 4 == 1 ? sb_mem_prefetch_gpu(mem, stream, NULL)
                 : member % 4 == 2 ? sb_mem_async_gpu_push(mem, stream, NULL)
                                   : sb_mem_gpu_on(mem, stream, &in, NULL);
    if (status != SB_OK || value != 4 || (r->to_host && in && !all_are(in, 4)))
        atomic_fetch_add(&r->wrong, 1);
}

static void race_once(struct race *r, int round) {
    float *x;
    void *out;
    r->blob = blob_of_count(r->rig.context, SB_DTYPE_F32, COUNT);
    r->to_host = round % 2;
    assert_ok(sb_blob_overwrite_cpu_f32(r->blob, SB_DATA, &x, &err));
    set_all(x, 4);
    if (r->to_host)
        assert_ok(sb_blob_mutable_gpu(r->blob, SB_DATA, &out, &err));
    assert_ok(sb_sim_set_schedule(r->rig.context, round % 3, (uint64_t)round, &err));
    struct tally before = rig_tally(&r->rig);
    team_run(THREADS, come_at_once, r);
    struct tally since = rig_since(&r->rig, &before);
    assert_int_equal(since.uploads, !r->to_host);
    assert_int_equal(since.downloads, r->to_host);
    assert_int_equal(atomic_load(&r->wrong), 0);
    assert_int_equal(sb_mem_head(data_of(r->blob)), SB_HEAD_SYNCED);
    sb_blob_destroy(r->blob);
}

TEST(readers_of_every_kind_cause_one_transfer) {
    struct race r;
    memset(&r, 0, sizeof r);
    rig_open(&r.rig);
    for (int i = 0; i < STREAMS; i++)
        assert_ok(sb_sim_stream_create(r.rig.context, &r.streams[i], &err));
    for (int round = 0; round < (test_is_quick() ? 12 : 120); round++)
        race_once(&r, round);
    for (int i = 0; i < STREAMS; i++)
        assert_ok(sb_context_forget_stream(r.rig.context, r.streams[i], &err));
    rig_close(&r.rig);
}

int main(void) {
    (void)alarm((unsigned)stress_seconds(3) * 4 + 100);
    return run_all_tests();
}
