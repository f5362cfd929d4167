/* Messages on sockets. */
#include <stdint.h>
#include <sys/socket.h>

#include "kernel.h"

ssize_t send(int fd, const void *data, size_t length, int flags) { return sendto(fd, data, length, flags, NULL, 0); }

ssize_t recv(int fd, void *data, size_t length, int flags) { return recvfrom(fd, data, length, flags, NULL, NULL); }

/* A C library may have smaller lengths in its msghdr than the kernel, and rubbish between them. */
static struct kernel_message to_kernel(const struct msghdr *message) {
  return (struct kernel_message){
    .name = message->msg_name,
    .name_length = (int)message->msg_namelen,
    .parts = message->msg_iov,
    .part_count = (size_t)message->msg_iovlen,
    .control = message->msg_control,
    .control_length = message->msg_controllen,
    .flags = (unsigned)message->msg_flags,
  };
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  struct kernel_message given = to_kernel(message);
  return kernel_sendmsg(fd, &given, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  struct kernel_message taken = to_kernel(message);
  ssize_t got = kernel_recvmsg(fd, &taken, flags);
  message->msg_namelen = (socklen_t)taken.name_length;
  message->msg_controllen = (__typeof__(message->msg_controllen))taken.control_length;
  message->msg_flags = (int)taken.flags;
  return got;
}

/* What CMSG_NXTHDR of glibc's headers calls. The header after `header`, or NULL if it does not fit into the message. */
struct cmsghdr *__cmsg_nxthdr(struct msghdr *message, struct cmsghdr *header) {
  uint8_t *end = (uint8_t *)message->msg_control + message->msg_controllen;
  size_t left = (size_t)(end - (uint8_t *)header), own = header->cmsg_len;
  if (own < sizeof *header || own > left || left - own < CMSG_ALIGN(own) - own + sizeof *header) return NULL;
  return (struct cmsghdr *)((uint8_t *)header + CMSG_ALIGN(own));
}
