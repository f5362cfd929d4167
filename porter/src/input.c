#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"
#include "wire.h"

enum {
  PATIENT_MOST = 4 * 1024,
  PATIENT_MS = 5,
};

/* A host that has sent little on a connection does not wait for room: mostly the answer of whoever got it takes this along. */
static void pay_back(struct input *in, uint32_t length) {
  uint8_t payload[4];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, length);
  if (in->is_socket && length <= PATIENT_MOST) host_control_later(FRAME_CREDIT, in->stream, &w, PATIENT_MS);
  else host_control(FRAME_CREDIT, in->stream, &w);
}

static void free_bytes(struct input *in) {
  free(in->bytes);
  in->bytes = NULL;
  in->head = in->tail = 0;
}

static void finish(struct input *in) {
  /* End of transmission: a terminal in its usual mode gives its reader an end of file for it. */
  static const char end_of_transmission = 4;
  if (in->is_pty && in->watch.fd >= 0) {
    /* In the middle of a line the first one only hands over what is there. */
    long wrote = in->in_line ? write(in->watch.fd, &end_of_transmission, 1) : 0;
    wrote = write(in->watch.fd, &end_of_transmission, 1);
    (void)wrote;
  }
  if (in->is_socket) shutdown(in->watch.fd, SHUT_WR);
  loop_close(&in->watch);
  free_bytes(in);
}

/* Writes what is taken now and pays it back; how much that was, or -1 when nobody reads it any more. */
static long write_some(struct input *in, const uint8_t *bytes, size_t length) {
  size_t done = 0;
  while (done < length) {
    long wrote = write(in->watch.fd, bytes + done, length - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    done += (size_t)wrote;
  }
  int failure = done < length ? errno : EAGAIN;
  if (done > 0) {
    in->in_line = bytes[done - 1] != '\n';
    pay_back(in, (uint32_t)done);
  }
  if (failure == EAGAIN) return (long)done;
  in->failure = failure;
  if (!in->is_socket) pay_back(in, (uint32_t)(length - done));
  loop_close(&in->watch);
  free_bytes(in);
  return -1;
}

static void move(struct input *in) {
  long wrote = write_some(in, in->bytes + in->head, in->tail - in->head);
  if (wrote < 0) return;
  in->head += (size_t)wrote;
  if (in->head < in->tail) return;
  if (in->ending) finish(in);
  else free_bytes(in);
}

static void on_writable(struct watch *watch, uint32_t events) {
  (void)events;
  struct input *in = (struct input *)((char *)watch - offsetof(struct input, watch));
  if (in->head < in->tail) move(in);
}

void input_open(struct input *in, int fd, uint32_t stream, bool is_pty) {
  *in = (struct input){.watch.fd = -1, .stream = stream, .is_pty = is_pty};
  if (fd >= 0) loop_add(&in->watch, fd, EPOLLOUT | EPOLLET, on_writable);
}

void input_close(struct input *in) {
  loop_close(&in->watch);
  free_bytes(in);
}

void input_take(struct input *in, const uint8_t *payload, uint32_t length) {
  in->received += length;
  if (in->watch.fd < 0 || in->ending) {
    if (length > 0) pay_back(in, length);
    return;
  }
  if (length == 0) {
    in->ending = true;
    if (in->head == in->tail) finish(in);
    return;
  }
  size_t held = in->tail - in->head;
  if (held + length > INPUT_WINDOW) {
    host_violation("more input than it had credit for");
    return;
  }
  /* Mostly it is taken at once, and nothing has to be kept. */
  long wrote = held == 0 ? write_some(in, payload, length) : 0;
  if (wrote < 0 || (uint32_t)wrote == length) return;
  if (in->bytes == NULL) in->bytes = malloc(INPUT_WINDOW);
  if (in->bytes == NULL) {
    host_violation("no memory for input");
    return;
  }
  size_t left = length - (size_t)wrote;
  memmove(in->bytes, in->bytes + in->head, held);
  memcpy(in->bytes + held, payload + wrote, left);
  in->head = 0;
  in->tail = held + left;
  if (held > 0) move(in);
}

uint32_t input_room(const struct input *in) { return INPUT_WINDOW - (uint32_t)(in->tail - in->head); }
