#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 128 };

static const char localhost[] = "localhost";

bool address_is_localhost(struct bytes text) {
  return text.length == sizeof localhost - 1 && memcmp(text.data, localhost, sizeof localhost - 1) == 0;
}

static int read_path(struct address *a, struct bytes text) {
  if (text.length == 0) return EINVAL;
  if (text.length >= sizeof a->un.sun_path) return ENAMETOOLONG;
  /* A leading zero would be an abstract name, among which is porter's own door. */
  if (memchr(text.data, 0, text.length) != NULL) return EINVAL;
  a->un.sun_family = AF_UNIX;
  memcpy(a->un.sun_path, text.data, text.length);
  a->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + text.length + 1);
  return 0;
}

int address_read(struct address *a, uint32_t kind, struct bytes text, uint16_t port) {
  char copy[ADDRESS_TEXT];
  *a = (struct address){0};
  if (kind == ADDRESS_UNIX) return read_path(a, text);
  if (kind != ADDRESS_TCP && kind != ADDRESS_DNS) return EINVAL;
  if (address_is_localhost(text)) text = (struct bytes){.data = (const uint8_t *)"127.0.0.1", .length = 9};
  if (text.length == 0 || text.length >= sizeof copy || memchr(text.data, 0, text.length) != NULL) return EINVAL;
  memcpy(copy, text.data, text.length);
  copy[text.length] = '\0';
  if (inet_pton(AF_INET, copy, &a->in.sin_addr) == 1) {
    a->in.sin_family = AF_INET;
    a->length = sizeof a->in;
  } else if (inet_pton(AF_INET6, copy, &a->in6.sin6_addr) == 1) {
    a->in6.sin6_family = AF_INET6;
    a->length = sizeof a->in6;
  } else return EINVAL;
  address_set_port(a, port);
  return 0;
}

void address_loopback6(struct address *a, uint16_t port) {
  *a = (struct address){.length = sizeof a->in6};
  a->in6.sin6_family = AF_INET6;
  a->in6.sin6_addr.s6_addr[15] = 1;
  address_set_port(a, port);
}

uint16_t address_port(const struct address *a) {
  if (a->any.sa_family == AF_INET) return ntohs(a->in.sin_port);
  return a->any.sa_family == AF_INET6 ? ntohs(a->in6.sin6_port) : 0;
}

void address_set_port(struct address *a, uint16_t port) {
  if (a->any.sa_family == AF_INET) a->in.sin_port = htons(port);
  else if (a->any.sa_family == AF_INET6) a->in6.sin6_port = htons(port);
}

static char *put_number(char *at, uint32_t value, uint32_t base) {
  uint32_t unit = 1;
  while (value / unit >= base) unit *= base;
  for (; unit > 0; unit /= base) *at++ = "0123456789abcdef"[value / unit % base];
  return at;
}

static char *put_ipv4(char *at, const uint8_t *bytes) {
  for (int i = 0; i < 4; i++) {
    if (i > 0) *at++ = '.';
    at = put_number(at, bytes[i], 10);
  }
  return at;
}

/* As RFC 5952 has it: the longest run of zeros is left out. */
static char *put_ipv6(char *at, const uint8_t *bytes) {
  int best = -1, best_length = 1;
  for (int i = 0; i < 8; i++) {
    int length = 0;
    while (i + length < 8 && bytes[2 * (i + length)] == 0 && bytes[2 * (i + length) + 1] == 0) length++;
    if (length > best_length) best = i, best_length = length;
  }
  for (int i = 0; i < 8; i++) {
    if (i == best) {
      *at++ = ':';
      i += best_length - 1;
      if (i == 7) *at++ = ':';
      continue;
    }
    if (i > 0) *at++ = ':';
    at = put_number(at, (uint32_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]), 16);
  }
  return at;
}

uint32_t address_write(const struct address *a, char text[ADDRESS_TEXT]) {
  char *end = text;
  if (a->any.sa_family == AF_INET) end = put_ipv4(text, (const uint8_t *)&a->in.sin_addr);
  else if (a->any.sa_family == AF_INET6) end = put_ipv6(text, a->in6.sin6_addr.s6_addr);
  return (uint32_t)(end - text);
}

int socket_bind(struct address *a, int type) {
  int on = 1;
  int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  /* Connections that ended a moment ago do not keep their listener's address. UDP would share it, which nobody wants. */
  if (type == SOCK_STREAM && a->any.sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (a->any.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  socklen_t length = sizeof(struct sockaddr_in6);
  bool ok = bind(fd, &a->any, a->length) == 0 && (type != SOCK_STREAM || listen(fd, BACKLOG) == 0);
  if (ok && a->any.sa_family != AF_UNIX) ok = getsockname(fd, &a->any, &length) == 0;
  if (ok) return fd;
  int failure = errno;
  close(fd);
  return -failure;
}

void socket_hurry(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void socket_will_reset(int fd) {
  struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void socket_abort(int fd) {
  socket_will_reset(fd);
  close(fd);
}
