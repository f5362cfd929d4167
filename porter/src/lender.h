/*
 * The other side of borrow.h: `porter lend`, which an engine starts in the sandbox with a uid that nobody else has. It makes epoll and
 * inotify instances for programs of the sandbox, so that they and their watches count for that uid.
 */
#ifndef PORTER_LENDER_H
#define PORTER_LENDER_H

/* Serves the programs of the porter with this pid until that is gone. Returns the exit status. */
int lender_main(int porter_pid);

#endif
