// Preloaded into a service by tests. Shifts CLOCK_REALTIME by the seconds in the file $FAKE_SYSTEM/shift, and fails writes to
// regular files and new directories with ENOSPC while $FAKE_SYSTEM/full exists and its text is part of the path. CLOCK_MONOTONIC stays. While
// $FAKE_SYSTEM/hang exists, calls on a path that contains its text do not return, nor do questions for host names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// Whether $FAKE_SYSTEM/full exists and its text is part of the path.
static int is_full(const char *path) {
    int saved = errno;
    char part[4096] = "";
    const char *mark = file_of("full");
    int file = mark ? syscall(SYS_openat, AT_FDCWD, mark, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        if (syscall(SYS_read, file, part, sizeof part - 1) < 0) part[0] = 0;
        syscall(SYS_close, file);
    }
    errno = saved;
    return file >= 0 && strstr(path, part);
}

static void path_of(int file, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, size - 1);
    path[length > 0 ? length : 0] = 0;
}

static void wait_while_hung(const char *path) {
    int saved = errno;
    for (;;) {
        char part[4096] = "";
        const char *mark = file_of("hang");
        int file = mark ? syscall(SYS_openat, AT_FDCWD, mark, O_RDONLY | O_CLOEXEC) : -1;
        if (file < 0) break;
        ssize_t size = syscall(SYS_read, file, part, sizeof part - 1);
        syscall(SYS_close, file);
        if (size <= 0 || !strstr(path, part)) break;
        struct timespec step = {0, 10000000};
        nanosleep(&step, NULL);
    }
    errno = saved;
}

static void wait_while_file_hung(int file) {
    int saved = errno;
    const char *mark = file_of("hang");
    if (mark && access(mark, F_OK) == 0) {
        char path[4096];
        path_of(file, path, sizeof path);
        wait_while_hung(path);
    }
    errno = saved;
}

static int is_refused(int file) {
    struct stat meta;
    const char *mark = file_of("full");
    int saved = errno;
    if (!mark || access(mark, F_OK) || fstat(file, &meta) || !S_ISREG(meta.st_mode)) {
        errno = saved;
        return 0;
    }
    char path[4096];
    path_of(file, path, sizeof path);
    errno = ENOSPC;
    return is_full(path);
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
    wait_while_file_hung(file);
    return is_refused(file) ? -1 : syscall(SYS_write, file, bytes, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return is_refused(file) ? -1 : syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    return is_refused(file) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

int mkdir(const char *path, mode_t mode) {
    wait_while_hung(path);
    if (!is_full(path)) return syscall(SYS_mkdir, path, mode);
    errno = ENOSPC;
    return -1;
}

int fsync(int file) {
    wait_while_file_hung(file);
    return syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    wait_while_file_hung(file);
    return syscall(SYS_fdatasync, file);
}

ssize_t read(int file, void *bytes, size_t size) {
    wait_while_file_hung(file);
    return syscall(SYS_read, file, bytes, size);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    wait_while_hung(path);
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to) {
    wait_while_hung(from);
    wait_while_hung(to);
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

DIR *opendir(const char *path) {
    wait_while_hung(path);
    DIR *(*real)(const char *) = (DIR *(*)(const char *))dlsym(RTLD_NEXT, "opendir");
    return real(path);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    if (host) wait_while_hung(host);
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
    return real(host, service, hints, found);
}
