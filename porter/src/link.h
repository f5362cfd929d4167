/*
 * The link to the host: frames in from stdin, frames out to stdout.
 *
 * Out, there are two queues. Control frames go first; data frames keep their order, and an exit status travels among
 * them so that it never overtakes output. Data is sent only within the credit that the host gave for the connection.
 */
#ifndef PORTER_LINK_H
#define PORTER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

void link_open(int in_fd, int out_fd, void (*on_frame)(const struct frame *), void (*on_end)(void));
void link_start(uint32_t epoch, uint32_t connection_window);
void link_add_credit(uint32_t bytes);

void link_control(uint8_t type, uint32_t stream, const void *payload, uint32_t length);
/* A frame among the data that costs no credit. False when there is no room for it yet. */
bool link_ordered(uint8_t type, uint32_t stream, const void *payload, uint32_t length);

enum { LINK_END = 0, LINK_EMPTY = -1, LINK_NO_CREDIT = -2, LINK_NO_ROOM = -3, LINK_FAILED = -4 };
/* Reads at most `most` bytes from `fd` straight into a data frame. Returns how many, or one of the above: end of file,
 * nothing to read now, nothing may be sent before the host gives credit, or before it reads, or a broken descriptor. */
long link_send_from(int fd, uint8_t type, uint32_t stream, uint32_t most);

/* Writes what the host takes now. True when nothing is left to write. */
bool link_flush(void);

#endif
