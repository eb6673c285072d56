#include <syncblob/syncblob.h>

/* Returns the version of the headers if the library has the same version, else 0. */
uint32_t consumer_version(void);
uint32_t consumer_version(void) {
    return sb_version() == SB_VERSION_NUMBER ? SB_VERSION_NUMBER : 0;
}
