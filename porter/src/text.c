#include "text.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void text_bytes(struct text *t, const char *bytes, size_t length) {
  size_t room = t->capacity - t->length - 1;
  if (length > room) {
    t->cut = true;
    length = room;
  }
  memcpy(t->data + t->length, bytes, length);
  t->length += length;
  t->data[t->length] = '\0';
}

void text_add(struct text *t, const char *words) { text_bytes(t, words, strlen(words)); }

void text_number(struct text *t, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + value % 10);
  while ((value /= 10) > 0);
  text_bytes(t, digits + at, sizeof digits - at);
}

void complain(const char *words, ...) {
  char line[256];
  struct text t = {.data = line, .capacity = sizeof line - 1};
  text_add(&t, "porter: ");
  va_list more;
  va_start(more, words);
  for (; words != NULL; words = va_arg(more, const char *)) text_add(&t, words);
  va_end(more);
  line[t.length] = '\n';
  long wrote = write(2, line, t.length + 1);
  (void)wrote;
}
