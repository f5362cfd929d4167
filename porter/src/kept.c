#include "kept.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop.h"

union control {
  struct cmsghdr head;
  uint8_t space[CMSG_SPACE(KEPT_FDS_MOST * sizeof(int))];
};

static struct kept *find(const struct kept_pool *pool, pid_t pid) {
  for (size_t i = 0; i < KEPT_MOST; i++) {
    if (pool->places[i].pid == pid) return (struct kept *)&pool->places[i];
  }
  return NULL;
}

static bool has_own_limits(pid_t pid) {
  /* Nobody changes porter's own any more: it has looked at all of them once. */
  static struct rlimit own[RLIM_NLIMITS];
  static bool known;
  for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
    struct rlimit other;
    if (!known && prlimit(0, resource, NULL, &own[resource]) != 0) return false;
    if (prlimit(pid, resource, NULL, &other) != 0) return false;
    if (memcmp(&own[resource], &other, sizeof other) != 0) return false;
  }
  return known = true;
}

static bool has_own_schedule(pid_t pid) {
  enum { PROCESS = 1, ATTRIBUTES = 56 };
  struct schedule {
    uint8_t attributes[ATTRIBUTES];
    cpu_set_t processors;
    long io_priority;
  } schedules[2] = {0};
  const pid_t pids[2] = {0, pid};
  for (int i = 0; i < 2; i++) {
    struct schedule *s = &schedules[i];
    if (syscall(SYS_sched_getattr, pids[i], s->attributes, ATTRIBUTES, 0) != 0) return false;
    if (sched_getaffinity(pids[i], sizeof s->processors, &s->processors) != 0) return false;
    s->io_priority = syscall(SYS_ioprio_get, PROCESS, pids[i]);
  }
  return memcmp(&schedules[0], &schedules[1], sizeof schedules[0]) == 0;
}

/* SECURITY: a process of the same user may lower what a helper passes on to the programs it starts: limits, priority,
 * processors. What was done to it by one that is over must not reach the next, so it must be as porter is, to whom no call
 * inside can do this. Where that cannot be seen, nobody is kept. */
static bool is_untouched(pid_t pid) { return has_own_limits(pid) && has_own_schedule(pid); }

static void let_go(struct kept *k) {
  close(k->socket);
  k->pid = 0;
}

void kept_put(struct kept_pool *pool, pid_t pid, int socket) {
  struct kept *place = find(pool, 0);
  if (place == NULL) close(socket);
  else *place = (struct kept){pid, socket, loop_now_ms() + KEPT_MS};
}

static bool give(const struct kept *k, const struct kept_task *task) {
  union control control = {0};
  struct iovec content = {(void *)task->message, task->length};
  struct msghdr envelope = {.msg_iov = &content, .msg_iovlen = 1};
  if (task->fd_count > 0) {
    size_t bytes = task->fd_count * sizeof(int);
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = (socklen_t)CMSG_LEN(bytes)};
    memcpy(CMSG_DATA(&control.head), task->fds, bytes);
    envelope.msg_control = control.space;
    envelope.msg_controllen = (socklen_t)CMSG_SPACE(bytes);
  }
  /* Something inside may have stopped it. */
  kill(k->pid, SIGCONT);
  return sendmsg(k->socket, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT) == (long)task->length;
}

bool kept_take(struct kept_pool *pool, const struct kept_task *task, pid_t *pid, int *socket) {
  if (task->length > KEPT_MESSAGE_MOST || task->fd_count > KEPT_FDS_MOST) return false;
  for (struct kept *k = pool->places; k < pool->places + KEPT_MOST; k++) {
    if (k->pid == 0) continue;
    if (!is_untouched(k->pid) || !give(k, task)) {
      let_go(k);
      continue;
    }
    *pid = k->pid;
    *socket = k->socket;
    k->pid = 0;
    return true;
  }
  return false;
}

bool kept_has(const struct kept_pool *pool, pid_t pid) { return pid != 0 && find(pool, pid) != NULL; }

void kept_reaped(struct kept_pool *pool, pid_t pid) {
  if (kept_has(pool, pid)) let_go(find(pool, pid));
}

int kept_expire(struct kept_pool *pool, uint64_t now_ms) {
  int due_ms = -1;
  for (struct kept *k = pool->places; k < pool->places + KEPT_MOST; k++) {
    if (k->pid == 0) continue;
    if (now_ms >= k->until_ms) {
      let_go(k);
      continue;
    }
    int left_ms = (int)(k->until_ms - now_ms);
    if (due_ms < 0 || left_ms < due_ms) due_ms = left_ms;
  }
  return due_ms;
}

size_t kept_await(int socket, void *message, size_t size, int *fds, size_t *fd_count) {
  union control control;
  struct iovec content = {message, size};
  struct msghdr envelope = {
      .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
  long got;
  do got = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0 || (envelope.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) _exit(0);
  struct cmsghdr *given = CMSG_FIRSTHDR(&envelope);
  size_t count = given == NULL ? 0 : (given->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > *fd_count) _exit(0);
  if (count > 0) memcpy(fds, CMSG_DATA(given), count * sizeof(int));
  *fd_count = count;
  return (size_t)got;
}
