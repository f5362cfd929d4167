/* What the file operations share: buffered data to and from the host, paths, and directories that are no links. */
#ifndef PORTER_FILE_IO_H
#define PORTER_FILE_IO_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire.h"

/* Where a worker finds its descriptors. */
enum { WORKER_STATUS = 3, WORKER_IN, WORKER_OUT, WORKER_FDS };

enum {
  FILE_MAX_PATH = 4096,
  FILE_MAX_DEPTH = 256,
  IO_BUFFER = 64 * 1024,
};

enum file_kind {
  KIND_FILE = 1,
  KIND_DIRECTORY = 2,
  KIND_LINK = 3,
  KIND_OTHER = 4,
  /* Only in trees. */
  KIND_HARD_LINK = 5,
  KIND_SPARSE_FILE = 6,
  KIND_UNSENT_FILE = 7,
};

enum file_kind kind_of(mode_t mode);
/* By the directory's own word where it has one. */
enum file_kind kind_of_entry(int directory, const struct dirent *entry);
uint64_t mtime_of(const struct stat *st);
void write_stat(struct writer *w, const struct stat *st);

/* Data to the host. A host that is gone ends the worker, so there is no failure to return. */
void io_put(const void *data, size_t length);
void io_put_u32(uint32_t value);
void io_put_u64(uint64_t value);
void io_flush(void);
/* Forgets what is left of an operation before the next one. */
void io_reset(void);

/* Data from the host: as much as is there now, 0 at the end. */
size_t io_take(uint8_t **data, size_t most);
/* Exactly that much. False at the end; `*some` then says whether it ended in the middle. */
bool io_take_exactly(void *to, size_t length, bool *some);
/* After the end of the data: whether the host has sent it all, or the connection just broke. */
bool io_ended_well(void);

/* 0 or an errno. */
int write_all(int fd, const uint8_t *data, size_t length);

/* An absolute path without NUL. NULL, and the errno in `failure`, if it is not. */
char *read_path(struct reader *request, int *failure);
/* Opens the directory in which the last part of `path` is, and tells that part. Returns a descriptor or -errno. */
int open_parent(char *path, char **name);
/* A directory for reading, never through a link (ELOOP). Returns a descriptor or -errno. */
int open_directory(int from, const char *name);
bool is_dots(const char *name);

#endif
