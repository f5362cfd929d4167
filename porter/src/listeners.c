#include "listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dns.h"
#include "host.h"
#include "loop.h"
#include "numbers.h"
#include "quota.h"
#include "sockets.h"
#include "streams.h"
#include "tunnels.h"
#include "wire.h"

enum {
  MAX_LISTENERS = 64,
  DESCRIPTOR_PART = 16,
  /* Per listener and turn, so that a flood of connections is not all that happens. */
  ACCEPT_MOST = 16,
  /* When there are no descriptors, not even for a moment. */
  PAUSE_MS = 100,
};

struct listener {
  uint32_t stream, kind;
  struct address address;
  struct bytes text; /* the address as the host wrote it */
  struct watch watch;
  struct dns *dns; /* kind 3: instead of the watch */
  bool told;       /* the present host knows of it */
  bool readable, closing;
  uint64_t again_ms;
  dev_t device;
  ino_t inode;
  uint8_t bytes[];
};

static struct listener *listeners[MAX_LISTENERS];
static uint32_t count;
/* Given up for a moment to take, and refuse, a connection when there is no other descriptor. */
static int spare = -1;

static struct listener *find(uint32_t stream) {
  for (uint32_t i = 0; i < count; i++) {
    if (listeners[i]->stream == stream) return listeners[i];
  }
  return NULL;
}

static void set_told(struct listener *l, bool told) {
  l->told = told;
  if (l->dns != NULL) l->dns->told = told;
}

static void tell_failed(uint32_t stream, int failure) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u32(&w, (uint32_t)failure);
  write_text(&w, strerror(failure));
  host_control(FRAME_FAILED, stream, &w);
}

static void tell_listening(struct listener *l) {
  uint8_t payload[2];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u16(&w, address_port(&l->address));
  set_told(l, true);
  host_control(FRAME_LISTENING, l->stream, &w);
}

static void on_connection(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct listener *)((char *)watch - offsetof(struct listener, watch)))->readable = true;
}

static int open_listener(struct listener *l) {
  struct stat info;
  if (l->kind == ADDRESS_DNS) return dns_open(&l->dns, l->stream, &l->address);
  int fd = socket_bind(&l->address, SOCK_STREAM);
  if (fd < 0) return -fd;
  if (l->kind == ADDRESS_UNIX && lstat(l->address.un.sun_path, &info) == 0) {
    l->device = info.st_dev;
    l->inode = info.st_ino;
  }
  loop_add(&l->watch, fd, EPOLLIN | EPOLLET, on_connection);
  return 0;
}

static void close_listener(struct listener *l) {
  struct stat info;
  loop_close(&l->watch);
  if (l->dns != NULL) dns_close(l->dns);
  l->dns = NULL;
  /* Only what was put there: something else may have the name by now. */
  const char *path = l->address.un.sun_path;
  if (l->kind != ADDRESS_UNIX || l->inode == 0 || lstat(path, &info) != 0) return;
  if (info.st_dev == l->device && info.st_ino == l->inode) unlink(path);
}

static int add(uint32_t stream, uint32_t kind, struct bytes text, uint16_t port) {
  struct address address;
  int failure = address_read(&address, kind, text, port);
  if (failure != 0) return failure;
  if (spare < 0) spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct listener *l = count < quota(MAX_LISTENERS, DESCRIPTOR_PART) ? malloc(sizeof *l + text.length) : NULL;
  if (l == NULL) return EAGAIN;
  *l = (struct listener){.stream = stream, .kind = kind, .address = address, .watch.fd = -1};
  memcpy(l->bytes, text.data, text.length);
  l->text = (struct bytes){.data = l->bytes, .length = text.length};
  failure = open_listener(l);
  if (failure != 0) {
    free(l);
    return failure == EMFILE || failure == ENFILE ? EAGAIN : failure;
  }
  listeners[count++] = l;
  tell_listening(l);
  return 0;
}

static void on_listen(const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint32_t kind = read_u32(&r);
  struct bytes text = read_bytes(&r);
  uint16_t port = read_u16(&r);
  if (!reader_done(&r) || !stream_is_hosts(frame->stream)) {
    host_violation("a listen that cannot be");
    return;
  }
  number_use(frame->stream);
  struct listener *known = find(frame->stream);
  if (known != NULL && !known->closing) {
    /* Asked again, because it was not known whether it arrived. */
    tell_listening(known);
    return;
  }
  int failure = known != NULL ? EEXIST : add(frame->stream, kind, text, port);
  if (failure != 0) tell_failed(frame->stream, failure);
}

static void on_unlisten(uint32_t stream) {
  struct listener *l = find(stream);
  if (l == NULL || l->closing) return;
  close_listener(l);
  l->closing = true;
}

static void list(void) {
  enum { ROW = 4 + 4 + 4 + sizeof(struct sockaddr_un) + 2 };
  static uint8_t payload[4 + MAX_LISTENERS * ROW];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  uint32_t rows = 0;
  write_u32(&w, 0);
  for (uint32_t i = 0; i < count; i++) {
    struct listener *l = listeners[i];
    if (l->closing) continue;
    write_u32(&w, l->stream);
    write_u32(&w, l->kind);
    write_bytes(&w, l->text.data, l->text.length);
    write_u16(&w, address_port(&l->address));
    set_told(l, true);
    rows++;
  }
  write_u32(&(struct writer){.data = payload, .capacity = 4}, rows);
  host_control(FRAME_LISTENER_LIST, 0, &w);
}

bool listeners_frame(const struct frame *frame) {
  switch (frame->type) {
    case FRAME_LISTEN:
      on_listen(frame);
      return true;
    case FRAME_UNLISTEN:
      on_unlisten(frame->stream);
      return true;
    case FRAME_LISTENERS:
      list();
      return true;
    case FRAME_ANSWER:
      dns_answer(frame);
      return true;
    default:
      return false;
  }
}

void listeners_host_gone(void) {
  for (uint32_t i = 0; i < count; i++) set_told(listeners[i], false);
  dns_host_gone();
}

void listeners_shift_deadlines(uint64_t gap_ms) { dns_shift_deadlines(gap_ms); }

/* No descriptor is left: the connection is taken with the spare one and refused, else it would wake the loop for ever. */
static void refuse_one(struct listener *l, int failure, uint64_t now_ms) {
  if (spare >= 0) close(spare);
  int fd = accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) socket_abort(fd);
  else if (errno == EAGAIN) l->readable = false; /* the kernel looks for a descriptor before it looks for a connection */
  else l->again_ms = now_ms + PAUSE_MS;
  spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  quota_exceeded(failure, "no descriptor for a connection");
}

static void accept_one(struct listener *l, bool wanted, uint64_t now_ms) {
  struct address peer = {.length = sizeof(struct sockaddr_un)};
  int fd = accept4(l->watch.fd, &peer.any, &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    int failure = wanted ? tunnels_accepted(fd, l->stream, &peer) : 0;
    if (!wanted || failure != 0) socket_abort(fd);
    if (failure != 0) quota_exceeded(failure, "too many connections");
  } else if (errno == EAGAIN) l->readable = false;
  else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) refuse_one(l, errno, now_ms);
}

static int pump(struct listener *l, uint64_t now_ms) {
  if (l->dns != NULL) return dns_pump_listener(l->dns, now_ms);
  for (int i = 0; l->readable && i < ACCEPT_MOST; i++) {
    if (now_ms < l->again_ms) return (int)(l->again_ms - now_ms);
    bool wanted = host_present() && l->told;
    if (wanted && host_data_begin(ACCEPTED_MOST) == NULL) return -1;
    accept_one(l, wanted, now_ms);
  }
  return l->readable ? 0 : -1;
}

static bool is_over(const struct listener *l) {
  uint8_t nothing[1];
  /* Among the data, so that every connection of it was told before. */
  return l->closing && (!host_present() || host_ordered(FRAME_UNLISTENED, l->stream, &(struct writer){.data = nothing}));
}

int listeners_pump(uint64_t now_ms) {
  static uint32_t first;
  int due_ms = -1;
  first++;
  for (uint32_t i = 0, length = count; i < length; i++) {
    struct listener *l = listeners[(first + i) % length];
    int own_ms = l->closing ? -1 : pump(l, now_ms);
    if (own_ms >= 0 && (due_ms < 0 || own_ms < due_ms)) due_ms = own_ms;
  }
  /* After the listeners, which bring the questions. */
  int dns_ms = dns_pump(now_ms);
  if (dns_ms >= 0 && (due_ms < 0 || dns_ms < due_ms)) due_ms = dns_ms;
  for (uint32_t i = 0; i < count;) {
    if (!is_over(listeners[i])) {
      i++;
      continue;
    }
    free(listeners[i]);
    listeners[i] = listeners[--count];
  }
  return due_ms;
}
