/* Opens "cuda:0" under AddressSanitizer on a machine with NVIDIA's driver, but without a device. */
#include <syncblob/syncblob.h>

#include <stdio.h>

int main(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_error err;
    options.device = "cuda:0";
    for (int i = 0; i < 2; i++) { /* the second call must load the driver again */
        sb_status st = sb_context_create(&options, &context, &err);
        if (st == SB_OK) {
            sb_context_release(context);
            puts("skipped: there is a device here");
            return 77;
        }
        printf("%s: %s (%d)\n", sb_status_name(st), err.message, err.device_code);
        if (st != SB_ERR_NO_DEVICE || err.device_code == 0)
            return 1; /* device_code 0 means that no call of the driver failed */
    }
    return 0;
}
