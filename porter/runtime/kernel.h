/*
 * What the files of the runtime share: system calls whose arguments differ from those of the C function, and the few values
 * that the start of the program leaves for later.
 */
#ifndef RUNTIME_KERNEL_H
#define RUNTIME_KERNEL_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

struct epoll_event;

/* The kernel has 64 signals. The sigset_t of a C library may be larger, and begins with these 64 bits. */
enum { KERNEL_SIGNAL_SET = 8 };

/* Layouts that are the kernel's own, where a C library has others. */
struct kernel_sigaction {
  void (*handler)(int number);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
};

struct kernel_message {
  void *name;
  int name_length;
  const struct iovec *parts;
  size_t part_count;
  void *control;
  size_t control_length;
  unsigned flags;
};

/* All return -1 and set errno where the kernel reports a failure. */
int kernel_clock_gettime(clockid_t clock, struct timespec *now);
pid_t kernel_clone(unsigned long flags, void *stack, int *parent_tid, unsigned long fourth, unsigned long fifth);
int kernel_epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms, const void *mask, size_t mask_size);
int kernel_fchmodat(int directory, const char *path, mode_t mode);
long kernel_getdents64(int fd, void *entries, size_t size);
int kernel_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask, size_t mask_size);
ssize_t kernel_recvmsg(int fd, struct kernel_message *message, int flags);
ssize_t kernel_sendmsg(int fd, const struct kernel_message *message, int flags);
int kernel_rt_sigaction(int number, const struct kernel_sigaction *action, struct kernel_sigaction *old, size_t mask_size);
int kernel_rt_sigprocmask(int how, const void *set, void *old, size_t mask_size);
long kernel_sched_getaffinity(pid_t pid, size_t size, void *processors);
int kernel_signalfd4(int fd, const void *set, size_t mask_size, int flags);
int kernel_utimensat(int fd, const char *path, const struct timespec times[2], int flags);
int kernel_waitid(int type, id_t id, siginfo_t *info, int options, void *usage);

/* entry-*.S */
void signal_return(void);

/* Set by runtime_start. */
extern size_t runtime_page_size;
extern uint64_t runtime_secret;

/* Finds clock_gettime in the page of code that the kernel maps into each process. */
void clock_prepare(const void *vdso);

/* Reports a broken invariant on stderr and ends the process. */
_Noreturn void runtime_panic(const char *what);

#endif
