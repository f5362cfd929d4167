/*
 * Kernel quotas of a uid that the sandbox shares with the host's user.
 *
 * The kernel counts epoll watches, inotify instances and inotify watches for the user who made the epoll or inotify instance, whoever
 * uses it. So no program in the sandbox makes one: the filter stops the calls that would, and the lender (lender.h), a process in the
 * sandbox with a uid that nobody else has, makes the instance and puts it into the program.
 *
 * porter keeps a descriptor of each filter (a listener) and hands it to the lender. While there is none, porter asks the host for
 * one; calls wait for it, and fail with EMFILE when it does not come.
 */
#ifndef PORTER_BORROW_H
#define PORTER_BORROW_H

#include <stdbool.h>
#include <stdint.h>

/* Call once at the start. Nothing is borrowed where the kernel has not all that it takes. */
void borrow_prepare(void);
bool borrow_is_active(void);
/* Takes the listener of a filter. */
void borrow_listener(int fd);
/* Takes the connection of a lender. */
void borrow_lender(int fd);
/* Returns in how many ms to come again, -1 for never. */
int borrow_pump(uint64_t now_ms);

#endif
