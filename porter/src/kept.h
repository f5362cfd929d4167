/*
 * Helper processes that wait for their next task instead of leaving. Making and burying a process takes as long as a small
 * task, so a few are kept for a moment: each serves one task at a time, and whoever is not asked again soon leaves.
 *
 * A helper has a socket (SEQPACKET) to porter. It is told a task by a message with descriptors, and leaves when the socket
 * ends. Whatever is wrong with one that was kept, the task gets a new process: nothing depends on these.
 */
#ifndef PORTER_KEPT_H
#define PORTER_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Each is a process that the sandbox's user pays for, so few are kept, and not for long. */
enum { KEPT_MOST = 4, KEPT_MS = 1000, KEPT_MESSAGE_MOST = 64 * 1024, KEPT_FDS_MOST = 3 };

struct kept_task {
  const void *message;
  size_t length; /* a task longer than KEPT_MESSAGE_MOST is given to nobody */
  const int *fds;
  size_t fd_count;
};

struct kept {
  pid_t pid; /* 0: none */
  int socket;
  uint64_t until_ms;
};

struct kept_pool {
  struct kept places[KEPT_MOST];
};

/* Takes a helper that has finished, and its socket. */
void kept_put(struct kept_pool *pool, pid_t pid, int socket);
/* Gives the task to one that is kept. False if nobody took it; else the helper and its socket are the caller's. */
bool kept_take(struct kept_pool *pool, const struct kept_task *task, pid_t *pid, int *socket);
bool kept_has(const struct kept_pool *pool, pid_t pid);
void kept_reaped(struct kept_pool *pool, pid_t pid);
/* Lets go those that waited long enough. Returns in how many ms the next one has, -1 if there is none. */
int kept_expire(struct kept_pool *pool, uint64_t now_ms);

/* In the helper: the next message, with the descriptors it has (at most `*fd_count`). Returns its length; leaves the process
 * when there is none to come. */
size_t kept_await(int socket, void *message, size_t size, int *fds, size_t *fd_count);

#endif
