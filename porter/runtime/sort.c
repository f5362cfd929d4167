/* qsort, as a heap sort: no memory of its own, no recursion, and no order of the input that makes it slow. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct items {
  uint8_t *first;
  size_t size;
  int (*compare)(const void *, const void *);
};

static uint8_t *at(const struct items *items, size_t index) { return items->first + index * items->size; }

static void swap(const struct items *items, size_t a, size_t b) {
  uint8_t *left = at(items, a), *right = at(items, b);
  for (size_t left_over = items->size; left_over > 0;) {
    uint64_t part;
    size_t length = left_over < sizeof part ? left_over : sizeof part;
    memcpy(&part, left, length);
    memcpy(left, right, length);
    memcpy(right, &part, length);
    left += length;
    right += length;
    left_over -= length;
  }
}

/* Lets the item at `root` sink until neither of the two below it is larger. */
static void sink(const struct items *items, size_t root, size_t count) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && items->compare(at(items, child), at(items, child + 1)) < 0) child++;
    if (items->compare(at(items, root), at(items, child)) >= 0) return;
    swap(items, root, child);
  }
}

void qsort(void *first, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  struct items items = {first, size, compare};
  for (size_t root = count / 2; root-- > 0;) sink(&items, root, count);
  while (count > 1) {
    swap(&items, 0, --count);
    sink(&items, 0, count);
  }
}
