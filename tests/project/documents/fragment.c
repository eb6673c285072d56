/* The program into which check_blocks.py inserts a page's block "c fragment". */
#include <syncblob/dlpack.h>
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    sb_error err = {0};
    if (err.code)
        goto failed;
    /* FRAGMENT */
    return 0;

failed:
    fprintf(stderr, "%s: %s\n", sb_status_name(err.code), err.message);
    return 1;
}
