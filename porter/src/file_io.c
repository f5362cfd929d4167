#include "file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum file_kind kind_of(mode_t mode) {
  return S_ISREG(mode) ? KIND_FILE : S_ISDIR(mode) ? KIND_DIRECTORY : S_ISLNK(mode) ? KIND_LINK : KIND_OTHER;
}

enum file_kind kind_of_entry(int directory, const struct dirent *entry) {
  struct stat st;
  if (entry->d_type != DT_UNKNOWN) return kind_of(DTTOIF(entry->d_type));
  return fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? kind_of(st.st_mode) : KIND_OTHER;
}

uint64_t mtime_of(const struct stat *st) {
  const int64_t most = 9000000000; /* seconds; beyond it nanoseconds do not fit */
  int64_t seconds = st->st_mtim.tv_sec;
  return seconds < 0 || seconds > most ? 0 : (uint64_t)seconds * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

void write_stat(struct writer *w, const struct stat *st) {
  write_u32(w, kind_of(st->st_mode));
  write_u32(w, st->st_mode & 07777);
  write_u64(w, (uint64_t)st->st_size);
  write_u64(w, mtime_of(st));
  write_u32(w, st->st_uid);
  write_u32(w, st->st_gid);
  write_u64(w, st->st_ino);
  write_u32(w, (uint32_t)st->st_nlink);
}

int write_all(int fd, const uint8_t *data, size_t length) {
  for (size_t done = 0; done < length;) {
    long wrote = write(fd, data + done, length - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += (size_t)wrote;
  }
  return 0;
}

static uint8_t out[IO_BUFFER];
static size_t out_filled;

void io_flush(void) {
  if (out_filled > 0 && write_all(WORKER_OUT, out, out_filled) != 0) _exit(1);
  out_filled = 0;
}

void io_put(const void *data, size_t length) {
  if (sizeof out - out_filled < length) io_flush();
  if (length > sizeof out) {
    if (write_all(WORKER_OUT, data, length) != 0) _exit(1);
    return;
  }
  memcpy(out + out_filled, data, length);
  out_filled += length;
}

void io_put_u32(uint32_t value) {
  uint8_t bytes[4];
  write_u32(&(struct writer){.data = bytes, .capacity = sizeof bytes}, value);
  io_put(bytes, sizeof bytes);
}

void io_put_u64(uint64_t value) {
  uint8_t bytes[8];
  write_u64(&(struct writer){.data = bytes, .capacity = sizeof bytes}, value);
  io_put(bytes, sizeof bytes);
}

static uint8_t in[IO_BUFFER];
static size_t in_head, in_tail;

void io_reset(void) { out_filled = in_head = in_tail = 0; }

size_t io_take(uint8_t **data, size_t most) {
  if (in_head == in_tail) {
    long got;
    do got = read(WORKER_IN, in, sizeof in);
    while (got < 0 && errno == EINTR);
    in_head = 0;
    in_tail = got < 0 ? 0 : (size_t)got;
  }
  size_t length = in_tail - in_head < most ? in_tail - in_head : most;
  *data = in + in_head;
  in_head += length;
  return length;
}

bool io_take_exactly(void *to, size_t length, bool *some) {
  for (size_t done = 0; done < length;) {
    uint8_t *data;
    size_t got = io_take(&data, length - done);
    if (got == 0) {
      *some = done > 0;
      return false;
    }
    memcpy((uint8_t *)to + done, data, got);
    done += got;
  }
  return true;
}

bool io_ended_well(void) {
  char word;
  long got;
  do got = recv(WORKER_STATUS, &word, 1, 0);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

char *read_path(struct reader *request, int *failure) {
  struct bytes given = read_bytes(request);
  bool ok = !request->bad && given.length > 0 && given.data[0] == '/' && memchr(given.data, 0, given.length) == NULL;
  *failure = !ok ? EINVAL : given.length > FILE_MAX_PATH ? ENAMETOOLONG : 0;
  char *path = *failure == 0 ? strndup((const char *)given.data, given.length) : NULL;
  if (*failure == 0 && path == NULL) *failure = ENOMEM;
  return path;
}

bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

int open_parent(char *path, char **name) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = '\0';
  char *slash = strrchr(path, '/');
  *name = slash + 1;
  if (**name == '\0' || is_dots(*name)) return -EINVAL;
  *slash = '\0';
  int fd = open(slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int open_directory(int from, const char *name) {
  int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) return fd;
  int failure = errno;
  struct stat st;
  /* With O_DIRECTORY the kernel says ENOTDIR for a link. */
  if (failure == ENOTDIR && fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) failure = ELOOP;
  return -failure;
}
