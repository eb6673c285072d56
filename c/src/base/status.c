#include <syncblob/status.h>

_Static_assert(sizeof(sb_error) == 256, "sb_error is frozen at 256 bytes");
_Static_assert(offsetof(sb_error, offset) == 8, "sb_error is frozen");
_Static_assert(offsetof(sb_error, message) == 16, "sb_error is frozen");

const char *sb_status_name(sb_status status) {
    switch (status) {
#define NAME_CASE(name, number, text)                                                              \
    case number:                                                                                   \
        return "SB_" #name;
        SB_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    default:
        return "SB_ERR_UNKNOWN";
    }
}

const char *sb_status_text(sb_status status) {
    switch (status) {
#define TEXT_CASE(name, number, text)                                                              \
    case number:                                                                                   \
        return text;
        SB_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    default:
        return "unknown status";
    }
}
