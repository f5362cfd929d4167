/* Addresses: text to bytes, and the byte order of the network. Both machines are little-endian. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* In parentheses, because glibc's headers have macros for these names. */
uint32_t (htonl)(uint32_t value) { return __builtin_bswap32(value); }
uint16_t (htons)(uint16_t value) { return __builtin_bswap16(value); }
uint16_t (ntohs)(uint16_t value) { return __builtin_bswap16(value); }

/* Four decimal numbers up to 255 without leading zeros, to the end of the text. */
static bool read_ipv4(const char *text, uint8_t to[4]) {
  for (int i = 0; i < 4; i++) {
    if (i > 0 && *text++ != '.') return false;
    const char *first = text;
    uint32_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
      value = value * 10 + (uint32_t)(*text - '0');
      if (value > 255 || (text > first && *first == '0')) return false;
    }
    if (text == first) return false;
    to[i] = (uint8_t)value;
  }
  return *text == '\0';
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to eight groups of up to four hexadecimal digits. Once, `::` stands for as many zeros as are missing. The last two
 * groups may be an IPv4 address. */
static bool read_ipv6(const char *text, uint8_t to[16]) {
  uint8_t bytes[16] = {0};
  int filled = 0, gap = -1;
  if (*text == ':' && *++text != ':') return false;
  for (;;) {
    if (*text == ':' && gap < 0) {
      gap = filled;
      text++;
      if (*text == '\0') break;
    }
    const char *first = text;
    uint32_t value = 0;
    for (int digit; text < first + 4 && (digit = digit_of(*text)) >= 0; text++) value = value << 4 | (uint32_t)digit;
    if (*text == '.' && filled <= 12 && read_ipv4(first, bytes + filled)) {
      filled += 4;
      break;
    }
    if (text == first || filled == 16) return false;
    bytes[filled++] = (uint8_t)(value >> 8);
    bytes[filled++] = (uint8_t)value;
    if (*text == '\0') break;
    if (*text++ != ':' || *text == '\0') return false;
  }
  if (gap < 0 ? filled != 16 : filled == 16) return false;
  if (gap >= 0) {
    memmove(bytes + 16 - (filled - gap), bytes + gap, (size_t)(filled - gap));
    memset(bytes + gap, 0, (size_t)(16 - filled));
  }
  memcpy(to, bytes, sizeof bytes);
  return true;
}

int inet_pton(int family, const char *restrict text, void *restrict address) {
  uint8_t four[4];
  switch (family) {
    case AF_INET:
      if (!read_ipv4(text, four)) return 0;
      memcpy(address, four, sizeof four);
      return 1;
    case AF_INET6:
      return read_ipv6(text, address);
    default:
      errno = EAFNOSUPPORT;
      return -1;
  }
}
