/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded before the C library: from the k-th change of a file in one folder on, calls fail.
 * Counted are writes, syncs, truncations and removals; `fail_arm` sets which one fails, how, and
 * whether all later ones fail too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define MAX_FILES 4096

static char folder[4096];
static char ours[MAX_FILES];
static long count, fail_at, sticky;
static int fail_errno;

void fail_arm(const char *path, long k, int error, long all_later) {
    strncpy(folder, path, sizeof folder - 1);
    count = 0;
    fail_at = k;
    fail_errno = error;
    sticky = all_later;
}

long fail_count(void) { return count; }

static int fails(void) {
    count++;
    if (fail_at > 0 && (count == fail_at || (sticky && count > fail_at))) {
        errno = fail_errno;
        return 1;
    }
    return 0;
}

static int counted(int fd) { return fd >= 0 && fd < MAX_FILES && ours[fd]; }

static int noted(int fd, const char *path) {
    if (fd >= 0 && fd < MAX_FILES)
        ours[fd] = folder[0] && strncmp(path, folder, strlen(folder)) == 0;
    return fd;
}

#define REAL(name, type) static __typeof__(type) *real; if (!real) real = (__typeof__(type) *)dlsym(RTLD_NEXT, name)

#define OPENER(name)                                                                    \
    int name(const char *path, int flags, ...) {                                        \
        va_list rest;                                                                   \
        va_start(rest, flags);                                                          \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;         \
        va_end(rest);                                                                   \
        REAL(#name, int(const char *, int, ...));                                   \
        return noted(real(path, flags, mode), path);                                    \
    }
OPENER(open)
OPENER(open64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL("write", ssize_t(int, const void *, size_t));
    return counted(fd) && fails() ? -1 : real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL("pwrite", ssize_t(int, const void *, size_t, off_t));
    return counted(fd) && fails() ? -1 : real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL("pwrite64", ssize_t(int, const void *, size_t, off64_t));
    return counted(fd) && fails() ? -1 : real(fd, data, size, at);
}
int fsync(int fd) {
    REAL("fsync", int(int));
    return counted(fd) && fails() ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL("fdatasync", int(int));
    return counted(fd) && fails() ? -1 : real(fd);
}
int ftruncate(int fd, off_t size) {
    REAL("ftruncate", int(int, off_t));
    return counted(fd) && fails() ? -1 : real(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    REAL("ftruncate64", int(int, off64_t));
    return counted(fd) && fails() ? -1 : real(fd, size);
}
int unlink(const char *path) {
    REAL("unlink", int(const char *));
    if (folder[0] && strncmp(path, folder, strlen(folder)) == 0 && fails())
        return -1;
    return real(path);
}
