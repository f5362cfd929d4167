/*
 * Whole trees in one stream. Both ways every part of a path is opened relative to the one before and is never a link, so
 * that nothing that is swapped meanwhile leads out of the tree.
 */
#include "file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extents.h"
#include "file_io.h"

enum { SMALLEST_HOLE = 4096 };

static uint64_t entries, others;

/* What a host that knows of them asks for: files with holes as extents, and no more content than this. */
static struct {
  bool with_holes;
  uint64_t file_most, most;
} limits = {.file_most = UINT64_MAX, .most = UINT64_MAX};

static bool read_limits(struct reader *request) {
  if (reader_done(request)) return true;
  uint32_t with_holes = read_u32(request);
  limits.with_holes = with_holes == 1;
  limits.file_most = read_u64(request);
  limits.most = read_u64(request);
  return reader_done(request) && with_holes <= 1;
}

static int open_root(struct reader *request, bool may_have_limits) {
  int failure;
  char *path = read_path(request, &failure);
  if (failure != 0) return -failure;
  if (!(may_have_limits ? read_limits(request) : reader_done(request))) return -EINVAL;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

/* With a failure the result is the path at which it happened. */
static void tell_place(struct writer *result, const char *path, size_t length) {
  memcpy(result->data, path, length);
  result->length = length;
}

/* --- get ------------------------------------------------------------------------------------------------------------- */

static char path[FILE_MAX_PATH + 1];

static void put_record(enum file_kind kind, const struct stat *st, uint64_t size, size_t length, const char *target,
                       size_t target_length) {
  io_put_u32(kind);
  io_put_u32(st->st_mode & 0777);
  io_put_u64(mtime_of(st));
  io_put_u64(size);
  io_put_u32((uint32_t)length);
  io_put(path, length);
  io_put_u32((uint32_t)target_length);
  io_put(target, target_length);
  if (kind == KIND_OTHER) others++;
  else entries++;
}

static int get_file(int fd, const struct stat *st, size_t length) {
  static uint8_t content[IO_BUFFER];
  uint64_t size = (uint64_t)st->st_size;
  /* The size stands before the content: of what fits here it is what was read, of the rest what was there at first. */
  long got = read_fully(fd, content, size < sizeof content ? (size_t)size : sizeof content);
  if (got < 0) return errno;
  if ((uint64_t)got < sizeof content) size = (uint64_t)got;
  put_record(KIND_FILE, st, size, length, "", 0);
  for (uint64_t left = size;;) {
    io_put(content, (size_t)got);
    left -= (uint64_t)got;
    if (left == 0) return 0;
    got = read_fully(fd, content, left < sizeof content ? (size_t)left : sizeof content);
    if (got < 0) return errno;
    if (got == 0) return EBUSY; /* it became shorter under our hands, and its size is told already */
  }
}

/* Only data counts against the limits: a hole costs nobody anything. */
static int get_file_within_limits(int fd, const struct stat *st, size_t length) {
  uint64_t size = (uint64_t)st->st_size;
  uint64_t data = limits.with_holes && size > IO_BUFFER ? extents_data(fd, size) : size;
  if (data > limits.file_most || data > limits.most) {
    put_record(KIND_UNSENT_FILE, st, size, length, "", 0);
    return 0;
  }
  if (data == size) {
    limits.most -= data;
    return get_file(fd, st, length);
  }
  put_record(KIND_SPARSE_FILE, st, size, length, "", 0);
  /* Holes may be filled meanwhile. */
  uint64_t most = limits.most < limits.file_most ? limits.most : limits.file_most, left = most;
  int failure = extents_put(fd, 0, size, &left);
  limits.most -= most - left;
  return failure;
}

static int get_below(int fd, int depth, size_t length);

static bool is_passed_over(int failure) {
  return failure == EACCES || failure == EPERM || failure == ENXIO || failure == ELOOP || failure == ENOENT || failure == ENOTDIR;
}

/* What may not be read, is of another kind, or changed since it was listed, is told by name only. */
static int get_opened(int directory, const char *name, enum file_kind kind, int depth, size_t length) {
  struct stat st = {.st_mode = 0};
  int flags = kind == KIND_DIRECTORY ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NOCTTY;
  int fd = openat(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && !is_passed_over(errno)) return errno;
  bool is_same = fd >= 0 && fstat(fd, &st) == 0 && kind_of(st.st_mode) == kind;
  int failure = 0;
  if (!is_same || st.st_size > INT64_C(1) << 53) put_record(KIND_OTHER, &st, 0, length, "", 0);
  else if (kind == KIND_FILE) failure = get_file_within_limits(fd, &st, length);
  else {
    put_record(kind, &st, 0, length, "", 0);
    return get_below(fd, depth + 1, length);
  }
  if (fd >= 0) close(fd);
  return failure;
}

static int get_link(int directory, const char *name, size_t length) {
  struct stat st;
  char target[FILE_MAX_PATH];
  long got = readlinkat(directory, name, target, sizeof target);
  if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  put_record(got > 0 ? KIND_LINK : KIND_OTHER, &st, 0, length, target, got > 0 ? (size_t)got : 0);
  return 0;
}

static int get_entry(int directory, const struct dirent *entry, int depth, size_t length) {
  enum file_kind kind = kind_of_entry(directory, entry);
  if (kind == KIND_LINK) return get_link(directory, entry->d_name, length);
  if (kind != KIND_OTHER) return get_opened(directory, entry->d_name, kind, depth, length);
  put_record(KIND_OTHER, &(struct stat){.st_mode = 0}, 0, length, "", 0);
  return 0;
}

/* Takes `fd`. `path` has `length` bytes of this directory's own path. */
static int get_below(int fd, int depth, size_t length) {
  DIR *directory = fdopendir(fd);
  if (directory == NULL) return errno;
  int failure = depth > FILE_MAX_DEPTH ? ENAMETOOLONG : 0;
  struct dirent *entry;
  while (failure == 0 && (errno = 0, entry = readdir(directory)) != NULL) {
    if (is_dots(entry->d_name)) continue;
    size_t name_length = strlen(entry->d_name), at = length == 0 ? 0 : length + 1;
    if (at + name_length > FILE_MAX_PATH) failure = ENAMETOOLONG;
    else {
      if (length > 0) path[length] = '/';
      memcpy(path + at, entry->d_name, name_length + 1);
      failure = get_entry(fd, entry, depth, at + name_length);
    }
  }
  if (failure == 0) failure = errno;
  closedir(directory);
  return failure;
}

int file_get_tree(struct reader *request, struct writer *result) {
  int root = open_root(request, true);
  if (root < 0) return -root;
  int failure = get_below(root, 0, 0);
  if (failure != 0) {
    tell_place(result, path, strnlen(path, FILE_MAX_PATH));
    return failure;
  }
  write_u64(result, entries);
  write_u64(result, others);
  return 0;
}

/* --- put ------------------------------------------------------------------------------------------------------------- */

struct record {
  uint32_t kind, mode;
  uint64_t mtime, size;
  uint32_t length, target_length;
  char path[FILE_MAX_PATH + 1], target[FILE_MAX_PATH + 1];
};

/* The mode and time of a directory are set when nothing more is put into it. */
struct later {
  struct later *before;
  uint32_t mode;
  uint64_t mtime;
  char path[];
};

/* The directory that was used last stays open: what is put next is mostly in it, or below it. */
static struct {
  int root, fd;
  size_t length;
  char path[FILE_MAX_PATH + 1];
} current;

static bool take_string(char *to, uint32_t *length) {
  uint8_t bytes[4];
  bool some;
  if (!io_take_exactly(bytes, sizeof bytes, &some)) return false;
  *length = read_u32(&(struct reader){.at = bytes, .end = bytes + sizeof bytes});
  if (*length > FILE_MAX_PATH || !io_take_exactly(to, *length, &some)) return false;
  to[*length] = '\0';
  return strlen(to) == *length;
}

/* 1: a record, 0: the end, -1: neither. */
static int take_record(struct record *record) {
  uint8_t bytes[24];
  bool some;
  if (!io_take_exactly(bytes, sizeof bytes, &some)) return some ? -1 : 0;
  struct reader r = {.at = bytes, .end = bytes + sizeof bytes};
  record->kind = read_u32(&r);
  record->mode = read_u32(&r) & 0777;
  record->mtime = read_u64(&r);
  record->size = read_u64(&r);
  record->length = 0;
  return take_string(record->path, &record->length) && take_string(record->target, &record->target_length) ? 1 : -1;
}

static int check_path(const char *at) {
  int depth = 0;
  for (;; at++) {
    const char *end = strchrnul(at, '/');
    size_t length = (size_t)(end - at);
    if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return EINVAL;
    if (++depth > FILE_MAX_DEPTH) return ENAMETOOLONG;
    if (*end == '\0') return 0;
    at = end;
  }
}

static void set_current(int fd, const char *directory, size_t length) {
  if (current.fd != current.root) close(current.fd);
  current.fd = fd;
  current.length = length;
  memcpy(current.path, directory, length);
}

/* Opens the directory of that relative path, part by part. */
static int enter(const char *directory, size_t length) {
  if (length == current.length && memcmp(directory, current.path, length) == 0) return 0;
  bool is_below = current.length > 0 && length > current.length && directory[current.length] == '/' &&
                  memcmp(directory, current.path, current.length) == 0;
  size_t at = is_below ? current.length + 1 : 0;
  if (!is_below) set_current(current.root, "", 0);
  while (at < length) {
    char name[FILE_MAX_PATH + 1];
    const char *slash = memchr(directory + at, '/', length - at);
    size_t end = slash == NULL ? length : (size_t)(slash - directory);
    memcpy(name, directory + at, end - at);
    name[end - at] = '\0';
    int fd = open_directory(current.fd, name);
    if (fd < 0) return -fd;
    set_current(fd, directory, end);
    at = end + 1;
  }
  return 0;
}

static struct timespec time_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static struct later *put_off(const struct record *record, struct later *before) {
  struct later *later = malloc(sizeof *later + record->length + 1);
  if (later == NULL) return NULL;
  *later = (struct later){.before = before, .mode = record->mode, .mtime = record->mtime};
  memcpy(later->path, record->path, record->length + 1);
  return later;
}

/* A directory that is there already keeps its mode and time. */
static int put_directory(const struct record *record, const char *name, struct later **last) {
  if (mkdirat(current.fd, name, record->mode | 0700) != 0) {
    return errno == EEXIST ? enter(record->path, record->length) : errno;
  }
  if (record->mtime == 0 && (record->mode & 0700) == 0700) return 0;
  struct later *later = put_off(record, *last);
  if (later == NULL) return ENOMEM;
  *last = later;
  return 0;
}

static int put_link(const struct record *record, const char *name) {
  if (record->target_length == 0) return EINVAL;
  while (symlinkat(record->target, current.fd, name) != 0) {
    if (errno != EEXIST || unlinkat(current.fd, name, 0) != 0) return errno;
  }
  if (record->mtime == 0) return 0;
  struct timespec times[2] = {time_of(record->mtime), time_of(record->mtime)};
  return utimensat(current.fd, name, times, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

/* Another name of a file that was put before. Its folder is entered as any other, so neither name leads out of the tree. */
static int put_hard_link(const struct record *record, const char *name) {
  int failure = check_path(record->target);
  if (failure != 0) return failure;
  int folder = fcntl(current.fd, F_DUPFD_CLOEXEC, 0);
  if (folder < 0) return errno;
  const char *slash = strrchr(record->target, '/');
  failure = enter(record->target, slash == NULL ? 0 : (size_t)(slash - record->target));
  const char *first = slash == NULL ? record->target : slash + 1;
  struct stat st;
  if (failure == 0 && fstatat(current.fd, first, &st, AT_SYMLINK_NOFOLLOW) != 0) failure = errno;
  /* A name of its own must not be taken away for itself. */
  if (failure == 0 && (!S_ISREG(st.st_mode) || strcmp(record->path, record->target) == 0)) failure = EINVAL;
  while (failure == 0 && linkat(current.fd, first, folder, name, 0) != 0) {
    if (errno != EEXIST || unlinkat(folder, name, 0) != 0) failure = errno;
  }
  close(folder);
  return failure;
}

static bool is_all_zero(const uint8_t *data, size_t length) { return data[0] == 0 && memcmp(data, data + 1, length - 1) == 0; }

/* Blocks of nothing but zeros are passed over: a file with holes would fill the disk of the sandbox. */
static int fill_file(int fd, const struct record *record) {
  bool has_hole = false;
  for (uint64_t left = record->size; left > 0;) {
    uint8_t *data;
    size_t got = io_take(&data, left < IO_BUFFER ? (size_t)left : IO_BUFFER);
    if (got == 0) return EINVAL;
    bool is_hole = got >= SMALLEST_HOLE && is_all_zero(data, got);
    int failure = 0;
    if (!is_hole) failure = write_all(fd, data, got);
    else if (lseek(fd, (off_t)got, SEEK_CUR) < 0) failure = errno;
    if (failure != 0) return failure;
    has_hole = has_hole || is_hole;
    left -= got;
  }
  if (has_hole && ftruncate(fd, (off_t)record->size) != 0) return errno;
  if (record->mtime == 0) return 0;
  struct timespec times[2] = {time_of(record->mtime), time_of(record->mtime)};
  return futimens(fd, times) == 0 ? 0 : errno;
}

static int put_file(const struct record *record, const char *name) {
  int fd;
  /* Whatever has the name is taken away, not written into: it may be a link, or have other names elsewhere. */
  while ((fd = openat(current.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, record->mode)) < 0) {
    if (errno != EEXIST || unlinkat(current.fd, name, 0) != 0) return errno;
  }
  int failure = fill_file(fd, record);
  if (close(fd) != 0 && failure == 0) failure = errno;
  return failure;
}

static int put_one(const struct record *record, struct later **last) {
  int failure = check_path(record->path);
  if (failure != 0) return failure;
  if ((record->kind != KIND_FILE && record->size != 0) || (record->kind != KIND_LINK && record->kind != KIND_HARD_LINK && record->target_length != 0)) return EINVAL;
  const char *slash = strrchr(record->path, '/');
  failure = enter(record->path, slash == NULL ? 0 : (size_t)(slash - record->path));
  if (failure != 0) return failure;
  const char *name = slash == NULL ? record->path : slash + 1;
  switch (record->kind) {
    case KIND_FILE:
      return put_file(record, name);
    case KIND_DIRECTORY:
      return put_directory(record, name, last);
    case KIND_LINK:
      return put_link(record, name);
    case KIND_HARD_LINK:
      return put_hard_link(record, name);
    default:
      return EINVAL;
  }
}

/* Last made, first set: a directory that may no longer be entered has nothing left to be done below it. */
static int set_directories(const struct later *later) {
  for (; later != NULL; later = later->before) {
    int failure = enter(later->path, strlen(later->path));
    if (failure != 0) return failure;
    struct timespec times[2] = {time_of(later->mtime), time_of(later->mtime)};
    if (later->mtime != 0 && futimens(current.fd, times) != 0) return errno;
    if (fchmod(current.fd, later->mode) != 0) return errno;
  }
  return 0;
}

int file_put_tree(struct reader *request, struct writer *result) {
  static struct record record;
  struct later *last = NULL;
  int root = open_root(request, false), failure = 0, taken;
  if (root < 0) return -root;
  current.root = current.fd = root;
  while (failure == 0 && (taken = take_record(&record)) != 0) {
    failure = taken < 0 ? EINVAL : put_one(&record, &last);
    if (failure == 0) entries++;
    else tell_place(result, record.path, strnlen(record.path, record.length));
  }
  if (failure == 0 && !io_ended_well()) failure = ECANCELED;
  if (failure == 0) failure = set_directories(last);
  if (failure == 0) write_u64(result, entries);
  return failure;
}
