/* Execs: programs that the host asked for. Each has its own stream id, its pipes, its credit and one exit status. */
#ifndef PORTER_EXEC_H
#define PORTER_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "frame.h"

enum { EXEC_STDIN_WINDOW = 64 * 1024 };

/* How much output of one exec may be under way; set by the host's greeting. */
void exec_set_window(uint32_t stream_window);

void exec_request(const struct frame *frame);
void exec_stdin(const struct frame *frame);
void exec_signal(const struct frame *frame);
void exec_credit(uint32_t stream, uint32_t bytes);

/* A child of porter is gone. Unknown ones are orphans that were inherited: reaped, and nobody is told. */
void exec_reaped(pid_t pid, int status, const struct rusage *usage);

enum { EXEC_BLOCKED = 0 };
/* Moves what can be moved and finishes what is over. Returns in how many ms that is due again, -1 for never, or
 * EXEC_BLOCKED when there is more to move as soon as the link has room. */
int exec_pump(void);

#endif
