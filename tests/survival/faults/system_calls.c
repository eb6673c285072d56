#include "system_calls.h"

#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

const char *failed_function = "";
struct world *world;
struct descriptors descriptors;

static struct system_fault fault;
static int calls;

void fault_set(struct system_fault wanted) {
    fault = wanted;
    calls = 0;
    failed_function = "";
}

int fault_end(void) {
    fault = (struct system_fault){.last = 0};
    return calls;
}

int remove_leftovers(const char *folder) {
    int leftovers = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        if (strncmp(entry->d_name, ".syncblob-", 10) == 0) {
            assert_int_equal(unlinkat(dirfd(listing), entry->d_name, 0), 0);
            leftovers++;
        }
    (void)closedir(listing);
    return leftovers;
}

bool world_lacks(const char *function) {
    for (int i = 0; i < 4 && world->lacks[i]; i++)
        if (strcmp(world->lacks[i], function) == 0)
            return true;
    return false;
}

static bool is_an_answer(const char *function, int error) {
    return strcmp(function, "fstatat") == 0
               ? error == ENOENT
               : strcmp(function, "lgetxattr") == 0 &&
                     (error == ENODATA || error == ENOTSUP || error == ENOSYS || error == EINVAL);
}

static bool fails_in_world(const char *function) {
    if (world_lacks(function)) {
        errno = world->with;
        return true;
    }
    if (world->one_in == 0 || test_random(&world->random) % (uint64_t)world->one_in != 0)
        return false;
    errno = 1 + (int)(test_random(&world->random) % 133);
    if (is_an_answer(function, errno))
        errno = EIO;
    return true;
}

static bool fires(const char *function) {
    if (world)
        return fails_in_world(function);
    if (fault.function ? strcmp(fault.function, function) != 0 : fault.last == 0)
        return false;
    calls++;
    if (calls == fault.last + 1 && fault.then != 0)
        fault.error = fault.then;
    else if (calls < fault.nth || calls > fault.last)
        return false;
    failed_function = function;
    if (fault.error == KILLS)
        (void)kill(getpid(), SIGKILL);
    errno = fault.error > 0 ? fault.error : EIO;
    return true;
}

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
#define DECLARE(type, name, parameters)                                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters
#define WRAP(type, name, parameters, arguments)                                                    \
    DECLARE(type, name, parameters) {                                                              \
        return fires(#name) ? (type)-1 : __real_##name arguments;                                  \
    }

WRAP(int, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, fchown, (int file, uid_t owner, gid_t group), (file, owner, group))
WRAP(ssize_t, getrandom, (void *out, size_t size, unsigned flags), (out, size, flags))
WRAP(ssize_t, readlinkat, (int folder, const char *name, char *text, size_t size),
     (folder, name, text, size))
WRAP(ssize_t, lgetxattr, (const char *path, const char *name, void *out, size_t size),
     (path, name, out, size))
WRAP(int, fsetxattr, (int file, const char *name, const void *value, size_t size, int flags),
     (file, name, value, size, flags))
WRAP(int, fremovexattr, (int file, const char *name), (file, name))

DECLARE(void *, mmap, (void *at, size_t size, int protection, int flags, int file, off_t offset)) {
    return file >= 0 && fires("mmap") ? MAP_FAILED
                                      : __real_mmap(at, size, protection, flags, file, offset);
}

DECLARE(int, open, (const char *path, int flags, mode_t mode)) {
    const int file = fires("open") ? -1 : __real_open(path, flags, mode);
    descriptors.open += file >= 0;
    descriptors.inherited |= !(flags & O_CLOEXEC);
    return file;
}

DECLARE(int, openat, (int folder, const char *name, int flags, mode_t mode)) {
    const int file = fires("openat") ? -1 : __real_openat(folder, name, flags, mode);
    descriptors.open += file >= 0;
    descriptors.inherited |= !(flags & O_CLOEXEC) || !(fcntl(folder, F_GETFD) & FD_CLOEXEC);
    descriptors.shown |= (mode & 077) != 0;
    return file;
}

/* Linux closes the descriptor even if the call fails. */
DECLARE(int, close, (int file)) {
    const bool fails = fires("close");
    const int error = errno;
    const bool was_open = __real_close(file) == 0;
    descriptors.open -= was_open;
    descriptors.closed_twice |= !was_open;
    errno = error;
    return fails ? -1 : 0;
}

/* Does not wait for the disk. */
DECLARE(int, fsync, (int file)) {
    return fires("fsync") ? -1 : fcntl(file, F_GETFD) >= 0 ? 0 : -1;
}

static int with_one_mode(int result, struct stat *out) {
    if (result == 0 && world && world->one_mode)
        out->st_mode |= 0777;
    return result;
}

DECLARE(int, fstat, (int file, struct stat *out)) {
    return fires("fstat") ? -1 : with_one_mode(__real_fstat(file, out), out);
}

DECLARE(int, fstatat, (int folder, const char *name, struct stat *out, int flags)) {
    return fires("fstatat") ? -1 : with_one_mode(__real_fstatat(folder, name, out, flags), out);
}

DECLARE(int, renameat, (int from, const char *old, int to, const char *new)) {
    if (!fires("renameat"))
        return __real_renameat(from, old, to, new);
    const int error = errno;
    if (world && world->rename_is_lost && test_random(&world->random) % 2 == 0)
        world->lost |= __real_renameat(from, old, to, new) == 0;
    errno = error;
    return -1;
}

DECLARE(int, unlinkat, (int folder, const char *name, int flags)) {
    if (!fires("unlinkat"))
        return __real_unlinkat(folder, name, flags);
    if (world)
        world->failed_unlinks += errno != EINTR;
    return -1;
}

static ssize_t part_of(size_t size, int zero) {
    if (!world && fault.error == SHORT)
        return size > 3 ? 3 : (ssize_t)size - (size > 1);
    if (world || fault.error != zero)
        return -1;
    errno = EINTR; /* a stale errno, as if an earlier call had set errno */
    return 0;
}

DECLARE(ssize_t, pread, (int file, void *to, size_t size, off_t at)) {
    const ssize_t part = fires("pread") ? part_of(size, ENDS) : (ssize_t)size;
    return part > 0 ? __real_pread(file, to, (size_t)part, at) : part;
}

DECLARE(ssize_t, write, (int file, const void *bytes, size_t size)) {
    const ssize_t part = fires("write") ? part_of(size, NOTHING) : (ssize_t)size;
    return part > 0 ? __real_write(file, bytes, (size_t)part) : part;
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
