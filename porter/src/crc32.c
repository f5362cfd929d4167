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

/* Without the inversions at both ends. */
static uint32_t fold_by_table(uint32_t crc, const uint8_t *data, size_t length) {
  while (length >= 8) {
    uint32_t low = load_le32(data) ^ crc;
    uint32_t high = load_le32(data + 4);
    crc = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24] ^
          table[3][high & 0xFF] ^ table[2][(high >> 8) & 0xFF] ^ table[1][(high >> 16) & 0xFF] ^ table[0][high >> 24];
    data += 8;
    length -= 8;
  }
  while (length-- > 0) crc = (crc >> 8) ^ table[0][(crc ^ *data++) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum { LANE = 16, STRIDE = 4 * LANE };

static bool can_multiply(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_PCLMUL) != 0;
}

/* Moves a lane forward by the distance that `power` stands for, and adds what is there. */
__attribute__((target("pclmul"))) static __m128i move_lane(__m128i lane, __m128i power, __m128i there) {
  __m128i low = _mm_clmulepi64_si128(lane, power, 0x00), high = _mm_clmulepi64_si128(lane, power, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

/*
 * Bytes are a polynomial, and only its remainder matters: 64 bytes at a time are moved forward by multiplication without
 * carry until 16 are left, which the table takes. About ten times faster than the table alone, and that was nearly half of
 * porter's time in a flood of output. The powers are x^(n+32) and x^(n-32) modulo the CRC's polynomial, bits reversed,
 * for n of 512 and 128 bits. Takes a multiple of STRIDE that is not 0.
 */
__attribute__((target("pclmul"))) static uint32_t fold_by_multiplying(uint32_t crc, const uint8_t *data, size_t length) {
  const __m128i by_stride = _mm_set_epi64x(0x1C6E41596, 0x154442BD4), by_lane = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
  __m128i lanes[4];
  for (int i = 0; i < 4; i++) lanes[i] = _mm_loadu_si128((const __m128i *)(const void *)(data + LANE * i));
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
  while ((length -= STRIDE) > 0) {
    data += STRIDE;
    for (int i = 0; i < 4; i++) {
      lanes[i] = move_lane(lanes[i], by_stride, _mm_loadu_si128((const __m128i *)(const void *)(data + LANE * i)));
    }
  }
  __m128i all = lanes[0];
  for (int i = 1; i < 4; i++) all = move_lane(all, by_lane, lanes[i]);
  uint8_t rest[LANE];
  memcpy(rest, &all, sizeof rest);
  return fold_by_table(0, rest, sizeof rest);
}
#endif

uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t length) {
  if (!ready) prepare();
  crc = ~crc;
#if defined(__x86_64__)
  static int multiplies = -1;
  if (multiplies < 0) multiplies = can_multiply();
  if (multiplies && length >= STRIDE) {
    size_t whole = length & ~(size_t)(STRIDE - 1);
    crc = fold_by_multiplying(crc, data, whole);
    data += whole;
    length -= whole;
  }
#endif
  return ~fold_by_table(crc, data, length);
}
