/*
 * Execs: programs that the host asked for. Each is named by its stream, runs whether a host is there or not, keeps its
 * output until the host has it and its exit until the host has recorded it.
 */
#ifndef PORTER_EXEC_H
#define PORTER_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

/* One whole request: the payload may have come in several frames. */
void exec_request(uint32_t stream, const uint8_t *payload, uint32_t length);
/* A frame on an exec's stream. False when there is no such exec. */
bool exec_frame(const struct frame *frame);
void exec_list(void);
/* There is another host: nothing is sent before it asks for it. */
void exec_host_replaced(void);
/* Supervisors are children of porter; any other child is an orphan that lost its supervisor. */
int exec_is_supervisor(pid_t pid);
/* Time in which porter did not run does not count. */
void exec_shift_deadlines(uint64_t gap_ms);
/* Moves output, keeps deadlines and limits, finishes what is over. Returns in how many ms that is due again, -1 for never. */
int exec_pump(uint64_t now_ms);
/* TERM, or KILL, to every program. */
void exec_end_all(bool kill);
bool exec_any_running(void);
/* The host is still to be told how one of them ended. */
bool exec_any_untold(void);

#endif
