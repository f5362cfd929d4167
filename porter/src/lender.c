#include "lender.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptor.h"
#include "die.h"
#include "doors.h"

/* Headers may not know it yet. */
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

enum { PORTER, FIRST_LISTENER, MOST = FIRST_LISTENER + 1024 };

/* poll and not epoll: the watches of this uid are what programs may use up. */
static struct pollfd watched[MOST];
static unsigned count;

/* What the program asked for, of this process's own. Returns the descriptor, or a negative errno. `*flags` is what the call was given. */
static int make(const struct seccomp_data *call, unsigned *flags) {
  enum { INOTIFY_FLAGS = IN_CLOEXEC | IN_NONBLOCK };
  *flags = 0;
  int made = -1;
  switch (call->nr) {
#if defined(__x86_64__)
    case SYS_epoll_create:
      if ((int)call->args[0] <= 0) return -EINVAL;
      made = epoll_create1(EPOLL_CLOEXEC);
      break;
    case SYS_inotify_init:
      made = inotify_init1(IN_CLOEXEC);
      break;
#endif
    case SYS_epoll_create1:
      *flags = (unsigned)call->args[0];
      if ((*flags & ~(unsigned)EPOLL_CLOEXEC) != 0) return -EINVAL;
      made = epoll_create1(EPOLL_CLOEXEC);
      break;
    case SYS_inotify_init1:
      *flags = (unsigned)call->args[0];
      if ((*flags & ~(unsigned)INOTIFY_FLAGS) != 0) return -EINVAL;
      made = inotify_init1((int)(*flags | IN_CLOEXEC));
      break;
    default:
      return -ENOSYS;
  }
  return made < 0 ? -errno : made;
}

static void answer_error(int listener, uint64_t id, int error) {
  struct seccomp_notif_resp answer = {.id = id, .error = error};
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void serve(int listener) {
  union {
    struct seccomp_notif call;
    char room[256]; /* a later kernel may have more to say */
  } notification = {0};
  /* A call may be over, by a signal, before it is looked at. */
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) return;
  unsigned flags;
  int made = make(&notification.call.data, &flags);
  uint64_t id = notification.call.id;
  if (made < 0) {
    answer_error(listener, id, made);
    return;
  }
  struct seccomp_notif_addfd add = {.id = id,
                                    .flags = SECCOMP_ADDFD_FLAG_SEND,
                                    .srcfd = (uint32_t)made,
                                    .newfd_flags = flags & (unsigned)EPOLL_CLOEXEC};
  /* The program may have as many descriptors as it may. */
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) answer_error(listener, id, -errno);
  close(made);
}

/* False when porter is gone. */
static bool take_listener(void) {
  char byte;
  int fd;
  long got = descriptor_receive(watched[PORTER].fd, &byte, 1, &fd);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  if (fd < 0) return true;
  if (count == MOST) close(fd);
  else watched[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
  return true;
}

static void serve_all(void) {
  for (unsigned i = FIRST_LISTENER; i < count;) {
    short ready = watched[i].revents;
    watched[i].revents = 0;
    if ((ready & POLLIN) != 0) serve(watched[i].fd);
    /* No process has that filter any more. */
    if ((ready & (POLLHUP | POLLERR | POLLNVAL)) == 0) i++;
    else {
      close(watched[i].fd);
      watched[i] = watched[--count];
    }
  }
}

int lender_main(int porter_pid) {
  prctl(PR_SET_NAME, "porter-lend");
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGPIPE, SIG_IGN);
  int porter = doors_connect(porter_pid);
  if (porter < 0) die_errno("porter does not answer");
  if (write(porter, DOORS_LENDER, 1) != 1) die_errno("porter takes nothing");
  watched[PORTER] = (struct pollfd){.fd = porter, .events = POLLIN};
  count = FIRST_LISTENER;
  for (;;) {
    if (poll(watched, count, -1) < 0 && errno != EINTR) die_errno("poll");
    if (watched[PORTER].revents != 0 && !take_listener()) return 0;
    serve_all();
  }
}
