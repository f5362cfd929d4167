#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* The PATH of the program's environment, not of porter's own. */
static const char *search_path(char **envp) {
  for (; *envp != NULL; envp++) {
    if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
  }
  return default_path;
}

/* Returns only on failure, with the most telling errno: a file that may not be executed beats one that is not there. */
static int exec_search(char **argv, char **envp) {
  const char *name = argv[0];
  if (*name == '\0') return ENOENT;
  if (strchr(name, '/') != NULL) {
    execve(name, argv, envp);
    return errno;
  }
  int failure = ENOENT;
  char file[PATH_MAX];
  const char *end;
  for (const char *dir = search_path(envp);; dir = end + 1) {
    end = strchrnul(dir, ':');
    int length = snprintf(file, sizeof file, "%.*s%s%s", (int)(end - dir), dir, end == dir ? "" : "/", name);
    if (length > 0 && (size_t)length < sizeof file) {
      execve(file, argv, envp);
      if (errno == EACCES) failure = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    if (*end == '\0') return failure;
  }
}

static void close_pair(int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0) close(pair[1]);
}

static _Noreturn void child(const struct spawn *request, int in, int out, int err, int report) {
  /* porter blocks signals to read them from a descriptor and ignores SIGPIPE; a program starts with neither. */
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  int failure = 0;
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) failure = errno;
  else if (chdir(request->cwd) != 0) failure = errno;
  else failure = exec_search(request->argv, request->envp);
  while (write(report, &failure, sizeof failure) < 0 && errno == EINTR) continue;
  _exit(127);
}

int spawn_start(const struct spawn *request, struct spawned *result) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
  int failure = 0;
  pid_t pid = -1;
  if (request->with_stdin) {
    if (pipe2(in, O_CLOEXEC) != 0) failure = errno;
  } else if ((in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) failure = errno;
  if (failure == 0 && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)) {
    failure = errno;
  }
  if (failure == 0) {
    pid = fork();
    if (pid == 0) child(request, in[0], out[1], err[1], report[1]);
    if (pid < 0) failure = errno;
  }
  if (failure == 0) {
    close(report[1]);
    report[1] = -1;
    /* End of file means that the program runs: its end of the pipe was closed by execve. */
    long got;
    do got = read(report[0], &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
    if (got != (long)sizeof failure) failure = 0;
    else waitpid(pid, NULL, 0);
  }
  close_pair(report);
  if (failure != 0) {
    close_pair(in);
    close_pair(out);
    close_pair(err);
    return failure;
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  if (in[1] >= 0) fcntl(in[1], F_SETFL, O_NONBLOCK);
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  *result = (struct spawned){.pid = pid, .in = in[1], .out = out[0], .err = err[0]};
  return 0;
}
