/* The seccomp program of a whole bubblewrap box; each command in it gets porter's own on top. */
#ifndef KEEPER_FILTER_H
#define KEEPER_FILTER_H

/* A descriptor from which bubblewrap reads it, at its beginning; -1 with errno. */
int filter_open(void);

#endif
