/*
 * The functions that no compiler can write, for amd64: the first instructions, vfork, the return
 * from a signal handler, and the call whose number is an argument.
 */
#include <sys/syscall.h>

  /* The kernel jumps here with the arguments on the stack. C wants the stack aligned, and a frame pointer of 0 as the end. */
  .section .text._start, "ax", %progbits
  .globl _start
  .type _start, %function
_start:
  xor %ebp, %ebp
  mov %rsp, %rdi
  and $-16, %rsp
  call runtime_start
  .size _start, . - _start

  /*
   * The child runs on this stack and overwrites what is on it, so the return address waits in a register that the kernel
   * preserves. It is put back by each of the two, the parent being the second.
   */
  .section .text.vfork, "ax", %progbits
  .globl vfork
  .type vfork, %function
vfork:
  pop %rdx
  mov $SYS_vfork, %eax
  syscall
  push %rdx
  jmp return_result
  .size vfork, . - vfork

  /* A handler returns to this address, by way of SA_RESTORER. */
  .section .text.signal_return, "ax", %progbits
  .globl signal_return
  .type signal_return, %function
signal_return:
  mov $SYS_rt_sigreturn, %eax
  syscall
  .size signal_return, . - signal_return

  .section .text.syscall, "ax", %progbits
  .globl syscall
  .type syscall, %function
syscall:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %rcx
  mov %r9, %r8
  mov 8(%rsp), %r9
  jmp call_kernel
  .size syscall, . - syscall

  .section .note.GNU-stack, "", %progbits
