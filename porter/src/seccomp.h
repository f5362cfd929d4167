/* The filter that every program in the sandbox gets on top of the engine's own; see docs/protocol.md, section 10. */
#ifndef PORTER_SECCOMP_H
#define PORTER_SECCOMP_H

/* Remembers porter's own pid, which no call of a program may name. Call once, in porter. */
void seccomp_prepare(void);
/* Installs it for this process and all that it becomes. Returns 0 or an errno. */
int seccomp_install(void);

#endif
