#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "wire.h"

enum { MAX_ITEMS = 65536, FLAG_STDIN = 1, FLAG_PTY = 2 };

static char *read_string(struct reader *r) {
  struct bytes item = read_bytes(r);
  if (r->bad || memchr(item.data, 0, item.length) != NULL) return NULL;
  return strndup((const char *)item.data, item.length);
}

/* A NULL-ended vector of C strings; NULL when one of them holds a NUL, or there are too many. */
static char **read_vector(struct reader *r) {
  uint32_t count = read_u32(r);
  /* Each takes at least its length on the wire: a count beyond that is a lie. */
  if (r->bad || count > MAX_ITEMS || count > (size_t)(r->end - r->at) / 4) return NULL;
  char **vector = calloc((size_t)count + 1, sizeof *vector);
  for (uint32_t i = 0; vector != NULL && i < count; i++) {
    vector[i] = read_string(r);
    if (vector[i] == NULL) {
      r->bad = true;
      break;
    }
  }
  return vector;
}

static void free_vector(char **vector) {
  if (vector == NULL) return;
  for (char **item = vector; *item != NULL; item++) free(*item);
  free(vector);
}

static int resource_of(uint32_t name) {
  switch (name) {
    case 1:
      return RLIMIT_DATA;
    case 2:
      return RLIMIT_NOFILE;
    case 3:
      return RLIMIT_FSIZE;
    default:
      return -1;
  }
}

int exec_wish_read(struct exec_wish *wish, const uint8_t *payload, uint32_t length) {
  struct reader r = {.at = payload, .end = payload + length};
  memset(wish, 0, sizeof *wish);
  uint32_t flags = read_u32(&r);
  wish->spawn.with_stdin = flags & FLAG_STDIN;
  wish->spawn.pty = flags & FLAG_PTY;
  wish->spawn.cwd = read_string(&r);
  wish->spawn.argv = read_vector(&r);
  wish->spawn.envp = read_vector(&r);
  wish->spawn.rows = read_u16(&r);
  wish->spawn.columns = read_u16(&r);
  wish->deadline_ms = read_u64(&r);
  wish->grace_ms = read_u32(&r);
  wish->memory_limit = read_u64(&r);
  uint32_t count = read_u32(&r);
  if (count > MAX_LIMITS) return EINVAL;
  for (uint32_t i = 0; i < count; i++) {
    wish->limits[i].resource = resource_of(read_u32(&r));
    wish->limits[i].value = read_u64(&r);
    if (wish->limits[i].resource < 0) return EINVAL;
  }
  wish->spawn.limits = wish->limits;
  wish->spawn.limit_count = count;
  wish->spawn.message = payload;
  wish->spawn.message_length = length;
  bool complete = wish->spawn.cwd != NULL && wish->spawn.argv != NULL && wish->spawn.envp != NULL && reader_done(&r);
  return complete && wish->spawn.argv[0] != NULL && (flags & ~(FLAG_STDIN | FLAG_PTY)) == 0 ? 0 : EINVAL;
}

void exec_wish_free(struct exec_wish *wish) {
  free((char *)wish->spawn.cwd);
  free_vector(wish->spawn.argv);
  free_vector(wish->spawn.envp);
}
