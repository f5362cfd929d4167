/*
 * keeper: what has to be done on the host before bubblewrap may start, in the one order in which it is safe, and nothing
 * else. It becomes bubblewrap, so no process of it stays.
 *
 *   keeper --folder=DIR [--user=UID:GID] [--cgroup=DIR]... [--stage=PATH]... [--memory=BYTES]... [--data=FILE]...
 *          [--all-ports] -- BWRAP ARG...
 *
 * In the folder it makes the socket `door`, and appends to `status`. Descriptors that BWRAP gets: 3 the door, listening;
 * 4 the status; 5 the seccomp program; 10 and up the data files, in their order.
 *
 * SECURITY: it never executes anything as root. Whoever is root names a user, and is that user for good before the new
 * namespaces are made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "filter.h"

/* Headers may not know it yet; it is the same on every architecture. */
enum { NR_close_range = 436 };
enum { DOOR = 3, STATUS = 4, FILTER = 5, FIRST_DATA = 10, MOST_DATA = 32, MOST_STAGED = 1000, MOST_MEMORY = 8, BACKLOG = 8 };

static void say(const char *text) {
  long wrote = write(2, text, strlen(text));
  (void)wrote;
}

static _Noreturn void fail(const char *what, const char *which) {
  const char *why = strerror(errno);
  say("keeper: ");
  say(what);
  say(" ");
  say(which);
  say(": ");
  say(why);
  say("\n");
  _exit(125);
}

static _Noreturn void misused(const char *what) {
  say("keeper: ");
  say(what);
  say("\n");
  _exit(125);
}

/* Decimal, with its end; the buffer has room for every number. */
static char *number_text(char buffer[24], uint64_t number) {
  char *at = buffer + 23;
  *at = '\0';
  do *--at = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  return at;
}

static uint32_t read_id(const char **text) {
  uint64_t value = 0;
  for (; **text >= '0' && **text <= '9' && value < UINT32_MAX; (*text)++) value = value * 10 + (uint64_t)(**text - '0');
  if (value == 0 || value >= UINT32_MAX) misused("a user or a group is no number, or is root's");
  return (uint32_t)value;
}

static void write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (long)strlen(text)) fail("write to", path);
  close(fd);
}

/* Moves a descriptor to a number that bubblewrap is told of, and lets it pass an exec. */
static void place(int fd, int number, const char *what) {
  if (fd < 0) fail("open", what);
  if (fd == number) {
    if (fcntl(fd, F_SETFD, 0) != 0) fail("keep", what);
    return;
  }
  if (dup2(fd, number) < 0) fail("place", what);
  close(fd);
}

/* Above all numbers that have a meaning, so that nothing is overwritten while the others are opened. */
static int high(int fd) {
  if (fd < 0) return -1;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  close(fd);
  return moved;
}

static void open_door(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "door"};
  unlink("door");
  int fd = high(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0) {
    fail("listen at", "door");
  }
  place(fd, DOOR, "door");
}

/* Who is to be ended if this comes to nothing before bubblewrap has told of its child. */
static void tell_own_pid(void) {
  char digits[24], line[64] = "{ \"keeper-pid\": ";
  strcat(line, number_text(digits, (uint64_t)getpid()));
  strcat(line, " }\n");
  if (write(STATUS, line, strlen(line)) != (long)strlen(line)) fail("write to", "status");
}

static void join(const char *cgroup) {
  char path[4096];
  if (strlen(cgroup) > sizeof path - 32) misused("a cgroup's path is too long");
  strcpy(path, cgroup);
  strcat(path, "/cgroup.procs");
  write_text(path, "0");
}

/*
 * Puts what is mounted into the box where its user may find it: a bind of bubblewrap's is looked up as that user, and a
 * folder of the host may be in one that only root may enter. All of it is in a mount namespace that nobody else sees.
 */
static void stage(const char *const *sources, unsigned count) {
  if (unshare(CLONE_NEWNS) != 0) fail("make", "a mount namespace");
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("keep private", "/");
  int held[MOST_STAGED];
  /* Before /run is covered: what is asked for may be there. */
  for (unsigned i = 0; i < count; i++) {
    held[i] = high(open(sources[i], O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (held[i] < 0) fail("open", sources[i]);
  }
  if (mount("stage", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") != 0) fail("mount", "/run");
  for (unsigned i = 0; i < count; i++) {
    char digits[24], target[32] = "/run/", source[64] = "/proc/self/fd/";
    struct stat facts;
    strcat(target, number_text(digits, i));
    strcat(source, number_text(digits, (uint64_t)held[i]));
    if (fstat(held[i], &facts) != 0) fail("look at", sources[i]);
    int made = S_ISDIR(facts.st_mode) ? mkdir(target, 0755) : mknod(target, S_IFREG | 0644, 0);
    if (made != 0 || mount(source, target, NULL, MS_BIND | MS_REC, NULL) != 0) fail("stage", sources[i]);
    close(held[i]);
  }
}

/*
 * Memory that nothing in it can be executed from: /run/memory-0 and so on. bubblewrap cannot mount one, but a bind of its
 * own keeps what the mount says, and nobody in a user namespace can take it away again.
 */
static void stage_memory(const char *const *sizes, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    char digits[24], target[48] = "/run/memory-", options[64] = "mode=1777,size=";
    size_t length = strlen(sizes[i]);
    if (length == 0 || length > 20 || strspn(sizes[i], "0123456789") != length) misused("--memory wants a number of bytes");
    strcat(target, number_text(digits, i));
    strcat(options, sizes[i]);
    if (mkdir(target, 0755) != 0 || mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0) {
      fail("mount", target);
    }
  }
}

static void become(uint32_t uid, uint32_t gid) {
  if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) fail("become", "the user");
  if (setuid(0) == 0 || getuid() == 0 || getgid() == 0 || geteuid() == 0 || getegid() == 0) misused("still root");
  /* Or the own maps could not be written: after a change of user they belong to root. */
  if (prctl(PR_SET_DUMPABLE, 1) != 0) fail("stay", "dumpable");
}

static void map_self(const char *file, uint32_t id) {
  char digits[24], line[64] = "";
  strcat(line, number_text(digits, id));
  strcat(line, " ");
  strcat(line, number_text(digits, id));
  strcat(line, " 1");
  write_text(file, line);
}

/*
 * A network with nothing but a loopback, made here and not by bubblewrap, because only here it can be allowed to listen on
 * every port. It belongs to a user namespace outside of the box: nobody inside ever has a say in it.
 */
static void make_network(bool all_ports) {
  uint32_t uid = getuid(), gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) fail("make", "a user namespace and a network namespace");
  write_text("/proc/self/setgroups", "deny");
  map_self("/proc/self/uid_map", uid);
  map_self("/proc/self/gid_map", gid);
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0) fail("look at", "the loopback");
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) fail("bring up", "the loopback");
  close(fd);
  if (all_ports) write_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

/*
 * A quarter of what its user may have of one kind, for all of the box together: what is made in a user namespace counts there
 * and for the user outside. A kernel that does not have it does not count it.
 */
static void leave_most(const char *of_user, const char *of_namespace) {
  char digits[24] = "", text[24];
  int fd = open(of_user, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return;
  if (fd < 0 || read(fd, digits, sizeof digits - 1) <= 0) fail("read", of_user);
  close(fd);
  uint64_t most = 0;
  for (const char *at = digits; *at >= '0' && *at <= '9'; at++) most = most * 10 + (uint64_t)(*at - '0');
  write_text(of_namespace, number_text(text, most / 4 > 0 ? most / 4 : 1));
}

static void close_others(unsigned data) {
  if (syscall(NR_close_range, FILTER + 1, FIRST_DATA - 1, 0) != 0 ||
      syscall(NR_close_range, FIRST_DATA + data, ~0u, 0) != 0) {
    fail("close", "what is not bubblewrap's");
  }
}

struct wishes {
  const char *folder;
  uint32_t uid, gid; /* 0: stay who we are */
  bool all_ports;
  const char *cgroups[16], *staged[MOST_STAGED], *memory[MOST_MEMORY], *data[MOST_DATA];
  unsigned cgroup_count, staged_count, memory_count, data_count;
};

static const char *value_of(const char *argument, const char *name) {
  size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

static void add(const char **list, unsigned *count, unsigned most, const char *value) {
  if (*count == most) misused("too much of one kind");
  list[(*count)++] = value;
}

static char **read_wishes(struct wishes *wishes, char **argument) {
  for (; *argument != NULL && strcmp(*argument, "--") != 0; argument++) {
    const char *value;
    if ((value = value_of(*argument, "--folder="))) wishes->folder = value;
    else if ((value = value_of(*argument, "--cgroup="))) add(wishes->cgroups, &wishes->cgroup_count, 16, value);
    else if ((value = value_of(*argument, "--stage="))) add(wishes->staged, &wishes->staged_count, MOST_STAGED, value);
    else if ((value = value_of(*argument, "--memory="))) add(wishes->memory, &wishes->memory_count, MOST_MEMORY, value);
    else if ((value = value_of(*argument, "--data="))) add(wishes->data, &wishes->data_count, MOST_DATA, value);
    else if (strcmp(*argument, "--all-ports") == 0) wishes->all_ports = true;
    else if ((value = value_of(*argument, "--user="))) {
      wishes->uid = read_id(&value);
      if (*value++ != ':') misused("--user wants UID:GID");
      wishes->gid = read_id(&value);
      if (*value != '\0') misused("--user wants UID:GID");
    } else misused("an option that it does not know");
  }
  if (wishes->folder == NULL || *argument == NULL || argument[1] == NULL) misused("--folder and a program are needed");
  return argument + 1;
}

int main(int argc, char **argv) {
  (void)argc;
  static struct wishes wishes;
  char **program = read_wishes(&wishes, argv + 1);
  bool is_root = getuid() == 0 || geteuid() == 0;
  if (is_root && wishes.uid == 0) misused("root names the user to become: --user=UID:GID");
  if (!is_root && (wishes.uid != 0 || wishes.staged_count + wishes.memory_count > 0)) misused("only root becomes another user, or stages");
  umask(0077);
  if (chdir(wishes.folder) != 0) fail("go to", wishes.folder);
  open_door();
  place(high(open("status", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), STATUS, "status");
  place(high(filter_open()), FILTER, "the seccomp program");
  for (unsigned i = 0; i < wishes.data_count; i++) {
    place(high(open(wishes.data[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC)), FIRST_DATA + (int)i, wishes.data[i]);
  }
  tell_own_pid();
  for (unsigned i = 0; i < wishes.cgroup_count; i++) join(wishes.cgroups[i]);
  if (chdir("/") != 0) fail("go to", "/");
  if (is_root) {
    stage(wishes.staged, wishes.staged_count);
    stage_memory(wishes.memory, wishes.memory_count);
    become(wishes.uid, wishes.gid);
  }
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) fail("limit", "core files");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("give up", "new privileges");
  make_network(wishes.all_ports);
  leave_most("/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances");
  leave_most("/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches");
  close_others(wishes.data_count);
  /* For the folders that bubblewrap makes inside; nothing of the host is made any more. */
  umask(0022);
  char *nothing[] = {NULL};
  execve(program[0], program, nothing);
  fail("start", program[0]);
}
