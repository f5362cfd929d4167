/*
 * A list of denials, not of permissions: the engine's profile already is the latter, and this one must hold on engines
 * that have none. Each rule is a row of a table; the program is assembled from the rows at start.
 */
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

enum {
  X32_BIT = 0x40000000,
  IOPRIO_WHO_USER = 3,
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
  NR_pidfd_getfd = 438,
  NR_process_madvise = 440,
  NR_mount_setattr = 442,
};

/* Denied whatever the arguments are. */
static const struct {
  int number;
  int failure;
} denied[] = {
    {NR_io_uring_setup, EPERM},
    {NR_io_uring_enter, EPERM},
    {NR_io_uring_register, EPERM},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    {SYS_keyctl, EPERM},
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_unshare, EPERM},
    {SYS_setns, EPERM},
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},
    {NR_open_tree, EPERM},
    {NR_move_mount, EPERM},
    {NR_fsopen, EPERM},
    {NR_fsconfig, EPERM},
    {NR_fsmount, EPERM},
    {NR_fspick, EPERM},
    {NR_mount_setattr, EPERM},
    {SYS_open_by_handle_at, EPERM},
    {SYS_kexec_load, EPERM},
    {SYS_kexec_file_load, EPERM},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_reboot, EPERM},
    {SYS_acct, EPERM},
    {SYS_quotactl, EPERM},
    {NR_pidfd_getfd, EPERM},
    {NR_process_madvise, EPERM},
    /* Its flags are behind a pointer, which no filter can read; a C library that is told "no such call" uses clone. */
    {NR_clone3, ENOSYS},
    /* Takes a descriptor, which may stand for porter; programs that are told "no such call" use kill. */
    {NR_pidfd_send_signal, ENOSYS},
};

/* Denied where this argument is porter's pid. */
static const struct {
  int number;
  unsigned argument;
} about_porter[] = {
    {SYS_kill, 0},
    {SYS_tkill, 0},
    {SYS_tgkill, 0},
    {SYS_tgkill, 1},
    {SYS_rt_sigqueueinfo, 0},
    {SYS_rt_tgsigqueueinfo, 0},
    {SYS_rt_tgsigqueueinfo, 1},
    {NR_pidfd_open, 0},
    {SYS_ptrace, 1},
    {SYS_process_vm_readv, 0},
    {SYS_process_vm_writev, 0},
    {SYS_kcmp, 0},
    {SYS_kcmp, 1},
    {SYS_prlimit64, 0},
    {SYS_setpriority, 1},
    {SYS_ioprio_set, 1},
    {SYS_sched_setaffinity, 0},
    {SYS_sched_setscheduler, 0},
    {SYS_sched_setparam, 0},
    {SYS_sched_setattr, 0},
    {SYS_migrate_pages, 0},
    {SYS_move_pages, 0},
    {SYS_setpgid, 0},
};

enum { MOST_INSTRUCTIONS = 512 };
static struct sock_filter code[MOST_INSTRUCTIONS];
static unsigned short length;
static int prepared_pid;

static void emit(uint16_t operation, uint32_t k, uint8_t if_true, uint8_t if_false) {
  if (length == MOST_INSTRUCTIONS) die("the filter is too long");
  code[length++] = (struct sock_filter){.code = operation, .jt = if_true, .jf = if_false, .k = k};
}

static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void load_number(void) { load(offsetof(struct seccomp_data, nr)); }
/* The low half of an argument: where the kernel takes an int it ignores the high half too. Both machines are
 * little-endian. */
static void load_argument(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index); }
static void deny(int failure) { emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)failure, 0, 0); }
static void jump_if_equal(uint32_t k, uint8_t if_true, uint8_t if_false) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, k, if_true, if_false);
}

static void refuse_foreign_calls(void) {
  load(offsetof(struct seccomp_data, arch));
  jump_if_equal(NATIVE_ARCH, 1, 0);
  deny(ENOSYS);
#if defined(__x86_64__)
  load_number();
  emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
  deny(ENOSYS);
#endif
}

static void refuse_new_namespaces(void) {
  load_number();
  jump_if_equal(SYS_clone, 0, 3);
  load_argument(0);
  emit(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
  deny(EPERM);
}

/* To name all processes of a user is to name porter too. */
static void refuse_whole_user(int number, uint32_t whole_user) {
  load_number();
  jump_if_equal((uint32_t)number, 0, 3);
  load_argument(0);
  jump_if_equal(whole_user, 0, 1);
  deny(EPERM);
}

/* The owner of a descriptor is sent a signal of the program's choice when the descriptor becomes ready. Where it is given
 * behind a pointer, no filter can see who that is. */
static void refuse_signals_by_descriptor(void) {
  load_number();
  jump_if_equal(SYS_fcntl, 0, 7);
  load_argument(1);
  jump_if_equal(F_SETOWN_EX, 4, 0);
  jump_if_equal(F_SETOWN, 0, 4);
  load_argument(2);
  jump_if_equal((uint32_t)prepared_pid, 1, 0);
  jump_if_equal((uint32_t)-prepared_pid, 0, 1);
  deny(EPERM);
  load_number();
  jump_if_equal(SYS_ioctl, 0, 4);
  load_argument(1);
  jump_if_equal(FIOSETOWN, 1, 0);
  jump_if_equal(SIOCSPGRP, 0, 1);
  deny(EPERM);
}

/* UNIX, INET, INET6, and NETLINK for routes, which name look-ups use. AF_VSOCK would reach the hypervisor. */
static void refuse_other_sockets(void) {
  load_number();
  jump_if_equal(SYS_socket, 0, 8);
  load_argument(0);
  jump_if_equal(AF_UNIX, 6, 0);
  jump_if_equal(AF_INET, 5, 0);
  jump_if_equal(AF_INET6, 4, 0);
  jump_if_equal(AF_NETLINK, 0, 2);
  load_argument(2);
  jump_if_equal(0, 1, 0);
  deny(EAFNOSUPPORT);
}

void seccomp_prepare(void) {
  prepared_pid = getpid();
  length = 0;
  refuse_foreign_calls();
  for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
    load_number();
    jump_if_equal((uint32_t)denied[i].number, 0, 1);
    deny(denied[i].failure);
  }
  for (size_t i = 0; i < sizeof about_porter / sizeof *about_porter; i++) {
    load_number();
    jump_if_equal((uint32_t)about_porter[i].number, 0, 3);
    load_argument(about_porter[i].argument);
    jump_if_equal((uint32_t)prepared_pid, 0, 1);
    deny(EPERM);
  }
  refuse_whole_user(SYS_setpriority, PRIO_USER);
  refuse_whole_user(SYS_ioprio_set, IOPRIO_WHO_USER);
  refuse_signals_by_descriptor();
  refuse_new_namespaces();
  refuse_other_sockets();
  emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

int seccomp_install(void) {
  struct sock_fprog program = {.len = length, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ? errno : 0;
}
