#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "die.h"
#include "loop.h"

enum {
  /* The host never grants more than 512 KiB for a connection; the rest is headers and exit frames. */
  DATA_CAPACITY = 768 * 1024,
  CONTROL_CAPACITY = 256 * 1024,
  /* Above this the host is not reading: take no more of its requests until it does. */
  CONTROL_HIGH = 128 * 1024,
  READ_CHUNK = 32 * 1024,
};

struct queue {
  uint8_t *data;
  size_t head, tail, capacity;
};

static uint8_t data_bytes[DATA_CAPACITY];
static uint8_t control_bytes[CONTROL_CAPACITY];
static struct queue data = {.data = data_bytes, .capacity = sizeof data_bytes};
static struct queue control = {.data = control_bytes, .capacity = sizeof control_bytes};
/* The queue whose first frame is partly written, and how much of that frame is out already. */
static struct queue *partial;
static size_t partial_sent;

static struct watch in, out;
static struct decoder decoder;
static void (*deliver)(const struct frame *);
static void (*ended)(void);
static uint32_t epoch;
static uint32_t credit;
/* The host takes nothing more until its end of the pipe says so. */
static bool out_full;

/* Makes room at the end by moving what is queued to the front. */
static uint8_t *queue_space(struct queue *q, size_t needed) {
  if (q->capacity - q->tail < needed && q->head > 0) {
    memmove(q->data, q->data + q->head, q->tail - q->head);
    q->tail -= q->head;
    q->head = 0;
  }
  return q->capacity - q->tail < needed ? NULL : q->data + q->tail;
}

static void enqueue(struct queue *q, uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  uint8_t *space = queue_space(q, FRAME_HEADER + length);
  if (space == NULL) die("the host does not read");
  q->tail += frame_encode(space, type, epoch, stream, payload, length);
}

void link_control(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  enqueue(&control, type, stream, payload, length);
}

bool link_ordered(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  if (queue_space(&data, FRAME_HEADER + length) == NULL) return false;
  enqueue(&data, type, stream, payload, length);
  return true;
}

void link_start(uint32_t new_epoch, uint32_t connection_window) {
  epoch = new_epoch;
  credit = connection_window;
}

void link_add_credit(uint32_t bytes) { credit = bytes > UINT32_MAX - credit ? UINT32_MAX : credit + bytes; }

long link_send_from(int fd, uint8_t type, uint32_t stream, uint32_t most) {
  if (most > credit) most = credit;
  if (most > READ_CHUNK) most = READ_CHUNK;
  if (most == 0) return LINK_NO_CREDIT;
  uint8_t *space = queue_space(&data, FRAME_HEADER + most);
  if (space == NULL) return LINK_NO_ROOM;
  long got;
  do got = read(fd, space + FRAME_HEADER, most);
  while (got < 0 && errno == EINTR);
  if (got == 0) return LINK_END;
  if (got < 0) return errno == EAGAIN ? LINK_EMPTY : LINK_FAILED;
  credit -= (uint32_t)got;
  data.tail += frame_encode(space, type, epoch, stream, space + FRAME_HEADER, (uint32_t)got);
  return got;
}

static size_t first_frame_length(const struct queue *q) {
  const uint8_t *p = q->data + q->head + 12;
  return FRAME_HEADER + ((size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24);
}

static struct queue *next_queue(void) {
  if (partial != NULL) return partial;
  if (control.head < control.tail) return &control;
  return data.head < data.tail ? &data : NULL;
}

static void sent(struct queue *q, size_t length) {
  partial_sent += length;
  while (q->head < q->tail && partial_sent >= first_frame_length(q)) {
    partial_sent -= first_frame_length(q);
    q->head += first_frame_length(q);
  }
  partial = partial_sent > 0 ? q : NULL;
  if (q->head == q->tail) q->head = q->tail = 0;
}

bool link_flush(void) {
  struct queue *q;
  while (!out_full && (q = next_queue()) != NULL) {
    /* All that is queued goes out in one write, unless control frames wait for the next boundary. */
    bool yield = q == &data && control.head < control.tail;
    size_t length = (yield ? first_frame_length(q) : q->tail - q->head) - partial_sent;
    long wrote = write(out.fd, q->data + q->head + partial_sent, length);
    if (wrote >= 0) sent(q, (size_t)wrote);
    else if (errno != EINTR) out_full = true; /* or the host is gone: what is queued waits all the same */
  }
  loop_want(&in, control.tail - control.head > CONTROL_HIGH ? 0 : EPOLLIN);
  return next_queue() == NULL;
}

static void on_writable(struct watch *watch, uint32_t events) {
  (void)watch;
  (void)events;
  out_full = false;
}

static void on_readable(struct watch *watch, uint32_t events) {
  (void)events;
  size_t space;
  uint8_t *at = decoder_space(&decoder, &space);
  long got = read(watch->fd, at, space);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    die_errno("read from the host");
  }
  if (got == 0) {
    loop_close(watch);
    ended();
    return;
  }
  decoder_filled(&decoder, (size_t)got);
  struct frame frame;
  for (;;) {
    switch (decoder_next(&decoder, &frame)) {
      case DECODED_MORE:
        return;
      case DECODED_BAD:
        die("the host sent something that is not a frame");
      case DECODED_FRAME:
        deliver(&frame);
        decoder_drop(&decoder, &frame);
    }
  }
}

void link_open(int in_fd, int out_fd, void (*on_frame)(const struct frame *), void (*on_end)(void)) {
  deliver = on_frame;
  ended = on_end;
  fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
  fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
  loop_add(&in, in_fd, EPOLLIN, on_readable);
  loop_add(&out, out_fd, EPOLLOUT | EPOLLET, on_writable);
}
