#include "exec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "link.h"
#include "loop.h"
#include "spawn.h"
#include "wire.h"

enum {
  MAX_EXECS = 256,
  MAX_ARGUMENTS = 4096,
  EXEC_WITH_STDIN = 1,
  EXIT_OUTPUT_INCOMPLETE = 1,
  /* A process that outlives the main one may hold a pipe open for ever; this long its output is still waited for. */
  DRAIN_MS = 100,
};

struct output {
  struct watch watch;
  uint8_t type;
  bool readable;
};

struct exec {
  uint32_t stream; /* 0: free */
  pid_t pid;
  struct output out, err;
  struct watch in;
  uint32_t credit;
  uint8_t *stdin_bytes;
  size_t stdin_head, stdin_tail;
  bool stdin_closing;
  bool exited;
  int status;
  struct rusage usage;
  uint64_t drain_until_ms;
};

static struct exec execs[MAX_EXECS];
static uint32_t window;

void exec_set_window(uint32_t stream_window) { window = stream_window; }

static struct exec *find(uint32_t stream) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == stream) return e;
  }
  return NULL;
}

static struct exec *owner_of_out(struct watch *w) { return (struct exec *)((char *)w - offsetof(struct exec, out.watch)); }
static struct exec *owner_of_err(struct watch *w) { return (struct exec *)((char *)w - offsetof(struct exec, err.watch)); }

static void not_started(uint32_t stream, int failure) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)failure);
  write_text(&w, strerror(failure));
  link_control(FRAME_NOT_STARTED, stream, payload, (uint32_t)w.length);
}

/* Reads `count` strings into a NULL-ended vector of C strings; NULL when there are too many or one holds a NUL. */
static char **read_vector(struct reader *r) {
  uint32_t count = read_u32(r);
  if (r->bad || count > MAX_ARGUMENTS) return NULL;
  char **vector = calloc(count + 1, sizeof *vector);
  if (vector == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    struct bytes item = read_bytes(r);
    bool bad = r->bad || memchr(item.data, 0, item.length) != NULL;
    vector[i] = bad ? NULL : strndup((const char *)item.data, item.length);
    if (vector[i] == NULL) {
      r->bad = true;
      break;
    }
  }
  return vector;
}

static void free_vector(char **vector) {
  if (vector == NULL) return;
  for (char **item = vector; *item != NULL; item++) free(*item);
  free(vector);
}

static void on_stdout(struct watch *watch, uint32_t events) {
  (void)events;
  owner_of_out(watch)->out.readable = true;
}

static void on_stderr(struct watch *watch, uint32_t events) {
  (void)events;
  owner_of_err(watch)->err.readable = true;
}

static void on_stdin(struct watch *watch, uint32_t events);

void exec_request(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint32_t flags = read_u32(&r);
  struct bytes cwd = read_bytes(&r);
  char **argv = read_vector(&r);
  char **envp = argv == NULL ? NULL : read_vector(&r);
  char *directory = strndup((const char *)cwd.data, cwd.length);
  struct exec *e = find(0);
  int failure = 0;
  if (frame->stream == 0 || find(frame->stream) != NULL) failure = EEXIST;
  else if (argv == NULL || envp == NULL || directory == NULL || !reader_done(&r) || argv[0] == NULL) failure = EINVAL;
  else if (e == NULL) failure = EAGAIN;
  if (failure == 0) {
    struct spawn request = {.argv = argv, .envp = envp, .cwd = directory, .with_stdin = flags & EXEC_WITH_STDIN};
    struct spawned child;
    failure = spawn_start(&request, &child);
    if (failure == 0) {
      *e = (struct exec){.stream = frame->stream, .pid = child.pid, .credit = window, .in.fd = -1};
      e->out.type = FRAME_STDOUT;
      e->err.type = FRAME_STDERR;
      loop_add(&e->out.watch, child.out, EPOLLIN | EPOLLET, on_stdout);
      loop_add(&e->err.watch, child.err, EPOLLIN | EPOLLET, on_stderr);
      if (child.in >= 0) loop_add(&e->in, child.in, EPOLLOUT | EPOLLET, on_stdin);
      uint8_t payload[8];
      struct writer w = {.data = payload, .capacity = sizeof payload};
      write_u32(&w, (uint32_t)child.pid);
      link_control(FRAME_STARTED, e->stream, payload, (uint32_t)w.length);
    }
  }
  if (failure != 0) not_started(frame->stream, failure);
  free_vector(argv);
  free_vector(envp);
  free(directory);
}

static void stdin_write(struct exec *e) {
  while (e->in.fd >= 0 && e->stdin_head < e->stdin_tail) {
    long wrote = write(e->in.fd, e->stdin_bytes + e->stdin_head, e->stdin_tail - e->stdin_head);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) wrote = (long)(e->stdin_tail - e->stdin_head); /* nobody reads it any more */
    e->stdin_head += (size_t)wrote;
    uint8_t payload[4];
    struct writer w = {.data = payload, .capacity = sizeof payload};
    write_u32(&w, (uint32_t)wrote);
    link_control(FRAME_CREDIT, e->stream, payload, (uint32_t)w.length);
  }
  if (e->stdin_closing) loop_close(&e->in);
}

static void on_stdin(struct watch *watch, uint32_t events) {
  (void)events;
  stdin_write((struct exec *)((char *)watch - offsetof(struct exec, in)));
}

void exec_stdin(const struct frame *frame) {
  struct exec *e = find(frame->stream);
  if (frame->stream == 0 || e == NULL || e->in.fd < 0) return; /* it ended meanwhile */
  if (frame->length == 0) e->stdin_closing = true;
  else {
    if (e->stdin_bytes == NULL) e->stdin_bytes = malloc(EXEC_STDIN_WINDOW);
    if (e->stdin_bytes == NULL) die("out of memory");
    size_t queued = e->stdin_tail - e->stdin_head;
    if (queued + frame->length > EXEC_STDIN_WINDOW) die("the host sent more input than it had credit for");
    memmove(e->stdin_bytes, e->stdin_bytes + e->stdin_head, queued);
    memcpy(e->stdin_bytes + queued, frame->payload, frame->length);
    e->stdin_head = 0;
    e->stdin_tail = queued + frame->length;
  }
  stdin_write(e);
}

void exec_signal(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint32_t number = read_u32(&r);
  struct exec *e = find(frame->stream);
  if (!reader_done(&r) || number >= NSIG || frame->stream == 0 || e == NULL || e->exited) return;
  /* The program leads a session of its own, so its process group has its pid. */
  kill(-e->pid, (int)number);
}

void exec_credit(uint32_t stream, uint32_t bytes) {
  struct exec *e = find(stream);
  if (e != NULL) e->credit = bytes > UINT32_MAX - e->credit ? UINT32_MAX : e->credit + bytes;
}

void exec_reaped(pid_t pid, int status, const struct rusage *usage) {
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == 0 || e->exited || e->pid != pid) continue;
    e->exited = true;
    e->status = status;
    e->usage = *usage;
    e->drain_until_ms = loop_now_ms() + DRAIN_MS;
    return;
  }
}

/* False when there is more to read than the link has room for. */
static bool pump_output(struct exec *e, struct output *o) {
  while (o->watch.fd >= 0 && o->readable && e->credit > 0) {
    long got = link_send_from(o->watch.fd, o->type, e->stream, e->credit);
    if (got > 0) e->credit -= (uint32_t)got;
    else if (got == LINK_NO_ROOM) return false;
    else if (got == LINK_NO_CREDIT) return true; /* still readable; the credit's arrival wakes us */
    else {
      o->readable = false;
      if (got != LINK_EMPTY) loop_close(&o->watch);
    }
  }
  return true;
}

static uint64_t microseconds(struct timeval t) { return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec; }

/* False when the link has no room for the news yet. */
static bool finish(struct exec *e) {
  bool incomplete = e->out.watch.fd >= 0 || e->err.watch.fd >= 0;
  uint8_t payload[64];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, WIFSIGNALED(e->status) ? (uint32_t)WTERMSIG(e->status) : 0);
  write_u32(&w, WIFEXITED(e->status) ? (uint32_t)WEXITSTATUS(e->status) : 0);
  write_u64(&w, microseconds(e->usage.ru_utime));
  write_u64(&w, microseconds(e->usage.ru_stime));
  write_u64(&w, (uint64_t)e->usage.ru_maxrss * 1024);
  write_u32(&w, incomplete ? EXIT_OUTPUT_INCOMPLETE : 0);
  if (!link_ordered(FRAME_EXIT, e->stream, payload, (uint32_t)w.length)) return false;
  loop_close(&e->out.watch);
  loop_close(&e->err.watch);
  loop_close(&e->in);
  free(e->stdin_bytes);
  e->stream = 0;
  return true;
}

/* Over when the program is gone and each pipe is at its end, or was empty when the time for stragglers ran out. */
static bool output_over(const struct exec *e, uint64_t now_ms) {
  if (e->out.watch.fd < 0 && e->err.watch.fd < 0) return true;
  if (e->out.readable || e->err.readable) return false;
  return now_ms >= e->drain_until_ms;
}

int exec_pump(void) {
  int due_ms = -1;
  bool blocked = false;
  uint64_t now_ms = loop_now_ms();
  for (struct exec *e = execs; e < execs + MAX_EXECS; e++) {
    if (e->stream == 0) continue;
    if (!pump_output(e, &e->out) || !pump_output(e, &e->err)) blocked = true;
    if (!e->exited) continue;
    if (output_over(e, now_ms)) {
      if (!finish(e)) blocked = true;
    } else if (e->drain_until_ms > now_ms) {
      int left_ms = (int)(e->drain_until_ms - now_ms);
      if (due_ms < 0 || left_ms < due_ms) due_ms = left_ms;
    }
  }
  return blocked ? EXEC_BLOCKED : due_ms;
}
