/*
 * porter: the first process of a sandbox, and its one door.
 *
 * It speaks the porter protocol on stdin and stdout, starts the programs that the host asks for, carries their input,
 * output and exit status, and reaps what they leave behind. It runs as the sandbox's own unprivileged user.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "exec.h"
#include "frame.h"
#include "link.h"
#include "loop.h"
#include "wire.h"

enum { PROTOCOL_MAJOR = 1, PROTOCOL_MINOR = 0, MAX_WINDOW = 512 * 1024, STOP_GRACE_MS = 3000 };

static bool greeted;
static bool exit_with_host;
static bool host_gone;
static uint64_t stop_at_ms;

static void refuse(const char *why) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u16(&w, PROTOCOL_MAJOR);
  write_u16(&w, PROTOCOL_MINOR);
  write_text(&w, why);
  link_control(FRAME_REFUSED, 0, payload, (uint32_t)w.length);
}

static void welcome(void) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u16(&w, PROTOCOL_MAJOR);
  write_u16(&w, PROTOCOL_MINOR);
  write_u64(&w, 0); /* feature bits */
  write_text(&w, PORTER_BUILD_ID);
  write_u32(&w, FRAME_MAX_PAYLOAD);
  write_u32(&w, EXEC_STDIN_WINDOW);
  write_u32(&w, (uint32_t)getpid());
  link_control(FRAME_WELCOME, 0, payload, (uint32_t)w.length);
}

static void on_hello(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint16_t major = read_u16(&r);
  read_u16(&r); /* minor: additions only */
  read_u64(&r); /* feature bits */
  uint32_t connection_window = read_u32(&r);
  uint32_t stream_window = read_u32(&r);
  /* A newer major may have added to the greeting, so its version is looked at before the rest. */
  if (r.bad) refuse("malformed greeting");
  else if (major != PROTOCOL_MAJOR) refuse("unknown protocol version");
  else if (!reader_done(&r) || connection_window > MAX_WINDOW || stream_window > connection_window) {
    refuse("malformed greeting");
  } else {
    greeted = true;
    exec_set_window(stream_window);
    link_start(frame->epoch, connection_window);
    welcome();
  }
}

static void on_credit(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint32_t bytes = read_u32(&r);
  if (!reader_done(&r)) return;
  if (frame->stream == 0) link_add_credit(bytes);
  else exec_credit(frame->stream, bytes);
}

static void on_frame(const struct frame *frame) {
  if (!greeted && frame->type != FRAME_HELLO) {
    refuse("no greeting");
    return;
  }
  switch (frame->type) {
    case FRAME_HELLO:
      on_hello(frame);
      break;
    case FRAME_CREDIT:
      on_credit(frame);
      break;
    case FRAME_EXEC:
      exec_request(frame);
      break;
    case FRAME_STDIN:
      exec_stdin(frame);
      break;
    case FRAME_SIGNAL:
      exec_signal(frame);
      break;
    default:
      break; /* a newer minor's request: the host knows by the feature bits that it is not understood */
  }
}

static void on_host_gone(void) { host_gone = true; }

static void reap(void) {
  for (;;) {
    int status;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    exec_reaped(pid, status, &usage);
  }
}

static void on_signal(struct watch *watch, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info;
  while (read(watch->fd, &info, sizeof info) == (long)sizeof info) {
    if (info.ssi_signo == SIGCHLD) reap();
    else if (stop_at_ms == 0) {
      stop_at_ms = loop_now_ms() + STOP_GRACE_MS;
      if (getpid() == 1) kill(-1, SIGTERM);
    }
  }
}

static void open_signals(struct watch *watch) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) die_errno("sigprocmask");
  /* Whatever was ignored by the one who started porter is not to be inherited by the programs in here. */
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) die_errno("signalfd");
  loop_add(watch, fd, EPOLLIN, on_signal);
}

static bool have_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static bool time_to_stop(void) {
  if (host_gone && exit_with_host) return true;
  return stop_at_ms != 0 && (loop_now_ms() >= stop_at_ms || !have_children());
}

/* Lowers the limit for porter and all that it starts; where the engine gave less, that stays. */
static void limit_open_files(const char *text) {
  char *end;
  errno = 0;
  unsigned long most = strtoul(text, &end, 10);
  if (errno != 0 || *end != '\0' || most < 64) die("--nofile wants a number of at least 64");
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) die_errno("getrlimit");
  if (limit.rlim_max > most) limit.rlim_max = most;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) die_errno("setrlimit");
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--nofile=", 9) == 0) {
      limit_open_files(argv[i] + 9);
      continue;
    }
    if (strcmp(argv[i], "--version") == 0) {
      printf("porter %s protocol %d.%d\n", PORTER_BUILD_ID, PROTOCOL_MAJOR, PROTOCOL_MINOR);
      return 0;
    }
    if (strcmp(argv[i], "--exit-with-host") == 0) exit_with_host = true;
    else die("usage: porter [--version] [--nofile=N] [--exit-with-host]");
  }
  struct watch signals;
  loop_open();
  open_signals(&signals);
  link_open(0, 1, on_frame, on_host_gone);
  while (!time_to_stop()) {
    link_flush();
    int due_ms = exec_pump();
    /* Blocked for room that this very flush has made: go round at once. Else the host's next sign wakes us. */
    if (!link_flush() && due_ms == EXEC_BLOCKED) due_ms = -1;
    if (stop_at_ms != 0 && (due_ms < 0 || due_ms > 50)) due_ms = 50;
    loop_turn(due_ms);
  }
  /* As PID 1, leaving ends every other process of the sandbox. */
  return stop_at_ms != 0 ? 143 : 0;
}
