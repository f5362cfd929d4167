/*
 * From the first instruction to main. This file is compiled without the stack protector, and calls nothing that may be
 * compiled with it before the guard is set.
 */
#include <elf.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

size_t runtime_page_size = 4096;
uint64_t runtime_secret;

int main(int argc, char **argv);
_Noreturn void runtime_start(long *stack);

/*
 * The guard is what a function with a buffer puts below its return address, and compares at its end. Compilers look for it
 * where the C libraries have it: on amd64 in thread-local storage, 40 bytes from where the register fs points, on arm64 in
 * a variable. (gcc can be told to use a variable on amd64 too, but forgets it in functions with a `target` attribute.)
 */
#if defined(__x86_64__)
static void set_guard(uintptr_t guard) {
  enum { SET_FS = 0x1002, GUARD = 40 / sizeof guard };
  static uintptr_t storage[GUARD + 1];
  storage[GUARD] = guard;
  if (syscall(SYS_arch_prctl, SET_FS, storage) != 0) __builtin_trap();
}
#elif defined(__aarch64__)
uintptr_t __stack_chk_guard;

static void set_guard(uintptr_t guard) { __stack_chk_guard = guard; }
#endif

/* `stack` as the kernel leaves it: argc, argv, a zero, the environment, a zero, the auxiliary vector. */
void runtime_start(long *stack) {
  typedef uint64_t quad __attribute__((aligned(1), may_alias));
  const quad *random = NULL;
  const void *vdso = NULL;
  int argc = (int)stack[0];
  char **argv = (char **)(stack + 1), **rest = argv + argc + 1;
  while (*rest++ != NULL) continue;
  for (const Elf64_auxv_t *entry = (const Elf64_auxv_t *)rest; entry->a_type != AT_NULL; entry++) {
    if (entry->a_type == AT_PAGESZ) runtime_page_size = entry->a_un.a_val;
    else if (entry->a_type == AT_RANDOM) random = (const quad *)entry->a_un.a_val;
    else if (entry->a_type == AT_SYSINFO_EHDR) vdso = (const void *)entry->a_un.a_val;
  }
  /* 16 random bytes come from the kernel. The guard's lowest byte is 0, so that no string function copies past it. */
  if (random == NULL) __builtin_trap();
  set_guard(random[0] & ~(uint64_t)0xFF);
  runtime_secret = random[1];
  if (vdso != NULL) clock_prepare(vdso);
  exit(main(argc, argv));
}
