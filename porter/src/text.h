/* Short texts without stdio, whose formatting alone is half as large as all of porter's own code. */
#ifndef PORTER_TEXT_H
#define PORTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Always ends with a zero. What does not fit is left out, and `cut` says so. */
struct text {
  char *data;
  size_t capacity, length;
  bool cut;
};

void text_bytes(struct text *t, const char *bytes, size_t length);
void text_add(struct text *t, const char *words);
void text_number(struct text *t, uint64_t value);
/* The words, up to a NULL, as one line on stderr. */
void complain(const char *words, ...) __attribute__((sentinel));

#endif
