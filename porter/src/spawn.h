/*
 * Starts one program under a supervisor of its own.
 *
 * The supervisor is a fork of porter that adopts and reaps every orphan below it, and reports on a socket: that the program
 * runs, how it ended, and that nothing of it is left. It holds no descriptor of the protocol and
 * cannot be traced by the sandbox's user.
 *
 * A supervisor below which nothing is left may be kept for a later request (kept.h). It never has two at a time.
 */
#ifndef PORTER_SPAWN_H
#define PORTER_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_limit {
  int resource;
  uint64_t value;
};

struct spawn {
  char **argv;
  char **envp;
  const char *cwd;
  bool with_stdin; /* else it reads end of file at once */
  bool pty;
  uint16_t rows, columns;
  const struct spawn_limit *limits;
  uint32_t limit_count;
  /* The request as it came: what a supervisor that was kept is told. */
  const uint8_t *message;
  uint32_t message_length;
};

struct spawned {
  pid_t supervisor;
  int in, out, err; /* in is -1 without stdin; with a pty, in and out are both the master and err is -1 */
  int report;       /* records of struct spawn_report, SPAWN_LISTENS with a descriptor (borrow.h), then the end */
};

/* SPAWN_OVER is the last word of an exec: a socket that ends without it had its supervisor killed. */
enum spawn_event { SPAWN_STARTED = 1, SPAWN_FAILED = 2, SPAWN_EXITED = 3, SPAWN_OVER = 4, SPAWN_LISTENS = 5 };

struct spawn_report {
  uint32_t event;
  int32_t value;      /* the program's pid; the errno; the wait status */
  uint32_t left_some; /* on SPAWN_EXITED: processes are left below the supervisor */
  struct rusage usage;
};

/* Returns 0, or the errno that kept even the supervisor from starting. */
int spawn_start(const struct spawn *request, struct spawned *result);

/* SPAWN_OVER was read: takes the supervisor and the socket of its reports, for another request or to let it go. */
void spawn_keep(pid_t supervisor, int report);
/* As in kept.h, for the supervisors. */
int spawn_expire(uint64_t now_ms);
bool spawn_is_kept(pid_t pid);
void spawn_reaped(pid_t pid);

/* Closes every descriptor from `first` on. */
void close_from(int first);

#endif
