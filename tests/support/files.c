#include "files.h"

#include "support.h"

#include <stdio.h>

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
