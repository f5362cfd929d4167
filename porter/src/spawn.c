#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descriptor.h"
#include "doors.h"
#include "kept.h"
#include "request.h"
#include "seccomp.h"
#include "show.h"
#include "text.h"
#include "tree.h"
#include "victim.h"

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

enum { RESERVED_DESCRIPTORS = 32 };
/* Where the supervisor finds its descriptors after it closed all others. */
enum { FD_REPORT = 3, FD_IN, FD_OUT, FD_ERR, FD_END, FDS_GIVEN = FD_END - FD_IN };

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
    struct text text = {.data = file, .capacity = sizeof file};
    text_bytes(&text, dir, (size_t)(end - dir));
    if (end != dir) text_add(&text, "/");
    text_add(&text, name);
    if (!text.cut) {
      execve(file, argv, envp);
      if (errno == EACCES) failure = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    if (*end == '\0') return failure;
  }
}

void close_from(int first) {
  /* Headers may not know it yet; it is the same on every architecture. */
  enum { NR_close_range = 436 };
  if (syscall(NR_close_range, (unsigned)first, ~0u, 0u) == 0) return;
  struct rlimit limit;
  int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int fd = first; fd < end; fd++) close(fd);
}

static int set_limits(const struct spawn *request) {
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return errno;
  for (uint32_t i = 0; i < request->limit_count; i++) {
    struct rlimit limit;
    int resource = request->limits[i].resource;
    if (getrlimit(resource, &limit) != 0) return errno;
    if (limit.rlim_max > request->limits[i].value) limit.rlim_max = request->limits[i].value;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resource, &limit) != 0) return errno;
  }
  return 0;
}

static size_t count_words(char **words) {
  size_t count = 0;
  while (words[count] != NULL) count++;
  return count;
}

/* SECURITY: what it prints is believed, so its neighbours must not trace it, not even at its start. It is a fork of an undumpable
 * process that executes nothing, and a program that is executed can be traced before its first call. */
static bool is_show(const struct spawn *request) {
  /* Where every box has porter. */
  static const char show_path[] = "/.sallyport/porter";
  char **argv = request->argv;
  return strcmp(argv[0], show_path) == 0 && argv[1] != NULL && strcmp(argv[1], "show") == 0;
}

static int become_program(const struct spawn *request) {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (setsid() < 0) return errno;
  if (dup2(FD_IN, 0) < 0 || dup2(FD_OUT, 1) < 0 || dup2(FD_ERR, 2) < 0) return errno;
  if (request->pty && ioctl(0, TIOCSCTTY, 0) != 0) return errno;
  int failure = set_limits(request);
  if (failure != 0) return failure;
  if (chdir(request->cwd) != 0) return errno;
  if (is_show(request)) {
    close_from(FD_REPORT);
    _exit(show_main((int)count_words(request->argv) - 2, request->argv + 2));
  }
  return exec_search(request->argv, request->envp);
}

static void report(enum spawn_event event, int value, uint32_t left_some, const struct rusage *usage) {
  struct spawn_report record = {.event = event, .value = value, .left_some = left_some};
  if (usage != NULL) record.usage = *usage;
  while (write(FD_REPORT, &record, sizeof record) < 0 && errno == EINTR) continue;
}

static bool anything_left(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static pid_t porter;

/* Where porter is PID 1 all processes end with it. Elsewhere a porter that was killed would leave its programs behind. */
static void on_parent_gone(int signal_number) {
  (void)signal_number;
  /* Anybody inside may send this; only the death of the parent changes it. */
  if (getppid() == porter) return;
  for (;;) {
    uint32_t found;
    tree_kill(getpid(), &found);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    /* A walk may miss one that is born meanwhile; the kernel knows of every child. */
    if (!anything_left()) _exit(0);
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
  }
}

static void end_with_porter(void) {
  signal(SIGTERM, on_parent_gone);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != porter) _exit(0);
}

/* SIGTERM comes through only while a supervisor waits. Its handler takes memory, so it must not interrupt malloc; and a child
 * of vfork has the same handler and the same stack. */
static void let_stop(bool may_stop) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigprocmask(may_stop ? SIG_UNBLOCK : SIG_BLOCK, &stop, NULL);
}

/* Everything that does not depend on a request. Returns the errno for which no program may be started. */
static int become_supervisor(void) {
  prctl(PR_SET_NAME, "porter-exec");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  /* Only what cannot be blocked ends a supervisor early; that is noticed by its socket, and answered. */
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  end_with_porter();
  /* SECURITY: every program inherits it. The supervisor itself waits, talks to porter and lets go of what it traces, and
   * can do so with the same filter. */
  int listener, failure = seccomp_install(&listener);
  if (failure != 0 || listener < 0) return failure;
  /* First of all reports: porter has it before any program can make a call that waits for it. */
  const struct spawn_report record = {.event = SPAWN_LISTENS};
  bool sent = descriptor_send(FD_REPORT, &record, sizeof record, listener);
  close(listener);
  return sent ? 0 : EPIPE;
}

/* Returns 0, or the errno for which the program does not run. */
static int start_program(const struct spawn *request, pid_t *pid) {
  /* The child borrows this memory until it runs its program or gives up, and this process stands still so long. That is
   * cheaper than a copy, and the reason for a failure needs no pipe; shared, because an emulator copies all the same. */
  static volatile int *why = NULL;
  if (why == NULL) why = mmap(NULL, sizeof *why, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (why == MAP_FAILED) return ENOMEM;
  *why = 0;
  *pid = is_show(request) ? fork() : vfork();
  if (*pid == 0) {
    *why = become_program(request);
    _exit(127);
  }
  return *pid < 0 ? errno : *why;
}

/* Returns when nothing is left of the program and of all that it started. */
static void supervise(const struct spawn *request, int failure) {
  pid_t pid = -1;
  if (failure == 0) failure = start_program(request, &pid);
  close(FD_IN);
  close(FD_OUT);
  close(FD_ERR);
  if (failure != 0) {
    report(SPAWN_FAILED, failure, 0, NULL);
    _exit(0);
  }
  report(SPAWN_STARTED, pid, 0, NULL);
  let_stop(true);
  for (;;) {
    int status;
    struct rusage usage;
    pid_t gone = wait4(-1, &status, 0, &usage);
    /* A program may ask its parent to trace it. This one does not: it lets it go on with the signal it stopped for. */
    if (gone > 0 && WIFSTOPPED(status)) ptrace(PTRACE_DETACH, gone, NULL, (void *)(long)WSTOPSIG(status));
    else if (gone == pid) report(SPAWN_EXITED, status, anything_left(), &usage);
    else if (gone < 0 && errno == ECHILD) {
      /* Orphans come to a supervisor, so without a child it has no descendant at all. */
      report(SPAWN_OVER, 0, 0, NULL);
      let_stop(false);
      return;
    }
  }
}

static void await_request(struct exec_wish *wish) {
  static uint8_t message[KEPT_MESSAGE_MOST];
  /* The lowest free numbers, in order: just those that the last program left free. */
  static const int places[FDS_GIVEN] = {FD_IN, FD_OUT, FD_ERR};
  int fds[FDS_GIVEN];
  size_t count = FDS_GIVEN;
  let_stop(true);
  size_t length = kept_await(FD_REPORT, message, sizeof message, fds, &count);
  let_stop(false);
  if (count != FDS_GIVEN || memcmp(fds, places, sizeof places) != 0) _exit(0);
  if (exec_wish_read(wish, message, (uint32_t)length) != 0) _exit(0);
}

/* Puts `from` at the fixed place `to`. All are first moved out of the way, so that none is overwritten. */
static void place(int from, int to) {
  if (from >= 0) dup2(from, to);
}

static _Noreturn void supervisor(const struct spawn *request, int fds[FD_END - FD_REPORT]) {
  int moved[FD_END - FD_REPORT];
  for (int i = 0; i < FD_END - FD_REPORT; i++) moved[i] = fcntl(fds[i], F_DUPFD, FD_END);
  for (int i = 0; i < FD_END - FD_REPORT; i++) place(moved[i], FD_REPORT + i);
  close_from(FD_END);
  /* stdin and stdout of porter are the protocol's: what runs below must not even hold them. */
  doors_forget_token();
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; fd++) {
    if (null >= 0) dup2(null, fd);
    else close(fd);
  }
  if (null >= FD_END) close(null);
  for (int fd = FD_REPORT; fd < FD_END; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
  supervise(request, become_supervisor());
  for (;;) {
    struct exec_wish wish;
    await_request(&wish);
    supervise(&wish.spawn, 0);
    exec_wish_free(&wish);
  }
}

struct pipes {
  int in[2], out[2], err[2], report[2];
};

static void close_pair(int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0 && pair[1] != pair[0]) close(pair[1]);
}

static int open_pty(const struct spawn *request, struct pipes *p) {
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return errno;
  p->out[0] = master;
  /* What unlockpt and ptsname do, without the C library's printf in the latter. */
  int locked = 0;
  unsigned number;
  if (ioctl(master, TIOCSPTLCK, &locked) != 0 || ioctl(master, TIOCGPTN, &number) != 0) return errno;
  char name[32];
  struct text path = {.data = name, .capacity = sizeof name};
  text_add(&path, "/dev/pts/");
  text_number(&path, number);
  struct winsize size = {.ws_row = request->rows, .ws_col = request->columns};
  ioctl(master, TIOCSWINSZ, &size);
  int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return errno;
  p->in[0] = slave;
  p->out[1] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
  p->err[1] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
  p->in[1] = fcntl(master, F_DUPFD_CLOEXEC, 0);
  return p->out[1] < 0 || p->err[1] < 0 || p->in[1] < 0 ? errno : 0;
}

static int open_pipes(const struct spawn *request, struct pipes *p) {
  if (request->pty) return open_pty(request, p);
  if (request->with_stdin) {
    if (pipe2(p->in, O_CLOEXEC) != 0) return errno;
  } else if ((p->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) return errno;
  return pipe2(p->out, O_CLOEXEC) != 0 || pipe2(p->err, O_CLOEXEC) != 0 ? errno : 0;
}

/* The lowest free numbers are given first, so a high one says that few are left. Those are for the doors: a sandbox whose
 * programs used up every descriptor could otherwise not be reached any more. */
static int keep_reserve(const struct pipes *p) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
  const int *fds = &p->in[0];
  for (size_t i = 0; i < sizeof *p / sizeof *fds; i++) {
    if (fds[i] >= 0 && (rlim_t)fds[i] + RESERVED_DESCRIPTORS >= limit.rlim_cur) return EMFILE;
  }
  return 0;
}

static void set_nonblocking(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static struct kept_pool kept;

void spawn_keep(pid_t supervisor, int report) { kept_put(&kept, supervisor, report); }
int spawn_expire(uint64_t now_ms) { return kept_expire(&kept, now_ms); }
bool spawn_is_kept(pid_t pid) { return kept_has(&kept, pid); }
void spawn_reaped(pid_t pid) { kept_reaped(&kept, pid); }

static bool use_kept(const struct spawn *request, struct pipes *p, pid_t *pid) {
  const int fds[FDS_GIVEN] = {p->in[0], p->out[1], p->err[1]};
  struct kept_task task = {request->message, request->message_length, fds, FDS_GIVEN};
  return kept_take(&kept, &task, pid, &p->report[0]);
}

static int fork_supervisor(const struct spawn *request, struct pipes *p, pid_t *pid) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->report) != 0) return errno;
  int failure = keep_reserve(p);
  if (failure != 0) return failure;
  *pid = victim_fork();
  if (*pid == 0) supervisor(request, (int[]){p->report[1], p->in[0], p->out[1], p->err[1]});
  return *pid < 0 ? errno : 0;
}

int spawn_start(const struct spawn *request, struct spawned *result) {
  struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
  pid_t pid = -1;
  int failure = open_pipes(request, &p);
  porter = getpid();
  if (failure == 0) failure = keep_reserve(&p);
  if (failure == 0 && !use_kept(request, &p, &pid)) failure = fork_supervisor(request, &p, &pid);
  if (failure != 0) {
    close_pair(p.in);
    close_pair(p.out);
    close_pair(p.err);
    close_pair(p.report);
    return failure;
  }
  close(p.in[0]);
  close(p.out[1]);
  close(p.err[1]);
  if (p.report[1] >= 0) close(p.report[1]);
  set_nonblocking(p.in[1]);
  set_nonblocking(p.out[0]);
  set_nonblocking(p.err[0]);
  set_nonblocking(p.report[0]);
  *result = (struct spawned){.supervisor = pid, .in = p.in[1], .out = p.out[0], .err = p.err[0], .report = p.report[0]};
  return 0;
}
