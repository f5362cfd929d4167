#include "doors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "die.h"
#include "frame.h"
#include "host.h"
#include "input.h"
#include "loop.h"
#include "numbers.h"
#include "text.h"
#include "tree.h"
#include "version.h"
#include "wire.h"

enum {
  MAX_WAITING = 8,
  GREETING_MS = 10 * 1000,
  MIN_TOKEN = 16,
  MAX_TOKEN = 64,
  MAX_GREETING = FRAME_HEADER + 256,
  LAST_WORDS_MS = 5000,
  /* When there are no descriptors, not even for a moment. */
  PAUSE_MS = 100,
};

enum refusal {
  REFUSED_VERSION = 1,
  REFUSED_MALFORMED = 2,
  REFUSED_NO_GREETING = 3,
  REFUSED_TOKEN = 4,
  REFUSED_EPOCH = 5,
};

struct door {
  struct watch watch;
  int out_fd; /* -1: free */
  bool is_stdio;
  uint64_t until_ms;
  uint8_t bytes[MAX_GREETING];
  size_t filled;
};

static struct watch listener = {.fd = -1};
static bool is_given; /* the listener came from the engine, and nobody inside can reach it */
static uint64_t accept_again_ms; /* 0: it is listened to */
static struct door waiting[MAX_WAITING + 1];
static uint8_t token[MAX_TOKEN];
static uint32_t token_length;

static void free_door(struct door *door, bool close_descriptors) {
  if (close_descriptors) loop_close(&door->watch);
  else loop_release(&door->watch);
  door->out_fd = -1;
}

static void refuse(struct door *door, enum refusal reason, const char *message) {
  uint8_t payload[256], bytes[FRAME_HEADER + sizeof payload];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u16(&w, PROTOCOL_MAJOR);
  write_u16(&w, PROTOCOL_MINOR);
  write_u32(&w, reason);
  write_u32(&w, host_epoch());
  write_text(&w, message);
  size_t length = frame_encode(bytes, FRAME_REFUSED, 0, 0, payload, (uint32_t)w.length);
  /* Fits any empty buffer; one who does not read it learns nothing, and is closed all the same. */
  long wrote = write(door->out_fd, bytes, length);
  (void)wrote;
  /* The engine's stdin cannot be opened again: whoever comes next through it begins anew. */
  if (door->is_stdio) door->filled = 0;
  else free_door(door, true);
}

/* In constant time, so that its duration tells nothing about how much was right. */
static bool token_matches(struct bytes given) {
  if (given.length != token_length) return false;
  uint8_t difference = 0;
  for (uint32_t i = 0; i < token_length; i++) difference |= token[i] ^ given.data[i];
  return difference == 0;
}

static void welcome(void) {
  uint8_t payload[256];
  struct writer w = {.data = payload, .capacity = sizeof payload};
  write_u16(&w, PROTOCOL_MAJOR);
  write_u16(&w, PROTOCOL_MINOR);
  write_u64(&w, 0); /* feature bits */
  write_text(&w, PORTER_BUILD_ID);
  write_u32(&w, (uint32_t)getpid());
  write_u32(&w, FRAME_MAX_PAYLOAD);
  write_u32(&w, INPUT_WINDOW);
  write_u32(&w, number_highest());
  host_control(FRAME_WELCOME, 0, &w);
}

static void greet(struct door *door, const struct frame *frame) {
  struct reader r = {.at = frame->payload, .end = frame->payload + frame->length};
  uint16_t major = read_u16(&r);
  read_u16(&r); /* minor: additions only */
  read_u64(&r); /* feature bits */
  uint32_t connection_window = read_u32(&r);
  uint32_t stream_window = read_u32(&r);
  struct bytes given = read_bytes(&r);
  if (frame->type != FRAME_HELLO) {
    refuse(door, REFUSED_NO_GREETING, "greet first");
    return;
  }
  /* A newer major may greet in another way, so the version is looked at before the rest. */
  if (frame->length >= 2 && major != PROTOCOL_MAJOR) {
    refuse(door, REFUSED_VERSION, "unknown protocol version");
    return;
  }
  bool windows_ok = stream_window > 0 && stream_window <= connection_window && connection_window <= HOST_MAX_WINDOW;
  if (!reader_done(&r) || !windows_ok || given.length < MIN_TOKEN || given.length > MAX_TOKEN) {
    refuse(door, REFUSED_MALFORMED, "malformed greeting");
    return;
  }
  /* Nothing that could lie runs in here before the first host asks for it, so the first greeting may set the token, by
   * whichever door it comes: the one who held stdin may have died in the middle of it. */
  if (token_length > 0 && !token_matches(given)) {
    refuse(door, REFUSED_TOKEN, "wrong token");
    return;
  }
  if (frame->epoch <= host_epoch()) {
    refuse(door, REFUSED_EPOCH, "a newer host was here");
    return;
  }
  int in_fd = door->watch.fd, out_fd = door->out_fd;
  free_door(door, false);
  if (!host_attach(in_fd, out_fd, frame->epoch, connection_window, stream_window)) {
    close(in_fd);
    return;
  }
  memcpy(token, given.data, given.length);
  token_length = given.length;
  welcome();
}

/* Reads no further than the greeting: what follows it is for the host's own decoder. */
static size_t still_needed(const struct door *door) {
  if (door->filled < FRAME_HEADER) return FRAME_HEADER - door->filled;
  struct reader r = {.at = door->bytes + 12, .end = door->bytes + FRAME_HEADER};
  uint32_t length = read_u32(&r);
  return length > MAX_GREETING - FRAME_HEADER ? SIZE_MAX : FRAME_HEADER + length - door->filled;
}

static void on_greeting(struct watch *watch, uint32_t events) {
  (void)events;
  struct door *door = (struct door *)((char *)watch - offsetof(struct door, watch));
  for (;;) {
    size_t needed = still_needed(door);
    if (needed == SIZE_MAX) {
      refuse(door, REFUSED_MALFORMED, "too long for a greeting");
      return;
    }
    long got = read(watch->fd, door->bytes + door->filled, needed);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      bool last = door->is_stdio;
      free_door(door, true);
      /* A host that goes before it greeted is a host that is gone. */
      if (last && !host_present()) host_never_came();
      return;
    }
    door->filled += (size_t)got;
    if (still_needed(door) == 0) break;
  }
  static struct decoder decoder;
  memcpy(decoder.data, door->bytes, door->filled);
  decoder.filled = door->filled;
  struct frame frame;
  if (decoder_at(&decoder, 0, &frame) != DECODED_FRAME) refuse(door, REFUSED_MALFORMED, "not a frame");
  else greet(door, &frame);
}

static void wait_for_greeting(struct door *door, int in_fd, int out_fd, bool is_stdio) {
  fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
  fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
  door->out_fd = out_fd;
  door->is_stdio = is_stdio;
  door->filled = 0;
  door->until_ms = is_stdio ? UINT64_MAX : loop_now_ms() + GREETING_MS;
  loop_add(&door->watch, in_fd, EPOLLIN, on_greeting);
}

/* What an engine starts in the sandbox has its parent outside, which shows as 0; programs that porter started do not, and
 * shall not take the few places of those who wait to greet. Where porter is not PID 1 there is no outside. */
static bool is_from_engine(int fd) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (is_given || getpid() != 1) return true;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && tree_parent(peer.pid) == 0;
}

static void on_connection(struct watch *watch, uint32_t events) {
  (void)events;
  int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    /* It waits, and would wake the loop for ever. */
    loop_want(watch, 0);
    accept_again_ms = loop_now_ms() + PAUSE_MS;
    return;
  }
  if (!is_from_engine(fd)) {
    close(fd);
    return;
  }
  for (struct door *door = waiting + 1; door < waiting + 1 + MAX_WAITING; door++) {
    if (door->out_fd >= 0) continue;
    wait_for_greeting(door, fd, fd, false);
    return;
  }
  close(fd);
}

static socklen_t relay_address(struct sockaddr_un *address, int porter_pid) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  /* Abstract: no file, bound to the sandbox's network namespace. The name has no closing zero. */
  struct text name = {.data = address->sun_path + 1, .capacity = sizeof address->sun_path - 1};
  text_add(&name, "sallyport-porter.");
  text_number(&name, (uint64_t)porter_pid);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name.length);
}

static void all_free(void) {
  for (struct door *door = waiting; door <= waiting + MAX_WAITING; door++) door->out_fd = -1;
}

void doors_open_given(int fd) {
  all_free();
  is_given = true;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) die_errno("--door");
  loop_add(&listener, fd, EPOLLIN, on_connection);
}

void doors_open(int in_fd, int out_fd) {
  all_free();
  wait_for_greeting(&waiting[0], in_fd, out_fd, true);
  struct sockaddr_un address;
  socklen_t length = relay_address(&address, getpid());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, MAX_WAITING) != 0) {
    die_errno("the relay's socket");
  }
  loop_add(&listener, fd, EPOLLIN, on_connection);
}

int doors_expire(uint64_t now_ms) {
  int due_ms = -1;
  if (accept_again_ms != 0 && now_ms >= accept_again_ms) {
    accept_again_ms = 0;
    loop_want(&listener, EPOLLIN);
  } else if (accept_again_ms != 0) due_ms = (int)(accept_again_ms - now_ms);
  for (struct door *door = waiting + 1; door <= waiting + MAX_WAITING; door++) {
    if (door->out_fd < 0) continue;
    if (door->until_ms <= now_ms) free_door(door, true);
    else if (due_ms < 0 || door->until_ms - now_ms < (uint64_t)due_ms) due_ms = (int)(door->until_ms - now_ms);
  }
  return due_ms;
}

void doors_forget_token(void) {
  explicit_bzero(token, sizeof token);
  explicit_bzero(waiting, sizeof waiting);
}

/* One direction of the relay. Each goes on while the other is held up, or both could wait for each other for ever. */
struct flow {
  int from, to;
  bool ended;
  size_t head, tail;
  uint8_t bytes[64 * 1024];
};

static void flow_wishes(const struct flow *flow, struct pollfd *from, struct pollfd *to) {
  bool empty = flow->head == flow->tail;
  *from = (struct pollfd){.fd = empty && !flow->ended ? flow->from : -1, .events = POLLIN};
  *to = (struct pollfd){.fd = empty ? -1 : flow->to, .events = POLLOUT};
}

/* False when nobody takes it any more. */
static bool flow_move(struct flow *flow, const struct pollfd *from, const struct pollfd *to) {
  bool has_read = from->fd >= 0 && from->revents != 0;
  if (has_read) {
    long got = read(flow->from, flow->bytes, sizeof flow->bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    flow->ended = got <= 0;
    flow->head = 0;
    flow->tail = got > 0 ? (size_t)got : 0;
  }
  /* What was just read is mostly taken at once. */
  if ((has_read && flow->tail > 0) || (to->fd >= 0 && to->revents != 0)) {
    long wrote = write(flow->to, flow->bytes + flow->head, flow->tail - flow->head);
    if (wrote < 0) return errno == EINTR || errno == EAGAIN;
    flow->head += (size_t)wrote;
  }
  return true;
}

static int relay(int fd) {
  static struct flow in, out;
  in = (struct flow){.from = 0, .to = fd};
  out = (struct flow){.from = fd, .to = 1};
  const int fds[] = {0, 1, fd};
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
  for (;;) {
    struct pollfd wishes[4];
    flow_wishes(&in, &wishes[0], &wishes[1]);
    flow_wishes(&out, &wishes[2], &wishes[3]);
    int ready = poll(wishes, 4, out.ended ? LAST_WORDS_MS : -1);
    if (ready < 0 && errno != EINTR) die_errno("poll");
    /* porter is done with this host, and this host does not read. */
    if (ready == 0) return 0;
    if (ready < 0) continue;
    if (!flow_move(&in, &wishes[0], &wishes[1]) || !flow_move(&out, &wishes[2], &wishes[3])) return 0;
    if (in.ended || (out.ended && out.head == out.tail)) return 0;
  }
}

int doors_relay(int porter_pid) {
  /* The token passes through here, and the neighbours have the same user. */
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_un address;
  socklen_t length = relay_address(&address, porter_pid);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) != 0) die_errno("porter does not answer");
  return relay(fd);
}
