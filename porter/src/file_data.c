/* The operations on the content of one file or directory: list, read, write. */
#include "file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h> /* renameat */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "extents.h"
#include "file_io.h"

/* --- list ------------------------------------------------------------------------------------------------------------ */

enum { MAX_PAGE = 4096 };

struct name {
  uint32_t kind, length;
  uint8_t bytes[];
};

static int compare_bytes(const void *a, size_t a_length, const void *b, size_t b_length) {
  int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
  return order != 0 ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int compare_names(const void *a, const void *b) {
  const struct name *x = *(struct name *const *)a, *y = *(struct name *const *)b;
  return compare_bytes(x->bytes, x->length, y->bytes, y->length);
}

/* The first names of the page in order. A directory may have millions: no more than two pages are ever held. */
struct page {
  struct name **names;
  uint32_t count, most;
  bool more;
};

static void keep_first(struct page *page) {
  qsort(page->names, page->count, sizeof *page->names, compare_names);
  while (page->count > page->most) {
    free(page->names[--page->count]);
    page->more = true;
  }
}

static int add_name(struct page *page, int directory, const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  struct name *name = malloc(sizeof *name + length);
  if (name == NULL) return ENOMEM;
  name->kind = kind_of_entry(directory, entry);
  name->length = (uint32_t)length;
  memcpy(name->bytes, entry->d_name, length);
  page->names[page->count++] = name;
  if (page->count == 2 * page->most) keep_first(page);
  return 0;
}

int file_list(struct reader *request, struct writer *result) {
  int failure;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  struct page page = {.most = read_u32(request)};
  struct bytes after = read_bytes(request);
  if (!reader_done(request) || page.most == 0 || page.most > MAX_PAGE) return EINVAL;
  page.names = calloc(2 * (size_t)page.most, sizeof *page.names);
  if (page.names == NULL) return ENOMEM;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (directory == NULL) return errno;
  struct dirent *entry;
  errno = 0;
  while ((entry = readdir(directory)) != NULL) {
    if (is_dots(entry->d_name)) continue;
    bool is_later = compare_bytes(entry->d_name, strlen(entry->d_name), after.data, after.length) > 0;
    if (after.length > 0 && !is_later) continue;
    if ((failure = add_name(&page, fd, entry)) != 0) return failure;
    errno = 0;
  }
  if (errno != 0) return errno;
  keep_first(&page);
  for (uint32_t i = 0; i < page.count; i++) {
    io_put_u32(page.names[i]->kind);
    io_put_u32(page.names[i]->length);
    io_put(page.names[i]->bytes, page.names[i]->length);
  }
  write_u32(result, page.more);
  return 0;
}

/* --- read ------------------------------------------------------------------------------------------------------------ */

/* O_NONBLOCK keeps a FIFO or a device from holding up the open; what it opened is looked at before it is used. */
static int open_regular(int from, const char *path, int flags, mode_t mode, struct stat *st) {
  int fd = openat(from, path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  /* ENXIO: a socket, or a FIFO without a reader. */
  if (fd < 0) return errno == ENXIO || errno == ENODEV ? -EINVAL : -errno;
  int failure = fstat(fd, st) != 0 ? errno : S_ISDIR(st->st_mode) ? EISDIR : S_ISREG(st->st_mode) ? 0 : EINVAL;
  if (failure == 0) return fd;
  close(fd);
  return -failure;
}

/* As extents, from `offset` to the end of the file or of the part that was asked for. */
static int read_holes(int fd, const struct stat *st, uint64_t offset, uint64_t length) {
  uint64_t size = (uint64_t)st->st_size;
  uint64_t end = offset >= size ? offset : length < size - offset ? offset + length : size;
  return extents_put(fd, offset, end, &(uint64_t){UINT64_MAX});
}

int file_read(struct reader *request, struct writer *result) {
  static uint8_t content[IO_BUFFER];
  int failure;
  struct stat st;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint64_t offset = read_u64(request), length = read_u64(request);
  uint32_t with_holes = reader_done(request) ? 0 : read_u32(request);
  if (!reader_done(request) || offset > INT64_MAX || with_holes > 1) return EINVAL;
  int fd = open_regular(AT_FDCWD, path, O_RDONLY, 0, &st);
  if (fd < 0) return -fd;
  if (with_holes == 1) {
    failure = read_holes(fd, &st, offset, length);
    if (failure == 0) write_stat(result, &st);
    return failure;
  }
  if (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0) return errno;
  while (length > 0) {
    long got = read(fd, content, length < sizeof content ? (size_t)length : sizeof content);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    if (write_all(WORKER_OUT, content, (size_t)got) != 0) _exit(1);
    length -= (uint64_t)got;
  }
  write_stat(result, &st);
  return 0;
}

/* --- write ----------------------------------------------------------------------------------------------------------- */

enum {
  WRITE_CREATE = 1,
  WRITE_TRUNCATE = 2,
  WRITE_APPEND = 4,
  WRITE_EXCLUSIVE = 8,
  WRITE_ATOMIC = 16,
  WRITE_SET_MODE = 32,
  WRITE_ALL = 63,
};

static int copy_in(int fd) {
  uint8_t *data;
  size_t length;
  while ((length = io_take(&data, IO_BUFFER)) > 0) {
    int failure = write_all(fd, data, length);
    if (failure != 0) return failure;
  }
  return io_ended_well() ? 0 : ECANCELED;
}

static int tell_stat(int fd, struct writer *result) {
  struct stat st;
  if (fstat(fd, &st) != 0) return errno;
  write_stat(result, &st);
  return 0;
}

static int write_in_place(const char *path, uint32_t flags, mode_t mode, struct writer *result) {
  struct stat st;
  int open_flags = O_WRONLY | (flags & WRITE_CREATE ? O_CREAT : 0) | (flags & WRITE_APPEND ? O_APPEND : 0) |
                   (flags & WRITE_EXCLUSIVE ? O_EXCL : 0);
  int fd = open_regular(AT_FDCWD, path, open_flags, mode, &st);
  if (fd < 0) return -fd;
  if ((flags & WRITE_TRUNCATE) && ftruncate(fd, 0) != 0) return errno;
  if ((flags & WRITE_SET_MODE) && fchmod(fd, mode) != 0) return errno;
  int failure = copy_in(fd);
  return failure != 0 ? failure : tell_stat(fd, result);
}

static int temporary_directory;
static char temporary_name[] = ".sallyport-0123456789abcdef";

static void remove_temporary(void) { unlinkat(temporary_directory, temporary_name, 0); }

static void on_stop(int number) {
  (void)number;
  remove_temporary();
  _exit(1);
}

static int make_temporary(int directory, mode_t mode) {
  static const char digits[] = "0123456789abcdef";
  char *at = strchr(temporary_name, '-') + 1;
  uint8_t random[16];
  if (getrandom(random, sizeof random, 0) != (long)sizeof random) return -EIO;
  for (int i = 0; i < 16; i++) at[i] = digits[random[i] & 15];
  temporary_directory = directory;
  signal(SIGTERM, on_stop);
  int fd = openat(directory, temporary_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  return fd < 0 ? -errno : fd;
}

/* A hard link refuses what is there already, which a rename does not. */
static int put_in_place(const char *name, bool exclusive) {
  int directory = temporary_directory;
  if (!exclusive) return renameat(directory, temporary_name, directory, name) == 0 ? 0 : errno;
  if (linkat(directory, temporary_name, directory, name, 0) != 0) return errno;
  remove_temporary();
  return 0;
}

/* What is there may be a file or a link, which is replaced itself and not followed. */
static int write_atomic(char *path, uint32_t flags, mode_t mode, struct writer *result) {
  char *name;
  struct stat st;
  int directory = open_parent(path, &name);
  if (directory < 0) return -directory;
  bool is_there = fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there && errno != ENOENT) return errno;
  if (!is_there && !(flags & WRITE_CREATE)) return ENOENT;
  if (is_there && (flags & WRITE_EXCLUSIVE)) return EEXIST;
  if (is_there && S_ISDIR(st.st_mode)) return EISDIR;
  if (is_there && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) return EINVAL;
  if (is_there && S_ISREG(st.st_mode) && !(flags & WRITE_SET_MODE)) mode = st.st_mode & 0777;
  int fd = make_temporary(directory, mode);
  if (fd < 0) return -fd;
  int failure = copy_in(fd);
  if (failure == 0) failure = tell_stat(fd, result);
  if (failure == 0) failure = put_in_place(name, flags & WRITE_EXCLUSIVE);
  if (failure != 0) {
    remove_temporary();
    result->length = 0;
  }
  return failure;
}

int file_write(struct reader *request, struct writer *result) {
  int failure;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint32_t flags = read_u32(request), mode = read_u32(request);
  if (!reader_done(request) || (flags & ~WRITE_ALL) != 0 || mode > 0777) return EINVAL;
  if ((flags & WRITE_EXCLUSIVE) && !(flags & WRITE_CREATE)) return EINVAL;
  if ((flags & WRITE_ATOMIC) && (flags & WRITE_APPEND)) return EINVAL;
  return flags & WRITE_ATOMIC ? write_atomic(path, flags, mode, result) : write_in_place(path, flags, mode, result);
}
