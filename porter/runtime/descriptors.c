/* Calls on descriptors whose older form arm64 does not have. */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kernel.h"

/* dup3 refuses two equal descriptors. Here that is a success if the descriptor is open. */
int dup2(int from, int to) {
  if (from == to) return fcntl(from, F_GETFD) < 0 ? -1 : to;
  return dup3(from, to, 0);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
  return kernel_ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL, KERNEL_SIGNAL_SET);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms) {
  return kernel_epoll_pwait(epoll, events, most, timeout_ms, NULL, KERNEL_SIGNAL_SET);
}
