#include "quota.h"

#include <sys/resource.h>

#include "loop.h"
#include "notice.h"

uint32_t quota(uint32_t most, uint32_t part) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / part >= most) return most;
  return (uint32_t)(limit.rlim_cur / part);
}

bool quota_is_last(int fd) {
  enum { KEPT = 12 };
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd + KEPT >= limit.rlim_cur;
}

void quota_exceeded(int failure, const char *what) {
  static uint64_t told_ms;
  uint64_t now_ms = loop_now_ms();
  if (told_ms != 0 && now_ms - told_ms < 1000) return;
  told_ms = now_ms;
  notice(NOTICE_EXHAUSTED, (uint32_t)failure, what);
}
