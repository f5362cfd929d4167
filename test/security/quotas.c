/*
 * What the kernel counts for all processes of a user.
 *
 *   quotas hoard WHAT FOLDER   takes as many as there are, prints "count errno" and keeps them until it is killed
 *   quotas try FOLDER          takes one of each and gives it back: "what result" in lines; 0 or the errno, of a pipe its bytes
 *   quotas flags               what the calls that make epoll and inotify instances do with their arguments
 *   quotas churn COUNT         makes and closes that many epoll and inotify instances, and prints how many worked
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES = 2000, PIPES = 400 };

static const char *folder;

static void tell(const char *what, long result) {
  printf("%s %ld\n", what, result);
  fflush(stdout);
}

static const char *file_at(int number) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/watched-%d", folder, number);
  return path;
}

static void raise_descriptors(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static long take_instances(void) {
  long count = 0;
  while (inotify_init1(0) >= 0) count++;
  return count;
}

static long take_watches(void) {
  long count = 0;
  for (int i = 0; i < FILES; i++) close(open(file_at(i), O_CREAT | O_WRONLY, 0600));
  for (;;) {
    int fd = inotify_init1(0);
    if (fd < 0) return count;
    for (int i = 0; i < FILES; i++, count++) {
      if (inotify_add_watch(fd, file_at(i), IN_MODIFY) < 0) return count;
    }
  }
}

static long take_epoll(void) {
  static int pipes[PIPES][2];
  long count = 0;
  for (int i = 0; i < PIPES; i++) {
    if (pipe(pipes[i]) != 0) return count;
  }
  for (;;) {
    int fd = epoll_create1(0);
    if (fd < 0) return count;
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < PIPES; i++, count++) {
      if (epoll_ctl(fd, EPOLL_CTL_ADD, pipes[i][0], &event) != 0) return count;
    }
  }
}

/* The kernel makes them smaller when a user has many; that is the end here. */
static long take_pipes(void) {
  int ends[2];
  long count = 0;
  while (pipe(ends) == 0 && fcntl(ends[0], F_GETPIPE_SZ) >= 65536) count++;
  errno = 0;
  return count;
}

static long take_signals(void) {
  sigset_t set;
  long count = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  while (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0) count++;
  return count;
}

static int open_queue(long number) {
  char name[64];
  snprintf(name, sizeof name, "/sallyport-%d-%ld", getpid(), number);
  mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, NULL);
  int failure = errno;
  if (queue != (mqd_t)-1) mq_unlink(name);
  errno = failure;
  return (int)queue;
}

static long take_queues(void) {
  long count = 0;
  while (open_queue(count) >= 0) count++;
  return count;
}

/* Descriptors that were sent and not received. */
static int send_descriptor(int pair[2]) {
  union {
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int))];
  } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  struct iovec part = {"x", 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  memcpy(CMSG_DATA(&control.head), &pair[0], sizeof(int));
  return sendmsg(pair[0], &message, MSG_DONTWAIT) == 1 ? 0 : errno;
}

static long take_rights(void) {
  long count = 0;
  int pair[2];
  for (;;) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return count;
    int failure;
    while ((failure = send_descriptor(pair)) == 0) count++;
    if (failure != EAGAIN) {
      errno = failure;
      return count;
    }
  }
}

static const struct {
  const char *name;
  long (*take)(void);
} kinds[] = {
    {"instances", take_instances}, {"watches", take_watches}, {"epoll", take_epoll},   {"pipes", take_pipes},
    {"signals", take_signals},     {"queues", take_queues},   {"rights", take_rights},
};

static int hoard(const char *what) {
  raise_descriptors();
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].name, what) != 0) continue;
    long count = kinds[i].take();
    printf("%ld %d\n", count, errno);
    fflush(stdout);
    for (;;) pause();
  }
  return 2;
}

static void try_all(void) {
  int notify = inotify_init1(0), ends[2] = {-1, -1}, pair[2];
  tell("instance", notify < 0 ? errno : 0);
  tell("watch", inotify_add_watch(notify, folder, IN_MODIFY) < 0 ? errno : 0);
  int poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  tell("pipe", pipe(ends) != 0 ? -errno : fcntl(ends[0], F_GETPIPE_SZ));
  tell("epoll", epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event) != 0 ? errno : 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  tell("signal", sigqueue(getpid(), SIGRTMIN, (union sigval){0}) != 0 ? errno : 0);
  tell("queue", open_queue(0) < 0 ? errno : 0);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  tell("right", send_descriptor(pair));
}

static void tell_flags(const char *what, long fd) {
  if (fd < 0) {
    tell(what, -errno);
    return;
  }
  long flags = fcntl((int)fd, F_GETFD) == FD_CLOEXEC ? 1 : 0;
  if ((fcntl((int)fd, F_GETFL) & O_NONBLOCK) != 0) flags |= 2;
  tell(what, flags);
  close((int)fd);
}

static void try_flags(void) {
  tell_flags("epoll", epoll_create1(0));
  tell_flags("epoll-cloexec", epoll_create1(EPOLL_CLOEXEC));
  tell_flags("epoll-wrong", epoll_create1(1));
  tell_flags("inotify", inotify_init1(0));
  tell_flags("inotify-cloexec", inotify_init1(IN_CLOEXEC));
  tell_flags("inotify-nonblock", inotify_init1(IN_NONBLOCK));
  tell_flags("inotify-both", inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  tell_flags("inotify-wrong", inotify_init1(1));
#if defined(__x86_64__)
  tell_flags("old-epoll", syscall(SYS_epoll_create, 1));
  tell_flags("old-epoll-wrong", syscall(SYS_epoll_create, 0));
  tell_flags("old-inotify", syscall(SYS_inotify_init));
#endif
  /* As the lowest free number, like every descriptor. */
  int lowest = dup(0);
  close(lowest);
  int got = epoll_create1(0);
  tell("lowest", got == lowest ? 0 : got);
  struct rlimit none = {(rlim_t)got + 1, (rlim_t)got + 1};
  setrlimit(RLIMIT_NOFILE, &none);
  tell_flags("no-descriptor", inotify_init1(0));
}

static void churn(long most) {
  long worked = 0;
  for (long i = 0; i < most; i++) {
    int one = epoll_create1(0), other = inotify_init1(0);
    if (one >= 0 && other >= 0) worked++;
    close(one);
    close(other);
  }
  tell("worked", worked);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  folder = argc > 2 ? argv[argc - 1] : "/tmp";
  if (strcmp(argv[1], "hoard") == 0 && argc > 3) return hoard(argv[2]);
  if (strcmp(argv[1], "try") == 0) try_all();
  else if (strcmp(argv[1], "flags") == 0) try_flags();
  else if (strcmp(argv[1], "churn") == 0 && argc > 2) churn(atol(argv[2]));
  else return 2;
  return 0;
}
