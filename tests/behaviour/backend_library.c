/* CMake builds one library from this file for each KIND. test_backend_load.c loads the
   libraries. */
#include "plain.h"

#include "port/threads.h"

enum kind { GOOD, WITHOUT_ENTRY, NULL_TABLE, REGISTERING, WITH_A_HOLE, SAME_NAME };

static const enum kind kind = KIND;
static struct plain plain;
static sb_backend table;

static void make_table(void) {
    table = plain_backend(&plain);
    table.name = kind == WITH_A_HOLE ? "hole" : kind == REGISTERING ? "registered" : "loaded";
    if (kind == WITH_A_HOLE)
        table.copy = NULL;
}

/* This library has its own copy of sb_backend_register; REGISTER holds the address of the program's
   copy. */
static void register_table(void) {
    sb_status (*function)(const sb_backend *, sb_error *);
    const char *address = getenv("REGISTER");
    void *pointer = NULL;
    if (address && sscanf(address, "%p", &pointer) == 1) {
        memcpy(&function, &pointer, sizeof function);
        (void)!function(&table, NULL);
    }
}

#ifdef HAS_NO_ENTRY
#define syncblob_backend another_name
#endif
SB_API const sb_backend *syncblob_backend(void);

const sb_backend *syncblob_backend(void) {
    static sb__once once = SB__ONCE_INIT;
    sb__run_once(&once, make_table);
    if (kind == REGISTERING)
        register_table();
    return kind == NULL_TABLE || kind == REGISTERING ? NULL : &table;
}
