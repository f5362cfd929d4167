/*
 * What _FORTIFY_SOURCE makes of calls whose target has a size that the compiler knows: the same function with that size. The
 * prototypes are in the headers of glibc, and there only for a file that is compiled with the option.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel.h"

static void check(size_t needed, size_t size) {
  if (needed > size) runtime_panic("a call would have written past the end of its buffer");
}

#define CHECKED(type, name, ...) \
  type name(__VA_ARGS__);        \
  type name(__VA_ARGS__)

CHECKED(void *, __memcpy_chk, void *restrict to, const void *restrict from, size_t length, size_t size) {
  check(length, size);
  return memcpy(to, from, length);
}

CHECKED(void *, __mempcpy_chk, void *restrict to, const void *restrict from, size_t length, size_t size) {
  check(length, size);
  return mempcpy(to, from, length);
}

CHECKED(void *, __memmove_chk, void *to, const void *from, size_t length, size_t size) {
  check(length, size);
  return memmove(to, from, length);
}

CHECKED(void *, __memset_chk, void *at, int value, size_t length, size_t size) {
  check(length, size);
  return memset(at, value, length);
}

CHECKED(void, __explicit_bzero_chk, void *at, size_t length, size_t size) {
  check(length, size);
  explicit_bzero(at, length);
}

CHECKED(char *, __strcpy_chk, char *restrict to, const char *restrict from, size_t size) {
  size_t length = strlen(from) + 1;
  check(length, size);
  return memcpy(to, from, length);
}

CHECKED(char *, __stpcpy_chk, char *restrict to, const char *restrict from, size_t size) {
  size_t length = strlen(from);
  check(length + 1, size);
  return (char *)memcpy(to, from, length + 1) + length;
}

CHECKED(char *, __strcat_chk, char *restrict to, const char *restrict from, size_t size) {
  size_t before = strlen(to), length = strlen(from) + 1;
  check(before + length, size);
  memcpy(to + before, from, length);
  return to;
}

CHECKED(ssize_t, __read_chk, int fd, void *to, size_t length, size_t size) {
  check(length, size);
  return read(fd, to, length);
}

CHECKED(ssize_t, __readlink_chk, const char *restrict path, char *restrict to, size_t length, size_t size) {
  check(length, size);
  return readlink(path, to, length);
}

CHECKED(ssize_t, __readlinkat_chk, int directory, const char *restrict path, char *restrict to, size_t length, size_t size) {
  check(length, size);
  return readlinkat(directory, path, to, length);
}

CHECKED(ssize_t, __recv_chk, int fd, void *to, size_t length, size_t size, int flags) {
  check(length, size);
  return recv(fd, to, length, flags);
}

CHECKED(ssize_t, __recvfrom_chk, int fd, void *restrict to, size_t length, size_t size, int flags,
        struct sockaddr *restrict from, socklen_t *restrict from_length) {
  check(length, size);
  return recvfrom(fd, to, length, flags, from, from_length);
}

CHECKED(int, __poll_chk, struct pollfd *fds, nfds_t count, int timeout_ms, size_t size) {
  check(count, size / sizeof *fds);
  return poll(fds, count, timeout_ms);
}

CHECKED(int, __inet_pton_chk, int family, const char *restrict text, void *restrict address, size_t size) {
  check(family == AF_INET ? 4 : 16, size);
  return inet_pton(family, text, address);
}

/* A file that an open may make needs a mode. */
static void check_mode(int flags) {
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) runtime_panic("an open that creates, without a mode");
}

CHECKED(int, __open_2, const char *path, int flags) {
  check_mode(flags);
  return open(path, flags);
}

CHECKED(int, __openat_2, int directory, const char *path, int flags) {
  check_mode(flags);
  return openat(directory, path, flags);
}
