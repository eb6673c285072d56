/* sb__field_name: returns the first name of a number, and reads nothing after the table's end.
   --unwind 5: a table of four entries and its end; the code compares each entry separately
   planted: "for (; fields->number != 0; fields++)"
        -> "for (; fields->name; fields++)" */
#include "proof.h"

#include "wire/wire.c"

extern struct sb__field_name fields[5];

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
