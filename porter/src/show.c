#include "show.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

int show_main(int count, char **paths) {
  for (int index = 0; index < count; index++) {
    if (show_file(paths[index]) != 0) return 1;
  }
  return 0;
}
