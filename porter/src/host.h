/*
 * The host: whoever greeted last, by either door. Frames in and out, the epoch, and the connection's credit.
 *
 * Out, there are two queues. Control frames go first; data frames keep their order, and what must not overtake data (an
 * exit, an end of stream) travels among them. When a host is superseded or gone, what was queued for it is thrown away:
 * whatever must survive is kept by its owner until the host has acknowledged it.
 */
#ifndef PORTER_HOST_H
#define PORTER_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "wire.h"

/* A connection may have at most this much under way; a host that asks for more is refused. */
enum { HOST_MAX_WINDOW = 512 * 1024 };

struct host_events {
  void (*frame)(const struct frame *frame);
  /* A new host has greeted: whatever belonged to the one before is over. */
  void (*replaced)(void);
  /* The host's connection ended; there may be another one later. */
  void (*gone)(void);
};

/* Makes these descriptors the host's connection, which also ends when the other side of `tie_fd` does (-1: nothing else ends
 * it). The one before is told and closed. False when there is no descriptor left for it: then nothing has changed. */
bool host_attach(int in_fd, int out_fd, int tie_fd, uint32_t epoch, uint32_t connection_window, uint32_t stream_window);
void host_listen(const struct host_events *events);
/* The first connection ended before anyone greeted. */
void host_never_came(void);
bool host_present(void);
uint32_t host_epoch(void);
uint32_t host_stream_window(void);
uint32_t host_window(void);

/* Bytes of data that may be sent now, by the connection's credit. */
uint32_t host_credit(void);
void host_spend(uint32_t bytes);
void host_give_back(uint64_t bytes);

/* All do nothing without a host. */
void host_control(uint8_t type, uint32_t stream, const struct writer *payload);
void host_empty(uint8_t type, uint32_t stream);

/* As above, for what nobody may be waiting for: it goes with the next frame that does not wait, and alone after `wait_ms`.
 * Every write of porter's wakes a chain of processes outside. */
void host_control_later(uint8_t type, uint32_t stream, const struct writer *payload, uint32_t wait_ms);

/* Room for a data frame of `length` payload bytes: where to put the payload, or NULL when the queue is full. Complete it
 * with host_data_end. */
uint8_t *host_data_begin(uint32_t length);
void host_data_end(uint8_t type, uint32_t stream, uint32_t length);
/* A small frame among the data. False when there is no room yet. */
bool host_ordered(uint8_t type, uint32_t stream, const struct writer *payload);
/* The same, and it waits as with host_control_later. */
bool host_ordered_later(uint8_t type, uint32_t stream, const struct writer *payload, uint32_t wait_ms);

/* Something did not fit into the data queue since the last call. */
bool host_data_was_full(void);

/* The host broke the protocol: its connection ends, porter goes on. */
void host_violation(const char *what);

/* For how long what is queued may wait; 0 when it may not, or when nothing is queued. */
int host_patience_ms(void);

/* Writes what the host takes now. True when nothing is left to write. */
bool host_flush(void);

#endif
