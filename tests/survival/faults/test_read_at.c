/* A descriptor whose reads are interrupted, come in pieces, end early or fail: all bytes come, or
   the call says which do not. */
#include "support.h"

#include <syncblob/io.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { SIZE = 64 };

/* Of the next reads: one character each, the last one for all that follow. `a`: all bytes; `3`: at
   most three; `i`: interrupted; `0`: the file ends here; `e`: fails. */
static const char *script = "a";

/* The names are the linker's, which leads every reference in this program to __wrap_pread.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
ssize_t __real_pread(int file, void *to, size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset);

ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset) {
    const char what = *script;
    if (script[1])
        script++;
    errno = EINTR; /* of an earlier call */
    if (what == '0')
        return 0;
    if (what == 'e')
        errno = EIO;
    if (what == 'i' || what == 'e')
        return -1;
    return __real_pread(file, to, what == '3' && bytes > 3 ? 3 : bytes, offset);
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

static FILE *numbers(sb_source *source) {
    FILE *file = tmpfile();
    assert_non_null(file);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(fputc(i, file), i);
    assert_int_equal(fflush(file), 0);
    *source = (sb_source)SB_SOURCE_INIT;
    assert_ok(sb_source_of_descriptor(fileno(file), 0, source, &err));
    return file;
}

TEST(what_comes_in_pieces_comes_whole) {
    static const char *const scripts[] = {"a", "3", "ia", "3i3", "iii3iia", "33a"};
    sb_source source;
    FILE *file = numbers(&source);
    for (size_t s = 0; s < sizeof scripts / sizeof *scripts; s++)
        for (int from = 0; from < 5; from++)
            for (int bytes = 1; bytes <= SIZE - 5; bytes++) {
                unsigned char to[SIZE + 1];
                memset(to, 0xee, sizeof to);
                script = scripts[s];
                assert_ok(source.read_at(source.user, (uint64_t)from, to, (size_t)bytes, &err));
                for (int i = 0; i < bytes; i++)
                    assert_int_equal(to[i], from + i);
                assert_int_equal(to[bytes], 0xee);
            }
    assert_int_equal(fclose(file), 0);
}

TEST(what_does_not_come_is_said) {
    static const struct {
        const char *script, *words;
        int code;
    } rows[] = {
        {"e", "20 bytes at offset 2 cannot be read", EIO},
        {"ie", "20 bytes at offset 2 cannot be read", EIO},
        {"3e", "17 bytes at offset 5 cannot be read", EIO},
        {"0", "the file changed while it was read", 0},
        {"330", "the file changed while it was read", 0},
        {"3i0", "the file changed while it was read", 0},
    };
    sb_source source;
    FILE *file = numbers(&source);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        unsigned char to[SIZE];
        script = rows[r].script;
        assert_status(SB_ERR_IO, source.read_at(source.user, 2, to, 20, &err));
        assert_non_null(strstr(err.message, rows[r].words));
        assert_int_equal(err.device_code, rows[r].code);
    }
    assert_int_equal(fclose(file), 0);
}
