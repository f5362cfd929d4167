/*
 * allocator COUNTERS PROCESSES PACE: so many processes grow, PACE MiB a millisecond each. With PACE 0 each writes to new memory as fast as
 * it can; else they map the same pages again and again, which is fast on a busy machine as well and takes no memory.
 * How many MiB each has is in the file COUNTERS, also after it was killed. Stops at 2 GiB each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1024 * 1024, MOST_MIB = 2048, MOST_PROCESSES = 64 };

static int pages;

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void grow_by_one(uint64_t pace) {
  char *more = pace > 0 ? mmap(NULL, MIB, PROT_READ, MAP_SHARED | MAP_POPULATE, pages, 0)
                        : mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (more == MAP_FAILED) _exit(3);
  for (size_t at = 0; pace == 0 && at < MIB; at += 4096) more[at] = 1;
}

static _Noreturn void grow(volatile uint32_t *counter, uint64_t pace) {
  uint64_t from = now_us();
  for (uint32_t done = 0; done < MOST_MIB; done++) {
    while (pace > 0 && (now_us() - from) * pace / 1000 < done) continue;
    grow_by_one(pace);
    *counter = done + 1;
  }
  for (;;) pause();
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600), processes = atoi(argv[2]);
  uint64_t pace = (uint64_t)atol(argv[3]);
  uint32_t *counters = NULL;
  if (fd >= 0 && ftruncate(fd, MOST_PROCESSES * 4) == 0) {
    counters = mmap(NULL, MOST_PROCESSES * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  pages = memfd_create("pages", 0);
  if (counters == NULL || counters == MAP_FAILED || pages < 0 || ftruncate(pages, MIB) != 0) return 2;
  for (int i = 1; i < processes && i < MOST_PROCESSES; i++) {
    if (fork() == 0) grow(&counters[i], pace);
  }
  grow(&counters[0], pace);
}
