#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct entry {
    const char *symbol;
    size_t member;
};

#define ENTRY(symbol)                             {#symbol, offsetof(struct driver, symbol)},
#define ENTRY_OF_OURS(result, symbol, parameters) ENTRY(symbol)

static const struct entry needed[] = {SB__CUDA_FUNCTIONS(ENTRY_OF_OURS)
                                          APPLICATION_FUNCTIONS(ENTRY)};
static const struct entry optional[] = {OPTIONAL_FUNCTIONS(ENTRY)};

/* Fills the table; returns how many functions are missing. */
static size_t fill(struct driver *driver, void *library, const struct entry *entries,
                   size_t count) {
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, entries[i].symbol);
        memcpy((char *)driver + entries[i].member, &address, sizeof address);
        missing += address == NULL;
    }
    return missing;
}

const struct driver *driver_open(const char **why) {
    static struct driver driver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    *why = "libcuda.so.1 cannot be opened";
    if (!library)
        return NULL;
    *why = "the driver lacks a function that the tests use";
    if (fill(&driver, library, needed, sizeof needed / sizeof *needed))
        return NULL;
    (void)fill(&driver, library, optional, sizeof optional / sizeof *optional);
    driver.is_fake = dlsym(library, "fake_live") != NULL;
    return &driver;
}

void driver_describe(const struct driver *driver, char *buffer, size_t capacity) {
    char name[128] = "a device without a name";
    int version = 0;
    (void)driver->cuDriverGetVersion(&version);
    if (driver->cuDeviceGetName)
        (void)driver->cuDeviceGetName(name, sizeof name, 0);
    (void)snprintf(buffer, capacity, "%s, driver for CUDA %d.%d",
                   driver->is_fake ? "NO GPU (a fake driver)" : name, version / 1000,
                   version % 1000 / 10);
}

static void nap(void *user) {
    const struct timespec some = {0, 5000000};
    (void)nanosleep(&some, NULL);
}

void driver_pause(const struct driver *driver, sb__cu_stream stream) {
    if (driver->cuLaunchHostFunc && !driver->is_fake)
        (void)driver->cuLaunchHostFunc(stream, nap, NULL);
}
