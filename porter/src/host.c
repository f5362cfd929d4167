#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"
#include "text.h"

enum {
  /* Data that waits to be written. Small, so that control frames and other streams do not wait behind it for long. */
  DATA_CAPACITY = 192 * 1024,
  CONTROL_CAPACITY = 512 * 1024,
  /* Above this the host is not reading: take no more of its requests until it does. */
  CONTROL_HIGH = 128 * 1024,
  /* So much does not wait, however patient each part of it is. */
  PATIENT_MOST = 512,
};

struct queue {
  uint8_t *bytes;
  size_t head, tail, capacity;
};

static uint8_t data_bytes[DATA_CAPACITY];
static uint8_t control_bytes[CONTROL_CAPACITY];
static struct queue data = {.bytes = data_bytes, .capacity = sizeof data_bytes};
static struct queue control = {.bytes = control_bytes, .capacity = sizeof control_bytes};
/* The queue whose first frame is partly written, and how much of that frame is out already. */
static struct queue *partial;
static size_t partial_sent;

static const struct host_events *events;
static struct watch in = {.fd = -1}, out = {.fd = -1}, tie = {.fd = -1};
static struct decoder decoder;
/* Changes with each attach: a callback may replace the host while frames of the old one are being delivered. */
static uint32_t generation;
static uint32_t epoch;
static uint32_t window, under_way, stream_window;
static bool out_full, was_full;
/* Something is queued that does not wait; and until when the rest does. */
static bool in_a_hurry;
static uint64_t patient_until_ms;

bool host_present(void) { return out.fd >= 0; }
uint32_t host_epoch(void) { return epoch; }
uint32_t host_stream_window(void) { return stream_window; }
uint32_t host_window(void) { return window; }
uint32_t host_credit(void) { return host_present() ? window - under_way : 0; }
void host_spend(uint32_t bytes) { under_way += bytes; }
void host_give_back(uint64_t bytes) { under_way -= bytes > under_way ? under_way : (uint32_t)bytes; }

/* Makes room at the end by moving what is queued to the front. */
static uint8_t *queue_space(struct queue *q, size_t needed) {
  if (q->capacity - q->tail < needed && q->head > 0) {
    memmove(q->bytes, q->bytes + q->head, q->tail - q->head);
    q->tail -= q->head;
    q->head = 0;
  }
  return q->capacity - q->tail < needed ? NULL : q->bytes + q->tail;
}

static void empty(struct queue *q) { q->head = q->tail = 0; }

static void disconnect(void) {
  loop_close(&in);
  loop_close(&out);
  loop_close(&tie);
  empty(&data);
  empty(&control);
  partial = NULL;
  partial_sent = 0;
  decoder.filled = 0;
  out_full = false;
  in_a_hurry = false;
  patient_until_ms = 0;
  under_way = 0;
  generation++;
}

static void lose(void) {
  disconnect();
  events->gone();
}

void host_violation(const char *what) {
  text_complain("the host broke the protocol: ", what);
  lose();
}

static void put(struct queue *q, uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  q->tail += frame_encode(q->bytes + q->tail, type, epoch, stream, payload, length);
}

static void be_patient(uint32_t wait_ms) {
  uint64_t until_ms = loop_now_ms() + wait_ms;
  if (patient_until_ms == 0 || until_ms < patient_until_ms) patient_until_ms = until_ms;
}

int host_patience_ms(void) {
  size_t queued = control.tail - control.head + data.tail - data.head;
  if (queued == 0 || in_a_hurry || queued > PATIENT_MOST) return 0;
  uint64_t now_ms = loop_now_ms();
  return now_ms < patient_until_ms ? (int)(patient_until_ms - now_ms) : 0;
}

static void queue_control(uint8_t type, uint32_t stream, const struct writer *payload) {
  if (!host_present()) return;
  if (queue_space(&control, FRAME_HEADER + payload->length) == NULL) {
    host_violation("it asks and does not read the answers");
    return;
  }
  put(&control, type, stream, payload->data, (uint32_t)payload->length);
}

void host_control(uint8_t type, uint32_t stream, const struct writer *payload) {
  in_a_hurry = true;
  queue_control(type, stream, payload);
}

void host_control_later(uint8_t type, uint32_t stream, const struct writer *payload, uint32_t wait_ms) {
  be_patient(wait_ms);
  queue_control(type, stream, payload);
}

void host_empty(uint8_t type, uint32_t stream) {
  uint8_t nothing[1];
  host_control(type, stream, &(struct writer){.data = nothing});
}

uint8_t *host_data_begin(uint32_t length) {
  if (!host_present()) return NULL;
  uint8_t *space = queue_space(&data, FRAME_HEADER + length);
  if (space == NULL) was_full = true;
  return space == NULL ? NULL : space + FRAME_HEADER;
}

bool host_data_was_full(void) {
  bool before = was_full;
  was_full = false;
  return before;
}

void host_data_end(uint8_t type, uint32_t stream, uint32_t length) {
  in_a_hurry = true;
  put(&data, type, stream, data.bytes + data.tail + FRAME_HEADER, length);
}

static bool queue_ordered(uint8_t type, uint32_t stream, const struct writer *payload) {
  if (!host_present()) return false;
  if (queue_space(&data, FRAME_HEADER + payload->length) == NULL) {
    was_full = true;
    return false;
  }
  put(&data, type, stream, payload->data, (uint32_t)payload->length);
  return true;
}

bool host_ordered(uint8_t type, uint32_t stream, const struct writer *payload) {
  in_a_hurry = true;
  return queue_ordered(type, stream, payload);
}

bool host_ordered_later(uint8_t type, uint32_t stream, const struct writer *payload, uint32_t wait_ms) {
  be_patient(wait_ms);
  return queue_ordered(type, stream, payload);
}

static size_t first_frame_length(const struct queue *q) {
  struct reader r = {.at = q->bytes + q->head + 12, .end = q->bytes + q->head + FRAME_HEADER};
  return FRAME_HEADER + read_u32(&r);
}

static struct queue *next_queue(void) {
  if (partial != NULL) return partial;
  if (control.head < control.tail) return &control;
  return data.head < data.tail ? &data : NULL;
}

static void sent(struct queue *q, size_t length) {
  partial_sent += length;
  while (q->head < q->tail && partial_sent >= first_frame_length(q)) {
    size_t whole = first_frame_length(q);
    partial_sent -= whole;
    q->head += whole;
  }
  partial = partial_sent > 0 ? q : NULL;
  if (q->head == q->tail) empty(q);
}

bool host_flush(void) {
  struct queue *q;
  while (host_present() && !out_full && (q = next_queue()) != NULL) {
    /* All that is queued goes out in one write, unless control frames wait for the next boundary. */
    bool yield = q == &data && control.head < control.tail;
    size_t length = (yield ? first_frame_length(q) : q->tail - q->head) - partial_sent;
    long wrote = write(out.fd, q->bytes + q->head + partial_sent, length);
    if (wrote >= 0) sent(q, (size_t)wrote);
    else if (errno == EAGAIN) out_full = true;
    else if (errno != EINTR) lose();
  }
  if (in.fd >= 0) loop_want(&in, control.tail - control.head > CONTROL_HIGH ? 0 : EPOLLIN);
  if (next_queue() != NULL) return false;
  in_a_hurry = false;
  patient_until_ms = 0;
  return true;
}

static void on_writable(struct watch *watch, uint32_t ready) {
  (void)watch;
  (void)ready;
  out_full = false;
}

static void on_readable(struct watch *watch, uint32_t ready) {
  (void)ready;
  size_t space;
  uint8_t *at = decoder_space(&decoder, &space);
  long got = read(watch->fd, at, space);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    lose();
    return;
  }
  decoder_filled(&decoder, (size_t)got);
  uint32_t current = generation;
  size_t offset = 0;
  for (;;) {
    struct frame frame;
    enum decoded result = decoder_at(&decoder, offset, &frame);
    if (result == DECODED_MORE) break;
    if (result == DECODED_BAD) {
      host_violation("not a frame");
      return;
    }
    offset += FRAME_HEADER + frame.length;
    /* A frame of an earlier epoch was meant for an earlier host. */
    if (frame.epoch == epoch) events->frame(&frame);
    if (generation != current) return;
  }
  decoder_keep(&decoder, offset);
}

/* Nothing is ever said there. */
static void on_tie(struct watch *watch, uint32_t ready) {
  (void)watch;
  (void)ready;
  lose();
}

void host_never_came(void) { events->gone(); }

void host_listen(const struct host_events *callbacks) { events = callbacks; }

bool host_attach(int in_fd, int out_fd, int tie_fd, uint32_t new_epoch, uint32_t connection_window, uint32_t new_stream_window) {
  /* The two directions of a socket are one descriptor, which epoll takes only once. */
  int writable = in_fd == out_fd ? fcntl(out_fd, F_DUPFD_CLOEXEC, 0) : out_fd;
  if (writable < 0) return false;
  if (host_present()) {
    host_empty(FRAME_SUPERSEDED, 0);
    host_flush();
  }
  if (host_present()) disconnect();
  epoch = new_epoch;
  window = connection_window;
  stream_window = new_stream_window;
  loop_add(&in, in_fd, EPOLLIN, on_readable);
  loop_add(&out, writable, EPOLLOUT | EPOLLET, on_writable);
  if (tie_fd >= 0) loop_add(&tie, tie_fd, EPOLLIN, on_tie);
  events->replaced();
  return true;
}
