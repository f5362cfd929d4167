/* What the sandbox runs is a better victim for the kernel's out-of-memory killer than what keeps it. */
#ifndef PORTER_VICTIM_H
#define PORTER_VICTIM_H

#include <sys/types.h>

/* Before PR_SET_DUMPABLE: afterwards this process may not open its own file any more. */
void victim_prepare(void);
/* As fork, with the higher score for the child. */
pid_t victim_fork(void);

#endif
