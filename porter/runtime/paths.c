/* Calls on paths that start at the working directory: arm64 has only those that start at a descriptor. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return openat(AT_FDCWD, path, flags, mode);
}

int posix_openpt(int flags) { return openat(AT_FDCWD, "/dev/ptmx", flags); }

int stat(const char *restrict path, struct stat *restrict facts) { return fstatat(AT_FDCWD, path, facts, 0); }

int lstat(const char *restrict path, struct stat *restrict facts) {
  return fstatat(AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}

int chmod(const char *path, mode_t mode) { return kernel_fchmodat(AT_FDCWD, path, mode); }

int futimens(int fd, const struct timespec times[2]) { return kernel_utimensat(fd, NULL, times, 0); }

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int mknod(const char *path, mode_t mode, dev_t device) { return mknodat(AT_FDCWD, path, mode, device); }

ssize_t readlink(const char *restrict path, char *restrict target, size_t size) {
  return readlinkat(AT_FDCWD, path, target, size);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
