/* The shared libraries of test_backend_load.c; CMake compiles one of each KIND. */
#include "plain.h"

#include "port/threads.h"

enum kind { GOOD, WITHOUT_ENTRY, NULL_TABLE, NEWER, WITH_A_HOLE, SAME_NAME, BUILT_IN_NAME };

static const enum kind kind = KIND;
static struct plain plain;
static sb_backend table;

static void make_table(void) {
    table = plain_backend(&plain);
    table.name = kind == BUILT_IN_NAME ? "cuda" : kind == WITH_A_HOLE ? "hole" : "loaded";
    if (kind == NEWER)
        table.abi_version++;
    if (kind == WITH_A_HOLE)
        table.copy = NULL;
}

#ifdef HAS_NO_ENTRY
#define syncblob_backend another_name
#endif
SB_API const sb_backend *syncblob_backend(void);

const sb_backend *syncblob_backend(void) {
    static sb__once once = SB__ONCE_INIT;
    sb__run_once(&once, make_table);
    return kind == NULL_TABLE ? NULL : &table;
}
