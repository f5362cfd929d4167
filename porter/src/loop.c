#include "loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "die.h"

enum { BATCH = 64 };

static int epoll_fd = -1;
/* What the current turn still has to run: a callback may close a watch whose event is further down in the same batch. */
static struct epoll_event batch[BATCH];
static int batch_length;

void loop_open(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) die_errno("epoll_create1");
}

void loop_add(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t)) {
  *watch = (struct watch){.fd = fd, .events = events, .ready = ready};
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) die_errno("epoll_ctl add");
}

void loop_want(struct watch *watch, uint32_t events) {
  if (watch->fd < 0 || watch->events == events) return;
  watch->events = events;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) != 0) die_errno("epoll_ctl mod");
}

void loop_release(struct watch *watch) {
  if (watch->fd < 0) return;
  for (int i = 0; i < batch_length; i++) {
    if (batch[i].data.ptr == watch) batch[i].data.ptr = NULL;
  }
  epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
  watch->fd = -1;
}

void loop_close(struct watch *watch) {
  int fd = watch->fd;
  loop_release(watch);
  if (fd >= 0) close(fd);
}

void loop_turn(int timeout_ms) {
  batch_length = epoll_wait(epoll_fd, batch, BATCH, timeout_ms);
  if (batch_length < 0) {
    batch_length = 0;
    if (errno != EINTR) die_errno("epoll_wait");
  }
  for (int i = 0; i < batch_length; i++) {
    struct watch *watch = batch[i].data.ptr;
    if (watch != NULL) watch->ready(watch, batch[i].events);
  }
  batch_length = 0;
}

uint64_t loop_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
