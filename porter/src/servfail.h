/* The one answer that porter can give to a DNS question by itself: the server failed, ask again. */
#ifndef PORTER_SERVFAIL_H
#define PORTER_SERVFAIL_H

#include <stddef.h>
#include <stdint.h>

enum { DNS_HEADER = 12, SERVFAIL_MOST = DNS_HEADER + 255 + 4 };

/* `message` has at least a header. Returns the answer's length. */
size_t servfail(uint8_t answer[SERVFAIL_MOST], const uint8_t *message, size_t length);

#endif
