/*
 * Tries what a program in a sandbox must not do, and prints for each attempt its name and the errno it ended with (0: it was
 * allowed). "probe 1" acts on the first process, "probe child" on a child of its own, where all of it is allowed;
 * "probe calls" tries what names no process. "probe hoard", "probe mount" and "probe mount-cgroup" are acts of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void act_on(pid_t pid) {
  struct rlimit limit = {1000, 1000};
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  tell("signal-0", kill(pid, 0));
  tell("signal-continue", kill(pid, SIGCONT));
  tell("tkill", syscall(SYS_tkill, pid, SIGCONT));
  tell("tgkill", syscall(SYS_tgkill, pid, pid, SIGCONT));
  tell("prlimit", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL));
  tell("renice", setpriority(PRIO_PROCESS, (id_t)pid, 5));
  tell("affinity", sched_setaffinity(pid, sizeof cpus, &cpus));
  tell("owner-of-signals", fcntl(0, F_SETOWN, pid));
  tell("open-fd", open_of(pid, "fd/1", O_RDONLY));
  tell("open-mem", open_of(pid, "mem", O_RDONLY));
  tell("environ", read_of(pid, "environ"));
  tell("oom-score", write(open_of(pid, "oom_score_adj", O_WRONLY), "900", 3));
  tell("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
}

static void try_calls(void) {
  tell("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tell("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
  tell("socket-inet6", socket(AF_INET6, SOCK_DGRAM, 0));
  tell("socket-netlink-route", socket(AF_NETLINK, SOCK_RAW, 0));
  tell("socket-netlink-audit", socket(AF_NETLINK, SOCK_RAW, 9));
  tell("socket-vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  tell("socket-alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  tell("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
  tell("io_uring", syscall(425, 1, NULL));
  tell("keyctl", syscall(SYS_keyctl, 0, -3, 0));
  tell("bpf", syscall(SYS_bpf, 0, NULL, 0));
  tell("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  tell("userfaultfd", syscall(SYS_userfaultfd, 1));
  tell("unshare", unshare(CLONE_NEWUSER));
  tell("mount", syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, NULL));
  tell("handle", syscall(SYS_open_by_handle_at, -1, NULL, 0));
  tell("clone3", syscall(435, NULL, 0));
  tell("clone-namespace", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
  tell("renice-user", setpriority(PRIO_USER, 0, 5));
  tell("renice-self", setpriority(PRIO_PROCESS, 0, 5));
  tell("owner-by-pointer", fcntl(0, F_SETOWN_EX, (int[]){1, 1}));
  tell("owner-self", fcntl(0, F_SETOWN, getpid()));
#if defined(__x86_64__)
  tell("x32", syscall(0x40000000 | SYS_getpid));
#endif
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

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "calls") == 0) try_calls();
  else if (strcmp(argv[1], "knock") == 0) knock();
  else if (strcmp(argv[1], "hoard") == 0) hoard(argv[2]);
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
