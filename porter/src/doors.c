#include "doors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "borrow.h"
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
  /* When there are no descriptors, not even for a moment. */
  PAUSE_MS = 100,
  /* As much as one stream may have under way: fewer turns with whoever reads it. Where it is no pipe, nothing happens. */
  OUT_PIPE_BYTES = 256 * 1024,
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
  int tie_fd; /* the relay that handed over the two above; -1: there is none */
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
  if (close_descriptors) {
    if (door->out_fd != door->watch.fd && !door->is_stdio) close(door->out_fd);
    if (door->tie_fd >= 0) close(door->tie_fd);
    loop_close(&door->watch);
  } else loop_release(&door->watch);
  door->out_fd = door->tie_fd = -1;
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
  write_u64(&w, FEATURE_TREE_LIMITS | FEATURE_READ_HOLES | (borrow_is_active() ? FEATURE_BORROWS : 0));
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
  int in_fd = door->watch.fd, out_fd = door->out_fd, tie_fd = door->tie_fd;
  free_door(door, false);
  if (!host_attach(in_fd, out_fd, tie_fd, frame->epoch, connection_window, stream_window)) {
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
  fcntl(out_fd, F_SETPIPE_SZ, OUT_PIPE_BYTES);
  fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
  fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
  door->out_fd = out_fd;
  door->is_stdio = is_stdio;
  door->filled = 0;
  door->tie_fd = -1;
  door->until_ms = is_stdio ? UINT64_MAX : loop_now_ms() + GREETING_MS;
  loop_add(&door->watch, in_fd, EPOLLIN, on_greeting);
}

static bool is_stream(int fd) {
  struct stat is;
  return fstat(fd, &is) == 0 && (S_ISFIFO(is.st_mode) || S_ISSOCK(is.st_mode));
}

/* Takes the two descriptors that came with a message, or -1 for each. Whatever else came is closed. */
static void take_given(struct msghdr *message, int taken[2]) {
  size_t count = 0;
  taken[0] = taken[1] = -1;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t given = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < given; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      if (count < 2 && is_stream(fd)) taken[count++] = fd;
      else close(fd);
    }
  }
  /* What found no room was more than two. */
  if (count == 2 && (message->msg_flags & MSG_CTRUNC) == 0) return;
  for (size_t i = 0; i < count; i++) close(taken[i]);
  taken[0] = taken[1] = -1;
}

/* SECURITY: its uid is what it lends. Programs of the sandbox all have porter's, and no way to another one. */
static bool is_lender(int fd, char first) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (first != *DOORS_LENDER || !borrow_is_active()) return false;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid != getuid();
}

/* A relay hands over its own stdin and stdout and stays only to be seen to live: nothing is copied on the way. */
static void on_relay(struct watch *watch, uint32_t events) {
  (void)events;
  struct door *door = (struct door *)((char *)watch - offsetof(struct door, watch));
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
  } control;
  char byte;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {
    .msg_iov = &part,
    .msg_iovlen = 1,
    .msg_control = control.bytes,
    .msg_controllen = sizeof control.bytes,
  };
  long got = recvmsg(watch->fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  int taken[2] = {-1, -1};
  if (got > 0) take_given(&message, taken);
  if (taken[0] < 0 && got > 0 && is_lender(watch->fd, byte)) {
    int fd = watch->fd;
    free_door(door, false);
    borrow_lender(fd);
    return;
  }
  if (taken[0] < 0) {
    free_door(door, true);
    return;
  }
  int tie_fd = watch->fd;
  uint64_t until_ms = door->until_ms;
  loop_release(watch);
  wait_for_greeting(door, taken[0], taken[1], false);
  door->tie_fd = tie_fd;
  door->until_ms = until_ms;
}

static void wait_for_relay(struct door *door, int fd) {
  door->out_fd = fd;
  door->is_stdio = false;
  door->tie_fd = -1;
  door->until_ms = loop_now_ms() + GREETING_MS;
  loop_add(&door->watch, fd, EPOLLIN, on_relay);
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
    if (is_given) wait_for_greeting(door, fd, fd, false);
    else wait_for_relay(door, fd);
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
  for (struct door *door = waiting; door <= waiting + MAX_WAITING; door++) door->out_fd = door->tie_fd = -1;
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

/* One byte, because a descriptor cannot travel alone. */
static bool hand_over(int fd, const int given[2]) {
  enum { LENGTH = 2 * sizeof(int) };
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(LENGTH)];
  } control = {0};
  char byte = 0;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {
    .msg_iov = &part,
    .msg_iovlen = 1,
    .msg_control = control.bytes,
    .msg_controllen = sizeof control.bytes,
  };
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = (socklen_t)CMSG_LEN(LENGTH);
  memcpy(CMSG_DATA(header), given, LENGTH);
  return sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
}

int doors_connect(int porter_pid) {
  struct sockaddr_un address;
  socklen_t length = relay_address(&address, porter_pid);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0) return fd;
  int failure = errno;
  if (fd >= 0) close(fd);
  errno = failure;
  return -1;
}

int doors_relay(int porter_pid) {
  /* The token passes through here, and the neighbours have the same user. */
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGPIPE, SIG_IGN);
  int fd = doors_connect(porter_pid);
  if (fd < 0) die_errno("porter does not answer");
  const int given[] = {0, 1};
  if (!hand_over(fd, given)) die_errno("porter takes nothing");
  /* Porter's from now on: who waits for their end must not wait for this process. */
  close(0);
  close(1);
  char byte;
  while (read(fd, &byte, 1) < 0 && errno == EINTR);
  return 0;
}
