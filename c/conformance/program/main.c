/* The program syncblob-conformance: tests a backend in a shared library. */
#include <syncblob/conformance.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_PASSED = 0, A_CLAIM_FAILED = 1, BAD_USE = 2 };

static const char help[] =
    "usage: syncblob-conformance [OPTION...] LIBRARY\n"
    "\n"
    "Tests a backend of syncblob: LIBRARY is the path of a shared library that exports\n"
    "    const sb_backend *syncblob_backend(void);\n"
    "Prints a line for each claim. If the backend crashes, the last line is the claim under test.\n"
    "\n"
    "  --device N   the number of the device (default 0)\n"
    "  --devices N  the number of devices; tests that only devices 0 to N - 1 open\n"
    "  --only TEXT  test only claims that contain TEXT\n"
    "  --seed S     the seed of random operations (default 0); a failure prints its seed\n"
    "  --seconds T  the time of each claim with random operations (default: a fixed number of "
    "rounds)\n"
    "  --large      also test counts above 2^31, with 8 GiB of device memory\n"
    "  --list       print the claims and end\n"
    "  --help       print this text and end\n"
    "\n"
    "examples:\n"
    "  syncblob-conformance ./libmybackend.so\n"
    "  syncblob-conformance --device 1 --seconds 600 --seed 7 ./libmybackend.so\n"
    "  syncblob-conformance --only event ./libmybackend.so\n"
    "\n"
    "exit status: 0 if no claim failed, 1 if a claim failed, 2 for bad use or a library without a\n"
    "backend\n";

static void print_result(void *user, const sb_conformance_result *result) {
    static const char *const outcomes[] = {"passed", "FAILED", "skipped"};
    int32_t *counts = user;
    counts[result->outcome]++;
    printf("%s%s%s\n", outcomes[result->outcome], result->detail[0] ? ": " : "", result->detail);
}

static void print_claim(void *user, const char *claim) {
    (void)user;
    printf("%s ... ", claim);
    (void)fflush(stdout); /* the output must be complete even if the backend crashes */
}

static int print_claims(void) {
    const char *claim;
    for (int32_t i = 0; (claim = sb_conformance_claim(i)) != NULL; i++)
        (void)puts(claim);
    return ALL_PASSED;
}

static int bad_use(const char *what, const char *word) {
    (void)fprintf(stderr, "syncblob-conformance: %s%s (--help explains the use)\n", what, word);
    return BAD_USE;
}

static bool parse_number(const char *text, unsigned long long limit, unsigned long long *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out <= limit;
}

/* Sets an option that has a value. Returns false if the value is invalid. */
static bool set_option(sb_conformance_options *options, const char *name, const char *value) {
    unsigned long long number = 0;
    if (strcmp(name, "--only") == 0) {
        options->only = value;
        return true;
    }
    if (strcmp(name, "--seed") == 0) {
        const bool is_valid = parse_number(value, UINT64_MAX, &number);
        options->seed = number;
        return is_valid;
    }
    if (!parse_number(value, INT32_MAX, &number))
        return false;
    if (strcmp(name, "--device") == 0)
        options->ordinal = (int32_t)number;
    else if (strcmp(name, "--devices") == 0)
        options->devices = (int32_t)number;
    else
        options->seconds = (uint32_t)number;
    return true;
}

static bool takes_value(const char *name) {
    static const char *const names[] = {"--device", "--devices", "--only", "--seed", "--seconds"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int run(const char *path, const sb_conformance_options *options) {
    int32_t counts[3] = {0}, failed = 0;
    const sb_backend *table;
    sb_error err;
    if (sb_backend_load(path, &table, &err) != SB_OK ||
        sb_conformance_run(table, options, print_result, counts, &failed, &err) != SB_OK) {
        (void)fprintf(stderr, "syncblob-conformance: %s\n", err.message);
        return BAD_USE;
    }
    printf("%d passed, %d failed, %d skipped\n", (int)counts[SB_CONFORMANCE_PASSED],
           (int)counts[SB_CONFORMANCE_FAILED], (int)counts[SB_CONFORMANCE_SKIPPED]);
    return failed ? A_CLAIM_FAILED : ALL_PASSED;
}

int main(int argc, char **argv) {
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    const char *path = NULL;
    options.begin = print_claim;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0)
            return fputs(help, stdout) == EOF ? A_CLAIM_FAILED : ALL_PASSED;
        if (strcmp(word, "--list") == 0)
            return print_claims();
        if (strcmp(word, "--large") == 0)
            options.max_count = INT64_MAX;
        else if (takes_value(word) && i + 1 == argc)
            return bad_use("no value follows ", word);
        else if (takes_value(word) && !set_option(&options, word, argv[i + 1]))
            return bad_use("not a valid number: ", argv[i + 1]);
        else if (takes_value(word))
            i++;
        else if (word[0] == '-' && word[1])
            return bad_use("unknown option ", word);
        else if (path)
            return bad_use("more than one library is given: ", word);
        else
            path = word;
    }
    return path ? run(path, &options) : bad_use("no library is given", "");
}
