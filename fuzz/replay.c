/* Runs a harness without a fuzzer. Arguments are inputs, folders of inputs, or numbers of random
   inputs. */
#include "fuzz.h"

#include "base/draw.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void die(const char *path, const char *what) {
    (void)fprintf(stderr, "replay: %s: %s\n", path, what);
    exit(2);
}

/* A sanitizer detects reads beyond the end, because the memory has the size of the file. */
static uint8_t *read_input(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0)
        die(path, "cannot be opened");
    *size = (size_t)info.st_size;
    uint8_t *bytes = malloc(*size ? *size : 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size)
        die(path, "cannot be read");
    (void)fclose(file);
    return bytes;
}

static size_t replay_file(const char *path) {
    size_t size;
    uint8_t *bytes = read_input(path, &size);
    (void)LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 1;
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static size_t replay_folder(const char *path) {
    struct dirent **names;
    int count = scandir(path, &names, is_visible, alphasort);
    if (count < 0)
        die(path, "cannot be listed");
    for (int i = 0; i < count; i++) {
        char inside[4096];
        (void)snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        (void)replay_file(inside);
        free(names[i]);
    }
    free(names);
    return (size_t)count;
}

static size_t replay_random(size_t count) {
    uint8_t bytes[160];
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t state = seed;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(sb__draw(&state) >> 56);
        (void)LLVMFuzzerTestOneInput(bytes, sizeof bytes);
    }
    return count;
}

int main(int argc, char **argv) {
    size_t inputs = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (strspn(argv[i], "0123456789") == strlen(argv[i])) {
            inputs += replay_random((size_t)strtoul(argv[i], NULL, 10));
            continue;
        }
        if (stat(argv[i], &info) != 0)
            die(argv[i], "does not exist");
        inputs += S_ISDIR(info.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    if (inputs == 0) {
        (void)fprintf(stderr, "usage: %s FILE|FOLDER|NUMBER...\n", argv[0]);
        return 2;
    }
    printf("%zu inputs without a finding\n", inputs);
    return 0;
}
