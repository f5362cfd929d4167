/* The operations that move no data: one or a few system calls each. */
#include "file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "file_io.h"

/* What the filter refuses to programs (seccomp.c) porter does not do for them either, whoever asks. */
static int check_mode(uint32_t mode) { return mode > 07777 ? EINVAL : mode & (S_ISUID | S_ISGID) ? EPERM : 0; }

static int look(struct reader *request, struct writer *result, int flags) {
  int failure;
  struct stat st;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  if (!reader_done(request)) return EINVAL;
  if (fstatat(AT_FDCWD, path, &st, flags) != 0) return errno;
  write_stat(result, &st);
  return 0;
}

int file_stat(struct reader *request, struct writer *result) { return look(request, result, 0); }
int file_lstat(struct reader *request, struct writer *result) { return look(request, result, AT_SYMLINK_NOFOLLOW); }

static bool is_directory(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int make_with_parents(char *path, mode_t mode) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    /* A parent that may not be entered would be of no use for what goes into it. */
    int failure = mkdir(path, mode | 0300) == 0 ? 0 : errno;
    if (failure != 0 && failure != EEXIST && !is_directory(path)) return failure;
    *slash = '/';
  }
  if (mkdir(path, mode) == 0) return 0;
  int failure = errno;
  return is_directory(path) ? 0 : failure;
}

int file_mkdir(struct reader *request, struct writer *result) {
  (void)result;
  int failure;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint32_t mode = read_u32(request), parents = read_u32(request);
  if (!reader_done(request) || parents > 1) return EINVAL;
  if ((failure = check_mode(mode)) != 0) return failure;
  if (parents != 0) return make_with_parents(path, mode);
  return mkdir(path, mode) == 0 ? 0 : errno;
}

static int remove_entry(int directory, const char *name, bool recursive, int depth, uint64_t *removed);

/* Takes `fd`. What is added meanwhile is removed as well, as long as it is there before a pass finds nothing. */
static int remove_below(int fd, int depth, uint64_t *removed) {
  DIR *directory = fdopendir(fd);
  int failure = directory == NULL ? errno : depth > FILE_MAX_DEPTH ? ENAMETOOLONG : 0;
  for (bool found = true; found && failure == 0; rewinddir(directory)) {
    struct dirent *entry;
    found = false;
    while (failure == 0 && (entry = readdir(directory)) != NULL) {
      if (is_dots(entry->d_name)) continue;
      failure = remove_entry(fd, entry->d_name, true, depth, removed);
      if (failure == ENOENT) failure = 0;
      found = true;
    }
  }
  if (directory != NULL) closedir(directory);
  else close(fd);
  return failure;
}

static int remove_entry(int directory, const char *name, bool recursive, int depth, uint64_t *removed) {
  if (unlinkat(directory, name, 0) == 0) {
    ++*removed;
    return 0;
  }
  int failure = errno;
  if (failure != EISDIR && failure != EPERM) return failure;
  if (unlinkat(directory, name, AT_REMOVEDIR) != 0) {
    if (errno == ENOTDIR) return failure;
    if (!recursive || (errno != ENOTEMPTY && errno != EEXIST)) return errno;
    int fd = open_directory(directory, name);
    if (fd < 0) return -fd;
    failure = remove_below(fd, depth + 1, removed);
    if (failure != 0) return failure;
    if (unlinkat(directory, name, AT_REMOVEDIR) != 0) return errno;
  }
  ++*removed;
  return 0;
}

int file_remove(struct reader *request, struct writer *result) {
  int failure;
  char *name, *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint32_t recursive = read_u32(request);
  if (!reader_done(request) || recursive > 1) return EINVAL;
  int directory = open_parent(path, &name);
  if (directory < 0) return -directory;
  uint64_t removed = 0;
  failure = remove_entry(directory, name, recursive != 0, 0, &removed);
  if (failure == 0) write_u64(result, removed);
  return failure;
}

int file_rename(struct reader *request, struct writer *result) {
  (void)result;
  int failure;
  char *from = read_path(request, &failure);
  if (failure != 0) return failure;
  char *to = read_path(request, &failure);
  if (failure != 0) return failure;
  if (!reader_done(request)) return EINVAL;
  return rename(from, to) == 0 ? 0 : errno;
}

int file_symlink(struct reader *request, struct writer *result) {
  (void)result;
  int failure;
  struct bytes given = read_bytes(request);
  if (request->bad || given.length == 0 || memchr(given.data, 0, given.length) != NULL) return EINVAL;
  if (given.length > FILE_MAX_PATH) return ENAMETOOLONG;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  if (!reader_done(request)) return EINVAL;
  char *target = strndup((const char *)given.data, given.length);
  if (target == NULL) return ENOMEM;
  return symlink(target, path) == 0 ? 0 : errno;
}

int file_readlink(struct reader *request, struct writer *result) {
  int failure;
  char target[FILE_MAX_PATH], *path = read_path(request, &failure);
  if (failure != 0) return failure;
  if (!reader_done(request)) return EINVAL;
  long length = readlink(path, target, sizeof target);
  if (length < 0) return errno;
  write_bytes(result, target, (uint32_t)length);
  return 0;
}

int file_chmod(struct reader *request, struct writer *result) {
  (void)result;
  int failure;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint32_t mode = read_u32(request);
  if (!reader_done(request)) return EINVAL;
  if ((failure = check_mode(mode)) != 0) return failure;
  return chmod(path, mode) == 0 ? 0 : errno;
}
