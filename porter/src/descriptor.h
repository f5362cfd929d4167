/* One descriptor with a message, over a Unix socket. */
#ifndef PORTER_DESCRIPTOR_H
#define PORTER_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>

/* At least one byte: a descriptor cannot travel alone. False when not all of it could be sent. */
bool descriptor_send(int socket, const void *message, size_t length, int fd);
/* As read(). `*fd` is what came with the message, or -1. */
long descriptor_receive(int socket, void *message, size_t size, int *fd);

#endif
