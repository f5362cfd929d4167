/*
 * Tunnels: connections between a socket in the sandbox and a stream to the host, whoever began them. They end with their
 * host. See docs/protocol.md, section 7.
 */
#ifndef PORTER_TUNNELS_H
#define PORTER_TUNNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "sockets.h"

/* The data queue must have room for this much before a connection is accepted. */
enum { ACCEPTED_MOST = 4 + 4 + ADDRESS_TEXT + 2 };

/* False when the frame is for no tunnel. */
bool tunnels_frame(const struct frame *frame);
/* Makes an accepted socket a stream and tells the host. Returns 0, or an errno and the socket is still the caller's. */
int tunnels_accepted(int fd, uint32_t listener, const struct address *peer);
/* All connections are reset. */
void tunnels_host_gone(void);
int tunnels_pump(uint64_t now_ms);

#endif
