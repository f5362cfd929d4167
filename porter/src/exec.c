/*
 * The life of an exec, from the request to the host's forgetting it. Long, because it is one state machine: what each frame,
 * each report of a supervisor and each moment may do depends on the same few flags. What can stand alone does: output, input,
 * ring, spawn, tree, request, numbers.
 */
#include "exec.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "borrow.h"
#include "descriptor.h"
#include "files.h"
#include "host.h"
#include "input.h"
#include "loop.h"
#include "notice.h"
#include "numbers.h"
#include "output.h"
#include "pace.h"
#include "request.h"
#include "spawn.h"
#include "tree.h"
#include "wire.h"

enum {
  MAX_EXECS = 256,
  /* A process that outlives the main one may hold a pipe open for ever; this long its output is still waited for. */
  DRAIN_MS = 100,
  DEFAULT_GRACE_MS = 5000,
  KILL_AGAIN_MS = 3,
  SUPERVISOR_PATIENCE_MS = 1000,
  /* How often the memory of a tree with a limit is looked at: see next_look_ms. */
  LOOK_MOST_MS = 100,
  LOOK_LEAST_MS = 2,
  LOOK_SHARE = 20,
  FASTEST_GROWTH_PER_MS = 8 * 1024 * 1024,
  TELL_START_MS = 3,
};

enum exit_flag {
  EXIT_INCOMPLETE = 1,
  EXIT_TIMED_OUT = 2,
  EXIT_MEMORY = 4,
  EXIT_KILLED = 8,
  EXIT_SUPERVISOR_LOST = 16,
};

enum exec_state { STATE_RUNNING = 1, STATE_EXITED = 2, STATE_LEFT_SOME = 3, STATE_FORGOTTEN = 4 };

enum channel { OUT, ERR, CHANNELS };

struct exec {
  uint32_t stream; /* 0: free */
  pid_t supervisor, pid; /* the supervisor: only while there is a report to come */
  struct watch report; /* fd -1: nothing of it is left */
  struct output output[CHANNELS];
  struct input input;
  struct share share;
  uint64_t started_ms;
  bool attached; /* to the present host: it asked for this exec, or asked for it again */
  bool started_told, exited, exit_told, forgotten;
  bool lost; /* the supervisor was killed: what it supervised hangs below porter itself */
  int failure; /* not 0: it was not started, and no host knows that yet */
  /* 0: never */
  uint64_t deadline_ms, kill_ms, drain_until_ms, sample_ms, supervisor_until_ms, tell_ms;
  uint32_t grace_ms;
  uint64_t memory_limit;
  int status;
  struct rusage usage;
  uint32_t flags, left, killed;
  /* What was written before the program ended is read in any case; what a process left behind goes on to write is not. */
  uint64_t drain_to[CHANNELS];
};

static struct exec execs[MAX_EXECS];

/* Neither its program nor anything that its program started is left. */
static bool is_gone(const struct exec *e) { return e->report.fd < 0 && !e->lost; }

static struct exec *find(uint32_t stream) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == stream) return e;
  }
  return NULL;
}

int exec_is_supervisor(pid_t pid) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream != 0 && e->report.fd >= 0 && e->supervisor == pid) return 1;
  }
  return 0;
}

/* What this exec has under way with the present host counts against the connection; it must not do so for ever. */
static void give_back_all(struct exec *e) {
  if (e->attached) share_end(&e->share);
}

static void free_exec(struct exec *e) {
  give_back_all(e);
  loop_close(&e->report);
  input_close(&e->input);
  for (int c = 0; c < CHANNELS; c++) output_close(&e->output[c]);
  e->stream = 0;
}

static void tell_not_started(uint32_t stream, int failure) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)failure);
  write_text(&w, strerror(failure));
  host_control(FRAME_NOT_STARTED, stream, &w);
}

static void tell_started(struct exec *e) {
  uint8_t payload[4];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)e->pid);
  host_control(FRAME_STARTED, e->stream, &w);
  e->started_told = true;
}

static void main_exited(struct exec *e, int status, bool left_some) {
  e->exited = true;
  e->status = status;
  e->drain_until_ms = loop_now_ms() + DRAIN_MS;
  for (int c = 0; c < CHANNELS; c++) {
    e->drain_to[c] = e->output[c].ring.end + output_waiting(&e->output[c]);
    output_look_again(&e->output[c]);
  }
  struct tree_count count;
  if (left_some && tree_count(e->supervisor, false, &count)) e->left = count.alive;
}

static int is_ours(pid_t pid) { return exec_is_supervisor(pid) || spawn_is_kept(pid) || files_is_worker(pid); }

/* Killed from inside: what it supervised hangs below porter itself as soon as the supervisor is reaped, and goes. */
static void supervisor_lost(struct exec *e) {
  /* Its descriptors were closed before its children got another parent, so wait until it is quite gone. It is about to
   * be, and nothing can stop it in that any more. */
  while (waitpid(e->supervisor, NULL, 0) < 0 && errno == EINTR) continue;
  e->lost = true;
  e->flags |= EXIT_SUPERVISOR_LOST;
  e->kill_ms = loop_now_ms();
  if (e->pid == 0) e->pid = e->supervisor; /* it may have started the program, and can no longer say */
  if (!e->exited) main_exited(e, SIGKILL, false);
}

static void on_report(struct watch *watch, uint32_t events) {
  (void)events;
  struct exec *e = (struct exec *)((char *)watch - offsetof(struct exec, report));
  for (;;) {
    struct spawn_report record;
    int given;
    long got = descriptor_receive(watch->fd, &record, sizeof record, &given);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != (long)sizeof record) {
      loop_close(watch);
      supervisor_lost(e);
      return;
    }
    if (given >= 0) borrow_listener(given);
    switch (record.event) {
      case SPAWN_STARTED:
        e->pid = record.value;
        e->tell_ms = loop_now_ms() + TELL_START_MS;
        break;
      case SPAWN_FAILED:
        e->failure = record.value;
        loop_close(watch);
        return;
      case SPAWN_EXITED:
        e->usage = record.usage;
        main_exited(e, record.value, record.left_some != 0);
        break;
      case SPAWN_OVER: {
        /* From here on the supervisor may be another exec's: nothing of this one names it any more. */
        int report = watch->fd;
        loop_release(watch);
        spawn_keep(e->supervisor, report);
        e->supervisor = 0;
        return;
      }
      default:
        break;
    }
  }
}

/*
 * When the tree could have reached its limit at the earliest, if it grew by as much as two processors write to new memory. So one that is far
 * below its limit costs little, and one that is near it is looked at every few milliseconds. A look takes longer the more processes there
 * are; together they take at most a twentieth of a processor.
 */
static uint64_t next_look_ms(uint64_t left_bytes, uint64_t last_used_us) {
  uint64_t wait_ms = left_bytes / FASTEST_GROWTH_PER_MS, least_ms = last_used_us * LOOK_SHARE / 1000;
  if (least_ms < LOOK_LEAST_MS) least_ms = LOOK_LEAST_MS;
  if (wait_ms < least_ms) wait_ms = least_ms;
  return wait_ms < LOOK_MOST_MS ? wait_ms : LOOK_MOST_MS;
}

static void start(uint32_t stream, const struct exec_wish *wish, int failure) {
  struct exec *e = find(0);
  struct spawned child;
  if (failure == 0 && e == NULL) failure = EAGAIN;
  if (failure == 0) failure = spawn_start(&wish->spawn, &child);
  if (failure != 0) {
    tell_not_started(stream, failure);
    return;
  }
  uint64_t now_ms = loop_now_ms();
  *e = (struct exec){
      .stream = stream,
      .supervisor = child.supervisor,
      .started_ms = now_ms,
      .attached = true,
      .share.trust = SHARE_FIRST_EXEC,
      .deadline_ms = wish->deadline_ms == 0 ? 0 : now_ms + wish->deadline_ms,
      .grace_ms = wish->grace_ms == 0 ? DEFAULT_GRACE_MS : wish->grace_ms,
      .memory_limit = wish->memory_limit,
      .sample_ms = wish->memory_limit == 0 ? 0 : now_ms + next_look_ms(wish->memory_limit, 0),
  };
  loop_add(&e->report, child.report, EPOLLIN, on_report);
  output_open(&e->output[OUT], child.out, FRAME_STDOUT, wish->spawn.pty);
  output_open(&e->output[ERR], child.err, FRAME_STDERR, false);
  input_open(&e->input, child.in, stream, wish->spawn.pty);
}

void exec_request(uint32_t stream, const uint8_t *payload, uint32_t length) {
  struct exec *known = find(stream);
  if (known != NULL && !known->forgotten) {
    /* Asked again, because it was not known whether it arrived: say how it stands. */
    give_back_all(known);
    for (int c = 0; c < CHANNELS; c++) output_resume(&known->output[c], known->output[c].ring.start);
    known->attached = true;
    known->started_told = known->exit_told = false;
    return;
  }
  struct exec_wish wish;
  int failure = known != NULL || number_is_buried(stream) ? EEXIST : exec_wish_read(&wish, payload, length);
  number_use(stream);
  start(stream, &wish, failure);
  if (failure != EEXIST) exec_wish_free(&wish);
}

static void request_kill(struct exec *e, uint32_t grace_ms, uint64_t now_ms) {
  uint64_t at_ms = now_ms + grace_ms;
  /* Without a look at the tree its head is told at least; what is left after the grace is killed in any case. */
  if (grace_ms > 0 && e->report.fd >= 0 && !tree_signal(e->supervisor, SIGTERM) && e->pid > 0) kill(-e->pid, SIGTERM);
  if (e->kill_ms == 0 || at_ms < e->kill_ms) e->kill_ms = at_ms;
}

static void on_acknowledge(struct exec *e, struct reader *r) {
  uint64_t out = read_u64(r), err = read_u64(r);
  bool ok = reader_done(r) && e->attached && output_acknowledge(&e->output[OUT], out, &e->share) &&
            output_acknowledge(&e->output[ERR], err, &e->share);
  if (!ok) host_violation("acknowledged what was not sent");
}

static void on_resume(struct exec *e, struct reader *r) {
  uint64_t out = read_u64(r), err = read_u64(r);
  give_back_all(e);
  if (!reader_done(r) || !output_resume(&e->output[OUT], out) || !output_resume(&e->output[ERR], err)) {
    host_violation("resumed from where nothing is kept");
    return;
  }
  e->attached = true;
  e->started_told = e->exit_told = false;
}

static void on_signal(struct exec *e, struct reader *r) {
  uint32_t number = read_u32(r);
  /* The program leads a session of its own, so its process group has its pid. */
  if (reader_done(r) && number > 0 && number < NSIG && e->pid > 0 && !e->exited) kill(-e->pid, (int)number);
}

static void on_resize(struct exec *e, struct reader *r) {
  struct winsize size = {.ws_row = read_u16(r), .ws_col = read_u16(r)};
  if (reader_done(r) && e->output[OUT].watch.fd >= 0) ioctl(e->output[OUT].watch.fd, TIOCSWINSZ, &size);
}

static void on_forget(struct exec *e) {
  if (!e->exit_told) {
    host_violation("forgot an exec before its exit was told");
    return;
  }
  e->forgotten = true;
}

bool exec_frame(const struct frame *frame) {
  struct exec *e = frame->stream == 0 ? NULL : find(frame->stream);
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  /* Processes that a forgotten exec left behind can still be killed. */
  if (e == NULL || (e->forgotten && frame->type != FRAME_KILL)) return false;
  if (e->failure != 0 && frame->type != FRAME_RESUME) return true; /* the host learns of it in a moment */
  switch (frame->type) {
    case FRAME_STDIN:
      pace_earn();
      input_take(&e->input, frame->payload, frame->length);
      break;
    case FRAME_ACK:
      on_acknowledge(e, &r);
      break;
    case FRAME_RESUME:
      on_resume(e, &r);
      break;
    case FRAME_SIGNAL:
      on_signal(e, &r);
      break;
    case FRAME_KILL: {
      uint32_t grace_ms = read_u32(&r);
      if (!reader_done(&r)) break;
      if (!e->exit_told) e->flags |= EXIT_KILLED;
      request_kill(e, grace_ms, loop_now_ms());
      break;
    }
    case FRAME_RESIZE:
      on_resize(e, &r);
      break;
    case FRAME_FORGET:
      on_forget(e);
      break;
    default:
      return false;
  }
  return true;
}

static uint32_t state_of(const struct exec *e) {
  if (e->forgotten) return STATE_FORGOTTEN;
  if (!e->exited) return STATE_RUNNING;
  return is_gone(e) ? STATE_EXITED : STATE_LEFT_SOME;
}

void exec_list(void) {
  enum { ROW = 4 * 4 + 8 * 6 };
  static uint8_t payload[4 + MAX_EXECS * ROW];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  uint32_t count = 0;
  write_u32(&w, 0);
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == 0 || (e->forgotten && is_gone(e))) continue;
    write_u32(&w, e->stream);
    write_u32(&w, (uint32_t)e->pid);
    write_u32(&w, state_of(e));
    for (int c = 0; c < CHANNELS; c++) {
      write_u64(&w, e->output[c].ring.start);
      write_u64(&w, e->output[c].ring.end);
    }
    write_u64(&w, e->input.received);
    write_u32(&w, input_room(&e->input));
    write_u64(&w, loop_now_ms() - e->started_ms);
    count++;
  }
  write_u32(&(struct writer){.data = payload, .capacity = 4}, count);
  host_control(FRAME_EXEC_LIST, 0, &w);
}

void exec_host_replaced(void) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    e->attached = e->started_told = e->exit_told = false;
    e->share = (struct share){.trust = SHARE_FIRST_EXEC};
    /* What was under way to the host before never arrived, as far as anyone knows. */
    for (int c = 0; c < CHANNELS; c++) e->output[c].sent = e->output[c].ring.start;
  }
}

void exec_shift_deadlines(uint64_t gap_ms) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    uint64_t *times[] = {&e->deadline_ms, &e->kill_ms, &e->drain_until_ms, &e->sample_ms, &e->supervisor_until_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
      if (*times[i] != 0) *times[i] += gap_ms;
    }
  }
}

static void keep_deadline(struct exec *e, uint64_t now_ms) {
  if (e->deadline_ms == 0 || now_ms < e->deadline_ms || e->exited) return;
  e->deadline_ms = 0;
  e->flags |= EXIT_TIMED_OUT;
  request_kill(e, e->grace_ms, now_ms);
}

static void keep_memory_limit(struct exec *e, uint64_t now_ms) {
  if (e->sample_ms == 0 || now_ms < e->sample_ms || is_gone(e)) return;
  struct tree_count count;
  uint64_t before_us = loop_used_us();
  tree_count(e->supervisor, true, &count);
  if (count.resident_bytes <= e->memory_limit) {
    e->sample_ms = now_ms + next_look_ms(e->memory_limit - count.resident_bytes, loop_used_us() - before_us);
    return;
  }
  e->flags |= EXIT_MEMORY;
  e->sample_ms = 0;
  request_kill(e, 0, now_ms);
}

static bool kill_all(struct exec *e, uint32_t *found) {
  if (e->lost) return tree_kill_strangers(is_ours, found);
  /* A supervisor that was stopped from inside could not reap. */
  kill(e->supervisor, SIGCONT);
  return tree_kill(e->supervisor, found);
}

static void keep_killing(struct exec *e, uint64_t now_ms) {
  /* Nothing is left to be killed: the end need not wait for the grace. */
  if (is_gone(e)) e->kill_ms = e->supervisor_until_ms = 0;
  if (e->kill_ms == 0 || now_ms < e->kill_ms) return;
  uint32_t found;
  bool whole = kill_all(e, &found);
  if (found > e->killed) e->killed = found;
  e->kill_ms = now_ms + KILL_AGAIN_MS;
  if (found > 0 || !whole) {
    e->supervisor_until_ms = 0;
    return;
  }
  if (e->lost) {
    e->kill_ms = 0;
    e->lost = false;
    notice(NOTICE_SUPERVISOR_LOST, e->killed, "a supervisor was killed");
    return;
  }
  /* A walk over /proc may miss one that is born while it goes on. The supervisor misses none: all are its children in the end. */
  if (e->supervisor_until_ms == 0) e->supervisor_until_ms = now_ms + SUPERVISOR_PATIENCE_MS;
}

/* All are dead, and still the supervisor says nothing: then it is not what it was. */
static void keep_supervisor(struct exec *e, uint64_t now_ms) {
  if (e->supervisor_until_ms == 0 || now_ms < e->supervisor_until_ms) return;
  e->supervisor_until_ms = 0;
  e->kill_ms = 0;
  if (e->report.fd >= 0) kill(e->supervisor, SIGKILL);
}

/* Everything that was there when the program ended was read, and the time for stragglers is up. */
static bool is_drained(const struct exec *e, int channel, uint64_t now_ms) {
  const struct output *o = &e->output[channel];
  if (output_at_end(o) || o->discarding) return true;
  return now_ms >= e->drain_until_ms && (!o->readable || o->ring.end >= e->drain_to[channel]);
}

/* Over when the program is gone, all that had to be killed is dead, and each channel is at its end or drained. */
static bool is_over(const struct exec *e, uint64_t now_ms) {
  return e->exited && e->kill_ms == 0 && is_drained(e, OUT, now_ms) && is_drained(e, ERR, now_ms);
}

static bool tell_exit(struct exec *e) {
  static const uint8_t size = 96;
  uint8_t payload[96];
  struct writer w = {.data = payload, .capacity = size};
  struct timeval user = e->usage.ru_utime, system = e->usage.ru_stime;
  write_u32(&w, WIFSIGNALED(e->status) ? (uint32_t)WTERMSIG(e->status) : 0);
  write_u32(&w, WIFEXITED(e->status) ? (uint32_t)WEXITSTATUS(e->status) : 0);
  write_u64(&w, (uint64_t)user.tv_sec * 1000000 + (uint64_t)user.tv_usec);
  write_u64(&w, (uint64_t)system.tv_sec * 1000000 + (uint64_t)system.tv_usec);
  write_u64(&w, (uint64_t)e->usage.ru_maxrss * 1024);
  write_u32(&w, e->flags);
  write_u32(&w, e->left);
  write_u32(&w, e->killed);
  write_u64(&w, e->output[OUT].ring.end);
  write_u64(&w, e->output[ERR].ring.end);
  return host_ordered(FRAME_EXIT, e->stream, &w);
}

static void finish(struct exec *e) {
  for (int c = 0; c < CHANNELS; c++) {
    if (output_at_end(&e->output[c]) || e->output[c].discarding) continue;
    e->flags |= EXIT_INCOMPLETE;
    output_discard(&e->output[c]);
  }
  input_close(&e->input);
  bool all_sent = output_all_sent(&e->output[OUT]) && output_all_sent(&e->output[ERR]);
  if (e->attached && e->started_told && all_sent && !e->exit_told) e->exit_told = tell_exit(e);
}

static void send_output(struct exec *e, uint64_t now_ms) {
  if (!e->attached || e->pid == 0) return;
  if (!e->started_told) {
    /* Most programs are over in a moment, and then their start and their end are told in one write. */
    bool quiet = e->output[OUT].ring.end == 0 && e->output[ERR].ring.end == 0;
    if (quiet && !e->exited && now_ms < e->tell_ms) return;
    tell_started(e);
  }
  for (int c = 0; c < CHANNELS; c++) output_send(&e->output[c], e->stream, &e->share);
}

static void sooner(int *due_ms, uint64_t at_ms, uint64_t now_ms) {
  if (at_ms == 0) return;
  int left_ms = at_ms <= now_ms ? 0 : at_ms - now_ms > 1000 ? 1000 : (int)(at_ms - now_ms);
  if (*due_ms < 0 || left_ms < *due_ms) *due_ms = left_ms;
}

/* Told only to a host that asked for it: another one does not know the number. Not buried: it never ran, so the same request
 * may be made again. */
static int pump_failed(struct exec *e) {
  if (!e->attached) return -1;
  tell_not_started(e->stream, e->failure);
  free_exec(e);
  return -1;
}

/* After the end of a program nothing waits: what it left behind is read for a moment only. */
static bool fill_output(struct exec *e) {
  bool held = false;
  for (int c = 0; c < CHANNELS; c++) {
    if (e->exited || pace_allows()) output_fill(&e->output[c], &e->share);
    else if (output_hold(&e->output[c])) held = true;
  }
  return !held;
}

static int pump(struct exec *e, uint64_t now_ms) {
  if (e->failure != 0) return pump_failed(e);
  keep_deadline(e, now_ms);
  keep_memory_limit(e, now_ms);
  keep_killing(e, now_ms);
  keep_supervisor(e, now_ms);
  int due_ms = fill_output(e) ? -1 : pace_wait_ms();
  send_output(e, now_ms);
  if (is_over(e, now_ms)) finish(e);
  else if (e->exited) sooner(&due_ms, e->drain_until_ms > now_ms ? e->drain_until_ms : 0, now_ms);
  sooner(&due_ms, e->exited ? 0 : e->deadline_ms, now_ms);
  sooner(&due_ms, e->kill_ms, now_ms);
  sooner(&due_ms, is_gone(e) ? 0 : e->sample_ms, now_ms);
  sooner(&due_ms, e->supervisor_until_ms, now_ms);
  if (e->attached && !e->started_told) sooner(&due_ms, e->tell_ms, now_ms);
  for (int c = 0; c < CHANNELS; c++) {
    if (e->output[c].discarding && e->output[c].readable) due_ms = 0;
  }
  return due_ms;
}

int exec_pump(uint64_t now_ms) {
  /* Each turn begins with another exec, so that none is always the last to find the queue full. */
  static uint32_t first;
  int due_ms = spawn_expire(now_ms);
  first = (first + 1) % MAX_EXECS;
  for (uint32_t i = 0; i < MAX_EXECS; i++) {
    struct exec *e = &execs[(first + i) % MAX_EXECS];
    if (e->stream == 0) continue;
    int own_ms = pump(e, now_ms);
    if (own_ms >= 0 && (due_ms < 0 || own_ms < due_ms)) due_ms = own_ms;
    if (!e->forgotten || !is_gone(e)) continue;
    number_bury(e->stream);
    free_exec(e);
  }
  return due_ms;
}

void exec_end_all(bool with_kill) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == 0 || e->report.fd < 0) continue;
    uint32_t found;
    if (with_kill) tree_kill(e->supervisor, &found);
    else tree_signal(e->supervisor, SIGTERM);
  }
}

bool exec_any_running(void) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream != 0 && !is_gone(e)) return true;
  }
  return false;
}

bool exec_any_untold(void) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream != 0 && e->attached && !e->exit_told) return true;
  }
  return false;
}
