/* Starts one program with exactly the arguments, environment, directory and pipes that were asked for. No shell. */
#ifndef PORTER_SPAWN_H
#define PORTER_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
  char **argv;
  char **envp;
  const char *cwd;
  bool with_stdin; /* else it reads end of file at once */
};

struct spawned {
  pid_t pid;
  int in, out, err; /* in is -1 without stdin */
};

/* Returns 0, or the errno that kept the program from starting. */
int spawn_start(const struct spawn *request, struct spawned *result);

#endif
