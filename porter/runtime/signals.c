/* Signals. The kernel has structures of its own for them, which kernel.h declares. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "kernel.h"

enum { KERNEL_SA_RESTORER = 0x04000000 };

static uint64_t *bits_of(sigset_t *set) { return (uint64_t *)(void *)set; }

int sigemptyset(sigset_t *set) {
  memset(set, 0, sizeof *set);
  return 0;
}

int sigfillset(sigset_t *set) {
  memset(set, 0xFF, sizeof *set);
  return 0;
}

static int change(sigset_t *set, int number, int to) {
  if (number < 1 || number >= NSIG) {
    errno = EINVAL;
    return -1;
  }
  uint64_t bit = (uint64_t)1 << (number - 1);
  if (to) *bits_of(set) |= bit;
  else *bits_of(set) &= ~bit;
  return 0;
}

int sigaddset(sigset_t *set, int number) { return change(set, number, 1); }

int sigdelset(sigset_t *set, int number) { return change(set, number, 0); }

int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
  if (old != NULL) sigemptyset(old);
  return kernel_rt_sigprocmask(how, set, old, KERNEL_SIGNAL_SET);
}

/* As BSD and both C libraries have it: the handler stays, and calls that it interrupts go on. */
sighandler_t signal(int number, sighandler_t handler) {
  struct kernel_sigaction old, action = {
    .handler = handler,
    .flags = SA_RESTART | KERNEL_SA_RESTORER,
    .restorer = signal_return,
  };
  return kernel_rt_sigaction(number, &action, &old, KERNEL_SIGNAL_SET) == 0 ? old.handler : SIG_ERR;
}

int signalfd(int fd, const sigset_t *set, int flags) { return kernel_signalfd4(fd, set, KERNEL_SIGNAL_SET, flags); }
