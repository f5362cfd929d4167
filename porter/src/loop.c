#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "die.h"

enum {
  BATCH = 64,
  /* How often what epoll did not take is looked at. */
  LOOK_MS = 5,
};

static int epoll_fd = -1;
/* What the current turn still has to run: a callback may close a watch whose event is further down in the same batch. */
static struct epoll_event batch[BATCH];
static int batch_length;
/*
 * What epoll did not take: the kernel bounds the watches of a user, and a neighbour of the same user may have them all. Such
 * a watch is looked at every few milliseconds, and offered to epoll again.
 */
static struct watch *refused;

void loop_open(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) die_errno("epoll_create1");
}

static bool offer(struct watch *watch) {
  struct epoll_event event = {.events = watch->events, .data.ptr = watch};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) == 0) return true;
  if (errno != ENOSPC && errno != ENOMEM) die_errno("epoll_ctl add");
  return false;
}

void loop_add(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t)) {
  *watch = (struct watch){.fd = fd, .events = events, .ready = ready};
  if (offer(watch)) return;
  watch->is_refused = true;
  watch->next = refused;
  refused = watch;
}

void loop_want(struct watch *watch, uint32_t events) {
  if (watch->fd < 0 || watch->events == events) return;
  watch->events = events;
  if (watch->is_refused) return;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) != 0) die_errno("epoll_ctl mod");
}

static void drop_from_refused(struct watch *watch) {
  for (struct watch **at = &refused; *at != NULL; at = &(*at)->next) {
    if (*at != watch) continue;
    *at = watch->next;
    break;
  }
  watch->is_refused = false;
}

void loop_release(struct watch *watch) {
  if (watch->fd < 0) return;
  for (int i = 0; i < batch_length; i++) {
    if (batch[i].data.ptr == watch) batch[i].data.ptr = NULL;
  }
  if (watch->is_refused) drop_from_refused(watch);
  else epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
  watch->fd = -1;
}

void loop_close(struct watch *watch) {
  int fd = watch->fd;
  loop_release(watch);
  if (fd >= 0) close(fd);
}

static void run_batch(void) {
  for (int i = 0; i < batch_length; i++) {
    struct watch *watch = batch[i].data.ptr;
    if (watch != NULL) watch->ready(watch, batch[i].events);
  }
  batch_length = 0;
}

static void offer_again(void) {
  while (refused != NULL && offer(refused)) drop_from_refused(refused);
}

/* One batch at a time, beginning with the one after the last: a callback may change the list. */
static void look_at_refused(void) {
  struct watch **last = &refused;
  for (struct watch *w = refused; w != NULL && batch_length < BATCH; w = w->next) {
    struct pollfd look = {.fd = w->fd, .events = (short)(w->events & (EPOLLIN | EPOLLOUT))};
    last = &w->next;
    if (poll(&look, 1, 0) <= 0) continue;
    batch[batch_length++] = (struct epoll_event){.events = (uint32_t)look.revents, .data.ptr = w};
  }
  /* What was looked at goes behind the rest. */
  struct watch *rest = *last;
  if (rest != NULL) {
    struct watch *first = refused, **end = &rest;
    *last = NULL;
    while (*end != NULL) end = &(*end)->next;
    *end = first;
    refused = rest;
  }
  run_batch();
}

void loop_turn(int timeout_ms) {
  if (refused != NULL) offer_again();
  if (refused != NULL && (timeout_ms < 0 || timeout_ms > LOOK_MS)) timeout_ms = LOOK_MS;
  batch_length = epoll_wait(epoll_fd, batch, BATCH, timeout_ms);
  if (batch_length < 0) {
    batch_length = 0;
    if (errno != EINTR) die_errno("epoll_wait");
  }
  run_batch();
  if (refused != NULL) look_at_refused();
}

static uint64_t read_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t loop_now_ms(void) { return read_us(CLOCK_MONOTONIC) / 1000; }

uint64_t loop_used_us(void) { return read_us(CLOCK_THREAD_CPUTIME_ID); }
