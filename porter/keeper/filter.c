/*
 * What the default profile of a container engine refuses and porter's own filter does not, or not for porter itself. A list
 * of denials with an end: a call that is newer than this list does not exist.
 */
#include "filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "unsupported architecture"
#endif

enum {
  X32_BIT = 0x40000000,
  NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP,
  /* mseal: the last call that was looked at. Numbers above 423 are the same on every architecture. */
  NR_last_known = 462,
  NR_clone3 = 435,
  /* What personality() may be asked for: nothing, other uname, 32 bit addresses, both, what it is now. */
  PER_UNAME26 = 0x20000,
  PER_LINUX32 = 8,
};

static const uint16_t denied[] = {
    SYS_acct,
    SYS_add_key,
    SYS_bpf,
    SYS_chroot,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_finit_module,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_kcmp,
    SYS_kexec_file_load,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_lookup_dcookie,
    SYS_mbind,
    SYS_migrate_pages,
    SYS_mount,
    SYS_move_pages,
    SYS_nfsservctl,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_pivot_root,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_set_mempolicy,
    SYS_setdomainname,
    SYS_sethostname,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
#if defined(__x86_64__)
    SYS__sysctl,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_ioperm,
    SYS_iopl,
    SYS_query_module,
    SYS_sysfs,
    SYS_uselib,
    SYS_ustat,
    SYS_vserver,
#endif
    425, /* io_uring_setup */
    426, /* io_uring_enter */
    427, /* io_uring_register */
    428, /* open_tree */
    429, /* move_mount */
    430, /* fsopen */
    431, /* fsconfig */
    432, /* fsmount */
    433, /* fspick */
    438, /* pidfd_getfd */
    440, /* process_madvise */
    442, /* mount_setattr */
    443, /* quotactl_fd */
    450, /* set_mempolicy_home_node */
    457, /* statmount */
    458, /* listmount */
    459, /* lsm_get_self_attr */
    460, /* lsm_set_self_attr */
    461, /* lsm_list_modules */
};

static const uint32_t personalities[] = {0, PER_LINUX32, PER_UNAME26, PER_UNAME26 | PER_LINUX32, 0xffffffff};

enum { DENIED = sizeof denied / sizeof *denied, PERSONALITIES = sizeof personalities / sizeof *personalities };
static struct sock_filter code[2 * DENIED + PERSONALITIES + 40];
static uint16_t length;

static void emit(uint16_t operation, uint32_t k, uint8_t if_true, uint8_t if_false) {
  code[length++] = (struct sock_filter){.code = operation, .jt = if_true, .jf = if_false, .k = k};
}
static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void load_argument(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index); }
static void answer(uint32_t action) { emit(BPF_RET | BPF_K, action, 0, 0); }
static void answer_if_equal(uint32_t k, uint32_t action) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
  answer(action);
}

static void look_at_clone(void) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
  load_argument(0);
  emit(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
  answer(SECCOMP_RET_ERRNO | EPERM);
  answer(SECCOMP_RET_ALLOW);
}

/* AF_VSOCK would reach a hypervisor. */
static void look_at_socket(void) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
  load_argument(0);
  emit(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 0, 1);
  answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  answer(SECCOMP_RET_ALLOW);
}

static void look_at_personality(void) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 2 * PERSONALITIES + 2);
  load_argument(0);
  for (size_t i = 0; i < PERSONALITIES; i++) answer_if_equal(personalities[i], SECCOMP_RET_ALLOW);
  answer(SECCOMP_RET_ERRNO | EPERM);
}

static void assemble(void) {
  length = 0;
  load(offsetof(struct seccomp_data, arch));
  emit(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
  answer(SECCOMP_RET_ERRNO | ENOSYS);
  load(offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
  answer(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  emit(BPF_JMP | BPF_JGT | BPF_K, NR_last_known, 0, 1);
  answer(SECCOMP_RET_ERRNO | ENOSYS);
  /* Its flags are behind a pointer; a C library that is told "no such call" uses clone. */
  answer_if_equal(NR_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  look_at_clone();
  look_at_socket();
  look_at_personality();
  for (size_t i = 0; i < DENIED; i++) answer_if_equal(denied[i], SECCOMP_RET_ERRNO | EPERM);
  answer(SECCOMP_RET_ALLOW);
}

int filter_open(void) {
  assemble();
  int fd = memfd_create("filter", 0);
  if (fd < 0) return -1;
  size_t bytes = length * sizeof *code;
  if (write(fd, code, bytes) != (long)bytes || lseek(fd, 0, SEEK_SET) != 0) return -1;
  return fd;
}
