/* Recognition of files that are not Caffe messages, by their first bytes: web pages, archives,
   files of other programs. */
#ifndef SB_FORMAT_FOREIGN_H
#define SB_FORMAT_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB__HEAD_BYTES  1024 /* a tar's header is 512, a page may begin with blank lines */
#define SB__WORDS_BYTES 128  /* the longest description with its NUL; err->message has 240 */

struct sb__head {
    const unsigned char *bytes;
    size_t size;    /* of `bytes` */
    uint64_t total; /* of the file */
    unsigned char room[SB__HEAD_BYTES];
};

/* Writes a description, such as "an HTML page, ...", to `out`, which has SB__WORDS_BYTES; returns
   false if nothing matches. */
bool sb__foreign_words(const struct sb__head *head, char *out);

/* Recognises protobuf messages of TensorFlow by their contents, since these may also be well-formed
   messages of Caffe; returns NULL if none matches. */
const char *sb__foreign_message(const struct sb__head *head);

#endif
