#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static void check_copies(int fd) {
  MUST(dup2(fd, fd) == fd);
  MUST(dup2(-1, -1) == -1 && errno == EBADF);
  MUST(dup2(fd, 50) == 50 && fcntl(50, F_GETFD) == 0);
  MUST(dup3(fd, 51, O_CLOEXEC) == 51 && fcntl(51, F_GETFD) == FD_CLOEXEC);
  MUST(fcntl(fd, F_DUPFD_CLOEXEC, 60) == 60 && close(60) == 0);
  MUST(fcntl(50, F_SETFD, FD_CLOEXEC) == 0 && fcntl(50, F_GETFD) == FD_CLOEXEC);
  MUST(close(50) == 0 && close(51) == 0);
}

static void check_waiting(const int pair[2]) {
  char byte;
  int waiting;
  struct pollfd look = {.fd = pair[0], .events = POLLIN};
  MUST(poll(&look, 1, 0) == 0 && poll(&look, 1, 3) == 0);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789}, got = {0};
  MUST(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0);
  MUST(epoll_wait(epoll, &got, 1, 0) == 0 && epoll_wait(epoll, &got, 1, 3) == 0);
  MUST(write(pair[1], "x", 1) == 1);
  MUST(poll(&look, 1, -1) == 1 && look.revents == POLLIN);
  MUST(epoll_wait(epoll, &got, 1, -1) == 1 && got.data.u64 == 0x123456789 && got.events == EPOLLIN);
  MUST(ioctl(pair[0], FIONREAD, &waiting) == 0 && waiting == 1);
  MUST(read(pair[0], &byte, 1) == 1 && byte == 'x' && close(epoll) == 0);
}

static void check_watching(void) {
  union {
    struct inotify_event event;
    char bytes[512];
  } got;
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  int watch = inotify_add_watch(fd, ".", IN_CREATE);
  MUST(fd >= 0 && watch >= 0);
  MUST(read(fd, &got, sizeof got) == -1 && errno == EAGAIN);
  MUST(close(open("watched", O_WRONLY | O_CREAT, 0600)) == 0);
  MUST(read(fd, &got, sizeof got) > 0 && got.event.wd == watch && strcmp(got.event.name, "watched") == 0);
  MUST(inotify_rm_watch(fd, watch) == 0 && close(fd) == 0);
}

void check_descriptors(void) {
  int pair[2];
  MUST(pipe2(pair, O_CLOEXEC) == 0);
  check_copies(pair[0]);
  check_waiting(pair);
  check_watching();
  MUST(close(pair[0]) == 0 && close(pair[1]) == 0);
  int memory = memfd_create("check", MFD_CLOEXEC);
  MUST(memory >= 0 && write(memory, "abc", 3) == 3 && close(memory) == 0);
  /* All six arguments of a call by number. */
  char *page = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  page[4095] = 1;
  MUST(syscall(SYS_munmap, page, 4096) == 0);
  MUST(syscall(SYS_close, -1) == -1 && errno == EBADF);
  unsigned char random[32] = {0}, zeros[32] = {0};
  MUST(getrandom(random, sizeof random, 0) == sizeof random && memcmp(random, zeros, sizeof zeros) != 0);
}
