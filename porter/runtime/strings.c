/*
 * Functions on C strings. Their arguments are short (paths, names, options), so they go byte by byte. The names are in
 * parentheses because a header may have macros for them too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t (strlen)(const char *text) {
  const char *end = text;
  while (*end != '\0') end++;
  return (size_t)(end - text);
}

size_t (strnlen)(const char *text, size_t most) {
  size_t length = 0;
  while (length < most && text[length] != '\0') length++;
  return length;
}

int (strcmp)(const char *left, const char *right) {
  while (*left == *right && *left != '\0') {
    left++;
    right++;
  }
  return (uint8_t)*left - (uint8_t)*right;
}

int (strncmp)(const char *left, const char *right, size_t most) {
  for (; most > 0; most--, left++, right++) {
    if (*left != *right || *left == '\0') return (uint8_t)*left - (uint8_t)*right;
  }
  return 0;
}

char *(strchrnul)(const char *text, int wanted) {
  while (*text != (char)wanted && *text != '\0') text++;
  return (char *)text;
}

char *(strchr)(const char *text, int wanted) {
  char *found = strchrnul(text, wanted);
  return *found == (char)wanted ? found : NULL;
}

char *(strrchr)(const char *text, int wanted) {
  for (const char *at = text + strlen(text);; at--) {
    if (*at == (char)wanted) return (char *)at;
    if (at == text) return NULL;
  }
}

size_t (strspn)(const char *text, const char *accepted) {
  size_t length = 0;
  while (text[length] != '\0' && strchr(accepted, text[length]) != NULL) length++;
  return length;
}

char *(stpcpy)(char *restrict to, const char *restrict from) {
  size_t length = strlen(from);
  return (char *)memcpy(to, from, length + 1) + length;
}

char *(strcpy)(char *restrict to, const char *restrict from) { return memcpy(to, from, strlen(from) + 1); }

char *(strcat)(char *restrict to, const char *restrict from) {
  strcpy(to + strlen(to), from);
  return to;
}

char *(strndup)(const char *text, size_t most) {
  size_t length = strnlen(text, most);
  char *copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char *(strdup)(const char *text) { return strndup(text, SIZE_MAX); }
