#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Out of the compiler's sight, which knows what malloc and free do and leaves out what does not matter. */
static void *hide(void *pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

/* Resident pages of this process. */
static long resident(void) {
  char text[128] = "";
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && close(fd) == 0);
  long pages = 0;
  for (const char *at = strchr(text, ' ') + 1; *at >= '0' && *at <= '9'; at++) pages = pages * 10 + (*at - '0');
  return pages;
}

static void fill_and_free(size_t size, int count) {
  static void *all[2000];
  for (int i = 0; i < count; i++) {
    all[i] = malloc(size);
    MUST(all[i] != NULL);
    memset(hide(all[i]), i, size);
  }
  for (int i = 0; i < count; i++) free(all[i]);
}

/* What is freed is the kernel's again, but for one slab of each size with little in it. */
static void check_return(void) {
  fill_and_free(100, 1);
  long before = resident();
  fill_and_free(100, 2000);
  fill_and_free(4096, 200);
  fill_and_free(70000, 20);
  MUST(resident() - before < 16);
}

static void check_limit(void) {
  int status;
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    struct rlimit limit = {16 << 20, 16 << 20};
    MUST(setrlimit(RLIMIT_AS, &limit) == 0);
    MUST(hide(malloc(32 << 20)) == NULL && errno == ENOMEM);
    uint8_t *held = malloc(1 << 20);
    MUST(held != NULL);
    held[0] = 9;
    MUST(realloc(held, 32 << 20) == NULL && errno == ENOMEM && held[0] == 9);
    int count = 0;
    while (hide(malloc(10000)) != NULL) count++;
    MUST(errno == ENOMEM && count > 100);
    _exit(0);
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void check_growth(void) {
  uint8_t *at = NULL;
  size_t size = 1;
  for (; size < 3000000; size = size * 2 + 1) {
    at = realloc(at, size);
    MUST(at != NULL && (size < 2 || at[size / 2 - 1] == (uint8_t)(size / 2)));
    at[size - 1] = (uint8_t)size;
  }
  for (; size > 1; size /= 2) {
    at = realloc(at, size);
    MUST(at != NULL);
    if (size >= 3) at[size / 2 - 1] = 5;
  }
  free(at);
}

void check_memory(bool is_emulated) {
  volatile size_t much = (size_t)1 << 60;
  MUST(hide(malloc(much)) == NULL && errno == ENOMEM);
  MUST(hide(calloc(much, 16)) == NULL && errno == ENOMEM);
  free(NULL);
  check_growth();
  if (is_emulated) return;
  check_return();
  check_limit();
}

/* --- what must end the process --------------------------------------------------------------------------------------- */

static volatile size_t length = 100;

__attribute__((noinline)) static void overflow_stack(void) {
  char bytes[16];
  char *at = hide(bytes);
  for (size_t i = 0; i < length; i++) at[i] = 'x';
  (void)hide(at);
}

__attribute__((noinline)) static void overflow_by_call(void) {
  char bytes[16];
  memcpy(bytes, "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", length);
  (void)hide(bytes);
}

void check_fault(const char *name) {
  char *one = malloc(100), *big = malloc(100000);
  if (strcmp(name, "stack") == 0) overflow_stack();
  if (strcmp(name, "fortify") == 0) overflow_by_call();
  if (strcmp(name, "twice") == 0) {
    free(hide(one));
    free(hide(one));
  }
  if (strcmp(name, "inside") == 0) free(hide(one + 16));
  if (strcmp(name, "inside-big") == 0) free(hide(big + 4096));
  if (strcmp(name, "realloc") == 0) {
    free(hide(one));
    MUST(realloc(hide(one), 1000) == NULL);
  }
  if (strcmp(name, "wild") == 0) {
    char *other = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(hide(other + (1 << 17)));
  }
  _exit(0);
}
