/* Numbers of the streams that porter opens itself. None is used twice. */
#ifndef PORTER_STREAMS_H
#define PORTER_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

/* 0 when all are used up, after two thousand million. The host checks that they rise, so take one only when it is sent. */
uint32_t streams_next(void);
static inline bool stream_is_hosts(uint32_t stream) { return stream > 0 && stream < 0x80000000u; }

#endif
