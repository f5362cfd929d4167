/* Reading directories. The kernel's records are a struct dirent already, so readdir returns a pointer into the buffer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel.h"

/* The name as both C libraries have it, for their `DIR`. */
struct __dirstream {
  int fd;
  uint32_t next, end; /* in the buffer */
  /* With the rest it fills a slot of malloc. */
  uint8_t entries[4096 - 16] __attribute__((aligned(8)));
};

DIR *fdopendir(int fd) {
  DIR *directory = malloc(sizeof *directory);
  if (directory == NULL) return NULL;
  directory->fd = fd;
  directory->next = directory->end = 0;
  return directory;
}

DIR *opendir(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (directory == NULL && fd >= 0) close(fd);
  return directory;
}

struct dirent *readdir(DIR *directory) {
  if (directory->next == directory->end) {
    int before = errno;
    long got = kernel_getdents64(directory->fd, directory->entries, sizeof directory->entries);
    /* A directory that was removed meanwhile has no entries, and that is its end. */
    if (got < 0 && errno == ENOENT) errno = before;
    if (got <= 0) return NULL;
    directory->next = 0;
    directory->end = (uint32_t)got;
  }
  struct dirent *entry = (struct dirent *)(directory->entries + directory->next);
  directory->next += entry->d_reclen;
  return entry;
}

void rewinddir(DIR *directory) {
  lseek(directory->fd, 0, SEEK_SET);
  directory->next = directory->end = 0;
}

int closedir(DIR *directory) {
  int result = close(directory->fd);
  free(directory);
  return result;
}
