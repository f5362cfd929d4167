/*
 * Functions on bytes of known length. Compilers call the first four without being asked, so this file is compiled with
 * options that keep them from doing so here: memcpy must not become a call of memcpy.
 *
 * The names are in parentheses because a header may have macros for them too.
 *
 * A copy goes up through memory and loads each part before it stores it, so it is right for overlapping memory too, as long
 * as the target is below the source.
 */
#include <stdint.h>
#include <string.h>

/* Both machines load and store these at any address. */
typedef uint16_t half __attribute__((aligned(1), may_alias));
typedef uint32_t word __attribute__((aligned(1), may_alias));
typedef uint64_t quad __attribute__((aligned(1), may_alias));
typedef uint64_t block __attribute__((vector_size(16), aligned(1), may_alias));

enum {
  /* From here on the processor's own copying is faster than a loop. */
  LONG = 512,
};

#define AT(type, p) (*(type *)(p))
#define FROM(type, p) (*(const type *)(p))

/* Each case covers its lengths with two parts that may overlap. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t length) {
  if (length >= 8) {
    quad first = FROM(quad, from), last = FROM(quad, from + length - 8);
    AT(quad, to) = first;
    AT(quad, to + length - 8) = last;
  } else if (length >= 4) {
    word first = FROM(word, from), last = FROM(word, from + length - 4);
    AT(word, to) = first;
    AT(word, to + length - 4) = last;
  } else if (length >= 2) {
    half first = FROM(half, from), last = FROM(half, from + length - 2);
    AT(half, to) = first;
    AT(half, to + length - 2) = last;
  } else if (length == 1) *to = *from;
}

static inline void copy_up(uint8_t *to, const uint8_t *from, size_t length) {
  if (length < 16) {
    copy_short(to, from, length);
    return;
  }
  block last = FROM(block, from + length - 16);
  uint8_t *end = to + length - 16;
#if defined(__x86_64__)
  if (length >= LONG) {
    size_t quads = (length - 1) / 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(quads) : : "memory");
    AT(block, end) = last;
    return;
  }
#endif
  for (; to < end; to += 16, from += 16) AT(block, to) = FROM(block, from);
  AT(block, end) = last;
}

static inline void copy_down(uint8_t *to, const uint8_t *from, size_t length) {
  if (length < 16) {
    copy_short(to, from, length);
    return;
  }
  block first = FROM(block, from);
  for (size_t left = length; left > 16; left -= 16) AT(block, to + left - 16) = FROM(block, from + left - 16);
  AT(block, to) = first;
}

void *(memcpy)(void *restrict to, const void *restrict from, size_t length) {
  copy_up(to, from, length);
  return to;
}

void *(memmove)(void *to, const void *from, size_t length) {
  /* As unsigned numbers: true where the target is below the source, and where it is above its end. */
  if ((uintptr_t)to - (uintptr_t)from >= length) copy_up(to, from, length);
  else copy_down(to, from, length);
  return to;
}

void *(memset)(void *at, int value, size_t length) {
  uint8_t *to = at, *end = to + length;
  quad eight = (uint8_t)value * 0x0101010101010101u;
  if (length < 16) {
    if (length >= 8) AT(quad, to) = AT(quad, end - 8) = eight;
    else if (length >= 4) AT(word, to) = AT(word, end - 4) = (word)eight;
    else while (to < end) *to++ = (uint8_t)value;
    return at;
  }
#if defined(__x86_64__)
  if (length >= LONG) {
    size_t quads = length / 8;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(quads) : "a"(eight) : "memory");
    AT(quad, end - 8) = eight;
    return at;
  }
#endif
  const block sixteen = {eight, eight};
  for (; to < end - 16; to += 16) AT(block, to) = sixteen;
  AT(block, end - 16) = sixteen;
  return at;
}

int (memcmp)(const void *left, const void *right, size_t length) {
  const uint8_t *a = left, *b = right, *end = a + length;
  while (end - a >= 8 && FROM(quad, a) == FROM(quad, b)) {
    a += 8;
    b += 8;
  }
  for (; a < end; a++, b++) {
    if (*a != *b) return *a - *b;
  }
  return 0;
}

/* clang makes this of a memcmp whose order nobody looks at. */
int (bcmp)(const void *left, const void *right, size_t length) { return memcmp(left, right, length); }

void *(mempcpy)(void *restrict to, const void *restrict from, size_t length) {
  copy_up(to, from, length);
  return (uint8_t *)to + length;
}

void *(memchr)(const void *at, int value, size_t length) {
  const uint8_t *p = at;
  for (const uint8_t *end = p + length; p < end; p++) {
    if (*p == (uint8_t)value) return (void *)p;
  }
  return NULL;
}

/* The empty instruction takes the address, so no compiler can tell that nobody reads the memory afterwards. */
void (explicit_bzero)(void *at, size_t length) {
  memset(at, 0, length);
  __asm__ volatile("" : : "r"(at) : "memory");
}
