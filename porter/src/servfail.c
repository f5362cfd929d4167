#include "servfail.h"

#include <string.h>

enum {
  RESPONSE = 0x80,         /* third byte */
  KEPT_FLAGS = 0x79,       /* third byte: the kind of question, and whether recursion is wanted */
  RECURSION_OFFERED = 0x80, /* fourth byte */
  SERVER_FAILURE = 2,
  TYPE_AND_CLASS = 4,
};

/* Where the first question ends, or 0 when that cannot be told. */
static size_t question_end(const uint8_t *message, size_t length) {
  size_t at = DNS_HEADER;
  while (at < length && message[at] != 0) {
    if (message[at] > 63) return 0; /* compressed: no question is */
    at += 1u + message[at];
  }
  at += 1 + TYPE_AND_CLASS;
  return at <= length && at <= SERVFAIL_MOST ? at : 0;
}

size_t servfail(uint8_t answer[SERVFAIL_MOST], const uint8_t *message, size_t length) {
  size_t end = question_end(message, length);
  memset(answer, 0, DNS_HEADER);
  if (end > 0) memcpy(answer, message, end);
  memcpy(answer, message, 2);
  answer[2] = (uint8_t)(RESPONSE | (message[2] & KEPT_FLAGS));
  answer[3] = RECURSION_OFFERED | SERVER_FAILURE;
  memset(answer + 4, 0, DNS_HEADER - 4);
  answer[5] = end > 0; /* the question is repeated, so that whoever asked knows its own */
  return end > 0 ? end : DNS_HEADER;
}
