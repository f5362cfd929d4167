/*
 * The descendants of a process, by looking at /proc. Each exec runs under a supervisor that is the reaper of all that it
 * starts, so nothing can leave that tree: not by a double fork, a session of its own, a cleared environment or nohup.
 */
#ifndef PORTER_TREE_H
#define PORTER_TREE_H

#include <stdint.h>
#include <sys/types.h>

struct tree_count {
  uint32_t alive; /* descendants that are not zombies */
  uint64_t resident_bytes;
};

/* `with_memory` also sums their resident sizes, which costs one more file each. */
struct tree_count tree_count(pid_t root, int with_memory);
/* The parent of a process; -1 when there is no such process. */
pid_t tree_parent(pid_t pid);
/* Sends `signal` once to each descendant of `root`. */
void tree_signal(pid_t root, int signal);
/* Stops all descendants until a walk finds no new one, then kills them. Returns how many were found; 0 means that none is
 * left. Those that were killed may take a moment to go, so call again until it returns 0. */
uint32_t tree_kill(pid_t root);
/* The same for every child of this process that `is_known` does not know, and all below it. */
uint32_t tree_kill_strangers(int (*is_known)(pid_t pid));

#endif
