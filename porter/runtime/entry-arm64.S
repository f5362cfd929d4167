/*
 * The functions that no compiler can write, for arm64: the first instructions, vfork, the return
 * from a signal handler, and the call whose number is an argument.
 */
#include <sys/syscall.h>

  /* The kernel jumps here with the arguments on the stack, which is aligned. The zeros are the end of the frames. */
  .section .text._start, "ax", %progbits
  .globl _start
  .type _start, %function
_start:
  mov x29, #0
  mov x30, #0
  mov x0, sp
  b runtime_start
  .size _start, . - _start

  /* There is no such call here; a clone with CLONE_VM | CLONE_VFORK | SIGCHLD is the same. The return address is in x30. */
  .section .text.vfork, "ax", %progbits
  .globl vfork
  .type vfork, %function
vfork:
  mov x0, #0x4111
  mov x1, #0
  mov x8, #SYS_clone
  b call_kernel
  .size vfork, . - vfork

  /* A handler returns to this address, by way of SA_RESTORER. */
  .section .text.signal_return, "ax", %progbits
  .globl signal_return
  .type signal_return, %function
signal_return:
  mov x8, #SYS_rt_sigreturn
  svc #0
  .size signal_return, . - signal_return

  .section .text.syscall, "ax", %progbits
  .globl syscall
  .type syscall, %function
syscall:
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  b call_kernel
  .size syscall, . - syscall

  .section .note.GNU-stack, "", %progbits
