/*
 * The runtime's functions beside those of glibc, with random arguments, under ASan and UBSan: both must give the same answer.
 * The runtime's have the prefix `own_` here (renamed.h).
 *
 *   runtime-oracle [SEED]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int own_bcmp(const void *, const void *, size_t);
void *own_calloc(size_t, size_t);
void own_explicit_bzero(void *, size_t);
void own_free(void *);
int own_inet_pton(int, const char *, void *);
void *own_malloc(size_t);
void *own_memchr(const void *, int, size_t);
int own_memcmp(const void *, const void *, size_t);
void *own_memcpy(void *, const void *, size_t);
void *own_memmove(void *, const void *, size_t);
void *own_mempcpy(void *, const void *, size_t);
void *own_memset(void *, int, size_t);
void own_qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *own_realloc(void *, size_t);
char *own_stpcpy(char *, const char *);
char *own_strcat(char *, const char *);
char *own_strchr(const char *, int);
char *own_strchrnul(const char *, int);
int own_strcmp(const char *, const char *);
char *own_strcpy(char *, const char *);
char *own_strdup(const char *);
char *own_strerror(int);
size_t own_strlen(const char *);
int own_strncmp(const char *, const char *, size_t);
char *own_strndup(const char *, size_t);
size_t own_strnlen(const char *, size_t);
char *own_strrchr(const char *, int);
size_t own_strspn(const char *, const char *);

size_t runtime_page_size = 4096;
uint64_t runtime_secret = 0x0123456789ABCDEF;

#define MUST(condition) \
  do { \
    if (condition) break; \
    fprintf(stderr, "oracle: line %d: %s\n", __LINE__, #condition); \
    exit(1); \
  } while (0)

static uint64_t state;

/* xorshift64* */
static uint32_t chance(uint32_t below) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 0x2545F4914F6CDD1D) >> 33) % below;
}

static int sign(int number) { return (number > 0) - (number < 0); }

/* Mostly short, because that is where the cases are; sometimes beyond every threshold. */
static size_t some_length(void) { return chance(4) > 0 ? chance(80) : chance(3000); }

static void fill(uint8_t *to, size_t length) {
  for (size_t i = 0; i < length; i++) to[i] = (uint8_t)chance(256);
}

static void try_bytes(void) {
  /* Exactly as long as needed, so that the sanitizer sees a byte too many. */
  size_t length = some_length(), before = chance(20), after = chance(20), all = before + length + after;
  uint8_t *a = malloc(all), *b = malloc(all), *c = malloc(length);
  fill(a, all);
  memcpy(b, a, all);
  fill(c, length);
  MUST(own_memcpy(a + before, c, length) == a + before);
  memcpy(b + before, c, length);
  MUST(memcmp(a, b, all) == 0);
  MUST(own_memmove(a + before, a + after, length) == a + before);
  memmove(b + before, b + after, length);
  MUST(memcmp(a, b, all) == 0);
  int value = (int)chance(600) - 300;
  MUST(own_memset(a + before, value, length) == a + before);
  memset(b + before, value, length);
  MUST(memcmp(a, b, all) == 0);
  MUST(own_mempcpy(a, c, length) == a + length);
  memcpy(b, c, length);
  MUST(memcmp(a, b, all) == 0);
  if (length > 0 && chance(2)) a[chance((uint32_t)length)] = (uint8_t)chance(256);
  MUST(sign(own_memcmp(a, b, all)) == sign(memcmp(a, b, all)));
  MUST((own_bcmp(a, b, all) == 0) == (memcmp(a, b, all) == 0));
  MUST(own_memchr(a, value, all) == memchr(a, value, all));
  own_explicit_bzero(c, length);
  for (size_t i = 0; i < length; i++) MUST(c[i] == 0);
  free(a);
  free(b);
  free(c);
}

/* Of few different letters, one of them negative as a char, so that equal parts are common. */
static char *some_text(void) {
  static const char letters[] = {'a', 'b', '/', (char)0xE4};
  size_t length = chance(40);
  char *text = malloc(length + 1);
  for (size_t i = 0; i < length; i++) text[i] = letters[chance(sizeof letters)];
  text[length] = '\0';
  return text;
}

static void try_strings(void) {
  char *a = some_text(), *b = some_text();
  int wanted = chance(5) == 0 ? 0 : a[chance((uint32_t)strlen(a) + 1)];
  size_t most = chance(50);
  MUST(own_strlen(a) == strlen(a));
  MUST(own_strnlen(a, most) == strnlen(a, most));
  MUST(sign(own_strcmp(a, b)) == sign(strcmp(a, b)));
  MUST(sign(own_strncmp(a, b, most)) == sign(strncmp(a, b, most)));
  MUST(own_strchr(a, wanted) == strchr(a, wanted));
  MUST(own_strchr(a, 'x') == NULL);
  MUST(own_strrchr(a, wanted) == strrchr(a, wanted));
  MUST(own_strrchr(a, 'x') == NULL);
  MUST(own_strchrnul(a, wanted) == strchrnul(a, wanted));
  MUST(own_strspn(a, b) == strspn(a, b));
  char *copy = malloc(strlen(a) + strlen(b) + 1);
  MUST(own_strcpy(copy, a) == copy && strcmp(copy, a) == 0);
  MUST(own_strcat(copy, b) == copy && strncmp(copy, a, strlen(a)) == 0 && strcmp(copy + strlen(a), b) == 0);
  MUST(own_stpcpy(copy, b) == copy + strlen(b) && strcmp(copy, b) == 0);
  char *twin = own_strdup(a), *part = own_strndup(a, most), *theirs = strndup(a, most);
  MUST(strcmp(twin, a) == 0 && strcmp(part, theirs) == 0);
  own_free(twin);
  own_free(part);
  free(theirs);
  free(copy);
  free(a);
  free(b);
}

static void try_address(void) {
  static const char *const good[] = {"1.2.3.4", "255.255.255.255", "0.0.0.0", "::", "::1", "1::", "fe80::1:2", "1:2:3:4:5:6:7:8",
    "::ffff:10.0.0.1", "1:2:3:4:5:6:1.2.3.4", "1:2:3::4:5:6:7", "ABCD:ef01::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "64:ff9b::192.0.2.1"};
  static const char letters[] = ":.01259afGx% ";
  char text[80];
  strcpy(text, good[chance(sizeof good / sizeof *good)]);
  for (uint32_t changes = chance(4); changes > 0; changes--) {
    size_t length = strlen(text), at = chance((uint32_t)length + 1);
    char letter = letters[chance(sizeof letters - 1)];
    switch (chance(3)) {
      case 0:
        memmove(text + at + 1, text + at, length + 1 - at);
        text[at] = letter;
        break;
      case 1:
        if (at < length) memmove(text + at, text + at + 1, length - at);
        break;
      default:
        if (at < length) text[at] = letter;
    }
  }
  const int families[] = {AF_INET, AF_INET6, AF_UNIX};
  for (int i = 0; i < 3; i++) {
    uint8_t own[16] = {0}, theirs[16] = {0};
    int answer = own_inet_pton(families[i], text, own);
    MUST(answer == inet_pton(families[i], text, theirs));
    if (answer == 1) MUST(memcmp(own, theirs, sizeof own) == 0);
  }
}

static int compare_words(const void *a, const void *b) { return memcmp(a, b, 4); }
static int compare_longer(const void *a, const void *b) { return memcmp(a, b, 12); }
static int compare_numbers(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void try_sort(void) {
  static const struct {
    size_t size;
    int (*compare)(const void *, const void *);
  } kinds[] = {{4, compare_words}, {8, compare_numbers}, {12, compare_longer}};
  uint32_t kind = chance(3), count = chance(chance(10) == 0 ? 500 : 20), different = 1 + chance(255);
  size_t bytes = kinds[kind].size * count;
  uint8_t *own = malloc(bytes), *theirs = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) own[i] = (uint8_t)chance(different);
  if (bytes > 0) memcpy(theirs, own, bytes);
  own_qsort(own, count, kinds[kind].size, kinds[kind].compare);
  if (bytes > 0) qsort(theirs, count, kinds[kind].size, kinds[kind].compare);
  MUST(bytes == 0 || memcmp(own, theirs, bytes) == 0);
  free(own);
  free(theirs);
}

/* --- malloc ---------------------------------------------------------------------------------------------------------- */

static size_t mapped;
static bool is_out_of_memory;

static void *refuse(void) {
  errno = ENOMEM;
  return MAP_FAILED;
}

void *counted_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset);
void *counted_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  if (is_out_of_memory) return refuse();
  void *made = mmap(at, length, protection, flags, fd, offset);
  if (made != MAP_FAILED) mapped += length;
  return made;
}

int counted_munmap(void *at, size_t length);
int counted_munmap(void *at, size_t length) {
  mapped -= length;
  return munmap(at, length);
}

void *counted_mremap(void *at, size_t old_length, size_t length, int flags, void *to);
void *counted_mremap(void *at, size_t old_length, size_t length, int flags, void *to) {
  if (is_out_of_memory) return refuse();
  void *made = mremap(at, old_length, length, flags, to);
  /* A move onto a mapping replaces that. */
  if (made != MAP_FAILED) mapped = mapped - old_length + (flags & MREMAP_FIXED ? 0 : length);
  return made;
}

enum { PLACES = 400 };
static struct {
  uint8_t *at;
  size_t size;
  uint8_t value;
} places[PLACES];

static size_t some_size(void) {
  switch (chance(12)) {
    case 0:
      return chance(300000);
    case 1:
      return chance(40000);
    case 2:
      return chance(5000);
    default:
      return chance(300);
  }
}

static void check_place(uint32_t i, size_t size) {
  for (size_t at = 0; at < size; at++) MUST(places[i].at[at] == places[i].value);
}

static void keep(uint32_t i, uint8_t *at, size_t size) {
  MUST((uintptr_t)at % 16 == 0);
  places[i].at = at;
  places[i].size = size;
  places[i].value = (uint8_t)chance(256);
  memset(at, places[i].value, size);
}

static void try_memory(void) {
  uint32_t i = chance(PLACES);
  size_t size = some_size();
  is_out_of_memory = chance(50) == 0;
  if (places[i].at == NULL) {
    bool zeroed = chance(3) == 0;
    uint8_t *at = zeroed ? own_calloc(size, 1) : own_malloc(size);
    MUST(at != NULL || (is_out_of_memory && errno == ENOMEM));
    for (size_t k = 0; zeroed && at != NULL && k < size; k++) MUST(at[k] == 0);
    if (at != NULL) keep(i, at, size);
  } else if (chance(3) == 0) {
    uint8_t *at = own_realloc(places[i].at, size);
    MUST(at != NULL || is_out_of_memory);
    if (at != NULL) places[i].at = at;
    check_place(i, at != NULL && size < places[i].size ? size : places[i].size);
    if (at != NULL) keep(i, at, size);
  } else {
    check_place(i, places[i].size);
    errno = EXDEV;
    own_free(places[i].at);
    MUST(errno == EXDEV);
    places[i].at = NULL;
  }
  is_out_of_memory = false;
}

static void end_memory(void) {
  for (uint32_t i = 0; i < PLACES; i++) {
    if (places[i].at != NULL) check_place(i, places[i].size);
    own_free(places[i].at);
  }
  /* At most one empty slab of 64 KiB for each of 36 sizes. */
  MUST(mapped <= 36 * 65536);
  MUST(own_malloc(SIZE_MAX) == NULL && errno == ENOMEM);
  MUST(own_malloc(PTRDIFF_MAX) == NULL && errno == ENOMEM);
  MUST(own_calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
  MUST(own_calloc((size_t)1 << 32, (size_t)1 << 32) == NULL && errno == ENOMEM);
  uint8_t *grown = own_malloc(100000);
  memset(grown, 7, 100000);
  MUST(own_realloc(grown, SIZE_MAX) == NULL && errno == ENOMEM && grown[99999] == 7);
  own_free(grown);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261117;
  for (int i = 0; i < 20000; i++) try_bytes();
  for (int i = 0; i < 20000; i++) try_strings();
  for (int i = 0; i < 100000; i++) try_address();
  for (int i = 0; i < 5000; i++) try_sort();
  for (int i = 0; i < 20000; i++) try_memory();
  end_memory();
  for (int number = 0; number < 134; number++) {
    if (strncmp(strerror(number), "Unknown error", 13) != 0) MUST(strcmp(own_strerror(number), strerror(number)) == 0);
  }
  MUST(strcmp(own_strerror(-1), "Unknown error") == 0 && strcmp(own_strerror(5000), "Unknown error") == 0);
  return 0;
}
