// Preloaded into a service by tests. Shifts CLOCK_REALTIME by the seconds in the file $FAKE_SYSTEM/shift, and fails writes to
// regular files and new directories with ENOSPC while $FAKE_SYSTEM/full exists. CLOCK_MONOTONIC stays.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *file_of(const char *name) {
    static __thread char path[4096];
    const char *directory = getenv("FAKE_SYSTEM");
    if (!directory) return NULL;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static long shift(void) {
    int saved = errno;
    char digits[32] = "";
    const char *path = file_of("shift");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        if (read(file, digits, sizeof digits - 1) < 0) digits[0] = 0;
        close(file);
    }
    errno = saved;
    return atol(digits);
}

static int is_full(void) {
    int saved = errno;
    const char *path = file_of("full");
    int full = path && access(path, F_OK) == 0;
    errno = saved;
    return full;
}

static int is_refused(int file) {
    struct stat meta;
    if (fstat(file, &meta) || !S_ISREG(meta.st_mode) || !is_full()) return 0;
    errno = ENOSPC;
    return 1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = syscall(SYS_gettimeofday, now, zone);
    if (!result) now->tv_sec += shift();
    return result;
}

time_t time(time_t *now) {
    struct timespec shifted;
    clock_gettime(CLOCK_REALTIME, &shifted);
    if (now) *now = shifted.tv_sec;
    return shifted.tv_sec;
}

ssize_t write(int file, const void *bytes, size_t size) {
    return is_refused(file) ? -1 : syscall(SYS_write, file, bytes, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return is_refused(file) ? -1 : syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    return is_refused(file) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

int mkdir(const char *path, mode_t mode) {
    if (!is_full()) return syscall(SYS_mkdir, path, mode);
    errno = ENOSPC;
    return -1;
}
