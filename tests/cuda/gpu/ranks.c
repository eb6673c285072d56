/* Tests communicators over NCCL with two ranks and with a rank for each device, as threads of one
   process and as processes. Sums few elements and 256 MiB, on the device and on the host.

   usage: ranks                     the whole test
          ranks --quick             1 MiB at most
          ranks RANK SIZE BYTES ID  one rank, as a process */
#include "gpu.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <syncblob/nccl.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST = 8, LIMIT = 60000 };

extern char **environ;

struct rank {
    pthread_t thread;
    sb_context *context;
    sb_comm *comm;
    size_t bytes; /* bytes of the largest sum */
    bool right;
};

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool is_ok(sb_status st, const sb_error *err) {
    if (st != SB_OK)
        printf("%s: %s\n", sb_status_name(st), err->message);
    return st == SB_OK;
}

/* Returns a whole number, so that the sums over the ranks are exact. */
static float value_of(int64_t i, int32_t rank) {
    return (float)(i % 1021) + (float)rank;
}

static bool fill(sb_blob *blob, int32_t rank, bool on_device, sb_error *err) {
    float *x;
    void *out;
    if (!is_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, err), err))
        return false;
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        x[i] = value_of(i, rank);
    return !on_device || is_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, err), err);
}

static bool holds_sums(const sb_blob *blob, int32_t size, sb_error *err) {
    const float *x;
    if (!is_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, err), err))
        return false;
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        float wanted = 0;
        for (int32_t rank = 0; rank < size; rank++)
            wanted += value_of(i, rank);
        if (x[i] != wanted) {
            printf("element %lld: %g, not %g\n", (long long)i, (double)x[i], (double)wanted);
            return false;
        }
    }
    return true;
}

static bool reduce(struct rank *rank, sb_blob *blob, bool on_device) {
    const int32_t size = sb_comm_size(rank->comm), self = sb_comm_rank(rank->comm);
    sb_error err;
    if (!fill(blob, self, on_device, &err) || !is_ok(sb_comm_barrier(rank->comm, &err), &err))
        return false;
    const double start = now();
    if (!is_ok(sb_comm_all_reduce_blobs(rank->comm, &blob, 1, SB_DATA, SB_COMM_SUM, &err), &err))
        return false;
    if (self == 0 && sb_blob_count(blob) >= 1 << 18)
        printf("%d ranks, %.4g MiB on the %s: %.4g ms\n", size,
               (double)sb_blob_count(blob) * sizeof(float) / 1048576, on_device ? "device" : "host",
               (now() - start) * 1e3);
    return holds_sums(blob, size, &err);
}

/* Sums each size three times, since NCCL connects in the first operation. */
static void *run(void *user) {
    struct rank *rank = user;
    const int64_t counts[] = {1, 1000, (int64_t)(rank->bytes / sizeof(float))};
    rank->right = true;
    for (size_t c = 0; c < 3 && rank->right; c++)
        for (int on_device = 0; on_device < 2 && rank->right; on_device++) {
            sb_blob *blob;
            sb_error err;
            rank->right = is_ok(
                sb_blob_create_shaped(rank->context, SB_DTYPE_F32, &counts[c], 1, &blob, &err),
                &err);
            for (int i = 0; i < 3 && rank->right; i++)
                rank->right = reduce(rank, blob, on_device);
            sb_blob_destroy(blob);
        }
    sb_comm_destroy(rank->comm);
    return NULL;
}

static bool open_context(int32_t ordinal, sb_context **out) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_error err;
    char device[16];
    (void)snprintf(device, sizeof device, "cuda:%d", ordinal);
    options.device = device;
    return is_ok(sb_context_create(&options, out, &err), &err);
}

static bool run_threads(int32_t size, size_t bytes) {
    struct rank ranks[MOST] = {{0}};
    sb_context *contexts[MOST] = {NULL};
    sb_comm *comms[MOST];
    sb_error err;
    bool right = true;
    for (int32_t i = 0; i < size && right; i++)
        right = open_context(i, &contexts[i]);
    right = right && is_ok(sb_nccl_comm_create_all(contexts, size, LIMIT, comms, &err), &err);
    for (int32_t i = 0; i < size && right; i++) {
        ranks[i] = (struct rank){.context = contexts[i], .comm = comms[i], .bytes = bytes};
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0)
            abort();
    }
    for (int32_t i = 0; i < size && right; i++)
        (void)pthread_join(ranks[i].thread, NULL);
    for (int32_t i = 0; i < size; i++) {
        right = right && ranks[i].right;
        sb_context_release(contexts[i]);
    }
    return right;
}

/* --- processes ------------------------------------------------------------------------------- */

static int run_process(char **argv) {
    struct rank rank = {.bytes = strtoull(argv[3], NULL, 10)};
    uint8_t id[SB_NCCL_ID_BYTES];
    sb_error err;
    const int32_t self = atoi(argv[1]), size = atoi(argv[2]);
    for (size_t i = 0; i < sizeof id; i++) {
        const char digits[] = {argv[4][2 * i], argv[4][2 * i + 1], 0};
        id[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    if (!open_context(self, &rank.context) ||
        !is_ok(sb_nccl_comm_create(rank.context, id, self, size, LIMIT, &rank.comm, &err), &err))
        return 1;
    (void)run(&rank);
    sb_context_release(rank.context);
    return !rank.right;
}

static bool run_processes(char *program, int32_t size, size_t bytes) {
    char rank[12], all[12], most[24], digits[2 * SB_NCCL_ID_BYTES + 1] = "";
    uint8_t id[SB_NCCL_ID_BYTES];
    pid_t children[MOST];
    sb_error err;
    bool right = is_ok(sb_nccl_id_create(id, &err), &err);
    for (size_t i = 0; i < sizeof id && right; i++)
        (void)snprintf(&digits[2 * i], 3, "%02x", id[i]);
    (void)snprintf(all, sizeof all, "%d", size);
    (void)snprintf(most, sizeof most, "%zu", bytes);
    int32_t made = 0;
    for (; made < size && right; made++) {
        (void)snprintf(rank, sizeof rank, "%d", made);
        char *const arguments[] = {program, rank, all, most, digits, NULL};
        if (posix_spawn(&children[made], program, NULL, NULL, arguments, environ) != 0)
            abort();
    }
    for (int32_t i = 0; i < made; i++) {
        int status = 1;
        right = waitpid(children[i], &status, 0) == children[i] && status == 0 && right;
    }
    return right;
}

/* --- all ------------------------------------------------------------------------------------- */

/* Returns why NCCL cannot have two ranks here; NULL if it can. */
static const char *find_obstacle(void) {
    static sb_error err;
    uint8_t id[SB_NCCL_ID_BYTES];
    if (device_count() < 2)
        return "there is one device";
    return sb_nccl_id_create(id, &err) == SB_OK ? NULL : err.message;
}

int main(int argc, char **argv) {
    if (argc == 5)
        return run_process(argv);
    const bool quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    if (argc > 2 || (argc == 2 && !quick)) {
        fprintf(stderr, "usage: ranks [--quick]\n");
        return 2;
    }
    const int missing = gpu_begin();
    if (missing)
        return missing;
    const char *obstacle = find_obstacle();
    if (obstacle) {
        printf("skipped: %s\n", obstacle);
        return GPU_SKIPPED;
    }
    const size_t bytes = (size_t)(quick ? 1 : 256) << 20;
    const int32_t all = device_count() < MOST ? device_count() : MOST;
    bool right = true;
    for (int32_t size = 2; size <= all && right; size += size < all && all > 2 ? all - 2 : 1) {
        printf("%d threads\n", size);
        right = run_threads(size, bytes);
        if (driver->is_fake)
            printf("skipped: %d processes: each has a separate fake NCCL\n", size);
        else if (right && printf("%d processes\n", size) && fflush(stdout) == 0)
            right = run_processes(argv[0], size, bytes);
    }
    return !right;
}
