#include "pace.h"

enum {
  /* A small piece costs 1, and the write in which it leaves WRITE_COST more: of one program alone one piece a millisecond is read. */
  EARNED_PER_MS = 4,
  WRITE_COST = 3,
  MOST = 64 * (WRITE_COST + 1),
  /* Less than what programs write at a time that collect their output. */
  SMALL_MOST = 4 * 1024,
};

static int64_t left = MOST;
static uint64_t counted_ms;
static bool spent;

static void earn(uint64_t amount) {
  left = amount >= (uint64_t)(MOST - left) ? MOST : left + (int64_t)amount;
}

void pace_turn(uint64_t now_ms) {
  if (spent) left -= WRITE_COST;
  spent = false;
  uint64_t passed_ms = now_ms - counted_ms;
  counted_ms = now_ms;
  earn(passed_ms > MOST ? 2 * MOST * EARNED_PER_MS : passed_ms * EARNED_PER_MS);
}

bool pace_allows(void) { return left > 0; }

int pace_wait_ms(void) { return left > 0 ? 1 : (int)(-left / EARNED_PER_MS) + 1; }

void pace_spend(uint64_t bytes) {
  if (bytes == 0 || bytes >= SMALL_MOST) return;
  left--;
  spent = true;
}

void pace_earn(void) { earn(WRITE_COST + 1); }
