/* The end of porter, and so of the sandbox: for what cannot be gone on from. Says why on stderr, which the host keeps. */
#ifndef PORTER_DIE_H
#define PORTER_DIE_H

_Noreturn void die(const char *what);
_Noreturn void die_errno(const char *what);

#endif
