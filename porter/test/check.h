/*
 * A program that is linked with the runtime as porter is, and tries its functions on a real kernel. The first failure ends it
 * with the place.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdbool.h>

_Noreturn void check_failed(const char *file, int line, const char *condition);

#define MUST(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

/* In an empty working directory. */
void check_files(void);
void check_descriptors(void);
void check_signals(void);
void check_processes(void);
void check_sockets(void);
/* An emulator's own memory is in the process too, and cannot be limited. */
void check_memory(bool is_emulated);

/* What must end the process. */
void check_fault(const char *name);

#endif
