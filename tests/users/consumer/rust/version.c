#include <syncblob/syncblob.h>

/* The version of the headers if the library is of the same, else 0. */
uint32_t consumer_version(void);
uint32_t consumer_version(void) {
    return sb_version() == SB_VERSION_NUMBER ? SB_VERSION_NUMBER : 0;
}
