#include "format/foreign.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static bool begins(const unsigned char *bytes, size_t size, const char *with, size_t with_size) {
    return size >= with_size && memcmp(bytes, with, with_size) == 0;
}

static bool has(const struct sb__head *head, size_t offset, const char *bytes, size_t size) {
    return head->size >= offset && begins(head->bytes + offset, head->size - offset, bytes, size);
}

static bool is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static unsigned char lower(unsigned char c) {
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

static bool is_alphanumeric(unsigned char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

/* --- binary files --------------------------------------------------------------------- */

#define M(s) s, sizeof s - 1
static const struct {
    size_t offset;
    const char *bytes;
    size_t size;
    const char *words;
} magics[] = {
    {0, M("\x1f\x8b\x08"), "gzip data: unpack it first"},
    {0,
     M("\xfd"
       "7zXZ\0"),
     "xz data: unpack it first"},
    {0, M("\x28\xb5\x2f\xfd"), "zstd data: unpack it first"},
    {0, M("7z\xbc\xaf\x27\x1c"), "a 7z archive: unpack it first"},
    {0, M("Rar!\x1a\x07"), "a RAR archive: unpack it first"},
    {0, M("PK\5\6"), "a zip archive without members"},
    {0, M("\x89HDF\r\n\x1a\n"),
     "an HDF5 file, as Caffe's .h5 snapshots are: see the guide's foreign.md"},
    {0, M("\x93NUMPY"), "a NumPy array (.npy)"},
    {0, M("\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e"),
     "a PyTorch file: export it from Python as .safetensors or .npz"},
    {0, M("\0\5\x16\7"), "an AppleDouble file: use the file of the same name without \"._\""},
    {4, M("TFL3"), "a TensorFlow Lite model"},
    {21,
     M("\x1a\x0d"
       "brain.Event:"),
     "a TensorFlow event file"},
};

static uint64_t little_endian(const unsigned char *bytes, size_t size) {
    uint64_t value = 0;
    while (size > 0)
        value = value << 8 | bytes[--size];
    return value;
}

static bool ends(const unsigned char *name, uint64_t size, const char *with, size_t with_size) {
    return size >= with_size && memcmp(name + size - with_size, with, with_size) == 0;
}

/* Distinguishes zip archives by the name of their first member. */
static const char *zip_words(const struct sb__head *head) {
    enum { NAME_SIZE = 26, NAME = 30 };
    static const char archive[] = "a zip archive: unpack it first";
    if (!has(head, 0, M("PK\3\4")))
        return NULL;
    if (head->size < NAME)
        return archive;
    const uint64_t size = little_endian(head->bytes + NAME_SIZE, 2);
    const unsigned char *name = head->bytes + NAME;
    if (size > head->size - NAME)
        return archive;
    if (ends(name, size, M("/data.pkl")))
        return "a PyTorch file: export it from Python as .safetensors or .npz";
    return ends(name, size, M(".npy")) ? "an archive of NumPy arrays (.npz)" : archive;
}

/* Recognises a tar header by its checksum, the sum of the header's bytes in octal digits. In the
   sum each byte of the checksum field counts as a blank. */
static const char *tar_words(const struct sb__head *head) {
    enum { HEADER = 512, SUM = 148, SUM_END = 156 };
    uint64_t sum = 0, written = 0;
    if (head->size < HEADER || !has(head, 257, M("ustar")))
        return NULL;
    for (size_t i = 0; i < HEADER; i++)
        sum += i >= SUM && i < SUM_END ? ' ' : head->bytes[i];
    for (size_t i = SUM; i < SUM_END; i++)
        if (head->bytes[i] >= '0' && head->bytes[i] <= '7')
            written = written * 8 + head->bytes[i] - '0';
    return sum == written ? "a tar archive: unpack it first" : NULL;
}

static const char *safetensors_words(const struct sb__head *head) {
    if (!has(head, 8, M("{\"")))
        return NULL;
    const uint64_t length = little_endian(head->bytes, 8);
    return length >= 2 && length <= 100000000 ? "a safetensors file" : NULL;
}

/* Recognises "BZh", any byte, and the beginning of a block. Does not recognise an empty bzip2 file,
   which has no block. */
static const char *bzip2_words(const struct sb__head *head) {
    return has(head, 0, M("BZh")) && has(head, 4, M("1AY&SY")) ? "bzip2 data: unpack it first"
                                                               : NULL;
}

/* Returns whether `c` is pickle's opcode for an empty dict, list or tuple, a mark, a class, a text
   or a long number. */
static bool is_opcode(unsigned char c) {
    return c == '}' || c == ']' || c == ')' || c == '(' || c == 'c' || c == 'X' || c == 0x8a;
}

/* Recognises a pickle by its version and first opcode. In version 4 and later, this opcode must
   begin a frame that ends within the file. */
static const char *pickle_words(const struct sb__head *head) {
    static const char words[] = "a Python pickle: load it in Python, save its arrays as .npz";
    if (head->size < 3 || head->bytes[0] != 0x80)
        return NULL;
    if (head->bytes[1] == 2 || head->bytes[1] == 3)
        return is_opcode(head->bytes[2]) ? words : NULL;
    if (head->bytes[1] != 4 && head->bytes[1] != 5)
        return NULL;
    return head->size >= 11 && head->bytes[2] == 0x95 &&
                   little_endian(head->bytes + 3, 8) <= head->total - 11
               ? words
               : NULL;
}

static const char *binary_words(const struct sb__head *head) {
    static const char *(*const tests[])(const struct sb__head *) = {
        zip_words, bzip2_words, tar_words, safetensors_words, pickle_words};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (has(head, magics[i].offset, magics[i].bytes, magics[i].size))
            return magics[i].words;
    const char *words = NULL;
    for (size_t i = 0; i < sizeof tests / sizeof *tests && !words; i++)
        words = tests[i](head);
    return words;
}

static bool zeros(const struct sb__head *head, char *out) {
    for (size_t i = 0; i < head->size; i++)
        if (head->bytes[i] != 0)
            return false;
    if (head->size < 8)
        return false;
    (void)snprintf(out, SB__WORDS_BYTES, "%s %zu zeros: its contents were never written",
                   head->total == head->size ? "nothing but" : "a file that begins with",
                   head->size);
    return true;
}

/* --- texts ------------------------------------------------------------------------------- */

#define LONG_TEXT 8 /* a text of fewer bytes does not identify its kind */

struct text {
    const unsigned char *at;
    size_t size;
};

static void skip(struct text *text, size_t bytes) {
    text->at += bytes;
    text->size -= bytes;
}

static void skip_space(struct text *text) {
    while (text->size > 0 && is_space(*text->at))
        skip(text, 1);
}

/* Returns the text after a byte order mark and white space. */
static struct text text_of(const struct sb__head *head) {
    struct text text = {head->bytes, head->size};
    if (has(head, 0, M("\xef\xbb\xbf")))
        skip(&text, 3);
    skip_space(&text);
    return text;
}

static bool has_word(const struct text *text, const char *word) {
    size_t i = 0;
    while (i < text->size && word[i] && lower(text->at[i]) == (unsigned char)word[i])
        i++;
    return !word[i];
}

static bool is_html(const struct text *text) {
    return has_word(text, "<!doctype html") || has_word(text, "<html") || has_word(text, "<head>");
}

/* Describes a pointer file of Git LFS, which has a line "size 123". */
static bool lfs_words(const struct text *text, char *out) {
    static const char line[] = "\nsize ";
    struct text rest = *text;
    if (!has_word(text, "version https://git-lfs.github.com/spec/"))
        return false;
    while (rest.size > 0 && !begins(rest.at, rest.size, line, sizeof line - 1))
        skip(&rest, 1);
    unsigned long long size = 0;
    size_t digits = sizeof line - 1;
    while (digits < rest.size && rest.at[digits] >= '0' && rest.at[digits] <= '9' &&
           size < 1000000000000000000)
        size = size * 10 + (unsigned long long)(rest.at[digits++] - '0');
    if (digits < rest.size && rest.at[digits] == '\n')
        (void)snprintf(
            out, SB__WORDS_BYTES,
            "a Git LFS pointer to %llu bytes that are not here: `git lfs pull` fetches them", size);
    else
        (void)snprintf(out, SB__WORDS_BYTES,
                       "a Git LFS pointer to bytes that are not here: `git lfs pull` fetches them");
    return true;
}

/* Returns whether a text begins with a field of a net, a solver or a blob in protobuf's text
   format. */
static bool is_prototxt(const struct text *text) {
    static const char *const fields[] = {
        "name",      "layer",     "layers",   "input",     "input_dim",      "input_shape",
        "net",       "train_net", "test_net", "state",     "force_backward", "base_lr",
        "net_param", "num",       "shape",    "test_iter", "debug_info"};
    struct text rest = *text;
    size_t length = 0;
    while (rest.size > 0 && *rest.at == '#') {
        while (rest.size > 0 && *rest.at != '\n')
            skip(&rest, 1);
        skip_space(&rest);
    }
    while (length < rest.size && (is_alphanumeric(rest.at[length]) || rest.at[length] == '_'))
        length++;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i]) != length || memcmp(fields[i], rest.at, length) != 0)
            continue;
        skip(&rest, length);
        skip_space(&rest);
        return rest.size > 0 && (*rest.at == ':' || *rest.at == '{');
    }
    return false;
}

/* Returns whether a text begins like JSON. After the first bracket comes a string or the closing
   bracket, or in a list another opening bracket. */
static bool begins_json(const struct text *text) {
    struct text rest = *text;
    if (rest.size == 0 || (*rest.at != '{' && *rest.at != '['))
        return false;
    const bool is_object = *rest.at == '{';
    skip(&rest, 1);
    skip_space(&rest);
    return rest.size > 0 && (*rest.at == '"' || *rest.at == (is_object ? '}' : ']') ||
                             (!is_object && (*rest.at == '{' || *rest.at == '[')));
}

/* Returns whether a text that begins with a bracket ends with a bracket. */
static bool ends_json(const struct text *text) {
    size_t last = text->size - 1;
    while (is_space(text->at[last]))
        last--;
    return text->at[last] == '}' || text->at[last] == ']';
}

/* Returns whether a text is JSON. A short text must be complete. */
static bool is_json(const struct text *text) {
    return begins_json(text) && (text->size >= LONG_TEXT || ends_json(text));
}

/* Returns whether all bytes are printable ASCII or possible UTF-8. */
static bool is_printable(const struct text *text) {
    for (size_t i = 0; i < text->size; i++)
        if ((text->at[i] < ' ' && text->at[i] != '\t' && text->at[i] != '\n' &&
             text->at[i] != '\r') ||
            text->at[i] == 0x7f)
            return false;
    return true;
}

/* Describes text of an unknown kind. Ignores text that begins with white space, because a line feed
   may also be the tag of a binary net's name. */
static bool plain_words(const struct sb__head *head, char *out) {
    const struct text text = {head->bytes, head->size};
    char quoted[48];
    size_t size = 0;
    if (text.size < LONG_TEXT || is_space(*text.at) || *text.at >= 0x7f || !is_printable(&text))
        return false;
    while (size < text.size && size < 40 && text.at[size] >= ' ' && text.at[size] < 0x7f)
        size++;
    (void)snprintf(out, SB__WORDS_BYTES, "text, which begins \"%s\"",
                   sb__escape((const char *)text.at, size, quoted, sizeof quoted));
    return true;
}

static const char *text_words(const struct text *text) {
    if (is_html(text))
        return "an HTML page, not the file that it shows: download the raw file";
    if (has_word(text, "<?xml"))
        return "an XML document, which servers send if a file does not exist";
    if (!is_printable(text))
        return NULL;
    if (text->size >= LONG_TEXT && is_prototxt(text))
        return "protobuf's text format (.prototxt), which describes a net: the weights are "
               "in another file";
    return is_json(text) ? "JSON" : NULL;
}

bool sb__foreign_words(const struct sb__head *head, char *out) {
    const struct text text = text_of(head);
    const char *words = binary_words(head);
    if (!words)
        words = text_words(&text);
    if (words)
        (void)snprintf(out, SB__WORDS_BYTES, "%s", words);
    return words || zeros(head, out) || lfs_words(&text, out) || plain_words(head, out);
}

/* --- messages -------------------------------------------------------------------------------- */

/* Skips the tag (one byte) and the length of a field. */
static bool enter(struct text *message, unsigned char tag, size_t *out_length) {
    size_t length = 0, i = 1;
    if (message->size < 2 || *message->at != tag)
        return false;
    for (unsigned shift = 0; i < message->size && shift < 35; shift += 7) {
        const unsigned char byte = message->at[i++];
        length |= (size_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        skip(message, i);
        *out_length = length;
        return true;
    }
    return false;
}

/* Returns whether a text begins with an operation's name, such as "Conv2D". */
static bool is_operation(const struct text *text, size_t length) {
    if (length < 2 || length > 64 || length > text->size || *text->at < 'A' || *text->at > 'Z')
        return false;
    for (size_t i = 1; i < length; i++)
        if (!is_alphanumeric(text->at[i]))
            return false;
    return true;
}

/* Skips the tags (`tags`) and the lengths of `depth` nested messages. */
static bool enter_each(struct text *message, const char *tags, size_t depth, size_t *out_length) {
    for (size_t i = 0; i < depth; i++)
        if (!enter(message, (unsigned char)tags[i], out_length))
            return false;
    return true;
}

/* Recognises TensorFlow's GraphDef: its first node has a name, then an operation. */
static bool is_graph(struct text message) {
    size_t length;
    if (!enter_each(&message, "\x0a\x0a", 2, &length) || length >= message.size)
        return false;
    skip(&message, length);
    return enter(&message, 0x12, &length) && is_operation(&message, length);
}

/* Recognises TensorFlow's SavedModel: version 1, then a graph, which lists its operations first. */
static bool is_saved_model(struct text message) {
    size_t length;
    if (!begins(message.at, message.size, "\x08\x01", 2))
        return false;
    skip(&message, 2);
    return enter_each(&message, "\x12\x0a\x12\x0a\x0a", 5, &length) &&
           is_operation(&message, length);
}

const char *sb__foreign_message(const struct sb__head *head) {
    const struct text message = {head->bytes, head->size};
    if (is_graph(message))
        return "a TensorFlow graph";
    return is_saved_model(message) ? "a TensorFlow SavedModel" : NULL;
}
