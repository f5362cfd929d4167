/*
 * A list of denials, not of permissions: the engine's profile already is the latter, and this one must hold on engines
 * that have none. Each rule is a row of a table; the filter is assembled from the rows at start.
 */
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "die.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "unsupported architecture"
#endif

/* Headers may not know it yet. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum {
  X32_BIT = 0x40000000,
  IOPRIO_WHO_USER = 3,
  SET_ID = S_ISUID | S_ISGID,
  /* A call that opens takes its mode only with one of these. O_TMPFILE has the bit of O_DIRECTORY in it as well. */
  MAKES_A_FILE = O_CREAT | (O_TMPFILE & ~O_DIRECTORY),
  NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP,
};

/* Numbers that the C library's headers may not know yet; they are the same on every architecture. */
enum {
  NR_pidfd_send_signal = 424,
  NR_io_uring_setup = 425,
  NR_io_uring_enter = 426,
  NR_io_uring_register = 427,
  NR_open_tree = 428,
  NR_move_mount = 429,
  NR_fsopen = 430,
  NR_fsconfig = 431,
  NR_fsmount = 432,
  NR_fspick = 433,
  NR_pidfd_open = 434,
  NR_clone3 = 435,
  NR_openat2 = 437,
  NR_pidfd_getfd = 438,
  NR_process_madvise = 440,
  NR_mount_setattr = 442,
  NR_quotactl_fd = 443,
  NR_fchmodat2 = 452,
  NR_open_tree_attr = 467,
};

/* What a call leads to. The first three end there; the others look at arguments. */
enum place {
  EPERM_HERE,
  ENOSYS_HERE,
  FAMILY_HERE,
  ALLOW,
  FIRST_IS_PORTER,
  SECOND_IS_PORTER,
  EITHER_IS_PORTER,
  PRIORITY,
  IO_PRIORITY,
  CLONE,
  SOCKET,
  FCNTL,
  IOCTL,
  OPEN,
  OPENAT,
  SECOND_IS_MODE,
  THIRD_IS_MODE,
  FOURTH_IS_MODE,
  BORROWED,
  PLACES,
};

struct rule {
  int number;
  enum place place;
};

static struct rule rules[] = {
    {NR_io_uring_setup, EPERM_HERE},
    {NR_io_uring_enter, EPERM_HERE},
    {NR_io_uring_register, EPERM_HERE},
    {SYS_add_key, EPERM_HERE},
    {SYS_request_key, EPERM_HERE},
    {SYS_keyctl, EPERM_HERE},
    {SYS_bpf, EPERM_HERE},
    {SYS_perf_event_open, EPERM_HERE},
    {SYS_fanotify_init, EPERM_HERE},
    {SYS_userfaultfd, EPERM_HERE},
    {SYS_unshare, EPERM_HERE},
    {SYS_setns, EPERM_HERE},
    {SYS_mount, EPERM_HERE},
    {SYS_umount2, EPERM_HERE},
    {SYS_pivot_root, EPERM_HERE},
    {SYS_chroot, EPERM_HERE},
    {NR_open_tree, EPERM_HERE},
    {NR_move_mount, EPERM_HERE},
    {NR_fsopen, EPERM_HERE},
    {NR_fsconfig, EPERM_HERE},
    {NR_fsmount, EPERM_HERE},
    {NR_fspick, EPERM_HERE},
    {NR_mount_setattr, EPERM_HERE},
    {NR_open_tree_attr, EPERM_HERE},
    {SYS_open_by_handle_at, EPERM_HERE},
    {SYS_kexec_load, EPERM_HERE},
    {SYS_kexec_file_load, EPERM_HERE},
    {SYS_init_module, EPERM_HERE},
    {SYS_finit_module, EPERM_HERE},
    {SYS_delete_module, EPERM_HERE},
    {SYS_swapon, EPERM_HERE},
    {SYS_swapoff, EPERM_HERE},
    {SYS_reboot, EPERM_HERE},
    {SYS_acct, EPERM_HERE},
    {SYS_quotactl, EPERM_HERE},
    {NR_quotactl_fd, EPERM_HERE},
    {NR_pidfd_getfd, EPERM_HERE},
    {NR_process_madvise, EPERM_HERE},
    /* Its flags are behind a pointer, which no filter can read; a C library that is told "no such call" uses clone. */
    {NR_clone3, ENOSYS_HERE},
    /* Takes a descriptor, which may stand for porter; programs that are told "no such call" use kill. */
    {NR_pidfd_send_signal, ENOSYS_HERE},
    /* Its mode is behind a pointer; programs that are told "no such call" use openat. */
    {NR_openat2, ENOSYS_HERE},
    /* All of a machine share one number of these events (fs.aio-max-nr), which one program could use up. */
    {SYS_io_setup, ENOSYS_HERE},
    /* Their watches count for the user who makes them. */
    {SYS_epoll_create1, BORROWED},
    {SYS_inotify_init1, BORROWED},
#if defined(__x86_64__)
    {SYS_epoll_create, BORROWED},
    {SYS_inotify_init, BORROWED},
#endif
    /* A file with a set-id bit in a folder of the host would give its owner's identity to whoever runs it there. mkdir and
     * mkdirat are not here: the kernel ignores these bits in them, and `cp -r` passes them on. */
    {SYS_fchmod, SECOND_IS_MODE},
    {SYS_fchmodat, THIRD_IS_MODE},
    {NR_fchmodat2, THIRD_IS_MODE},
    {SYS_mknodat, THIRD_IS_MODE},
    {SYS_openat, OPENAT},
#if defined(__x86_64__)
    {SYS_chmod, SECOND_IS_MODE},
    {SYS_creat, SECOND_IS_MODE},
    {SYS_mknod, SECOND_IS_MODE},
    {SYS_open, OPEN},
#endif
    {SYS_clone, CLONE},
    {SYS_socket, SOCKET},
    {SYS_fcntl, FCNTL},
    {SYS_ioctl, IOCTL},
    {SYS_kill, FIRST_IS_PORTER},
    {SYS_tkill, FIRST_IS_PORTER},
    {SYS_tgkill, EITHER_IS_PORTER},
    {SYS_rt_sigqueueinfo, FIRST_IS_PORTER},
    {SYS_rt_tgsigqueueinfo, EITHER_IS_PORTER},
    {NR_pidfd_open, FIRST_IS_PORTER},
    {SYS_ptrace, SECOND_IS_PORTER},
    {SYS_process_vm_readv, FIRST_IS_PORTER},
    {SYS_process_vm_writev, FIRST_IS_PORTER},
    {SYS_kcmp, EITHER_IS_PORTER},
    {SYS_prlimit64, FIRST_IS_PORTER},
    {SYS_setpriority, PRIORITY},
    {SYS_ioprio_set, IO_PRIORITY},
    {SYS_sched_setaffinity, FIRST_IS_PORTER},
    {SYS_sched_setscheduler, FIRST_IS_PORTER},
    {SYS_sched_setparam, FIRST_IS_PORTER},
    {SYS_sched_setattr, FIRST_IS_PORTER},
    {SYS_migrate_pages, FIRST_IS_PORTER},
    {SYS_move_pages, FIRST_IS_PORTER},
    {SYS_setpgid, FIRST_IS_PORTER},
};

/* A conditional jump reaches 255 instructions, and a jump of the tree may go from the first to the last. */
enum { RULES = sizeof rules / sizeof *rules, MOST_INSTRUCTIONS = 250, UNSET = 0xFFFF };
static struct sock_filter code[MOST_INSTRUCTIONS];
static enum place targets[MOST_INSTRUCTIONS]; /* of jumps that are not filled in yet; PLACES for all others */
static uint16_t at[PLACES];
static uint16_t length;

static void emit(uint16_t operation, uint32_t k, enum place target) {
  if (length == MOST_INSTRUCTIONS) die("the filter is too long");
  targets[length] = target;
  code[length++] = (struct sock_filter){.code = operation, .k = k};
}

static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, PLACES); }
/* The low half of an argument: where the kernel takes an int it ignores the high half too. Both machines are
 * little-endian. */
static void load_argument(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index); }
static void jump_if_equal(uint32_t k, enum place target) { emit(BPF_JMP | BPF_JEQ | BPF_K, k, target); }
/* Whatever was loaded is at least 0, so this one always jumps. */
static void jump_to(enum place target) { emit(BPF_JMP | BPF_JGE | BPF_K, 0, target); }
static void finish(enum place place, uint32_t action) {
  at[place] = length;
  emit(BPF_RET | BPF_K, action, PLACES);
}

static void refuse_foreign_calls(void) {
  load(offsetof(struct seccomp_data, arch));
  emit(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, PLACES);
  code[length - 1].jt = 1;
  emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, PLACES);
  load(offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, ENOSYS_HERE);
#endif
}

static void refuse_set_id(enum place place, unsigned argument) {
  at[place] = length;
  load_argument(argument);
  emit(BPF_JMP | BPF_JSET | BPF_K, SET_ID, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
}

/* Without a file to make, the argument after the flags is whatever the register holds. */
static void look_at_flags(enum place place, unsigned argument, enum place if_it_makes) {
  at[place] = length;
  load_argument(argument);
  emit(BPF_JMP | BPF_JSET | BPF_K, MAKES_A_FILE, if_it_makes);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
}

static void look_at_modes(void) {
  look_at_flags(OPENAT, 2, FOURTH_IS_MODE);
#if defined(__x86_64__)
  look_at_flags(OPEN, 1, THIRD_IS_MODE);
#endif
  refuse_set_id(FOURTH_IS_MODE, 3);
  refuse_set_id(THIRD_IS_MODE, 2);
  refuse_set_id(SECOND_IS_MODE, 1);
}

static void look_at_arguments(uint32_t porter) {
  /* To name all processes of a user is to name porter too. */
  at[PRIORITY] = length;
  load_argument(0);
  jump_if_equal(PRIO_USER, EPERM_HERE);
  jump_to(SECOND_IS_PORTER);
  at[IO_PRIORITY] = length;
  load_argument(0);
  jump_if_equal(IOPRIO_WHO_USER, EPERM_HERE);
  jump_to(SECOND_IS_PORTER);
  at[EITHER_IS_PORTER] = length;
  load_argument(0);
  jump_if_equal(porter, EPERM_HERE);
  at[SECOND_IS_PORTER] = length;
  load_argument(1);
  jump_if_equal(porter, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
  at[FIRST_IS_PORTER] = length;
  load_argument(0);
  jump_if_equal(porter, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
  at[CLONE] = length;
  load_argument(0);
  emit(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
  /* The owner of a descriptor is sent a signal of the program's choice when the descriptor becomes ready. Where it is given
   * behind a pointer, no filter can see who that is. */
  at[FCNTL] = length;
  load_argument(1);
  jump_if_equal(F_SETOWN_EX, EPERM_HERE);
  emit(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN, PLACES);
  code[length - 1].jf = 3;
  load_argument(2);
  jump_if_equal(porter, EPERM_HERE);
  jump_if_equal(-porter, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
  at[IOCTL] = length;
  load_argument(1);
  jump_if_equal(FIOSETOWN, EPERM_HERE);
  jump_if_equal(SIOCSPGRP, EPERM_HERE);
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
  /* UNIX, INET, INET6, and NETLINK for routes, which name look-ups use. AF_VSOCK would reach the hypervisor. */
  at[SOCKET] = length;
  load_argument(0);
  jump_if_equal(AF_UNIX, ALLOW);
  jump_if_equal(AF_INET, ALLOW);
  jump_if_equal(AF_INET6, ALLOW);
  emit(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, PLACES);
  code[length - 1].jf = 2;
  load_argument(2);
  jump_if_equal(NETLINK_ROUTE, ALLOW);
}

static void sort_rules(void) {
  for (size_t i = 1; i < RULES; i++) {
    struct rule rule = rules[i];
    size_t j = i;
    for (; j > 0 && rules[j - 1].number > rule.number; j--) rules[j] = rules[j - 1];
    rules[j] = rule;
  }
}

/* A search tree, not a list: the kernel tries the filter with every call there is each time it is installed, and that is on
 * the way of each exec (measured: 110 µs as a list, 65 µs as a tree). */
static void emit_tree(size_t from, size_t to) {
  if (to - from <= 3) {
    for (size_t i = from; i < to; i++) jump_if_equal((uint32_t)rules[i].number, rules[i].place);
    emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, PLACES);
    return;
  }
  size_t middle = from + (to - from) / 2;
  uint16_t node = length;
  emit(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)rules[middle].number, PLACES);
  emit_tree(from, middle);
  code[node].jt = (uint8_t)(length - node - 1);
  emit_tree(middle, to);
}

static void fill_in_jumps(void) {
  for (uint16_t i = 0; i < length; i++) {
    if (targets[i] == PLACES) continue;
    if (at[targets[i]] == UNSET || at[targets[i]] <= i || at[targets[i]] - i - 1 > UINT8_MAX) die("a jump in the filter");
    code[i].jt = (uint8_t)(at[targets[i]] - i - 1);
  }
}

void seccomp_prepare(bool borrows) {
  length = 0;
  for (int place = 0; place < PLACES; place++) at[place] = UNSET;
  refuse_foreign_calls();
  sort_rules();
  emit_tree(0, RULES);
  look_at_modes();
  look_at_arguments((uint32_t)getpid());
  finish(FAMILY_HERE, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  finish(EPERM_HERE, SECCOMP_RET_ERRNO | EPERM);
  finish(ENOSYS_HERE, SECCOMP_RET_ERRNO | ENOSYS);
  finish(BORROWED, borrows ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
  finish(ALLOW, SECCOMP_RET_ALLOW);
  fill_in_jumps();
}

/* Since Linux 5.19 a call that a listener has begun with is interrupted by nothing but a kill. */
static long install_listening(const struct sock_fprog *program) {
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                          SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
  if (listener >= 0 || errno != EINVAL) return listener;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
}

int seccomp_install(int *listener) {
  struct sock_fprog program = {.len = length, .filter = code};
  *listener = -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (code[at[BORROWED]].k == SECCOMP_RET_USER_NOTIF) {
    long fd = install_listening(&program);
    *listener = (int)fd;
    if (fd >= 0) return 0;
    /* A process has one listener, and an engine may have put its own there. */
    if (errno != EBUSY) return errno;
    code[at[BORROWED]].k = SECCOMP_RET_ALLOW;
  }
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ? errno : 0;
}
