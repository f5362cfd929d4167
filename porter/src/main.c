/*
 * porter: the first process of a sandbox, and its one door. docs/protocol.md says what it does.
 *
 * One thread, one loop. It runs as the sandbox's own unprivileged user; what it starts runs as the same user and is kept
 * from it by what is in seccomp.c and by PR_SET_DUMPABLE.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "borrow.h"
#include "die.h"
#include "doors.h"
#include "exec.h"
#include "files.h"
#include "host.h"
#include "lender.h"
#include "listeners.h"
#include "loop.h"
#include "message.h"
#include "notice.h"
#include "pace.h"
#include "seccomp.h"
#include "show.h"
#include "spawn.h"
#include "text.h"
#include "through.h"
#include "tree.h"
#include "tunnels.h"
#include "version.h"
#include "victim.h"

enum {
  STOP_GRACE_MS = 3000,
  /* When all are gone: for a host that is slow to hear how they ended. One that does not read must not hold up the engine. */
  LAST_WORDS_MS = 700,
  /* While anything has a deadline the loop comes round at least this often, so that a pause shows as a gap. */
  TICK_MS = 500,
  GAP_MS = 1000,
};

static bool exit_with_host;
static bool host_is_gone;
static uint64_t stop_at_ms; /* 0: not asked to stop */

static void on_ping(const struct frame *frame) {
  uint8_t payload[64];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  if (frame->length > sizeof payload) {
    host_violation("a ping that is too long");
    return;
  }
  memcpy(payload, frame->payload, frame->length);
  w.length = frame->length;
  host_control(FRAME_PONG, frame->stream, &w);
}

static void on_frame(const struct frame *frame) {
  const uint8_t *payload;
  uint32_t length;
  if ((frame->flags & FRAME_MORE) != 0 && frame->type != FRAME_EXEC && frame->type != FRAME_FILE) {
    host_violation("a long message where none is allowed");
    return;
  }
  switch (frame->type) {
    case FRAME_PING:
      on_ping(frame);
      break;
    case FRAME_EXEC:
      if (frame->stream == 0 || frame->stream >= 0x80000000u) host_violation("a stream number that is not the host's");
      else if (message_add(frame, &payload, &length)) {
        exec_request(frame->stream, payload, length);
        message_reset();
      }
      break;
    case FRAME_FILE:
      if (frame->stream == 0 || frame->stream >= 0x80000000u) host_violation("a stream number that is not the host's");
      else if (message_add(frame, &payload, &length)) {
        files_request(frame->stream, payload, length);
        message_reset();
      }
      break;
    case FRAME_EXECS:
      exec_list();
      break;
    default:
      /* A frame for something that ended meanwhile is nobody's fault. */
      if (!exec_frame(frame) && !files_frame(frame) && !tunnels_frame(frame)) listeners_frame(frame);
      break;
  }
}

static void end_what_was_the_hosts(void) {
  message_reset();
  exec_host_replaced();
  files_host_replaced();
  tunnels_host_gone();
  listeners_host_gone();
}

static void on_host_replaced(void) {
  host_is_gone = false;
  end_what_was_the_hosts();
}

static void on_host_gone(void) {
  host_is_gone = true;
  end_what_was_the_hosts();
}

static void reap(void) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    files_reaped(pid);
    spawn_reaped(pid);
  }
}

/* From outside the pid namespace the sender is 0. Where porter is not PID 1, whoever started it may also end it. */
static bool is_from_outside(const struct signalfd_siginfo *info) {
  /* Only what kill() sends has a sender at all. A signal of the kernel's own, such as the one a program may have sent when
   * its descriptor becomes ready, shows 0 there too. */
  if (info->ssi_code != SI_USER) return false;
  return info->ssi_pid == 0 || (getpid() != 1 && info->ssi_pid == (uint32_t)getppid());
}

static void on_signal(struct watch *watch, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info;
  while (read(watch->fd, &info, sizeof info) == (long)sizeof info) {
    if (info.ssi_signo == SIGCHLD) reap();
    else if (!is_from_outside(&info)) notice(NOTICE_TERM_IGNORED, info.ssi_pid, "a signal from inside was ignored");
    else if (stop_at_ms == 0) {
      stop_at_ms = loop_now_ms() + STOP_GRACE_MS;
      exec_end_all(false);
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

/* Lowers a limit for porter and all that it starts; where the engine gave less, that stays. */
static void lower_limit(int resource, const char *text) {
  uint64_t most;
  if (!text_read_number(&text, &most) || *text != '\0' || most < 16) die("a limit is a number of at least 16");
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) die_errno("getrlimit");
  if (limit.rlim_max > most) limit.rlim_max = most;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) != 0) die_errno("setrlimit");
}

/*
 * The host's user has the same uid. What the kernel counts for all processes of a uid is compared with the limit of the process that wants
 * more: with half of it programs in here leave the rest to the others.
 */
static void leave_half(int resource, rlim_t most) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) die_errno("getrlimit");
  rlim_t half = limit.rlim_max == RLIM_INFINITY ? most : limit.rlim_max / 2;
  limit.rlim_max = half < most ? half : most;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) != 0) die_errno("setrlimit");
}

static void share_uid(void) {
  leave_half(RLIMIT_SIGPENDING, RLIM_INFINITY - 1);
  leave_half(RLIMIT_MSGQUEUE, RLIM_INFINITY - 1);
  /* Half of what systemd gives a user by default. */
  leave_half(RLIMIT_MEMLOCK, 4 * 1024 * 1024);
}

/* Moves a descriptor away from 0, 1 and 2, and leaves /dev/null in its place: nothing that is printed by mistake, and
 * nothing that inherits the usual three, touches the protocol. */
static int move_away(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  if (moved < 0) die_errno("no stdin or stdout");
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, fd);
    close(null);
  } else close(fd);
  return moved;
}

static bool time_to_stop(uint64_t now_ms) {
  static bool is_quiet;
  if (host_is_gone && exit_with_host) return true;
  if (stop_at_ms == 0) return false;
  if (!is_quiet && !exec_any_running()) {
    is_quiet = true;
    if (stop_at_ms > now_ms + LAST_WORDS_MS) stop_at_ms = now_ms + LAST_WORDS_MS;
  }
  return now_ms >= stop_at_ms || (is_quiet && !exec_any_untold() && host_flush());
}

/* Each turn begins with another part, so that none is always the last to find the queue full. */
static int pump_all(uint64_t now_ms) {
  /* A connection is taken before it is read from, so that what it begins with goes out with the word that it is there. */
  static int (*const parts[])(uint64_t) = {exec_pump, files_pump, listeners_pump, tunnels_pump, borrow_pump};
  enum { PARTS = sizeof parts / sizeof *parts };
  static uint32_t first;
  int due_ms = doors_expire(now_ms);
  pace_turn(now_ms);
  first++;
  for (uint32_t i = 0; i < PARTS; i++) {
    int own_ms = parts[(first + i) % PARTS](now_ms);
    if (own_ms >= 0 && (due_ms < 0 || own_ms < due_ms)) due_ms = own_ms;
  }
  return due_ms;
}

static void run(void) {
  uint64_t now_ms = loop_now_ms();
  while (!time_to_stop(now_ms)) {
    if (host_patience_ms() == 0) host_flush();
    int due_ms = pump_all(now_ms);
    if (stop_at_ms != 0 && (due_ms < 0 || due_ms > 20)) due_ms = 20;
    if (due_ms > TICK_MS) due_ms = TICK_MS;
    int patience_ms = host_patience_ms();
    if (patience_ms > 0 && (due_ms < 0 || due_ms > patience_ms)) due_ms = patience_ms;
    bool drained = patience_ms == 0 && host_flush();
    /* What did not fit into the queue goes on as soon as the queue is empty again. */
    if (drained && host_data_was_full()) due_ms = 0;
    loop_turn(due_ms);
    uint64_t later_ms = loop_now_ms();
    uint64_t waited_ms = due_ms < 0 ? 0 : (uint64_t)due_ms;
    if (due_ms >= 0 && later_ms - now_ms > waited_ms + GAP_MS) {
      exec_shift_deadlines(later_ms - now_ms - waited_ms);
      listeners_shift_deadlines(later_ms - now_ms - waited_ms);
    }
    now_ms = later_ms;
  }
}

static int door_number(const char *text) {
  uint64_t number;
  if (!text_read_number(&text, &number) || *text != '\0' || number < 3 || number > 9) die("--door wants a descriptor from 3 to 9");
  return (int)number;
}

/* An engine that hands over a socket reads one byte of stdout, and then knows that somebody answers there. */
static void open_given_door(int door, int in_fd, int out_fd) {
  close(in_fd);
  doors_open_given(door);
  long wrote = write(out_fd, "\n", 1);
  (void)wrote;
  close(out_fd);
}

static int pid_number(const char *text) {
  uint64_t pid;
  if (!text_read_number(&text, &pid) || *text != '\0' || pid > INT32_MAX) die("relay and lend want porter's pid");
  return (int)pid;
}

static int tell_version(void) {
  char line[64];
  struct text text = {.data = line, .capacity = sizeof line};
  text_add(&text, "porter " PORTER_BUILD_ID " protocol ");
  text_number(&text, PROTOCOL_MAJOR);
  text_add(&text, ".");
  text_number(&text, PROTOCOL_MINOR);
  text_add(&text, "\n");
  return write(1, line, text.length) == (long)text.length ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc >= 2 && strcmp(argv[1], "relay") == 0) return doors_relay(pid_number(argc > 2 ? argv[2] : "1"));
  if (argc >= 2 && strcmp(argv[1], "lend") == 0) return lender_main(pid_number(argc > 2 ? argv[2] : "1"));
  if (argc >= 2 && strcmp(argv[1], "show") == 0) return show_main(argc - 2, argv + 2);
  if (argc >= 2 && strcmp(argv[1], "through") == 0) return through_main(argc - 2, argv + 2);
  int door = -1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--version") == 0) return tell_version();
    if (strncmp(argv[i], "--nofile=", 9) == 0) lower_limit(RLIMIT_NOFILE, argv[i] + 9);
    else if (strncmp(argv[i], "--nproc=", 8) == 0) lower_limit(RLIMIT_NPROC, argv[i] + 8);
    else if (strcmp(argv[i], "--shared-uid") == 0) share_uid();
    else if (strcmp(argv[i], "--borrow") == 0) borrow_prepare();
    else if (strncmp(argv[i], "--door=", 7) == 0) door = door_number(argv[i] + 7);
    /* For who looks at the processes from outside, an engine among them. */
    else if (strncmp(argv[i], "--name=", 7) == 0) continue;
    else if (strcmp(argv[i], "--exit-with-host") == 0) exit_with_host = true;
    else die("usage: porter [--version] [--nofile=N] [--nproc=N] [--shared-uid] [--borrow] [--door=FD] [--name=TEXT] [--exit-with-host] | porter relay [pid] | porter lend [pid] | porter show FILE|@PATH... | porter through HOST PORT");
  }
  static const struct host_events events = {.frame = on_frame, .replaced = on_host_replaced, .gone = on_host_gone};
  static struct watch signals;
  /* Its neighbours have the same user: without this they could trace it and open its descriptors. */
  victim_prepare();
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int in_fd = move_away(0), out_fd = move_away(1);
  seccomp_prepare(borrow_is_active());
  loop_open();
  open_signals(&signals);
  host_listen(&events);
  if (door >= 0) open_given_door(door, in_fd, out_fd);
  else doors_open(in_fd, out_fd);
  run();
  exec_end_all(true);
  /* As PID 1, leaving ends every other process of the sandbox. */
  return stop_at_ms != 0 ? 143 : 0;
}
