/* Time. The kernel maps a page of code into each process (the vDSO) with a clock_gettime that needs no system call. */
#include <elf.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

#if defined(__x86_64__)
static const char wanted[] = "__vdso_clock_gettime";
#elif defined(__aarch64__)
static const char wanted[] = "__kernel_clock_gettime";
#endif

static int (*read_clock)(clockid_t clock, struct timespec *now) = kernel_clock_gettime;

/* The vDSO is a shared library that is loaded already: its addresses are relative to where the kernel put it. */
void clock_prepare(const void *vdso) {
  const Elf64_Ehdr *head = vdso;
  const Elf64_Phdr *segments = (const Elf64_Phdr *)((const uint8_t *)vdso + head->e_phoff);
  const uint8_t *base = NULL;
  const Elf64_Dyn *dynamic = NULL;
  for (int i = 0; i < head->e_phnum; i++) {
    if (segments[i].p_type == PT_LOAD && base == NULL) base = (const uint8_t *)vdso + segments[i].p_offset - segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn *)((const uint8_t *)vdso + segments[i].p_offset);
  }
  if (base == NULL || dynamic == NULL) return;
  const Elf64_Sym *symbols = NULL;
  const char *names = NULL;
  const uint32_t *hash = NULL; /* its second number is that of the symbols */
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    const uint8_t *there = base + dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym *)there;
    if (dynamic->d_tag == DT_STRTAB) names = (const char *)there;
    if (dynamic->d_tag == DT_HASH) hash = (const uint32_t *)there;
  }
  if (symbols == NULL || names == NULL || hash == NULL) return;
  for (uint32_t i = 0; i < hash[1]; i++) {
    if (symbols[i].st_shndx == SHN_UNDEF || strcmp(names + symbols[i].st_name, wanted) != 0) continue;
    read_clock = (int (*)(clockid_t, struct timespec *))(base + symbols[i].st_value);
    return;
  }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  /* The vDSO returns a number where the system call sets errno. */
  return read_clock(clock, now) == 0 ? 0 : kernel_clock_gettime(clock, now);
}

int usleep(useconds_t microseconds) {
  return nanosleep(&(struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000L}, NULL);
}
