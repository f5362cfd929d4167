#include "crc32.h"

#include <stdbool.h>
#include <string.h>

/* Eight tables, so that eight bytes are folded in at a time; made at first use to keep the program small. */
static uint32_t table[8][256];
static bool ready;

static void prepare(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
    table[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++) {
    for (int slice = 1; slice < 8; slice++) {
      uint32_t before = table[slice - 1][i];
      table[slice][i] = (before >> 8) ^ table[0][before & 0xFF];
    }
  }
  ready = true;
}

static uint32_t load_le32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t length) {
  if (!ready) prepare();
  crc = ~crc;
  while (length >= 8) {
    uint32_t low = load_le32(data) ^ crc;
    uint32_t high = load_le32(data + 4);
    crc = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24] ^
          table[3][high & 0xFF] ^ table[2][(high >> 8) & 0xFF] ^ table[1][(high >> 16) & 0xFF] ^ table[0][high >> 24];
    data += 8;
    length -= 8;
  }
  while (length-- > 0) crc = (crc >> 8) ^ table[0][(crc ^ *data++) & 0xFF];
  return ~crc;
}
