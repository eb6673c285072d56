/* The program host local|global NAME PATH... contains a user of the library (user.c) and a copy of
   the library. It loads other users: shared libraries, each with a separate copy of the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 4, MOST = 8 };

int step_of_program(int step);

int main(int argc, char **argv) {
    int (*users[MOST])(int step) = {step_of_program};
    int failures = 0, count = 1;
    for (int i = 2; i + 1 < argc && count < MOST; i += 2, count++) {
        char symbol[64];
        void *library =
            dlopen(argv[i + 1], RTLD_NOW | (strcmp(argv[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL));
        (void)snprintf(symbol, sizeof symbol, "step_of_%s", argv[i]);
        if (library)
            *(void **)&users[count] = dlsym(library, symbol);
        if (!users[count])
            return printf("%s\n", dlerror()), 1;
    }
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < count; i++)
            failures += users[i](step);
    return failures != 0;
}
