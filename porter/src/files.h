/*
 * File operations: docs/protocol.md, section 6. Each is one stream and one forked process, which has no descriptor of the
 * protocol and may block as long as it likes; porter itself only moves bytes and never touches a path.
 */
#ifndef PORTER_FILES_H
#define PORTER_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

/* One whole request: the payload may have come in several frames. */
void files_request(uint32_t stream, const uint8_t *payload, uint32_t length);
/* A frame on an operation's stream. False when there is no such operation. */
bool files_frame(const struct frame *frame);
/* The host is another one, or gone: its operations end with it. */
void files_host_replaced(void);
/* Moves data, tells what is done. Returns in how many ms it is due again, -1 for never. */
int files_pump(uint64_t now_ms);
bool files_is_worker(pid_t pid);
void files_reaped(pid_t pid);

#endif
