/*
 *   check [emulated]      tries everything in the working directory, which is empty, and writes "ok"
 *   check fault NAME      does what must end it (check_memory.c)
 */
#include "check.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void say(const char *text) { MUST(write(2, text, strlen(text)) == (long)strlen(text)); }

void check_failed(const char *file, int line, const char *condition) {
  char digits[16], *at = digits + sizeof digits;
  *--at = '\0';
  for (; line > 0; line /= 10) *--at = (char)('0' + line % 10);
  const char *reason = strerror(errno);
  say(file);
  say(":");
  say(at);
  say(": ");
  say(condition);
  say(" (");
  say(reason);
  say(")\n");
  _exit(1);
}

static int64_t now_ns(clockid_t clock) {
  struct timespec now;
  MUST(clock_gettime(clock, &now) == 0);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void check_clock(void) {
  enum { MS = 1000000 };
  int64_t first = now_ns(CLOCK_MONOTONIC);
  MUST(usleep(2000) == 0);
  int64_t second = now_ns(CLOCK_MONOTONIC);
  MUST(second - first >= 2 * MS);
  MUST(nanosleep(&(struct timespec){.tv_nsec = 3 * MS}, NULL) == 0);
  MUST(now_ns(CLOCK_MONOTONIC) - second >= 3 * MS);
  /* Not before this was written. */
  MUST(now_ns(CLOCK_REALTIME) / 1000000000 > 1790000000);
  struct timespec now;
  MUST(clock_gettime(12345, &now) == -1 && errno == EINVAL);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "fault") == 0) check_fault(argv[2]);
  bool is_emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
  MUST(argv[argc] == NULL);
  MUST(sysconf(_SC_PAGESIZE) >= 4096 && sysconf(_SC_PAGESIZE) % 4096 == 0);
  MUST(sysconf(-5) == -1 && errno == EINVAL);
  check_clock();
  check_memory(is_emulated);
  check_files();
  check_descriptors();
  check_signals();
  check_processes();
  check_sockets();
  return write(1, "ok\n", 3) == 3 ? 0 : 1;
}
