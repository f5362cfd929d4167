/*
 * Watching a file, a directory or a tree by inotify.
 *
 * A directory that appears is watched and then looked into, so that what was put into it before is told as well. A watch is
 * set on the working directory, entered by descriptor: so it is never set through a link, and no path is too long.
 */
#include "file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "borrow.h"
#include "descriptor.h"
#include "file_io.h"
#include "seccomp.h"

enum watch_kind { CREATED = 1, CHANGED = 2, REMOVED = 3, MOVED = 4, OVERFLOW = 5, READY = 6 };

enum {
  EVENTS = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_EXCL_UNLINK,
  ROOT_EVENTS = EVENTS | IN_DELETE_SELF | IN_MOVE_SELF,
  /* After the first event others are waited for this long, so that a burst is told in one piece. */
  GATHER_MS = 5,
};

/* Sorted by `wd`: the kernel gives rising numbers. */
struct place {
  int wd;
  bool left; /* its directory was moved away, and did not turn up again so far */
  char *path;
};

static struct place *places;
static size_t count, capacity;
static int inotify_fd, root_fd, root_wd;
static bool recursive, some_left;

/* --- telling --------------------------------------------------------------------------------------------------------- */

static uint32_t last_kind;
static char last_path[FILE_MAX_PATH + 1];

static void tell(enum watch_kind kind, const char *path) {
  if (kind == last_kind && strcmp(path, last_path) == 0) return;
  last_kind = kind;
  strcpy(last_path, path);
  io_put_u32(kind);
  io_put_u32((uint32_t)strlen(path));
  io_put(path, strlen(path));
}

/* What comes from here on is a new row, also when it is equal to the last. */
static void end_row(void) {
  io_flush();
  last_kind = 0;
}

/* --- places ---------------------------------------------------------------------------------------------------------- */

static struct place *find(int wd) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (places[middle].wd < wd) low = middle + 1;
    else high = middle;
  }
  return low < count && places[low].wd == wd ? &places[low] : NULL;
}

/* A directory that is watched already has moved: it keeps its number and gets its new path. */
static int add_place(int wd, const char *path) {
  char *copy = strdup(path);
  struct place *known = find(wd);
  if (copy == NULL) return ENOMEM;
  if (known != NULL) {
    free(known->path);
    *known = (struct place){.wd = wd, .path = copy};
    return 0;
  }
  if (count == capacity) {
    size_t larger = capacity == 0 ? 64 : capacity * 2;
    struct place *moved = realloc(places, larger * sizeof *places);
    if (moved == NULL) return ENOMEM;
    places = moved;
    capacity = larger;
  }
  size_t at = count++;
  for (; at > 0 && places[at - 1].wd > wd; at--) places[at] = places[at - 1];
  places[at] = (struct place){.wd = wd, .path = copy};
  return 0;
}

static void drop_place(int wd) {
  struct place *place = find(wd);
  if (place == NULL) return;
  free(place->path);
  memmove(place, place + 1, (size_t)(places + --count - place) * sizeof *place);
}

static void mark_left(const char *path) {
  size_t length = strlen(path);
  for (struct place *p = places; p < places + count; p++) {
    if (strncmp(p->path, path, length) == 0 && (p->path[length] == '\0' || p->path[length] == '/')) p->left = some_left = true;
  }
}

/* What was moved away and is nowhere else in the tree is not ours any more. */
static void drop_left(void) {
  for (size_t i = count; i-- > 0;) {
    if (!places[i].left) continue;
    int wd = places[i].wd;
    inotify_rm_watch(inotify_fd, wd);
    drop_place(wd);
  }
  some_left = false;
}

/* --- looking --------------------------------------------------------------------------------------------------------- */

/* `path` has room for FILE_MAX_PATH and holds the directory's own path. False when the name does not fit. */
static bool append(char *path, size_t length, const char *name) {
  size_t name_length = strlen(name), at = length == 0 ? 0 : length + 1;
  if (at + name_length > FILE_MAX_PATH) return false;
  if (length > 0) path[length] = '/';
  memcpy(path + at, name, name_length + 1);
  return true;
}

static int watch_here(const char *path) {
  int wd = inotify_add_watch(inotify_fd, ".", EVENTS | IN_ONLYDIR | IN_MASK_ADD);
  return wd < 0 ? errno : add_place(wd, path);
}

/* Takes `fd`, a directory that is watched. `path` is the directory's, and is so again afterwards. */
static int look_below(int fd, char *path, int depth, bool is_news) {
  size_t length = strlen(path);
  DIR *directory = fdopendir(fd);
  int failure = directory == NULL ? errno : depth > FILE_MAX_DEPTH ? ENAMETOOLONG : 0;
  struct dirent *entry;
  while (failure == 0 && (entry = readdir(directory)) != NULL) {
    if (is_dots(entry->d_name) || !append(path, length, entry->d_name)) continue;
    if (is_news) tell(CREATED, path);
    int below = kind_of_entry(fd, entry) == KIND_DIRECTORY ? open_directory(fd, entry->d_name) : -1;
    if (below >= 0 && fchdir(below) == 0) {
      failure = watch_here(path);
      if (failure == 0) failure = look_below(below, path, depth + 1, is_news);
    }
    path[length] = '\0';
  }
  if (directory != NULL) closedir(directory);
  return failure;
}

/* Opens a directory of the tree by its relative path, part by part. -1 when it is not there any more. */
static int open_below(const char *path) {
  int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, WORKER_FDS);
  while (fd >= 0 && *path != '\0') {
    char name[FILE_MAX_PATH + 1];
    size_t length = (size_t)(strchrnul(path, '/') - path);
    memcpy(name, path, length);
    name[length] = '\0';
    int next = open_directory(fd, name);
    close(fd);
    fd = next < 0 ? -1 : next;
    path += length + (path[length] == '/');
  }
  return fd;
}

static int enter(const char *directory, bool is_news) {
  static char path[FILE_MAX_PATH + 1];
  strcpy(path, directory);
  int fd = open_below(path);
  if (fd < 0 || fchdir(fd) != 0) {
    if (fd >= 0) close(fd);
    return 0;
  }
  int failure = *path == '\0' ? 0 : watch_here(path);
  return failure != 0 ? failure : look_below(fd, path, 0, is_news);
}

/* --- events ---------------------------------------------------------------------------------------------------------- */

static int on_event(const struct inotify_event *event, bool *over) {
  static char path[FILE_MAX_PATH + 1];
  if (event->mask & IN_Q_OVERFLOW) {
    tell(OVERFLOW, "");
    return recursive ? enter("", false) : 0;
  }
  if (event->wd == root_wd && (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))) {
    tell(REMOVED, "");
    *over = true;
    return 0;
  }
  if (event->mask & IN_IGNORED) {
    drop_place(event->wd);
    return 0;
  }
  const struct place *place = find(event->wd);
  if (place == NULL) return 0;
  strcpy(path, place->path);
  if (event->len > 0 && !append(path, strlen(path), event->name)) return 0;
  bool is_directory = event->mask & IN_ISDIR;
  if (event->mask & IN_CREATE) tell(CREATED, path);
  if (event->mask & IN_MOVED_TO) tell(MOVED, path);
  /* A change of a directory that is watched itself is told twice: by itself and by the one above it. */
  if (event->mask & (IN_MODIFY | IN_ATTRIB)) tell(CHANGED, path);
  if (event->mask & (IN_DELETE | IN_MOVED_FROM)) tell(REMOVED, path);
  if (!recursive || !is_directory) return 0;
  if (event->mask & IN_MOVED_FROM) mark_left(path);
  return event->mask & (IN_CREATE | IN_MOVED_TO) ? enter(path, event->mask & IN_CREATE) : 0;
}

static int read_events(bool *over) {
  static uint8_t buffer[IO_BUFFER] __attribute__((aligned(8)));
  long got = read(inotify_fd, buffer, sizeof buffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : errno;
  for (long at = 0; at < got && !*over;) {
    const struct inotify_event *event = (const struct inotify_event *)(buffer + at);
    at += (long)sizeof *event + event->len;
    int failure = on_event(event, over);
    if (failure != 0) return failure;
  }
  return 0;
}

/* True when there are events within `timeout_ms`. */
static bool await_events(int timeout_ms) {
  struct pollfd ready = {.fd = inotify_fd, .events = POLLIN};
  return poll(&ready, 1, timeout_ms) > 0;
}

static int follow(void) {
  bool over = false;
  for (int failure = 0; failure == 0;) {
    if (over) return 0;
    if (!await_events(-1)) continue;
    usleep(GATHER_MS * 1000);
    do failure = read_events(&over);
    while (failure == 0 && !over && await_events(some_left ? GATHER_MS : 0));
    if (some_left) drop_left();
    end_row();
    if (failure != 0) return failure;
  }
  return 0;
}

/* How many directories there are is up to the sandbox, so their watches are borrowed like those of its programs. */
static int borrow(void) {
  int listener, failure = seccomp_install(&listener);
  if (failure != 0 || listener < 0) return failure;
  bool sent = descriptor_send(WORKER_STATUS, "", 1, listener);
  close(listener);
  return sent ? 0 : EPIPE;
}

int file_watch(struct reader *request, struct writer *result) {
  (void)result;
  int failure;
  struct stat st;
  char *path = read_path(request, &failure);
  if (failure != 0) return failure;
  uint32_t wanted = read_u32(request);
  if (!reader_done(request) || wanted > 1) return EINVAL;
  if (borrow_is_active() && (failure = borrow()) != 0) return failure;
  inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify_fd < 0) return errno;
  root_wd = inotify_add_watch(inotify_fd, path, ROOT_EVENTS);
  if (root_wd < 0 || stat(path, &st) != 0) return errno;
  recursive = wanted && S_ISDIR(st.st_mode);
  failure = add_place(root_wd, "");
  if (recursive) {
    root_fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (root_fd < 0) return errno;
    if (failure == 0) failure = enter("", false);
  }
  if (failure != 0) return failure;
  tell(READY, "");
  end_row();
  return follow();
}
