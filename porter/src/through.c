#include "through.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

enum { PROXY_PORT = 3128, HEAD_BYTES = 4096, STEP_BYTES = 32768 };

static int write_all(int fd, const char *data, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(fd, data, length);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return -1;
    data += wrote;
    length -= (size_t)wrote;
  }
  return 0;
}

static ssize_t read_some(int fd, char *data, size_t capacity) {
  ssize_t count;
  do count = read(fd, data, capacity);
  while (count < 0 && errno == EINTR);
  return count;
}

/* What could end the line of the request, or be read in two ways, is no name. */
static bool is_name(const char *host) {
  size_t length = strlen(host);
  if (length == 0 || length > 255) return false;
  for (size_t i = 0; i < length; i++) {
    if (host[i] <= ' ' || host[i] > '~' || strchr("/@[]", host[i]) != NULL) return false;
  }
  return true;
}

static bool is_port(const char *port) {
  uint64_t number;
  return *port != ' ' && text_read_number(&port, &number) && *port == '\0' && number > 0 && number < 65536;
}

static int dial(void) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT)};
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&place, sizeof place) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static int ask(int fd, const char *host, const char *port) {
  char bytes[1024];
  struct text request = {.data = bytes, .capacity = sizeof bytes};
  bool wide = strchr(host, ':') != NULL;
  static const char *const before[] = {"CONNECT ", " HTTP/1.1\r\nHost: "};
  for (int i = 0; i < 2; i++) {
    text_add(&request, before[i]);
    if (wide) text_add(&request, "[");
    text_add(&request, host);
    text_add(&request, wide ? "]:" : ":");
    text_add(&request, port);
  }
  text_add(&request, "\r\n\r\n");
  return request.cut ? -1 : write_all(fd, request.data, request.length);
}

/* Reads the head of the answer; what came behind it is from *end on. False when there is none. */
static bool read_head(int fd, char *head, size_t *length, size_t *end) {
  *length = 0;
  while (*length < HEAD_BYTES) {
    ssize_t count = read_some(fd, head + *length, HEAD_BYTES - *length);
    if (count <= 0) return false;
    *length += (size_t)count;
    for (*end = 4; *end <= *length; (*end)++) {
      if (memcmp(head + *end - 4, "\r\n\r\n", 4) == 0) return true;
    }
  }
  return false;
}

/* The reason is in the body, for programs and for people. */
static int refused(int fd, const char *first, size_t length) {
  char bytes[HEAD_BYTES];
  ssize_t count;
  static const char before[] = "porter: the gate did not connect: ";
  if (write_all(2, before, sizeof before - 1) != 0 || write_all(2, first, length) != 0) return 1;
  while ((count = read_some(fd, bytes, sizeof bytes)) > 0) {
    if (write_all(2, bytes, (size_t)count) != 0) break;
  }
  write_all(2, "\n", 1);
  return 1;
}

static int pump(int fd) {
  char bytes[STEP_BYTES];
  struct pollfd both[2] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
  for (;;) {
    if (poll(both, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return 1;
    }
    if (both[1].revents != 0) {
      ssize_t count = read_some(fd, bytes, sizeof bytes);
      if (count <= 0) return count == 0 ? 0 : 1;
      if (write_all(1, bytes, (size_t)count) != 0) return 1;
    }
    if (both[0].revents != 0) {
      ssize_t count = read_some(0, bytes, sizeof bytes);
      if (count <= 0) {
        shutdown(fd, SHUT_WR);
        both[0].fd = -1;
      } else if (write_all(fd, bytes, (size_t)count) != 0) return 1;
    }
  }
}

int through_main(int count, char **words) {
  char head[HEAD_BYTES];
  size_t length, end;
  if (count != 2 || !is_name(words[0]) || !is_port(words[1])) {
    text_complain("usage: porter through HOST PORT", "");
    return 2;
  }
  int fd = dial();
  if (fd < 0) {
    text_complain("nothing leaves this sandbox: it has no gate", "");
    return 1;
  }
  if (ask(fd, words[0], words[1]) != 0 || !read_head(fd, head, &length, &end)) {
    text_complain("the gate gave no answer", "");
    return 1;
  }
  if (length < 12 || memcmp(head, "HTTP/1.1 200", 12) != 0) return refused(fd, head + end, length - end);
  if (write_all(1, head + end, length - end) != 0) return 1;
  return pump(fd);
}
