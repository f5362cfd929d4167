/*
 * DNS: questions that programs in the sandbox ask, by UDP or TCP, become streams to the host. porter understands nothing
 * of them beyond where the question ends, which it needs to answer SERVFAIL by itself.
 */
#ifndef PORTER_DNS_H
#define PORTER_DNS_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "loop.h"
#include "sockets.h"

struct dns {
  struct watch udp, tcp;
  uint32_t stream; /* the listener's */
  bool told;       /* the present host knows of it */
  bool udp_readable, tcp_readable;
};

/* Both sockets at one address; `at` gets the port that was chosen. Returns 0 or an errno. */
int dns_open(struct dns **result, uint32_t stream, struct address *at);
/* Whoever still waits is answered SERVFAIL. */
void dns_close(struct dns *dns);
int dns_pump_listener(struct dns *dns, uint64_t now_ms);
int dns_pump(uint64_t now_ms);
void dns_answer(const struct frame *frame);
void dns_host_gone(void);
void dns_shift_deadlines(uint64_t gap_ms);

#endif
