#include "descriptor.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
  struct cmsghdr head;
  char space[CMSG_SPACE(sizeof(int))];
};

bool descriptor_send(int socket, const void *message, size_t length, int fd) {
  union control control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = (socklen_t)CMSG_LEN(sizeof fd)}};
  struct iovec content = {(void *)message, length};
  struct msghdr envelope = {
      .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
  memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
  return sendmsg(socket, &envelope, MSG_NOSIGNAL) == (long)length;
}

long descriptor_receive(int socket, void *message, size_t size, int *fd) {
  union control control;
  struct iovec content = {message, size};
  struct msghdr envelope = {
      .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
  *fd = -1;
  long got = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
  struct cmsghdr *given = got > 0 ? CMSG_FIRSTHDR(&envelope) : NULL;
  if (given == NULL || given->cmsg_level != SOL_SOCKET || given->cmsg_type != SCM_RIGHTS) return got;
  /* There is room for one: the kernel closes the others. */
  if (given->cmsg_len >= CMSG_LEN(sizeof *fd)) memcpy(fd, CMSG_DATA(given), sizeof *fd);
  return got;
}
