/* The event loop: descriptors with a callback each, and one clock. Everything in porter happens in here, in one thread. */
#ifndef PORTER_LOOP_H
#define PORTER_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Give EPOLLET for descriptors that are not always acted on at once: a hang-up is reported whatever is waited for, and
 * would otherwise wake the loop for ever. */
enum { LOOP_INPUT = EPOLLIN | EPOLLET, LOOP_NOTHING = EPOLLET };

struct watch {
  int fd; /* -1: not watched */
  uint32_t events;
  void (*ready)(struct watch *watch, uint32_t events);
  /* The loop's own. */
  struct watch *next;
  bool is_refused;
};

void loop_open(void);
/* Never fails: where the kernel has no watch left, the descriptor is looked at now and then, and the loop goes on. */
void loop_add(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t));
/* Which events are waited for from now on. */
void loop_want(struct watch *watch, uint32_t events);
/* Stops watching and closes the descriptor. Both do nothing for a watch that has none. */
void loop_close(struct watch *watch);
/* Stops watching and leaves the descriptor open. */
void loop_release(struct watch *watch);
/* Waits until something is ready or `timeout_ms` passed (-1: for ever), then runs the callbacks. */
void loop_turn(int timeout_ms);
uint64_t loop_now_ms(void);
/* Processor time of porter. */
uint64_t loop_used_us(void);

#endif
