#include "show.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

static int say(const char *data, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(1, data, length);
    if (wrote <= 0) return -1;
    data += wrote;
    length -= (size_t)wrote;
  }
  return 0;
}

static int show_file(const char *path) {
  char bytes[4096];
  ssize_t count;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (say("== ", 3) != 0 || say(path, strlen(path)) != 0) return -1;
  if (say(fd < 0 ? "\n" : " +\n", fd < 0 ? 1 : 3) != 0) return -1;
  if (fd < 0) return 0;
  while ((count = read(fd, bytes, sizeof bytes)) > 0) {
    if (say(bytes, (size_t)count) != 0) return -1;
  }
  close(fd);
  return say("\n", 1);
}

/* What is at a path, not what a link there leads to. `argument` is the path behind an @. */
static int show_identity(const char *argument) {
  char bytes[128];
  struct text line = {.data = bytes, .capacity = sizeof bytes};
  struct stat st;
  bool found = lstat(argument + 1, &st) == 0;
  if (say("== ", 3) != 0 || say(argument, strlen(argument)) != 0) return -1;
  if (say(found ? " +\n" : "\n", found ? 3 : 1) != 0) return -1;
  if (!found) return 0;
  text_number(&line, st.st_dev);
  text_add(&line, " ");
  text_number(&line, st.st_ino);
  text_add(&line, " ");
  text_number(&line, (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec);
  text_add(&line, " ");
  text_number(&line, st.st_mode);
  text_add(&line, "\n\n");
  return say(line.data, line.length);
}

int show_main(int count, char **paths) {
  for (int index = 0; index < count; index++) {
    const char *path = paths[index];
    if ((path[0] == '@' ? show_identity(path) : show_file(path)) != 0) return 1;
  }
  return 0;
}
