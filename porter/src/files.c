#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "borrow.h"
#include "descriptor.h"
#include "file_worker.h"
#include "host.h"
#include "input.h"
#include "kept.h"
#include "loop.h"
#include "numbers.h"
#include "outlet.h"
#include "quota.h"
#include "victim.h"
#include "wire.h"

enum {
  MAX_ACTIVE = 32,
  /* More than may be active: a process that is over, or does not die at once, keeps its place until it is reaped. */
  MAX_PLACES = 64,
  /* A worker that is told to stop removes its temporary file; one that does not within this time is killed. */
  STOP_MS = 200,
};

struct operation {
  uint32_t stream; /* 0: nobody waits for it any more */
  pid_t pid;       /* 0: reaped */
  struct watch status;
  struct outlet out;
  struct input in;
  bool status_ready, cancelled, takes_input, input_over;
  uint64_t kill_ms; /* 0: not told to stop */
};

static struct operation operations[MAX_PLACES];
static struct kept_pool kept;

static struct operation *find(uint32_t stream) {
  for (struct operation *o = operations; o < operations + MAX_PLACES; o++) {
    if (o->stream == stream) return o;
  }
  return NULL;
}

bool files_is_worker(pid_t pid) {
  for (struct operation *o = operations; o < operations + MAX_PLACES; o++) {
    if (o->pid == pid) return true;
  }
  return kept_has(&kept, pid);
}

void files_reaped(pid_t pid) {
  for (struct operation *o = operations; o < operations + MAX_PLACES; o++) {
    if (o->pid != pid) continue;
    o->pid = 0;
    o->kill_ms = 0;
  }
  kept_reaped(&kept, pid);
}

static void close_all(struct operation *o) {
  loop_close(&o->status);
  outlet_close(&o->out);
  input_close(&o->in);
}

/* The host was told. What was under way counts no more, and not a moment earlier: the host counts it until it reads DONE. */
static void over(struct operation *o) {
  close_all(o);
  outlet_over(&o->out);
  o->stream = 0;
}

/* The signal comes before the pipes are closed: an end of input that the host never sent must not be taken for one. */
static void stop(struct operation *o) {
  if (o->pid != 0) {
    kill(o->pid, SIGTERM);
    kill(o->pid, SIGCONT);
    o->kill_ms = loop_now_ms() + STOP_MS;
  }
  close_all(o);
}

static bool tell_done(uint32_t stream, uint32_t failure, const void *result, uint32_t length) {
  uint8_t payload[8 + WORKER_MAX_RESULT];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, failure);
  write_bytes(&w, result, length);
  return host_ordered(FRAME_DONE, stream, &w);
}

/* It never began, so nothing of its stream can be in the queue before this. */
static void refuse(uint32_t stream, int failure) {
  uint8_t payload[8];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)failure);
  write_u32(&w, 0);
  host_control(FRAME_DONE, stream, &w);
}

/* Before its answer, a worker may send the listener of its filter: one byte with a descriptor. */
static void take_listeners(int status) {
  char byte[2];
  int fd;
  while (recv(status, byte, sizeof byte, MSG_PEEK) == 1 && descriptor_receive(status, byte, 1, &fd) == 1) {
    if (fd >= 0) borrow_listener(fd);
  }
}

static void on_status(struct watch *watch, uint32_t events) {
  (void)events;
  if (borrow_is_active()) take_listeners(watch->fd);
  ((struct operation *)((char *)watch - offsetof(struct operation, status)))->status_ready = true;
}

static struct operation *free_place(void) {
  uint32_t active = 0;
  struct operation *place = NULL;
  for (struct operation *o = operations; o < operations + MAX_PLACES; o++) {
    if (o->stream != 0) active++;
    else if (o->pid == 0) place = o;
  }
  return active < MAX_ACTIVE ? place : NULL;
}

static void close_pair(int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0) close(pair[1]);
}

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, O_NONBLOCK); }

static int start(struct operation *o, uint32_t stream, const uint8_t *payload, uint32_t length) {
  int status[2] = {-1, -1}, in[2] = {-1, -1}, out[2] = {-1, -1};
  uint32_t needs = file_worker_needs(payload, length);
  bool made = ((needs & WORKER_TAKES_DATA) == 0 || pipe2(in, O_CLOEXEC) == 0) &&
              ((needs & WORKER_GIVES_DATA) == 0 || pipe2(out, O_CLOEXEC) == 0);
  if (made && (quota_is_last(in[1]) || quota_is_last(out[1]))) {
    made = false;
    errno = EMFILE;
  }
  struct kept_task task = {payload, length, in[0] >= 0 ? &in[0] : &out[1], needs == 0 ? 0 : 1};
  pid_t pid = -1;
  if (made && !kept_take(&kept, &task, &pid, &status[0])) {
    made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status) == 0;
    if (made && quota_is_last(status[1])) {
      made = false;
      errno = EMFILE;
    }
    pid = made ? victim_fork() : -1;
    if (pid == 0) file_worker((int[]){status[1], in[0], out[1]}, payload, length);
  }
  if (pid < 0) {
    int failure = errno;
    close_pair(status);
    close_pair(in);
    close_pair(out);
    return failure;
  }
  if (status[1] >= 0) close(status[1]);
  if (in[0] >= 0) close(in[0]);
  if (out[1] >= 0) close(out[1]);
  *o = (struct operation){.stream = stream, .pid = pid, .takes_input = in[1] >= 0, .out.watch.fd = -1};
  set_nonblocking(status[0]);
  loop_add(&o->status, status[0], EPOLLIN | EPOLLET, on_status);
  if (in[1] >= 0) set_nonblocking(in[1]);
  input_open(&o->in, in[1], stream, false);
  if (out[0] < 0) return 0;
  set_nonblocking(out[0]);
  outlet_open(&o->out, out[0], stream, FRAME_DATA);
  return 0;
}

void files_request(uint32_t stream, const uint8_t *payload, uint32_t length) {
  if (find(stream) != NULL) {
    host_violation("a stream number that is in use");
    return;
  }
  number_use(stream);
  struct operation *place = free_place();
  int failure = place == NULL ? EAGAIN : start(place, stream, payload, length);
  if (failure != 0) refuse(stream, failure);
}

/* The worker takes the end of its pipe for the end of the data only with this word: porter may also just have died. */
static void tell_input_over(struct operation *o) {
  if (!o->input_over || !o->takes_input || o->in.watch.fd >= 0) return;
  o->takes_input = false;
  send(o->status.fd, "E", 1, MSG_NOSIGNAL);
}

bool files_frame(const struct frame *frame) {
  struct operation *o = frame->stream == 0 ? NULL : find(frame->stream);
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  if (o == NULL) return false;
  switch (frame->type) {
    case FRAME_STDIN:
      if (frame->length == 0) o->input_over = true;
      input_take(&o->in, frame->payload, frame->length);
      break;
    case FRAME_CREDIT: {
      uint32_t bytes = read_u32(&r);
      if (reader_done(&r)) outlet_credit(&o->out, bytes);
      break;
    }
    case FRAME_CANCEL:
      if (!o->cancelled) stop(o);
      o->cancelled = true;
      break;
    default:
      return false;
  }
  return true;
}

void files_host_replaced(void) {
  for (struct operation *o = operations; o < operations + MAX_PLACES; o++) {
    if (o->stream == 0) continue;
    if (!o->cancelled) stop(o);
    o->stream = 0;
  }
}

static void keep_worker(struct operation *o) {
  char read_already;
  int socket = o->status.fd;
  loop_release(&o->status);
  recv(socket, &read_already, 1, 0);
  kept_put(&kept, o->pid, socket);
  o->pid = 0;
}

static void finish(struct operation *o) {
  uint8_t record[WORKER_MAX_RECORD];
  /* Only looked at, and so still there if the host's queue is full now. */
  long got;
  do got = recv(o->status.fd, record, sizeof record, MSG_PEEK);
  /* A worker that failed early never read that its input was over, which shows as a reset, once, before its answer. */
  while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) {
    o->status_ready = false;
    return;
  }
  struct reader r = {.at = record, .end = record + (got < WORKER_HEAD ? 0 : got)};
  uint32_t failure = got < WORKER_HEAD ? EIO : read_u32(&r);
  bool stays = got >= WORKER_HEAD && read_u32(&r) != 0;
  if (!tell_done(o->stream, failure, r.at, (uint32_t)(r.end - r.at))) return;
  if (stays) keep_worker(o);
  over(o);
}

static void pump(struct operation *o) {
  if (o->cancelled) {
    if (tell_done(o->stream, ECANCELED, "", 0)) over(o);
    return;
  }
  tell_input_over(o);
  outlet_pump(&o->out);
  if (o->status_ready && outlet_at_end(&o->out)) finish(o);
}

int files_pump(uint64_t now_ms) {
  /* Each turn begins with another one, so that none is always the last to find the queue full. */
  static uint32_t first;
  int due_ms = kept_expire(&kept, now_ms);
  first = (first + 1) % MAX_PLACES;
  for (uint32_t i = 0; i < MAX_PLACES; i++) {
    struct operation *o = &operations[(first + i) % MAX_PLACES];
    if (o->stream != 0) pump(o);
    if (o->kill_ms == 0) continue;
    if (now_ms >= o->kill_ms) {
      kill(o->pid, SIGKILL);
      o->kill_ms = 0;
    } else {
      int left_ms = (int)(o->kill_ms - now_ms);
      if (due_ms < 0 || left_ms < due_ms) due_ms = left_ms;
    }
  }
  return due_ms;
}
