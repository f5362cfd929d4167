/* Messages that are too long for one frame: collected until their last part is there. */
#ifndef PORTER_MESSAGE_H
#define PORTER_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

enum { MESSAGE_MAX = 1024 * 1024 };

/* True when the message is whole; `payload` and `length` are then valid until message_reset, which
 * must follow. */
bool message_add(const struct frame *frame, const uint8_t **payload, uint32_t *length);
void message_reset(void);

#endif
