#include "libraries.h"

#include "port/libraries.h"
#include "port/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST_DRIVER 12000
#define CAUSE         160 /* capacity for the system's error text */

#define CUBLAS_12 SB__LIBRARY("libcublas.so.12", "cublas64_12.dll")
#define CUBLAS_13 SB__LIBRARY("libcublas.so.13", "cublas64_13.dll")

/* A function's name, and the offset of its pointer in the table. */
struct entry {
    const char *symbol;
    size_t member;
};

#define ENTRY(table, name)                       {#name, offsetof(struct table, name)},
#define DRIVER_ENTRY(result, symbol, parameters) ENTRY(sb__cuda_driver, symbol)
#define CUBLAS_ENTRY(result, symbol, parameters) ENTRY(sb__cublas, symbol)

static const struct entry driver_entries[] = {SB__CUDA_FUNCTIONS(DRIVER_ENTRY)};
static const struct entry cublas_entries[] = {SB__CUBLAS_FUNCTIONS(CUBLAS_ENTRY)};

/* Fills the table. Returns the name of the first function that the library lacks, or NULL. */
static const char *fill(void *library, void *table, const struct entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *address = sb__library_symbol(library, entries[i].symbol);
        if (!address)
            return entries[i].symbol;
        memcpy((char *)table + entries[i].member, &address, sizeof address);
    }
    return NULL;
}

static sb_status fail(sb_error *err, sb_status status, int32_t code, const char *format,
                      const char *detail) {
    char message[sizeof err->message];
    (void)snprintf(message, sizeof message, format, detail);
    return sb_error_fill(err, status, code, message);
}

static sb_status fail_memory(sb_error *err) {
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a table of functions");
}

/* --- the driver --------------------------------------------------------------------- */

static sb_status initialise(struct sb__cuda_driver *driver, sb_error *err) {
    const char *name = NULL;
    char version[16];
    sb__cu_result result = driver->cuDriverGetVersion(&driver->version);
    if (result == SB__CUDA_SUCCESS && driver->version < OLDEST_DRIVER) {
        (void)snprintf(version, sizeof version, "%d.%d", driver->version / 1000,
                       driver->version % 1000 / 10);
        return fail(err, SB_ERR_NO_DEVICE, 0,
                    "the NVIDIA driver is made for CUDA %s; install a driver for 12.0 or later",
                    version);
    }
    if (result == SB__CUDA_SUCCESS)
        result = driver->cuInit(0);
    if (result == SB__CUDA_SUCCESS)
        return SB_OK;
    if (result == SB__CUDA_ERROR_NOT_INITIALIZED) /* cuInit returns this only in a forked child */
        return sb_error_fill(err, SB_ERR_FORKED, (int32_t)result,
                             "CUDA was initialised before this process was forked; call exec, or "
                             "initialise it in the child alone");
    (void)driver->cuGetErrorName(result, &name); /* NULL if unknown */
    return fail(err, SB_ERR_NO_DEVICE, (int32_t)result,
                result == SB__CUDA_ERROR_SYSTEM_NOT_READY
                    ? "the NVIDIA driver does not start: %s; does NVIDIA's fabric manager run?"
                    : "the NVIDIA driver does not start: %s; does nvidia-smi show a device?",
                name ? name : "an unknown error");
}

static sb_status load_driver(struct sb__cuda_driver *driver, sb_error *err) {
    char cause[CAUSE];
    void *library =
        sb__library_open(SB__LIBRARY("libcuda.so.1", "nvcuda.dll"), cause, sizeof cause);
    if (!library)
        return fail(err, SB_ERR_NO_DEVICE, 0,
                    "there is no NVIDIA driver (%s); install one, or use the device \"cpu\"",
                    cause);
    const char *missing =
        fill(library, driver, driver_entries, sizeof driver_entries / sizeof *driver_entries);
    sb_status st = missing ? fail(err, SB_ERR_NO_DEVICE, 0,
                                  "the NVIDIA driver lacks %s; install a driver for CUDA 12.0 or "
                                  "later",
                                  missing)
                           : initialise(driver, err);
    driver->opener = sb__process();
    if (st != SB_OK)
        sb__library_close(library);
    return st;
}

/* If several threads load a table at once, all use the table that is published first. No lock is
   used, because a forked child could inherit a locked lock. */
sb_status sb__cuda_driver_open(const struct sb__cuda_driver **out, sb_error *err) {
    static _Atomic(struct sb__cuda_driver *) published;
    struct sb__cuda_driver *driver = atomic_load(&published);
    if (!driver) {
        struct sb__cuda_driver *loaded = calloc(1, sizeof *loaded);
        if (!loaded)
            return fail_memory(err);
        sb_status st = load_driver(loaded, err);
        if (st != SB_OK) {
            free(loaded);
            return st;
        }
        if (atomic_compare_exchange_strong(&published, &driver, loaded))
            driver = loaded;
        else
            free(loaded);
    }
    if (driver->opener != sb__process())
        return sb_error_fill(err, SB_ERR_FORKED, 0,
                             "this process was forked after its parent had used CUDA; call exec, "
                             "or use CUDA in the child alone");
    *out = driver;
    return SB_OK;
}

/* --- cuBLAS ------------------------------------------------------------------------- */

/* Prefers a cuBLAS that the process has already loaded (PyTorch loads one), because a second copy
   would double cuBLAS's memory. */
static void *find_cublas(int driver_version, char *cause) {
    const bool is_new = driver_version >= 13000;
    void *library = is_new ? sb__library_loaded(CUBLAS_13) : NULL;
    if (!library)
        library = sb__library_loaded(CUBLAS_12);
    if (!library && is_new)
        library = sb__library_open(CUBLAS_13, cause, CAUSE);
    return library ? library : sb__library_open(CUBLAS_12, cause, CAUSE);
}

static sb_status load_cublas(struct sb__cublas *cublas, int driver_version, sb_error *err) {
    char cause[CAUSE];
    void *library = find_cublas(driver_version, cause);
    if (!library)
        return fail(err, SB_ERR_UNSUPPORTED, 0,
                    "arithmetic needs cuBLAS (%s); install it, or name its folder "
                    "in " SB__LIBRARY_PATH,
                    cause);
    const char *missing =
        fill(library, cublas, cublas_entries, sizeof cublas_entries / sizeof *cublas_entries);
    if (!missing)
        return SB_OK;
    sb__library_close(library);
    return fail(err, SB_ERR_UNSUPPORTED, 0, "cuBLAS lacks %s; install version 12.0 or later",
                missing);
}

sb_status sb__cublas_open(const struct sb__cuda_driver *driver, const struct sb__cublas **out,
                          sb_error *err) {
    static _Atomic(struct sb__cublas *) published;
    struct sb__cublas *cublas = atomic_load(&published);
    if (!cublas) {
        struct sb__cublas *loaded = calloc(1, sizeof *loaded);
        if (!loaded)
            return fail_memory(err);
        sb_status st = load_cublas(loaded, driver->version, err);
        if (st != SB_OK) {
            free(loaded);
            return st;
        }
        if (atomic_compare_exchange_strong(&published, &cublas, loaded))
            cublas = loaded;
        else
            free(loaded);
    }
    *out = cublas;
    return SB_OK;
}
