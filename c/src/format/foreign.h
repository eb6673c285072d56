/* What bytes are that are no message of Caffe's: web pages, archives, other
   programs' files. They are recognised by their first bytes, where these are certain. */
#ifndef SB_FORMAT_FOREIGN_H
#define SB_FORMAT_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB__HEAD_BYTES  1024 /* a tar's header is 512, a page may begin with blank lines */
#define SB__WORDS_BYTES 128  /* for the longest words with their NUL: a message has 240 */

struct sb__head {
    const unsigned char *bytes;
    size_t size;    /* of them */
    uint64_t total; /* of the file */
    unsigned char room[SB__HEAD_BYTES];
};

/* "an HTML page, ..." into `out`, of SB__WORDS_BYTES; false: nothing that is known. */
bool sb__foreign_words(const struct sb__head *head, char *out);

/* Messages of protobuf's that are others': they may be well-formed, so that only what is
   inside distinguishes them. TensorFlow's; NULL: none of them. */
const char *sb__foreign_message(const struct sb__head *head);

#endif
