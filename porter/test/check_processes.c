#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* --- signals --------------------------------------------------------------------------------------------------------- */

static volatile int handled, last_number;

static void on_signal(int number) {
  handled++;
  last_number = number;
}

static int send_self(int number) { return kill(getpid(), number); }

static void check_handler(void) {
  MUST(signal(SIGUSR1, on_signal) == SIG_DFL);
  MUST(send_self(SIGUSR1) == 0 && handled == 1 && last_number == SIGUSR1);
  /* It stays. */
  MUST(send_self(SIGUSR1) == 0 && handled == 2);
  MUST(signal(SIGUSR1, on_signal) == on_signal);
  MUST(signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
  MUST(signal(100, SIG_IGN) == SIG_ERR && errno == EINVAL);
}

static void check_mask(void) {
  sigset_t set, old, all;
  sigemptyset(&set);
  MUST(sigaddset(&set, SIGUSR1) == 0 && sigaddset(&set, 0) == -1 && errno == EINVAL && sigaddset(&set, 65) == -1);
  MUST(sigprocmask(SIG_BLOCK, &set, &old) == 0);
  handled = 0;
  MUST(send_self(SIGUSR1) == 0 && handled == 0);
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  struct signalfd_siginfo info;
  MUST(fd >= 0 && read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1 && close(fd) == 0);
  MUST(send_self(SIGUSR1) == 0 && handled == 0);
  MUST(sigprocmask(SIG_SETMASK, &old, &set) == 0 && handled == 1);
  sigfillset(&all);
  MUST(sigdelset(&all, SIGUSR1) == 0 && sigprocmask(SIG_SETMASK, &all, NULL) == 0);
  MUST(send_self(SIGUSR1) == 0 && handled == 2 && sigprocmask(SIG_SETMASK, &old, NULL) == 0);
}

/* A read that a handler interrupts goes on: the other process sends a signal first, and what is read for afterwards. */
static void check_restart(void) {
  int pair[2], status;
  char byte;
  MUST(pipe2(pair, O_CLOEXEC) == 0);
  handled = 0;
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    /* Until the parent is in its read there is no telling; it is there long before this. */
    usleep(20000);
    kill(getppid(), SIGUSR1);
    usleep(20000);
    _exit(write(pair[1], "x", 1) == 1 ? 0 : 1);
  }
  MUST(read(pair[0], &byte, 1) == 1 && byte == 'x' && handled == 1);
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(close(pair[0]) == 0 && close(pair[1]) == 0);
}

void check_signals(void) {
  check_handler();
  check_mask();
  check_restart();
  MUST(signal(SIGUSR1, SIG_DFL) == on_signal);
}

/* --- processes ------------------------------------------------------------------------------------------------------- */

static void check_fork(void) {
  int status;
  struct rusage usage;
  siginfo_t info = {0};
  pid_t parent = getpid(), child = fork();
  MUST(child >= 0);
  if (child == 0) exit(getppid() == parent && getpid() != parent ? 42 : 1);
  MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == child && info.si_status == 42);
  MUST(wait4(-1, &status, 0, &usage) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
  MUST(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
  child = fork();
  MUST(child >= 0);
  if (child == 0) {
    for (;;) usleep(1000000);
  }
  MUST(waitpid(child, &status, WNOHANG) == 0 && kill(child, SIGKILL) == 0);
  MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Overwrites what is below the stack pointer, as a child does that calls functions before its program starts. */
__attribute__((noinline)) static int use_stack(int depth) {
  volatile char bytes[256];
  for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (char)depth;
  return depth == 0 ? 0 : use_stack(depth - 1) + bytes[100];
}

static void check_vfork(void) {
  char *const argv[] = {(char *)"none", NULL}, *const envp[] = {NULL};
  volatile uint64_t kept = 0x1122334455667788;
  int status;
  pid_t child = vfork();
  if (child == 0) {
    if (use_stack(20) != 210) _exit(1);
    execve("/none/such", argv, envp);
    _exit(errno == ENOENT ? 7 : 8);
  }
  MUST(child > 0 && kept == 0x1122334455667788);
  MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  /* No process can be made: the failure is told to the one who asked. */
  struct rlimit limit, none;
  MUST(getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_max > 0);
  none = limit;
  none.rlim_cur = 0;
  if (getuid() == 0) return; /* root has no such limit */
  MUST(setrlimit(RLIMIT_NPROC, &none) == 0);
  MUST(vfork() == -1 && errno == EAGAIN && fork() == -1 && errno == EAGAIN);
  MUST(setrlimit(RLIMIT_NPROC, &limit) == 0);
}

void check_processes(void) {
  check_fork();
  check_vfork();
  char name[16] = "";
  MUST(prctl(PR_SET_NAME, "checked") == 0 && prctl(PR_GET_NAME, name) == 0 && strcmp(name, "checked") == 0);
  struct rlimit limit, twin;
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0 && prlimit(getpid(), RLIMIT_NOFILE, NULL, &twin) == 0);
  MUST(memcmp(&limit, &twin, sizeof limit) == 0 && limit.rlim_cur > 64);
  limit.rlim_cur = 64;
  MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0 && getrlimit(RLIMIT_NOFILE, &twin) == 0 && twin.rlim_cur == 64);
  cpu_set_t processors;
  memset(&processors, 0xFF, sizeof processors);
  MUST(sched_getaffinity(0, sizeof processors, &processors) == 0);
  /* Whatever the kernel did not fill in is 0: no machine of the tests has a thousand processors. */
  MUST(((uint8_t *)&processors)[sizeof processors - 1] == 0);
  MUST(getuid() == geteuid() && getgid() == getegid());
}
