/* check_blocks.py inserts a page's block "c fragment", or the code at the top of a header. */
#include <syncblob/dlpack.h>
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    sb_error err = {0};
    sb_blob *blob = NULL;
    sb_status st =
        sb_blob_create_shaped(NULL, SB_DTYPE_F32, (const int64_t[]){2, 3}, 2, &blob, &err);
    sb_blob *weights = blob;
    if (st || !weights)
        goto failed;
    {
        /* FRAGMENT */
        if (st || !weights)
            goto failed;
    }
    sb_blob_destroy(blob);
    return 0;

failed:
    fprintf(stderr, "%s: %s\n", sb_status_name(err.code), err.message);
    sb_blob_destroy(blob);
    return 1;
}
