/* Recognition of files that are not Caffe messages, by their first bytes: web pages, archives,
   files of other programs. */
#ifndef SB_FORMAT_FOREIGN_H
#define SB_FORMAT_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB__HEAD_BYTES  1024 /* bytes examined: a tar header has 512; HTML may begin with blanks */
#define SB__WORDS_BYTES 128  /* bytes of the longest description with NUL (err->message: 240) */

struct sb__head {
    const unsigned char *bytes;
    size_t size;    /* the size of `bytes` */
    uint64_t total; /* the size of the file */
    unsigned char room[SB__HEAD_BYTES];
};

/* Writes a description, such as "an HTML page, ...", to `out`, which has SB__WORDS_BYTES. Returns
   false if nothing matches. */
bool sb__foreign_words(const struct sb__head *head, char *out);

/* Describes a protobuf message of TensorFlow, or returns NULL. Examines the contents, since such a
   message may also be a well-formed message of Caffe. */
const char *sb__foreign_message(const struct sb__head *head);

#endif
