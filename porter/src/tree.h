/*
 * The descendants of a process, by looking at /proc. Each exec runs under a supervisor that is the reaper of all that it
 * starts, so nothing can leave that tree: not by a double fork, a session of its own, a cleared environment or nohup.
 */
#ifndef PORTER_TREE_H
#define PORTER_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_count {
  uint32_t alive; /* descendants that are not zombies */
  uint64_t resident_bytes;
};

/*
 * A walk needs a descriptor and some memory. Where it finds none it says so by `false`, and has done nothing, or only a part:
 * whoever asked tries again.
 */

/* `with_memory` also sums their resident sizes, which costs one more file each. */
bool tree_count(pid_t root, bool with_memory, struct tree_count *count);
/* The parent of a process; -1 when there is no such process. */
pid_t tree_parent(pid_t pid);
/* Sends `signal` once to each descendant of `root`. */
bool tree_signal(pid_t root, int signal);
/* Stops all descendants until a walk finds no new one, then kills them. `found` is how many there were; 0 means that none is
 * left. Those that were killed may take a moment to go, so call again until there is none. */
bool tree_kill(pid_t root, uint32_t *found);
/* The same for every child of this process that `is_known` does not know, and all below it. */
bool tree_kill_strangers(int (*is_known)(pid_t pid), uint32_t *found);

#endif
