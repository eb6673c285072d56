/* Access to the simulated device of a context. */
#ifndef SB_TESTING_DEVICE_H
#define SB_TESTING_DEVICE_H

#include <syncblob/sim_device.h>

struct sb__testing_handle {
    const sb_sim_device *table;
    void *device;
};

/* Finds the context's simulated device and acquires the device's lock, which sb__testing_unlock
   releases. */
sb_status sb__testing_lock(const sb_context *context, struct sb__testing_handle *out,
                           sb_error *err);
/* Releases the lock and returns `status`. */
sb_status sb__testing_unlock(const struct sb__testing_handle *sim, sb_status status);

sb_status sb__testing_fail(sb_error *err, sb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
sb_status sb__testing_fail_null(sb_error *err, const char *parameter);

#endif
