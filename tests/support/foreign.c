#include "foreign.h"

#include "files.h"
#include "support.h"

/* Returns the text before the character `at`, which becomes a NUL. Moves `*text` past the NUL. */
static char *cut(char **text, char at) {
    char *begin = *text, *end = strchr(begin, at);
    assert_non_null(end);
    *end = '\0';
    *text = end + 1;
    return begin;
}

/* Replaces each \xHH in `text` by its byte; returns the size. */
static size_t decode(char *text) {
    size_t size = 0;
    for (const char *from = text; *from; size++) {
        if (*from != '\\') {
            text[size] = *from++;
            continue;
        }
        assert_int_equal(from[1], 'x');
        const char digits[] = {from[2], from[3], '\0'};
        text[size] = (char)strtoul(digits, NULL, 16);
        from += 4;
    }
    return size;
}

static struct foreign row_of(char *line) {
    struct foreign row = {.words = cut(&line, '\t')};
    row.from = strtoul(cut(&line, '-'), NULL, 10);
    row.to = strtoul(cut(&line, '\t'), NULL, 10);
    row.shorter = cut(&line, '\t');
    if (!*row.shorter)
        row.shorter = NULL;
    row.wire = (struct wire){(unsigned char *)line, decode(line), 0};
    return row;
}

struct foreign_list foreign_list(void) {
    struct wire file = wire_of_file(SB_SOURCE_DIR "/tests/support/foreign.txt");
    struct foreign_list list = {.count = 0};
    wire_raw(&file, "", 1); /* ends the text with a NUL */
    for (char *rest = (char *)file.bytes; *rest;) {
        char *line = cut(&rest, '\n');
        if (*line == '#')
            continue;
        assert_true(list.count < sizeof list.rows / sizeof *list.rows);
        list.rows[list.count++] = row_of(line);
    }
    return list;
}
