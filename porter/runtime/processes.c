/* Processes: fork, exit, wait, limits. vfork is in entry-*.S. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"

pid_t fork(void) { return kernel_clone(SIGCHLD, NULL, NULL, 0, 0); }

/* There are no buffers to write and no handlers to call. */
void exit(int status) { _exit(status); }

pid_t waitpid(pid_t pid, int *status, int options) { return wait4(pid, status, options, NULL); }

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) { return kernel_waitid((int)type, id, info, options, NULL); }

#ifdef __GLIBC__
typedef __rlimit_resource_t resource_t;
#else
typedef int resource_t;
#endif

int getrlimit(resource_t resource, struct rlimit *limit) { return prlimit(0, resource, NULL, limit); }

int setrlimit(resource_t resource, const struct rlimit *limit) { return prlimit(0, resource, limit, NULL); }

/* The kernel returns how many bytes it has filled in. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *processors) {
  long filled = kernel_sched_getaffinity(pid, size, processors);
  if (filled < 0) return -1;
  memset((uint8_t *)processors + filled, 0, size - (size_t)filled);
  return 0;
}

long sysconf(int name) {
  if (name == _SC_PAGESIZE) return (long)runtime_page_size;
  errno = EINVAL;
  return -1;
}
