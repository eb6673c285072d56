#include "files.h"
#include "support.h"

#include "port/files.h"

#include <stdio.h>
#include <windows.h>

bool file_is_replaced_while_open(void) {
    char folder[] = "/tmp/syncblob-open-XXXXXX", path[64];
    struct sb__replacement replacement;
    const char *what;
    sb__file file;
    bool in_place;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    file_write(path, "old", 3);
    assert_int_equal(sb__file_open(path, &file), 0);
    assert_int_equal(sb__replacement_begin(&replacement, path, &what), 0);
    int error = sb__replacement_commit(&replacement, &in_place);
    sb__file_close(file);
    assert_int_equal(unlink(path) | rmdir(folder), 0);
    assert_true(error == 0 || error == ERROR_SHARING_VIOLATION);
    if (error)
        print_message("skipped: this Windows cannot replace an open file\n");
    return error == 0;
}
