#include "text.h"

#include <string.h>
#include <unistd.h>

void text_bytes(struct text *text, const char *bytes, size_t length) {
  size_t room = text->capacity - 1 - text->length;
  if (length > room) {
    text->cut = true;
    length = room;
  }
  memcpy(text->data + text->length, bytes, length);
  text->length += length;
  text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *more) { text_bytes(text, more, strlen(more)); }

void text_number(struct text *text, uint64_t number) {
  char digits[20];
  size_t first = sizeof digits;
  do {
    digits[--first] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  text_bytes(text, digits + first, sizeof digits - first);
}

void text_complain(const char *what, const char *more) {
  char line[256];
  /* Room is kept for the end of the line. */
  struct text text = {.data = line, .capacity = sizeof line - 1};
  text_add(&text, "porter: ");
  text_add(&text, what);
  text_add(&text, more);
  line[text.length++] = '\n';
  long wrote = write(2, line, text.length);
  (void)wrote;
}

bool text_read_number(const char **at, uint64_t *number) {
  const char *p = *at;
  while (*p == ' ') p++;
  if (*p < '0' || *p > '9') return false;
  uint64_t value = 0;
  for (; *p >= '0' && *p <= '9'; p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *at = p;
  *number = value;
  return true;
}
