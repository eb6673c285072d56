/* A DLPack tensor may be deleted on any thread. The library orders all accesses through the tensor
   before those of the memory's next owner, and runs each lender's deleter once. */
#include "blobs.h"
#include "pointers.h"
#include "team.h"

#include <syncblob/dlpack.h>

struct loan {
    struct rig rig;
    struct lent lent;
    sb_blob *blob;
    sb_dl_managed_versioned *tensor;
};

/* The deleter of lent memory runs on the thread of the last owner. The deleter reads the bytes
   that both threads wrote, and overwrites them. */
static void read_back(void *user, void *ptr) {
    struct loan *loan = user;
    assert_true(bytes_are(ptr, 16, 0x44));
    memset(ptr, 0, 16);
    lent_deleter(&loan->lent, ptr);
}

/* The first of two threads also writes. */
static void end_the_tensor(void *arg, int member) {
    const struct loan *loan = arg;
    if (member == 0)
        memset(loan->tensor->dl_tensor.data, 0x44, 16);
    loan->tensor->deleter(loan->tensor);
}

static void destroy_the_blob(void *arg, int member) {
    const struct loan *loan = arg;
    if (member == 0)
        memset(blob_pointer(loan->blob, SB_DATA, MUTABLE_CPU), 0x44, 16);
    sb_blob_destroy(loan->blob);
}

static void loan_open(struct loan *loan, int fill, uint32_t flags) {
    rig_open_on(&loan->rig, NULL, 0);
    loan->lent = lend_host(16, fill);
    loan->blob = blob_of_count(loan->rig.context, SB_DTYPE_F32, 4);
    assert_ok(
        sb_blob_set_cpu(loan->blob, SB_DATA, loan->lent.ptr, 16, flags, read_back, loan, &err));
}

static void loan_close(struct loan *loan) {
    assert_int_equal(loan->lent.deleted, 1);
    rig_close(&loan->rig);
}

static void lend(team_task *first, team_task *second) {
    struct loan loan;
    loan_open(&loan, 0x41, 0);
    assert_ok(sb_blob_to_mutable_dlpack(loan.blob, SB_DATA, SB_SIDE_CPU, &loan.tensor, &err));
    hand_over(first, second, &loan);
    loan_close(&loan);
}

TEST(the_last_user_sees_the_writes_of_all_others) {
    for (int i = 0; i < 50; i++) {
        lend(end_the_tensor, destroy_the_blob);
        lend(destroy_the_blob, end_the_tensor);
    }
}

/* Moves the memory out of read-only storage that a tensor still holds. The last holder is on
   another thread, and only the lease orders the two threads. */
static void write_elsewhere(void *arg, int member) {
    (void)blob_pointer(((struct loan *)arg)->blob, SB_DATA, MUTABLE_CPU);
}

TEST(released_storage_ends_with_the_tensor) {
    for (int i = 0; i < 50; i++) {
        struct loan loan;
        loan_open(&loan, 0x44, SB_READ_ONLY);
        assert_ok(sb_blob_to_dlpack(loan.blob, SB_DATA, SB_SIDE_CPU, &loan.tensor, &err));
        hand_over(write_elsewhere, end_the_tensor, &loan);
        assert_int_equal(loan.lent.deleted, 1);
        sb_blob_destroy(loan.blob);
        loan_close(&loan);
    }
}

/* The export of the first tensor changes the storage; the export of the second reads that change.
   Only the library may order the exports, so the test uses no allocator that has a lock. */
struct pair {
    sb_blob *blob;
    sb_dl_managed_versioned *tensors[2];
};

static void export_tensor(void *arg, int member) {
    struct pair *pair = arg;
    assert_ok(sb_blob_to_dlpack(pair->blob, SB_DATA, SB_SIDE_CPU, &pair->tensors[member], &err));
}

TEST(two_threads_export_one_side) {
    for (int i = 0; i < 50; i++) {
        struct pair pair = {.blob = blob_of_count(NULL, SB_DTYPE_F32, 4)};
        void *data = blob_pointer(pair.blob, SB_DATA, MUTABLE_CPU);
        hand_over(export_tensor, export_tensor, &pair);
        assert_ptr_equal(pair.tensors[0]->dl_tensor.data, data);
        assert_ptr_equal(pair.tensors[1]->dl_tensor.data, data);
        sb_blob_destroy(pair.blob);
        memset(data, 0x55, 16); /* each tensor keeps the storage alive */
        pair.tensors[0]->deleter(pair.tensors[0]);
        assert_true(bytes_are(data, 16, 0x55));
        pair.tensors[1]->deleter(pair.tensors[1]);
    }
}
