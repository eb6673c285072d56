/* A program whose parts have copies of the library of their own: itself (user.c), and the libraries
   that it is linked with (LINKED, a list of X(USER)) or loads: host local|global [NAME PATH]... */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, MOST = 8 };

int step_of_program(int step);
#define X(user) int step_of_##user(int step);
LINKED
#undef X

static int (*users[MOST])(int step) = {step_of_program,
#define X(user) step_of_##user,
                                       LINKED
#undef X
};

static void load(int at, const char *name, const char *path, int flags) {
    char symbol[64];
    void *library = dlopen(path, RTLD_NOW | flags);
    (void)snprintf(symbol, sizeof symbol, "step_of_%s", name);
    if (library)
        *(void **)&users[at] = dlsym(library, symbol);
    if (!users[at]) {
        printf("%s\n", dlerror());
        exit(1);
    }
}

int main(int argc, char **argv) {
    int failures = 0, count = 0;
    while (users[count])
        count++;
    for (int i = 2; i + 1 < argc; i += 2)
        load(count++, argv[i], argv[i + 1],
             strcmp(argv[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < count; i++)
            failures += users[i](step);
    return failures != 0;
}
