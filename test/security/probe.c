/*
 * Tries what a program in a sandbox must not do, and prints for each attempt its name and the errno it ended with (0: it was
 * done). "probe 1" acts on the first process, "probe child" on a child of its own, where all of it is allowed; "probe calls
 * FOLDER" tries what names no process, each in a process of its own and with all that the call needs to be done for true,
 * so that the same program says outside of the sandbox what an unfiltered process may do.
 * "probe modes FOLDER MODE" makes files of that mode in every way there is, each in a name of its own.
 * "probe hoard", "probe hunt", "probe bind NAME...", "probe mount" and "probe mount-cgroup" are acts of their own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Any process may take it, whatever it has now: tests may run with a lower priority. */
enum { LOWEST = 19 };

static void tell(const char *name, long result) { printf("%s %d\n", name, result < 0 ? errno : 0); }

static int open_of(pid_t pid, const char *name, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return open(path, flags);
}

static long read_of(pid_t pid, const char *name) {
  char byte;
  int fd = open_of(pid, name, O_RDONLY);
  return fd < 0 ? -1 : read(fd, &byte, 1);
}

static long list_of(pid_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  DIR *folder = opendir(path);
  return folder == NULL ? -1 : closedir(folder);
}

static long link_of(pid_t pid, const char *name) {
  char path[64], target[256];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return readlink(path, target, sizeof target);
}

/* A byte that every process has where this one has it, after a fork. */
static char shared_byte = 'x';

static long read_memory(pid_t pid) {
  char byte;
  struct iovec here = {&byte, 1}, there = {&shared_byte, 1};
  return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static void act_on(pid_t pid) {
  struct rlimit limit = {1000, 1000};
  struct sched_param batch = {0};
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  tell("signal-0", kill(pid, 0));
  tell("signal-continue", kill(pid, SIGCONT));
  tell("tkill", syscall(SYS_tkill, pid, SIGCONT));
  tell("tgkill", syscall(SYS_tgkill, pid, pid, SIGCONT));
  tell("prlimit", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL));
  tell("renice", setpriority(PRIO_PROCESS, (id_t)pid, LOWEST));
  tell("io-priority", syscall(SYS_ioprio_set, 1, pid, 2 << 13 | 7));
  tell("scheduler", sched_setscheduler(pid, SCHED_BATCH, &batch));
  tell("affinity", sched_setaffinity(pid, sizeof cpus, &cpus));
  tell("owner-of-signals", fcntl(0, F_SETOWN, pid));
  tell("list-fd", list_of(pid, "fd"));
  tell("open-fd", open_of(pid, "fd/1", O_RDONLY));
  tell("open-mem", open_of(pid, "mem", O_RDONLY));
  tell("open-mem-to-write", open_of(pid, "mem", O_RDWR));
  tell("maps", read_of(pid, "maps"));
  tell("environ", read_of(pid, "environ"));
  tell("exe", link_of(pid, "exe"));
  tell("root", link_of(pid, "root"));
  tell("oom-score", write(open_of(pid, "oom_score_adj", O_WRONLY), "900", 3));
  tell("read-memory", read_memory(pid));
  tell("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
}

static const char *folder;

static long socket_unix(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static long socket_inet(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static long socket_inet6(void) { return socket(AF_INET6, SOCK_DGRAM, 0); }
static long socket_route(void) { return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }
static long socket_audit(void) { return socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }
static long socket_vsock(void) { return socket(AF_VSOCK, SOCK_STREAM, 0); }
static long socket_alg(void) { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
static long socket_packet(void) { return socket(AF_PACKET, SOCK_RAW, 0); }

static long fanotify(void) { return syscall(SYS_fanotify_init, 0, O_RDONLY); }
static long aio(void) {
  unsigned long context = 0;
  return syscall(SYS_io_setup, 1, &context);
}

static long io_uring(void) {
  char parameters[120] = {0};
  return syscall(425, 1, parameters);
}

/* Of the calling process, made if it has none. */
static long keyctl_session(void) { return syscall(SYS_keyctl, 0, -3, 1); }
static long add_key(void) { return syscall(SYS_add_key, "user", "sallyport-probe", "x", 1, -1); }

static long bpf_map(void) {
  union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  return syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}

static long perf(void) {
  struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE, .size = sizeof clock, .config = PERF_COUNT_SW_TASK_CLOCK};
  return syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0);
}

static long userfaultfd(void) { return syscall(SYS_userfaultfd, O_CLOEXEC | 1); }
static long unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long unshare_mounts(void) { return unshare(CLONE_NEWNS); }
static long unshare_network(void) { return unshare(CLONE_NEWNET); }

static long clone_with(unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid == 0) _exit(0);
  return pid;
}
static long clone_user(void) { return clone_with(CLONE_NEWUSER); }
static long clone_pid(void) { return clone_with(CLONE_NEWPID); }
static long clone_plain(void) { return clone_with(0); }

static long clone3(void) {
  uint64_t arguments[8] = {0, 0, 0, 0, SIGCHLD, 0, 0, 0};
  long pid = syscall(435, arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  return pid;
}

/* Taken back at once: outside, the folder is one of this machine's. */
static long mount_memory(void) {
  long result = mount("probe", folder, "tmpfs", 0, NULL);
  int failure = errno;
  if (result == 0) umount2(folder, MNT_DETACH);
  errno = failure;
  return result;
}

static long open_filesystem(void) { return syscall(430, "tmpfs", 0); }

static long open_handle(void) {
  struct {
    struct file_handle head;
    unsigned char bytes[128];
  } handle = {.head.handle_bytes = sizeof handle.bytes};
  int mount_id, at = open(folder, O_RDONLY | O_DIRECTORY);
  if (name_to_handle_at(AT_FDCWD, folder, &handle.head, &mount_id, 0) != 0) handle.head.handle_bytes = 0;
  return syscall(SYS_open_by_handle_at, at, &handle.head, O_RDONLY);
}

static long change_root(void) { return chroot(folder); }

/* As a user whom nothing else belongs to: outside it would be the whole machine's root otherwise. */
static long renice_user(void) {
  if (geteuid() == 0 && setuid(64123) != 0) return -1;
  return setpriority(PRIO_USER, 0, LOWEST);
}
static long renice_self(void) { return setpriority(PRIO_PROCESS, 0, LOWEST); }
static long owner_by_pointer(void) { return fcntl(0, F_SETOWN_EX, &(struct f_owner_ex){F_OWNER_PID, getpid()}); }
static long owner_self(void) { return fcntl(0, F_SETOWN, getpid()); }
#if defined(__x86_64__)
static long x32(void) { return syscall(0x40000000 | SYS_getpid); }
#endif

static const struct {
  const char *name;
  long (*act)(void);
} calls[] = {
    {"socket-unix", socket_unix},
    {"socket-inet", socket_inet},
    {"socket-inet6", socket_inet6},
    {"socket-netlink-route", socket_route},
    {"socket-netlink-audit", socket_audit},
    {"socket-vsock", socket_vsock},
    {"socket-alg", socket_alg},
    {"socket-packet", socket_packet},
    {"io_uring", io_uring},
    {"fanotify", fanotify},
    {"aio", aio},
    {"keyctl", keyctl_session},
    {"add_key", add_key},
    {"bpf", bpf_map},
    {"perf", perf},
    {"userfaultfd", userfaultfd},
    {"unshare-user", unshare_user},
    {"unshare-mounts", unshare_mounts},
    {"unshare-network", unshare_network},
    {"clone-user", clone_user},
    {"clone-pid", clone_pid},
    {"clone-plain", clone_plain},
    {"clone3", clone3},
    {"mount", mount_memory},
    {"fsopen", open_filesystem},
    {"open_by_handle_at", open_handle},
    {"chroot", change_root},
    {"renice-user", renice_user},
    {"renice-self", renice_self},
    {"owner-by-pointer", owner_by_pointer},
    {"owner-self", owner_self},
#if defined(__x86_64__)
    {"x32", x32},
#endif
};

static void try_calls(void) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
      tell(calls[i].name, calls[i].act());
      fflush(stdout);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
  }
}

static unsigned mode;
static char at[4096];

static int plain_file(void) { return open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }

static long chmod_path(void) { return plain_file() < 0 ? -1 : syscall(SYS_fchmodat, AT_FDCWD, at, mode); }
static long chmod_path_with_flags(void) { return plain_file() < 0 ? -1 : syscall(452, AT_FDCWD, at, mode, 0); }
static long chmod_descriptor(void) { return syscall(SYS_fchmod, plain_file(), mode); }
static long open_new(void) { return syscall(SYS_openat, AT_FDCWD, at, O_WRONLY | O_CREAT | O_EXCL, mode); }
static long open_unnamed(void) { return syscall(SYS_openat, AT_FDCWD, folder, O_WRONLY | O_TMPFILE, mode); }
/* The mode of a call that makes nothing is of no account. */
static long open_there(void) { return plain_file() < 0 ? -1 : syscall(SYS_openat, AT_FDCWD, at, O_RDONLY, mode); }
static long open_by_struct(void) {
  uint64_t how[3] = {O_WRONLY | O_CREAT | O_EXCL, mode, 0};
  return syscall(437, AT_FDCWD, at, how, sizeof how);
}
static long make_node(void) { return syscall(SYS_mknodat, AT_FDCWD, at, S_IFREG | mode, 0); }
static long make_pipe(void) { return syscall(SYS_mknodat, AT_FDCWD, at, S_IFIFO | mode, 0); }
static long make_folder(void) { return syscall(SYS_mkdirat, AT_FDCWD, at, mode); }
static long chmod_folder(void) {
  return syscall(SYS_mkdirat, AT_FDCWD, at, 0700) != 0 ? -1 : syscall(SYS_fchmodat, AT_FDCWD, at, mode);
}

#if defined(__x86_64__)
static long chmod_old(void) { return plain_file() < 0 ? -1 : syscall(SYS_chmod, at, mode); }
static long open_old(void) { return syscall(SYS_open, at, O_WRONLY | O_CREAT | O_EXCL, mode); }
static long creat_old(void) { return syscall(SYS_creat, at, mode); }
static long make_node_old(void) { return syscall(SYS_mknod, at, S_IFREG | mode, 0); }
static long make_folder_old(void) { return syscall(SYS_mkdir, at, mode); }
static long chmod_x32(void) { return plain_file() < 0 ? -1 : syscall(0x40000000 | SYS_chmod, at, mode); }
/* chmod of the 32-bit table. This program is static, so its own data is at addresses of 32 bits. */
static long chmod_i386(void) {
  long result;
  if (plain_file() < 0) return -1;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(15), "b"(at), "c"(mode) : "memory", "r8", "r9", "r10", "r11");
  errno = (int)-result;
  return result < 0 ? -1 : 0;
}
#endif

static const struct {
  const char *name;
  long (*act)(void);
} modes[] = {
    {"fchmodat", chmod_path},
    {"fchmodat2", chmod_path_with_flags},
    {"fchmod", chmod_descriptor},
    {"openat", open_new},
    {"openat-unnamed", open_unnamed},
    {"openat-there", open_there},
    {"openat2", open_by_struct},
    {"mknodat", make_node},
    {"mknodat-pipe", make_pipe},
    {"mkdirat", make_folder},
    {"fchmodat-folder", chmod_folder},
#if defined(__x86_64__)
    {"chmod", chmod_old},
    {"open", open_old},
    {"creat", creat_old},
    {"mknod", make_node_old},
    {"mkdir", make_folder_old},
    {"x32-chmod", chmod_x32},
    {"i386-chmod", chmod_i386},
#endif
};

static void try_modes(void) {
  umask(0);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    snprintf(at, sizeof at, "%s/%s-%o", folder, modes[i].name, mode);
    tell(modes[i].name, modes[i].act());
  }
}

/* The relay's socket: what porter says to a program inside that connects to it, in bytes before the end. */
static void knock(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char name[] = "sallyport-porter.1";
  memcpy(address.sun_path + 1, name, sizeof name - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  char byte;
  tell("connect", connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name)));
  printf("answer %ld\n", (long)read(fd, &byte, 1));
}

/* Takes as many as there are, says how many and what ended it, and keeps them until it is killed. */
static void hoard(const char *what) {
  int count = 0;
  while (count < 200000 && (what[0] == 'i' ? inotify_init() : open("/dev/null", O_RDONLY)) >= 0) count++;
  printf("%d %d\n", count, errno);
  fflush(stdout);
  for (;;) pause();
}

/* Mounts the first type that the kernel has, and opens what is in it that leads out of a container. */
static int mount_one(const char *type, const char *data, const char *file) {
  mkdir("/tmp/mounted", 0755);
  if (syscall(SYS_mount, "none", "/tmp/mounted", type, 0, data) != 0) return 1;
  return file != NULL && open(file, O_WRONLY) < 0;
}

static int mount_cgroup(void) {
  return mount_one("cgroup", "memory", "/tmp/mounted/release_agent") && mount_one("cgroup2", NULL, "/tmp/mounted/cgroup.procs");
}

/* Abstract sockets of these names, until it is killed. */
static void bind_all(int count, char **names) {
  for (int i = 0; i < count; i++) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + 1, names[i], sizeof address.sun_path - 1);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(names[i]));
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length) != 0) exit(1);
  }
  printf("bound\n");
  fflush(stdout);
  for (;;) pause();
}

/* Traces the first process that it may of those that come after its own, as fast as it can, and says which one it was. */
static void hunt(void) {
  pid_t last = fork();
  if (last == 0) _exit(0);
  waitpid(last, NULL, 0);
  printf("hunting\n");
  fflush(stdout);
  for (;;) {
    for (pid_t pid = last + 1; pid < last + 100; pid++) {
      if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) continue;
      char name[32] = "";
      int fd = open_of(pid, "comm", O_RDONLY);
      long length = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
      printf("caught %d %.*s\n", (int)pid, (int)length, name);
      fflush(stdout);
      return;
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "calls") == 0) {
    folder = argc > 2 ? argv[2] : "/tmp";
    try_calls();
  } else if (strcmp(argv[1], "modes") == 0) {
    folder = argv[2];
    mode = (unsigned)strtoul(argv[3], NULL, 8);
    try_modes();
  } else if (strcmp(argv[1], "knock") == 0) knock();
  else if (strcmp(argv[1], "hoard") == 0) hoard(argv[2]);
  else if (strcmp(argv[1], "hunt") == 0) hunt();
  else if (strcmp(argv[1], "bind") == 0) bind_all(argc - 2, argv + 2);
  else if (strcmp(argv[1], "mount") == 0) return mount_one("tmpfs", NULL, NULL);
  else if (strcmp(argv[1], "mount-cgroup") == 0) return mount_cgroup();
  else if (strcmp(argv[1], "child") != 0) act_on(atoi(argv[1]));
  else {
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    act_on(child);
    fflush(stdout);
    kill(child, SIGKILL);
  }
  return 0;
}
