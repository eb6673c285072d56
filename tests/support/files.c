#include "files.h"

#include "support.h"

#include <dirent.h>

struct wire wire_of_file(const char *path) {
    struct wire wire = {0};
    char buffer[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((n = fread(buffer, 1, sizeof buffer, file)) > 0)
        wire_raw(&wire, buffer, n);
    (void)fclose(file);
    return wire;
}

void file_write(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void file_write_wire(const char *path, const struct wire *wire) {
    file_write(path, wire->bytes, wire->size);
}

void assert_wire(const struct wire *found, const struct wire *expected) {
    assert_int_equal(found->size, expected->size);
    if (expected->size > 0)
        assert_memory_equal(found->bytes, expected->bytes, expected->size);
}

int files_in(const char *folder) {
    int files = -2; /* without the entries "." and ".." */
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    while (readdir(listing))
        files++;
    (void)closedir(listing);
    return files;
}

bool file_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(found, 1, sizeof found, file) : 0;
    if (file)
        (void)fclose(file);
    return n == strlen(text) && memcmp(found, text, n) == 0;
}
