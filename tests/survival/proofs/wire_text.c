/* append, append_path, append_field, sb__wire_fail: an error's text stays in its buffer and ends
   with 0.
   --unwind 4: a path of three messages, each of which adds any possible text; names of two fields
   planted: "text->used = sizeof text->bytes - 1;"
        -> "text->used = sizeof text->bytes;"
   planted: "    if (!path->parent)\n        return;\n"
        -> ""
   planted: "return sb__fail_at(err, status, offset,"
        -> "return sb__fail_at(err, SB_ERR_IO, offset," */
#include "proof.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Behaves like vsnprintf in the C standard. */
static int write_text(char *to, size_t size) {
    int wanted = any_int();
    assume(wanted >= -1);
    claim(size > 0);
    to[0] = to[size - 1] = 'x'; /* the first and the last byte are writable */
    if (wanted >= 0)
        to[(size_t)wanted < size ? (size_t)wanted : size - 1] = '\0';
    return wanted;
}

#undef vsnprintf
#define vsnprintf(to, size, format, args) write_text(to, size)
#undef va_start
#define va_start(args, last) ((void)(args), (void)(last))
#undef va_end
#define va_end(args) ((void)(args))

#include "wire/wire.c"

extern struct sb__field_name fields[5];

static bool fits(const struct text *text) {
    return text->used < sizeof text->bytes;
}

void wire_text(void) {
    static const struct sb__field_name names[] = {{1, "one"}, {2, "two"}, {0, NULL}};
    const struct sb__path root = {NULL, "", any_i64(), names};
    const struct sb__path layer = {&root, "layer", any_i64(), names};
    const struct sb__path blob = {&layer, "blob", any_i64(), names};
    struct text text = {.used = any_size()};
    assume(fits(&text));
    append_path(&text, &blob);
    claim(fits(&text));
    append_field(&text, &blob, any_u32());
    claim(fits(&text));
    const sb_status status = any_i32();
    claim(sb__wire_fail(&root, any_u32(), status, any_u32(), NULL, "any") == status);
    claim(last_failure == status);
}

/* sb__field_name: returns the first name of a number, and reads nothing after the table's end.
   --unwind 5: a table of four entries and its end; the code compares each entry separately
   planted: "for (; fields->number != 0; fields++)"
        -> "for (; fields->name; fields++)" */
void wire_names(void) {
    const uint32_t number = any_u32();
    fields[4].number = 0;
    const char *name = sb__field_name(fields, number);
    for (int i = 0; i < 5 && fields[i].number != 0; i++)
        if (fields[i].number == number) {
            claim(name == fields[i].name);
            return;
        }
    claim(name == NULL);
}
