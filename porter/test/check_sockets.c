#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

/* A descriptor and who sent it, in two headers of one message. */
static void check_control(void) {
  int ends[2], pair[2], on = 1;
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
  } control = {0};
  char byte = 'd';
  struct iovec part = {&byte, 1};
  MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pipe2(pair, O_CLOEXEC) == 0);
  MUST(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(sizeof(int))};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &pair[1], sizeof(int));
  MUST(sendmsg(ends[1], &message, MSG_NOSIGNAL) == 1);
  memset(&control, 0, sizeof control);
  message.msg_controllen = sizeof control.bytes;
  byte = 0;
  MUST(recvmsg(ends[0], &message, MSG_CMSG_CLOEXEC) == 1 && byte == 'd' && (message.msg_flags & MSG_CTRUNC) == 0);
  int fd = -1, headers = 0;
  struct ucred sender = {0};
  for (header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header), headers++) {
    if (header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    if (header->cmsg_type == SCM_CREDENTIALS) memcpy(&sender, CMSG_DATA(header), sizeof sender);
  }
  MUST(headers == 2 && fd >= 0 && sender.pid == getpid() && sender.uid == getuid());
  MUST(write(fd, "y", 1) == 1 && read(pair[0], &byte, 1) == 1 && byte == 'y');
  MUST(send(ends[1], "abc", 3, 0) == 3 && recv(ends[0], &byte, 1, MSG_TRUNC) == 3 && byte == 'a');
  for (int i = 0; i < 2; i++) MUST(close(ends[i]) == 0 && close(pair[i]) == 0);
  MUST(close(fd) == 0);
}

static void check_stream(void) {
  struct sockaddr_in place = {.sin_family = AF_INET}, peer;
  socklen_t length = sizeof place;
  int failure = -1;
  char bytes[8] = "";
  MUST(inet_pton(AF_INET, "127.0.0.1", &place.sin_addr) == 1 && place.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUST(bind(listener, (struct sockaddr *)&place, sizeof place) == 0 && listen(listener, 1) == 0);
  MUST(getsockname(listener, (struct sockaddr *)&place, &length) == 0 && ntohs(place.sin_port) > 0);
  MUST(connect(caller, (struct sockaddr *)&place, sizeof place) == 0);
  length = sizeof peer;
  int taken = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
  MUST(taken >= 0 && length == sizeof peer && peer.sin_addr.s_addr == place.sin_addr.s_addr);
  length = sizeof failure;
  MUST(getsockopt(caller, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 && failure == 0);
  MUST(send(caller, "hello", 5, MSG_NOSIGNAL) == 5 && shutdown(caller, SHUT_WR) == 0);
  MUST(recv(taken, bytes, 5, MSG_WAITALL) == 5 && memcmp(bytes, "hello", 5) == 0 && read(taken, bytes, 1) == 0);
  MUST(close(listener) == 0 && close(caller) == 0 && close(taken) == 0);
}

static void check_datagram(void) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
  socklen_t length = sizeof place;
  char bytes[8];
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  MUST(fd >= 0 && bind(fd, (struct sockaddr *)&place, sizeof place) == 0);
  MUST(getsockname(fd, (struct sockaddr *)&place, &length) == 0);
  MUST(sendto(fd, "ping", 4, 0, (struct sockaddr *)&place, sizeof place) == 4);
  length = sizeof from;
  MUST(recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length) == 4 && from.sin_port == place.sin_port);
  MUST(socket(AF_INET, SOCK_STREAM, 12345) == -1 && errno != 0 && close(fd) == 0);
}

void check_sockets(void) {
  check_control();
  check_stream();
  check_datagram();
}
