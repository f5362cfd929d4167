/* The filter that every program in the sandbox gets on top of the engine's own; see docs/protocol.md, section 10. */
#ifndef PORTER_SECCOMP_H
#define PORTER_SECCOMP_H

#include <stdbool.h>

/* Remembers porter's own pid, which no call of a program may name. `borrows`: calls that make epoll and inotify instances are handed to a
 * listener (borrow.h). Call once, in porter. */
void seccomp_prepare(bool borrows);
/* Installs it for this process and all that it becomes. Returns 0 or an errno. `*listener` is that of the filter, or -1 where it has
 * none. */
int seccomp_install(int *listener);

#endif
