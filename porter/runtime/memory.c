/*
 * malloc and free. Every allocation is in a region: a mapping that begins at a multiple of 64 KiB with a head that the
 * allocations themselves do not touch. So the head of a pointer's region is found by rounding down, and free() can tell
 * whether the pointer is one that malloc() returned and that is in use: any other ends the process.
 *
 *   slab    a region of 64 KiB with slots of one size, for requests up to 16 KiB; a bit for each slot says whether it is used
 *   single  a region for one larger request, unmapped when that is freed
 *
 * A process of one thread needs no lock.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

enum {
  REGION = 64 * 1024,
  ALIGNMENT = 16,
  SMALL_MOST = 16 * 1024,
  /* Slot sizes: multiples of 16 up to 128, then four to each doubling. */
  FINE_MOST = 128,
  CLASSES = FINE_MOST / ALIGNMENT + 4 * 7,
  BITS = 64,
  BITMAP_MOST = REGION / ALIGNMENT / BITS,
  /* An empty slab is kept for the next request of its size, unless it has more memory than this. */
  KEPT_MOST = 32 * 1024,
};

struct region {
  uint64_t seal;
  size_t length;
  struct slab *slab; /* the region itself, or NULL for a single */
} __attribute__((aligned(64)));

struct slab {
  struct region region;
  struct slab *next, *previous; /* of those of its class that may have a free slot */
  uint32_t class, slot_size, slot_count, used_count;
  uint32_t first_open;  /* no word of the bitmap below this one has a free slot */
  uint32_t touched;     /* bytes up to the end of the highest slot that was ever used */
  bool is_listed;
  uint64_t used[BITMAP_MOST]; /* slots that do not exist count as used */
};

_Static_assert((REGION - sizeof(struct slab)) / SMALL_MOST >= 2, "a slab is for more than one");

static struct slab *open_slabs[CLASSES];

/* --- regions --------------------------------------------------------------------------------------------------------- */

static uint64_t seal_of(const struct region *region) { return (uint64_t)(uintptr_t)region ^ runtime_secret; }

static struct region *region_of(const void *pointer) {
  struct region *region = (struct region *)((uintptr_t)pointer & ~(uintptr_t)(REGION - 1));
  if (region->seal != seal_of(region)) runtime_panic("free or realloc of a pointer that malloc did not return");
  return region;
}

static uint8_t *map(size_t length) {
  return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/*
 * All regions have a length that is a multiple of REGION, of which only what is used takes memory. The kernel puts each below
 * the one before, or where one was, so almost all are aligned without more.
 */
static void *map_region(size_t length) {
  uint8_t *at = map(length);
  size_t beyond = (uintptr_t)at & (REGION - 1);
  if (at != MAP_FAILED && beyond > 0) {
    munmap(at, length);
    /* So much that an aligned part is in it; the rest is given back. */
    at = map(length + REGION);
    if (at != MAP_FAILED) {
      size_t before = -(uintptr_t)at & (REGION - 1);
      if (before > 0) munmap(at, before);
      at += before;
      munmap(at + length, REGION - before);
    }
  }
  if (at == MAP_FAILED) return NULL;
  struct region *region = (struct region *)at;
  region->length = length;
  region->seal = seal_of(region);
  return region;
}

static void unmap_region(struct region *region) { munmap(region, region->length); }

/* --- slabs ----------------------------------------------------------------------------------------------------------- */

/* The class of a size from 1 to SMALL_MOST, and the size of its slots. */
static uint32_t class_of(size_t size, uint32_t *slot_size) {
  if (size <= FINE_MOST) {
    *slot_size = (uint32_t)(size + ALIGNMENT - 1) & ~(uint32_t)(ALIGNMENT - 1);
    return *slot_size / ALIGNMENT - 1;
  }
  /* The three highest bits of the last byte's offset: which doubling, and which quarter of it. */
  uint32_t last = (uint32_t)size - 1;
  uint32_t doubling = 31 - (uint32_t)__builtin_clz(last), shift = doubling - 2;
  *slot_size = ((last >> shift) + 1) << shift;
  return FINE_MOST / ALIGNMENT + 4 * (doubling - 7) + ((last >> shift) & 3);
}

static void list(struct slab *slab) {
  slab->previous = NULL;
  slab->next = open_slabs[slab->class];
  if (slab->next != NULL) slab->next->previous = slab;
  slab->is_listed = true;
  open_slabs[slab->class] = slab;
}

static void unlist(struct slab *slab) {
  if (slab->previous == NULL) open_slabs[slab->class] = slab->next;
  else slab->previous->next = slab->next;
  if (slab->next != NULL) slab->next->previous = slab->previous;
  slab->is_listed = false;
}

static struct slab *make_slab(uint32_t class, uint32_t slot_size) {
  struct slab *slab = map_region(REGION);
  if (slab == NULL) return NULL;
  slab->region.slab = slab;
  slab->class = class;
  slab->slot_size = slot_size;
  slab->slot_count = (REGION - sizeof *slab) / slot_size;
  uint32_t words = (slab->slot_count + BITS - 1) / BITS, beyond = words * BITS - slab->slot_count;
  if (beyond > 0) slab->used[words - 1] = ~(uint64_t)0 << (BITS - beyond);
  list(slab);
  return slab;
}

/* The lowest free slot, so that few pages are touched; NULL if there is none. */
static void *take_slot(struct slab *slab) {
  uint32_t words = (slab->slot_count + BITS - 1) / BITS;
  for (uint32_t i = slab->first_open; i < words; i++) {
    if (~slab->used[i] == 0) continue;
    uint32_t bit = (uint32_t)__builtin_ctzll(~slab->used[i]), offset = (uint32_t)sizeof *slab + (i * BITS + bit) * slab->slot_size;
    slab->first_open = i;
    slab->used[i] |= (uint64_t)1 << bit;
    slab->used_count++;
    if (slab->touched < offset + slab->slot_size) slab->touched = offset + slab->slot_size;
    return (uint8_t *)slab + offset;
  }
  slab->first_open = words;
  return NULL;
}

static void *allocate_small(size_t size) {
  uint32_t slot_size, class = class_of(size, &slot_size);
  for (;;) {
    struct slab *slab = open_slabs[class];
    if (slab == NULL) slab = make_slab(class, slot_size);
    if (slab == NULL) return NULL;
    void *slot = take_slot(slab);
    if (slot != NULL) return slot;
    /* Full. It comes back when one of its slots is freed. */
    unlist(slab);
  }
}

/* The slot's number. Ends the process if the pointer is not to the beginning of a slot that is in use. */
static uint32_t slot_of(const struct slab *slab, const void *pointer) {
  size_t offset = (uintptr_t)pointer - (uintptr_t)slab - sizeof *slab, slot = offset / slab->slot_size;
  if (offset % slab->slot_size != 0 || slot >= slab->slot_count) runtime_panic("free or realloc within an allocation");
  if ((slab->used[slot / BITS] >> (slot % BITS) & 1) == 0) runtime_panic("free or realloc of what is free already");
  return (uint32_t)slot;
}

static void free_small(struct slab *slab, const void *pointer) {
  uint32_t slot = slot_of(slab, pointer);
  slab->used[slot / BITS] &= ~((uint64_t)1 << (slot % BITS));
  slab->used_count--;
  if (slab->first_open > slot / BITS) slab->first_open = slot / BITS;
  if (!slab->is_listed) list(slab);
  bool is_only = slab->next == NULL && slab->previous == NULL;
  if (slab->used_count > 0 || (is_only && slab->touched <= KEPT_MOST)) return;
  unlist(slab);
  unmap_region(&slab->region);
}

/* --- singles --------------------------------------------------------------------------------------------------------- */

static size_t single_length(size_t size) { return (size + sizeof(struct region) + REGION - 1) & -(size_t)REGION; }

static void *allocate_single(size_t size) {
  struct region *region = map_region(single_length(size));
  return region == NULL ? NULL : region + 1;
}

static void check_single(const struct region *region, const void *pointer) {
  if (pointer != region + 1) runtime_panic("free or realloc within an allocation");
}

/* Grows and shrinks without a copy: the kernel moves the pages, where they cannot stay to a new region. */
static void *resize_single(struct region *region, size_t size) {
  size_t length = single_length(size);
  if (length == region->length) return region + 1;
  if (mremap(region, region->length, length, 0) == MAP_FAILED) {
    size_t old_length = region->length;
    struct region *moved = map_region(length);
    if (moved == NULL) return NULL;
    if (mremap(region, old_length, length, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == MAP_FAILED) {
      unmap_region(moved);
      errno = ENOMEM;
      return NULL;
    }
    region = moved;
    region->seal = seal_of(region);
  }
  region->length = length;
  return region + 1;
}

/* --- the C functions ------------------------------------------------------------------------------------------------- */

void *malloc(size_t size) {
  if (size == 0) size = 1;
  if (size > PTRDIFF_MAX - REGION) {
    errno = ENOMEM;
    return NULL;
  }
  return size <= SMALL_MOST ? allocate_small(size) : allocate_single(size);
}

void *calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  void *memory = malloc(bytes);
  /* A single is new, and what is new is zero. */
  if (memory != NULL && bytes <= SMALL_MOST) memset(memory, 0, bytes);
  return memory;
}

void free(void *pointer) {
  if (pointer == NULL) return;
  /* Callers report the failure that made them give up. */
  int failure = errno;
  struct region *region = region_of(pointer);
  if (region->slab != NULL) free_small(region->slab, pointer);
  else {
    check_single(region, pointer);
    unmap_region(region);
  }
  errno = failure;
}

void *realloc(void *pointer, size_t size) {
  if (pointer == NULL) return malloc(size);
  if (size == 0) size = 1;
  struct region *region = region_of(pointer);
  size_t room;
  if (region->slab != NULL) {
    uint32_t slot_size = 0;
    slot_of(region->slab, pointer);
    room = region->slab->slot_size;
    if (size <= SMALL_MOST) class_of(size, &slot_size);
    if (slot_size == room) return pointer;
  } else {
    check_single(region, pointer);
    room = region->length - sizeof *region;
    if (size > SMALL_MOST && size <= PTRDIFF_MAX - REGION) return resize_single(region, size);
  }
  void *moved = malloc(size);
  if (moved == NULL) return NULL;
  memcpy(moved, pointer, size < room ? size : room);
  free(pointer);
  return moved;
}
