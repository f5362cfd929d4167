/*
 * Listeners: addresses inside the sandbox whose connections, or DNS questions, go to the host. They stay when their host
 * goes; until another one has asked for them, what arrives is refused at once. See docs/protocol.md, section 8.
 */
#ifndef PORTER_LISTENERS_H
#define PORTER_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

/* False when the frame is for no listener. */
bool listeners_frame(const struct frame *frame);
void listeners_host_gone(void);
void listeners_shift_deadlines(uint64_t gap_ms);
int listeners_pump(uint64_t now_ms);

#endif
