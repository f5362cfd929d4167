/*
 * Runs a program, and as many relays to it as asked for, where whatever it is told to do can do no harm: own mounts, processes
 * and network, a root of its own of which only memory can be written, an ordinary user without capabilities. Any step that
 * fails ends it: it never runs a program outside.
 *
 *   cage PROGRAM RELAYS [ARGUMENT...]
 *
 * Descriptors: 0 and 1 are the program's. The end of 3 ends it (TERM). From 4 on each is one relay's, which is started when the
 * first byte comes. Its status is the program's (0 for 143) or a relay's, or 99 where a sanitizer left a report, which goes to stderr.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/tmp"

enum { CONTROL = 3, FIRST_RELAY = 4, MOST_RELAYS = 8, OWNER = 64000, NOT_THERE = 125, FOUND = 99, BROKEN = 98 };

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "cage: %s: %s\n", what, strerror(errno));
  _exit(BROKEN);
}

static void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
  close(fd);
}

/* An ordinary user becomes root of a user namespace, and of nothing else. */
static void unshare_all(void) {
  uid_t uid = getuid();
  gid_t gid = getgid();
  int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  must(unshare(uid == 0 ? flags : flags | CLONE_NEWUSER) == 0, "unshare");
  if (uid == 0) return;
  char map[64];
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "0 %u 1", uid);
  write_file("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "0 %u 1", gid);
  write_file("/proc/self/gid_map", map);
}

static void show_folder(const char *name) {
  char from[64], to[64], target[256];
  struct stat st;
  snprintf(from, sizeof from, "/%s", name);
  snprintf(to, sizeof to, ROOT "/%s", name);
  if (lstat(from, &st) != 0) return;
  if (S_ISLNK(st.st_mode)) {
    ssize_t length = readlink(from, target, sizeof target - 1);
    must(length > 0, from);
    target[length] = '\0';
    must(symlink(target, to) == 0, to);
    return;
  }
  must(mkdir(to, 0755) == 0 && mount(from, to, NULL, MS_BIND, NULL) == 0, to);
  must(mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0, to);
}

static void show_file(const char *from, const char *to) {
  int fd = open(to, O_CREAT | O_WRONLY, 0755);
  must(fd >= 0 && close(fd) == 0 && mount(from, to, NULL, MS_BIND, NULL) == 0, to);
}

static void build_root(int program) {
  char path[64];
  must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
  must(mount("cage", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,nr_inodes=20000,mode=755") == 0, "tmpfs");
  const char *folders[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) show_folder(folders[i]);
  snprintf(path, sizeof path, "/proc/self/fd/%d", program);
  show_file(path, ROOT "/program");
  const char *made[] = {"/dev", "/dev/pts", "/proc", "/reports", "/play"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    snprintf(path, sizeof path, ROOT "%s", made[i]);
    must(mkdir(path, 0755) == 0, path);
  }
  must(chmod(ROOT "/reports", 0777) == 0 && chmod(ROOT "/play", 0777) == 0, "chmod");
  show_file("/dev/null", ROOT "/dev/null");
  show_file("/dev/zero", ROOT "/dev/zero");
  must(mount("devpts", ROOT "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666") == 0, "devpts");
  must(symlink("pts/ptmx", ROOT "/dev/ptmx") == 0, "ptmx");
  must(mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "proc");
  must(chroot(ROOT) == 0 && chdir("/play") == 0, "chroot");
}

static void raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  must(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0, "loopback");
  close(fd);
}

static void drop_privileges(int was_root) {
  if (was_root) must(setgroups(0, NULL) == 0 && setresgid(OWNER, OWNER, OWNER) == 0 && setresuid(OWNER, OWNER, OWNER) == 0, "user");
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {0};
  must(syscall(SYS_capset, &header, none) == 0, "capabilities");
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
}

/* Something of each kind to find. */
static void fill_play(void) {
  static const char zeros[200000];
  must(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && mkdir("c", 0700) == 0, "folders");
  const char *files[] = {"a/x", "a/y", "b/x", "d"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    int fd = open(files[i], O_CREAT | O_WRONLY, 0644);
    must(fd >= 0 && write(fd, zeros, i * 60000) == (ssize_t)(i * 60000) && close(fd) == 0, files[i]);
  }
  must(symlink("a", "link") == 0 && mkfifo("b/fifo", 0600) == 0, "link and FIFO");
}

/* Forks; in the child only 0, 1, 2 are left open, with `in` and `out` as the first two. */
static pid_t start(int in, int out) {
  pid_t pid = fork();
  must(pid >= 0, "fork");
  if (pid > 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  must((in == 0 || dup2(in, 0) == 0) && (out == 1 || dup2(out, 1) == 1), "dup2");
  must(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
  return 0;
}

static pid_t start_relay(int fd, pid_t program) {
  pid_t pid = start(fd, fd);
  if (pid > 0) return pid;
  struct pollfd wish = {.fd = 0, .events = POLLIN};
  char byte, number[16];
  while (poll(&wish, 1, -1) < 0 && errno == EINTR);
  if (recv(0, &byte, 1, MSG_PEEK) != 1) _exit(0);
  snprintf(number, sizeof number, "%d", (int)program);
  execl("/program", "porter", "relay", number, (char *)NULL);
  must(0, "relay");
  return 0;
}

/* What a worker would have said on its stderr, which it has none of. */
static int tell_reports(void) {
  DIR *folder = opendir("/reports");
  struct dirent *entry;
  int found = 0;
  must(folder != NULL, "/reports");
  while ((entry = readdir(folder)) != NULL) {
    char bytes[4096];
    ssize_t got;
    if (entry->d_name[0] == '.') continue;
    int fd = openat(dirfd(folder), entry->d_name, O_RDONLY);
    while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0) found |= write(2, bytes, (size_t)got) != 0;
    close(fd);
  }
  return found;
}

static int status_of(pid_t pid) {
  int status;
  must(waitpid(pid, &status, 0) == pid, "waitpid");
  if (WIFSIGNALED(status)) fprintf(stderr, "cage: signal %d ended it\n", WTERMSIG(status));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Until the program has ended; reaps whoever else ends in here, and passes on the end of CONTROL. */
static int supervise(pid_t program, int children) {
  struct pollfd wishes[] = {{.fd = CONTROL, .events = POLLIN}, {.fd = children, .events = POLLIN}};
  for (;;) {
    siginfo_t info = {0};
    must(waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "waitid");
    if (info.si_pid == program) return status_of(program);
    struct signalfd_siginfo ignored;
    if (poll(wishes, 2, -1) < 0) continue;
    if (wishes[1].revents != 0) must(read(children, &ignored, sizeof ignored) > 0, "signalfd");
    if (wishes[0].revents == 0) continue;
    kill(program, SIGTERM);
    wishes[0].fd = -1;
  }
}

static int run_inside(int program_fd, int relays, char **argv, int was_root) {
  pid_t pids[MOST_RELAYS];
  sigset_t child;
  build_root(program_fd);
  raise_loopback();
  drop_privileges(was_root);
  fill_play();
  must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "pdeathsig");
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  int children = signalfd(-1, &child, SFD_CLOEXEC);
  pid_t program = start(0, 1);
  if (program == 0) {
    execv("/program", argv);
    must(0, "program");
  }
  for (int i = 0; i < relays; i++) {
    pids[i] = start_relay(FIRST_RELAY + i, program);
    close(FIRST_RELAY + i);
  }
  close(0);
  close(1);
  int status = supervise(program, children);
  if (status == 128 + SIGTERM) status = 0;
  for (int i = 0; i < relays; i++) {
    int own = status_of(pids[i]);
    /* One that came when the program was gone says so, and is right. */
    if (status == 0 && own != NOT_THERE) status = own;
  }
  return tell_reports() ? FOUND : status;
}

int main(int argc, char **argv) {
  int relays = argc < 3 ? -1 : atoi(argv[2]), was_root = getuid() == 0;
  if (relays < 0 || relays > MOST_RELAYS) return BROKEN;
  unshare_all();
  /* Only now, because a file of other mounts cannot be shown in these; and before they change. */
  int program = open(argv[1], O_PATH | O_CLOEXEC);
  must(program >= 0, argv[1]);
  pid_t inside = fork();
  must(inside >= 0, "fork");
  if (inside == 0) _exit(run_inside(program, relays, argv + 2, was_root));
  must(syscall(SYS_close_range, CONTROL, ~0U, 0) == 0, "close_range");
  close(0);
  close(1);
  return status_of(inside);
}
