/* Tests that several threads can register, load and open backends at once. */
#include "plain.h"
#include "team.h"

#define MEMBERS 4
#define NAMES   12

static struct plain plain;

static void open_and_close(const char *device) {
    sb_context *context;
    assert_ok(create_with_backend(NULL, device, &context, &err));
    sb_context_release(context);
}

struct contest {
    char names[NAMES][8];
    sb_backend tables[MEMBERS][NAMES];
    bool won[MEMBERS][NAMES];
};

static sb_status open_nothing(void *user, int32_t ordinal, void **out, sb_error *error) {
    return sb_error_fill(error, SB_ERR_NO_DEVICE, 0, user);
}

static void register_all(void *arg, int member) {
    struct contest *contest = arg;
    char device[12];
    for (int i = 0; i < NAMES; i++) {
        sb_context *context = NULL;
        contest->won[member][i] = sb_backend_register(&contest->tables[member][i], NULL) == SB_OK;
        (void)snprintf(device, sizeof device, "%s:0", contest->names[i]);
        /* This thread or another thread has registered the table. */
        assert_status(SB_ERR_NO_DEVICE, create_with_backend(NULL, device, &context, &err));
    }
}

TEST(one_of_many_tables_gets_a_name) {
    static struct contest contest;
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(contest.names[i], sizeof contest.names[i], "name%d", i);
        for (int member = 0; member < MEMBERS; member++) {
            contest.tables[member][i] = plain_backend(&plain);
            contest.tables[member][i].name = contest.names[i];
            contest.tables[member][i].open = open_nothing;
            contest.tables[member][i].user = contest.names[i];
        }
    }
    team_run(MEMBERS, register_all, &contest);
    for (int i = 0; i < NAMES; i++) {
        int winners = 0;
        for (int member = 0; member < MEMBERS; member++)
            winners += contest.won[member][i];
        assert_int_equal(winners, 1);
    }
}

static void register_the_same(void *arg, int member) {
    assert_int_equal(sb_backend_register(arg, NULL), SB_OK);
}

static void load_the_same(void *arg, int member) {
    const sb_backend **loaded = arg;
    assert_int_equal(sb_backend_load(SB_BACKEND_LIBRARIES "/good.so", &loaded[member], NULL),
                     SB_OK);
}

TEST(all_threads_may_register_and_load_the_same) {
    static sb_backend table;
    const sb_backend *loaded[MEMBERS] = {NULL};
    table = plain_backend(&plain);
    team_run(MEMBERS, register_the_same, &table);
    open_and_close("plain:0");
    team_run(MEMBERS, load_the_same, loaded);
    for (int member = 0; member < MEMBERS; member++) {
        assert_non_null(loaded[member]);
        assert_ptr_equal(loaded[member], loaded[0]);
    }
    open_and_close("loaded:0");
}
