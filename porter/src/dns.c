#include "dns.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "host.h"
#include "quota.h"
#include "servfail.h"
#include "streams.h"
#include "wire.h"

enum {
  MAX_QUESTIONS = 256,
  MAX_CLIENTS = 32,
  DESCRIPTOR_PART = 32,
  QUESTION_MOST = 4096,
  ANSWER_MOST = 65535,
  PREFIX = 2, /* over TCP each message has its length before it */
  PATIENCE_MS = 10 * 1000,
  IDLE_MS = 10 * 1000,
  /* Per turn, so that a flood of questions is not all that happens. */
  TAKE_MOST = 32,
  PORT_TRIES = 16,
};

/* A TCP connection. */
struct client {
  struct watch watch;
  struct dns *dns; /* NULL: to be freed */
  bool readable, ended;
  uint32_t waiting; /* questions of it that are not answered */
  uint64_t until_ms;
  uint8_t in[PREFIX + QUESTION_MOST];
  size_t filled;
  uint8_t *out; /* answers that the client did not take yet, or NULL */
  size_t head, tail;
};

struct question {
  uint32_t stream; /* 0: not yet sent to the host */
  struct dns *dns; /* NULL: answered already; the number is the host's to give back, by its answer */
  struct client *client;
  struct address peer;
  uint64_t until_ms;
  uint16_t length;
  uint8_t message[];
};

/* Both dense: the first `..._count` are there. */
static struct question *questions[MAX_QUESTIONS];
static struct client *clients[MAX_CLIENTS];
static uint32_t question_count, client_count;

static void drop_client(struct client *c, bool with_reset) {
  if (with_reset) socket_will_reset(c->watch.fd);
  loop_close(&c->watch);
  free(c->out);
  c->out = NULL;
  c->dns = NULL;
  for (uint32_t i = 0; i < question_count; i++) {
    if (questions[i]->client == c) questions[i]->client = NULL, questions[i]->dns = NULL;
  }
}

static void flush_client(struct client *c) {
  while (c->head < c->tail) {
    long wrote = write(c->watch.fd, c->out + c->head, c->tail - c->head);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) {
      drop_client(c, false);
      return;
    }
    c->head += (size_t)wrote;
  }
  free(c->out);
  c->out = NULL;
  c->head = c->tail = 0;
}

static void send_to_client(struct client *c, const uint8_t *message, size_t length) {
  enum { OUT_MOST = 8 * (PREFIX + ANSWER_MOST) };
  if (c->out != NULL) flush_client(c);
  if (c->dns == NULL) return;
  size_t held = c->tail - c->head;
  uint8_t *larger = held + PREFIX + length > OUT_MOST ? NULL : malloc(held + PREFIX + length);
  if (larger == NULL) { /* it asks and does not read */
    drop_client(c, true);
    return;
  }
  if (held > 0) memcpy(larger, c->out + c->head, held);
  larger[held] = (uint8_t)(length >> 8);
  larger[held + 1] = (uint8_t)length;
  memcpy(larger + held + PREFIX, message, length);
  free(c->out);
  c->out = larger;
  c->head = 0;
  c->tail = held + PREFIX + length;
  c->until_ms = loop_now_ms() + IDLE_MS;
  flush_client(c);
}

static void reply(struct dns *dns, struct client *c, const struct address *peer, const uint8_t *message, size_t length) {
  if (c != NULL) send_to_client(c, message, length);
  /* One that cannot be sent is lost, as any datagram may be. */
  else sendto(dns->udp.fd, message, length, 0, &peer->any, peer->length);
}

static void reply_servfail(struct dns *dns, struct client *c, const struct address *peer, const uint8_t *message,
                           size_t length) {
  uint8_t answer[SERVFAIL_MOST];
  reply(dns, c, peer, answer, servfail(answer, message, length));
}

/* Answers it, if anyone still waits. The question stays until the host has answered too, or never had it. */
static void settle(struct question *q, const uint8_t *message, size_t length) {
  struct dns *dns = q->dns;
  struct client *c = q->client;
  if (dns == NULL) return;
  q->dns = NULL;
  q->client = NULL;
  if (c != NULL) c->waiting--;
  if (length > 0) reply(dns, c, &q->peer, message, length);
  else reply_servfail(dns, c, &q->peer, q->message, q->length);
}

static void remove_question(uint32_t index) {
  free(questions[index]);
  questions[index] = questions[--question_count];
}

static bool is_question(const uint8_t *message, size_t length) {
  return length >= DNS_HEADER && length <= QUESTION_MOST && (message[2] & 0x80) == 0;
}

static void take(struct dns *dns, struct client *c, const struct address *peer, const uint8_t *message, size_t length,
                 uint64_t now_ms) {
  bool room = host_present() && dns->told && question_count < MAX_QUESTIONS;
  struct question *q = room ? malloc(sizeof *q + length) : NULL;
  if (q == NULL) {
    reply_servfail(dns, c, peer, message, length);
    return;
  }
  *q = (struct question){.dns = dns, .client = c, .until_ms = now_ms + PATIENCE_MS, .length = (uint16_t)length};
  if (c == NULL) q->peer = *peer;
  else c->waiting++;
  memcpy(q->message, message, length);
  questions[question_count++] = q;
}

static bool ask_host(struct question *q) {
  enum { FIELDS = 12 };
  uint8_t *space = host_data_begin(FIELDS + QUESTION_MOST);
  if (space == NULL) return false;
  /* Numbered only now, so that the numbers arrive in order. */
  q->stream = streams_next();
  struct writer w = {.data = space, .capacity = FIELDS + QUESTION_MOST};
  write_u32(&w, q->dns->stream);
  write_u32(&w, q->client == NULL ? 1 : 2);
  write_bytes(&w, q->message, q->length);
  host_data_end(FRAME_QUESTION, q->stream, (uint32_t)w.length);
  return true;
}

void dns_answer(const struct frame *frame) {
  for (uint32_t i = 0; i < question_count; i++) {
    if (questions[i]->stream != frame->stream || frame->stream == 0) continue;
    size_t length = frame->length > ANSWER_MOST ? 0 : frame->length;
    settle(questions[i], frame->payload, length);
    remove_question(i);
    return;
  }
}

void dns_host_gone(void) {
  while (question_count > 0) {
    settle(questions[0], NULL, 0);
    remove_question(0);
  }
}

void dns_shift_deadlines(uint64_t gap_ms) {
  for (uint32_t i = 0; i < question_count; i++) questions[i]->until_ms += gap_ms;
  for (uint32_t i = 0; i < client_count; i++) clients[i]->until_ms += gap_ms;
}

static void on_udp(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct dns *)((char *)watch - offsetof(struct dns, udp)))->udp_readable = true;
}

static void on_tcp(struct watch *watch, uint32_t events) {
  (void)events;
  ((struct dns *)((char *)watch - offsetof(struct dns, tcp)))->tcp_readable = true;
}

int dns_open(struct dns **result, uint32_t stream, struct address *at) {
  uint16_t wanted = address_port(at);
  int udp = -1, tcp = -1;
  /* A port that UDP has free may be taken for TCP: where any will do, another is tried. */
  for (int i = 0; i < (wanted == 0 ? PORT_TRIES : 1); i++) {
    address_set_port(at, wanted);
    udp = socket_bind(at, SOCK_DGRAM);
    if (udp < 0) return -udp;
    tcp = socket_bind(at, SOCK_STREAM);
    if (tcp >= 0) break;
    close(udp);
    if (tcp != -EADDRINUSE) break;
  }
  if (tcp < 0) return -tcp;
  struct dns *dns = malloc(sizeof *dns);
  if (dns == NULL) {
    close(udp);
    close(tcp);
    return EAGAIN;
  }
  *dns = (struct dns){.stream = stream};
  loop_add(&dns->udp, udp, EPOLLIN | EPOLLET, on_udp);
  loop_add(&dns->tcp, tcp, EPOLLIN | EPOLLET, on_tcp);
  *result = dns;
  return 0;
}

void dns_close(struct dns *dns) {
  for (uint32_t i = question_count; i-- > 0;) {
    if (questions[i]->dns != dns) continue;
    settle(questions[i], NULL, 0);
    if (questions[i]->stream == 0) remove_question(i);
  }
  for (uint32_t i = 0; i < client_count; i++) {
    if (clients[i]->dns == dns) drop_client(clients[i], false);
  }
  loop_close(&dns->udp);
  loop_close(&dns->tcp);
  free(dns);
}

static void take_datagram(struct dns *dns, uint64_t now_ms) {
  static uint8_t packet[QUESTION_MOST + 1];
  struct address peer = {.length = sizeof(struct sockaddr_in6)};
  long got = recvfrom(dns->udp.fd, packet, sizeof packet, 0, &peer.any, &peer.length);
  if (got < 0 && errno == EAGAIN) dns->udp_readable = false;
  else if (got > 0 && is_question(packet, (size_t)got)) take(dns, NULL, &peer, packet, (size_t)got, now_ms);
}

static void on_client(struct watch *watch, uint32_t events) {
  struct client *c = (struct client *)((char *)watch - offsetof(struct client, watch));
  if ((events & ~(uint32_t)EPOLLOUT) != 0) c->readable = true;
  flush_client(c);
}

static void take_client(struct dns *dns, uint64_t now_ms) {
  int fd = accept4(dns->tcp.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    /* Also when there is no descriptor: whoever asked tries again, and that wakes this. */
    if (errno == EAGAIN || errno == EMFILE || errno == ENFILE) dns->tcp_readable = false;
    if (errno != EAGAIN) quota_exceeded(errno, "no descriptor for DNS over TCP");
    return;
  }
  bool room = client_count < quota(MAX_CLIENTS, DESCRIPTOR_PART) && !quota_is_last(fd);
  struct client *c = room ? malloc(sizeof *c) : NULL;
  if (c == NULL) {
    socket_abort(fd);
    quota_exceeded(EAGAIN, "too many DNS connections");
    return;
  }
  *c = (struct client){.dns = dns, .until_ms = now_ms + IDLE_MS};
  socket_hurry(fd);
  loop_add(&c->watch, fd, EPOLLIN | EPOLLOUT | EPOLLET, on_client);
  clients[client_count++] = c;
}

/* Programs ask twice for a name, and many of them at once: what finds no room stays in the socket until an answer makes some. */
static bool has_datagram_to_take(const struct dns *dns) {
  return dns->udp_readable && question_count < MAX_QUESTIONS;
}

int dns_pump_listener(struct dns *dns, uint64_t now_ms) {
  for (int i = 0; has_datagram_to_take(dns) && i < TAKE_MOST; i++) take_datagram(dns, now_ms);
  for (int i = 0; dns->tcp_readable && i < TAKE_MOST; i++) take_client(dns, now_ms);
  return has_datagram_to_take(dns) || dns->tcp_readable ? 0 : -1;
}

/* How many bytes the length, or then the message, still lacks; SIZE_MAX when it can be no question. */
static size_t still_needed(const struct client *c) {
  if (c->filled < PREFIX) return PREFIX - c->filled;
  size_t length = (size_t)(c->in[0] << 8 | c->in[1]);
  return length < DNS_HEADER || length > QUESTION_MOST ? SIZE_MAX : PREFIX + length - c->filled;
}

static void read_client(struct client *c, uint64_t now_ms) {
  /* Who does not take its answers may ask no more. */
  for (int i = 0; c->dns != NULL && c->readable && !c->ended && c->out == NULL && i < TAKE_MOST; i++) {
    long got = read(c->watch.fd, c->in + c->filled, still_needed(c));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      c->readable = false;
      if (got == 0) c->ended = true;
      else if (errno != EAGAIN) drop_client(c, false);
      return;
    }
    c->filled += (size_t)got;
    size_t needed = still_needed(c);
    if (needed == SIZE_MAX || (needed == 0 && !is_question(c->in + PREFIX, c->filled - PREFIX))) drop_client(c, true);
    if (c->dns == NULL || needed > 0) continue;
    size_t length = c->filled - PREFIX;
    c->filled = 0;
    c->until_ms = now_ms + IDLE_MS;
    take(c->dns, c, NULL, c->in + PREFIX, length, now_ms);
  }
}

static void sooner(int *due_ms, uint64_t at_ms, uint64_t now_ms) {
  int left_ms = at_ms <= now_ms ? 0 : (int)(at_ms - now_ms);
  if (*due_ms < 0 || left_ms < *due_ms) *due_ms = left_ms;
}

static void pump_client(struct client *c, int *due_ms, uint64_t now_ms) {
  read_client(c, now_ms);
  bool done = c->ended && c->waiting == 0 && c->out == NULL;
  bool idle = c->waiting == 0 && now_ms >= c->until_ms;
  if (c->dns != NULL && (done || idle)) drop_client(c, idle && c->out != NULL);
  if (c->dns == NULL) return;
  if (c->readable && !c->ended && c->out == NULL) *due_ms = 0;
  else if (c->waiting == 0) sooner(due_ms, c->until_ms, now_ms);
}

int dns_pump(uint64_t now_ms) {
  int due_ms = -1;
  for (uint32_t i = client_count; i-- > 0;) {
    pump_client(clients[i], &due_ms, now_ms);
    if (clients[i]->dns != NULL) continue;
    free(clients[i]);
    clients[i] = clients[--client_count];
  }
  bool room = true;
  for (uint32_t i = 0; i < question_count;) {
    struct question *q = questions[i];
    if (now_ms >= q->until_ms) settle(q, NULL, 0);
    if (q->dns == NULL && q->stream == 0) {
      remove_question(i);
      continue;
    }
    if (q->dns != NULL && q->stream == 0 && room) room = ask_host(q);
    if (q->dns != NULL) sooner(&due_ms, q->until_ms, now_ms);
    i++;
  }
  return due_ms;
}
