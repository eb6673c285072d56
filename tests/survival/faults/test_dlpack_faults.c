/* Export to DLPack and import, with the n-th allocation or the n-th operation of the device
   failing, for all n: heads and bytes stay, a tensor that was to be imported is untouched and not
   ended, the same call succeeds afterwards, nothing leaks. */
#include "blobs.h"
#include "faults.h"
#include "tensors.h"

#include <string.h>

enum op { READ, WRITE, WRITE_LEGACY, IMPORT, IMPORT_LEGACY, CREATE, CREATE_LEGACY, PASS_ON, OPS };

static const float values[6] = {1, 2, 3, 4, 5, 6};

struct world {
    struct rig rig;
    sb_blob *blob, *made, *giver;
    struct tensor tensor;
    sb_dl_managed_versioned *given; /* of the giver's data */
    sb_dl_managed_versioned *versioned;
    sb_dl_managed *legacy;
};

struct trial {
    enum op op;
    int32_t head, side;
    enum fault fault;
    int64_t nth;
};

static void blame(const struct trial *t, const char *what) {
    fail_with("op %d, %s, side %d, %s, n %d: %s", (int)t->op, head_name(t->head), t->side,
              fault_name(t->fault), (int)t->nth, what);
}

static void world_open(struct world *w, const struct trial *t) {
    memset(w, 0, sizeof *w);
    rig_open_on(&w->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    w->blob = blob_of(w->rig.context, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    mem_place(data_of(w->blob), t->head, values, sizeof values);
    if (t->side == SB_SIDE_GPU)
        tensor_make_on(&w->tensor, w->rig.context, SB_DL_DEVICE_EXTENSION, 0x17);
    else
        tensor_make(&w->tensor);
    w->giver = blob_of(w->rig.context, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    mem_place(data_of(w->giver), SB_HEAD_SYNCED, values, sizeof values);
    assert_ok(sb_blob_to_dlpack(w->giver, SB_DATA, t->side, &w->given, &err));
}

static void world_close(struct world *w) {
    if (w->given)
        w->given->deleter(w->given);
    sb_blob_destroy(w->giver);
    if (w->versioned)
        w->versioned->deleter(w->versioned);
    if (w->legacy)
        w->legacy->deleter(w->legacy);
    sb_blob_destroy(w->blob);
    sb_blob_destroy(w->made);
    if (w->tensor.lent.context)
        ignore(sb_sim_free(w->rig.context, w->tensor.lent.ptr, NULL));
    else
        tensor_free(&w->tensor);
    rig_close(&w->rig);
}

static sb_status pass_on(struct world *w, sb_error *err) {
    sb_status st = sb_blob_from_dlpack(w->blob, SB_DIFF, w->given, 0, err);
    if (st == SB_OK)
        w->given = NULL;
    return st;
}

static sb_status act(struct world *w, const struct trial *t, sb_error *err) {
    sb_context *context = w->rig.context;
    /* nobody asked for diff yet */
    sb_part part = t->head == SB_HEAD_UNINITIALIZED ? SB_DIFF : SB_DATA;
    switch (t->op) {
    case READ:
        return sb_blob_to_dlpack(w->blob, part, t->side, &w->versioned, err);
    case WRITE:
        return sb_blob_to_mutable_dlpack(w->blob, part, t->side, &w->versioned, err);
    case WRITE_LEGACY:
        return sb_blob_to_legacy_dlpack(w->blob, part, t->side, &w->legacy, err);
    case IMPORT:
        return sb_blob_from_dlpack(w->blob, SB_DIFF, &w->tensor.versioned, 0, err);
    case IMPORT_LEGACY:
        return sb_blob_from_legacy_dlpack(w->blob, SB_DIFF, &w->tensor.legacy, 0, err);
    case CREATE:
        return sb_blob_create_from_dlpack(context, &w->tensor.versioned, &w->made, err);
    case PASS_ON:
        return pass_on(w, err);
    default:
        return sb_blob_create_from_legacy_dlpack(context, &w->tensor.legacy, &w->made, err);
    }
}

static void check_failed(struct world *w, const struct trial *t, sb_status status,
                         const sb_error *err) {
    support_check_status(status, status, err, "the call", __FILE__, __LINE__);
    if (!fault_explains(t->fault, status, false))
        blame(t, err->message);
    if (w->versioned || w->legacy || w->made || w->tensor.deleted || !w->given ||
        sb_mem_is_unique(data_of(w->giver)))
        blame(t, "something was given or ended");
    if (sb_mem_head(data_of(w->blob)) != t->head)
        blame(t, "the head moved");
    if (!sb_mem_is_unique(data_of(w->blob)))
        blame(t, "a share is left");
    if (sb_context_device_status(w->rig.context) != SB_OK)
        return;
    if (t->head != SB_HEAD_UNINITIALIZED && !mem_holds(data_of(w->blob), values, sizeof values))
        blame(t, "the bytes changed");
    if (act(w, t, NULL) != SB_OK)
        blame(t, "the same call fails again");
}

static bool run_trial(const struct trial *t) {
    struct world w;
    world_open(&w, t);
    struct armed armed = fault_arm(&w.rig, t->fault, t->nth);
    support_poison_error(&err);
    sb_status status = act(&w, t, &err);
    bool fired = fault_disarm(&armed);
    if (status != SB_OK && !fired)
        blame(t, err.message);
    if (status != SB_OK)
        check_failed(&w, t, status, &err);
    int made = w.made != NULL || t->op == IMPORT || t->op == IMPORT_LEGACY;
    bool imported = made && sb_context_device_status(w.rig.context) == SB_OK;
    struct tensor *tensor = &w.tensor;
    sb_blob_destroy(w.blob);
    sb_blob_destroy(w.made);
    w.blob = w.made = NULL;
    if (imported && tensor->deleted != 1)
        blame(t, "the tensor was not ended once");
    world_close(&w);
    return fired;
}

static int failures_of(enum fault fault) {
    int failures = 0;
    for (enum op op = 0; op < OPS; op++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (int32_t side = 0; side < 2; side++) {
                bool fired = true;
                for (int64_t n = 1; fired; n++, failures += fired) {
                    struct trial t = {op, head, side, fault, n};
                    fired = run_trial(&t);
                    if (n > 100)
                        blame(&t, "the loop does not end");
                }
            }
    return failures;
}

TEST(failing_allocations) {
    /* an export makes two objects; an import a memory; a creation a blob, too */
    assert_true(failures_of(FAULT_ALLOC) >= 8 * (3 * 2 + 3 * 1 + 2 * 2));
}

TEST(operations_that_fail_at_once) {
    assert_true(failures_of(FAULT_NOW) > 20);
}

TEST(operations_that_fail_later) {
    assert_true(failures_of(FAULT_LATER) > 20);
}

TEST(a_device_that_dies) {
    assert_true(failures_of(FAULT_STICKY) > 20);
}
