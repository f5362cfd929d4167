/* CRC-32 (IEEE 802.3, reflected), as zlib and Node's `zlib.crc32` compute it. */
#ifndef PORTER_CRC32_H
#define PORTER_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t length);

#endif
