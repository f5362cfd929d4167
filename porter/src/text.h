/* Small texts without printf and scanf, which alone would make up a quarter of the program. */
#ifndef PORTER_TEXT_H
#define PORTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text being put together in a buffer; always ended by a zero. What does not fit is left off and remembered. */
struct text {
  char *data;
  size_t capacity; /* at least 1 */
  size_t length;
  bool cut;
};

void text_bytes(struct text *text, const char *bytes, size_t length);
void text_add(struct text *text, const char *more);
void text_number(struct text *text, uint64_t number);
/* Writes "porter: " and these two texts as one line to stderr. */
void text_complain(const char *what, const char *more);

/* Reads the decimal number at *at, after blanks, and moves *at behind it. False when there is none or it is too large. */
bool text_read_number(const char **at, uint64_t *number);

#endif
