/* The shared libraries of test_backend_load.c; CMake compiles one of each KIND. */
#include "plain.h"

enum kind { GOOD, WITHOUT_ENTRY, NULL_TABLE, NEWER, WITH_A_HOLE, SAME_NAME, BUILT_IN_NAME };

static const enum kind kind = KIND;
static struct plain plain;
static sb_backend table;

__attribute__((constructor)) static void make_table(void) {
    table = plain_backend(&plain);
    table.name = kind == BUILT_IN_NAME ? "cuda" : kind == WITH_A_HOLE ? "hole" : "loaded";
    if (kind == NEWER)
        table.abi_version++;
    if (kind == WITH_A_HOLE)
        table.copy = NULL;
}

#define ENTRY(name)                                                                                \
    SB_API sb_backend_entry name;                                                                  \
    const sb_backend *name(void) {                                                                 \
        return kind == NULL_TABLE ? NULL : &table;                                                 \
    }
#ifdef HAS_NO_ENTRY
ENTRY(another_entry)
#else
ENTRY(syncblob_backend)
#endif
