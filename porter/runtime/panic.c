/* How the process ends when the runtime finds that memory is not as it must be. */
#include <string.h>
#include <unistd.h>

#include "kernel.h"

void __stack_chk_fail(void);

/* A trap and not SIGABRT: the kernel ends the first process of a sandbox for the former, and ignores the latter. */
void runtime_panic(const char *what) {
  static const char head[] = "runtime: ";
  long wrote = write(2, head, sizeof head - 1);
  wrote = write(2, what, strlen(what));
  wrote = write(2, "\n", 1);
  (void)wrote;
  __builtin_trap();
}

void __stack_chk_fail(void) { runtime_panic("a function wrote past the end of its buffer on the stack"); }
