#include <syncblob/syncblob.h>

/* Returns 0 if the headers and the library have different versions. */
uint32_t consumer_version(void);
uint32_t consumer_version(void) {
    return sb_version() == SB_VERSION_NUMBER ? SB_VERSION_NUMBER : 0;
}
