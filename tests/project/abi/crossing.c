/* crossing LIBRARY: passes objects of the static library to the shared library, made of the same
   sources. The built-in contexts of these copies have different addresses. A copy must recognise
   the built-in context of the other copy: report it as NULL, and not count its owners. */
#include <syncblob/syncblob.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("crossing.c:%d: %s is false\n", __LINE__, #condition);                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Defines the local variable NAME_, a pointer to the function NAME of the other copy. */
#define LOAD(name)                                                                                 \
    __typeof__(name) *name##_ = NULL;                                                              \
    *(void **)&name##_ = dlsym(library, #name);                                                    \
    CHECK(name##_)

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const int64_t shape[] = {2, 3};
    sb_blob *blob = NULL;
    sb_mem *mem = NULL;
    CHECK(library);
    LOAD(sb_blob_context);
    LOAD(sb_blob_destroy);
    LOAD(sb_blob_create_shaped);
    LOAD(sb_mem_context);
    for (int i = 0; i < 3; i++) { /* a round fails if an earlier round freed the context */
        sb_blob *sharer = NULL;
        CHECK(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 2, &blob, NULL) == SB_OK);
        CHECK(sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL) == SB_OK);
        CHECK(!sb_blob_context_(blob) && !sb_mem_context_(mem));
        CHECK(sb_blob_create_shaped_(NULL, SB_DTYPE_F32, shape, 2, &sharer, NULL) == SB_OK);
        sb_blob_destroy_(sharer);
        sb_blob_destroy_(blob);
    }
    return 0;
}
