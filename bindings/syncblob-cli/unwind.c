// Implements _dl_find_object, which gcc's unwinder needs and musl lacks. The function finds the
// .eh_frame_hdr of an address. glibc's headers declare the function.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct search {
    uintptr_t address;
    struct dl_find_object *out;
};

static int look_into(struct dl_phdr_info *object, size_t size, void *user) {
    struct search *search = user;
    void *header = NULL;
    int is_covered = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME)
            header = (void *)start;
        if (part->p_type != PT_LOAD || search->address - start >= part->p_memsz)
            continue;
        is_covered = 1;
        search->out->dlfo_map_start = (void *)start;
        search->out->dlfo_map_end = (void *)(start + part->p_memsz);
    }
    search->out->dlfo_eh_frame = header;
    return is_covered && header;
}

int _dl_find_object(void *address, struct dl_find_object *out) {
    struct search search = {(uintptr_t)address, out};
    *out = (struct dl_find_object){0};
    return dl_iterate_phdr(look_into, &search) ? 0 : -1;
}
