/*
 * The system calls that need no translation. C passes arguments and takes results in the registers that the kernel uses, so
 * one instruction with the number is the whole function; the common rest is call_kernel. Variadic functions (fcntl, ioctl,
 * prctl) fit too: on both machines their arguments are in the same registers.
 *
 * `wrap` names a function of the C library. `wrap_raw` gives it the prefix `kernel_`, for a call whose arguments differ from
 * those of the C function with that name: kernel.h declares it, and a C file beside this one translates.
 *
 * Old calls such as open, dup2 or poll are missing on arm64, so amd64 does without them as well.
 */
#include <sys/syscall.h>

#if defined(__x86_64__)

/* The kernel takes its fourth argument in r10, because `syscall` overwrites rcx. */
  .section .text.call_kernel, "ax", %progbits
  .globl call_kernel
  .type call_kernel, %function
call_kernel:
  mov %rcx, %r10
  syscall
  .globl return_result
return_result:
  cmp $-4095, %rax
  jae 1f
  ret
1:
  neg %eax
  mov %eax, runtime_errno(%rip)
  mov $-1, %rax
  ret
  .size call_kernel, . - call_kernel

  .macro issue number
  mov $\number, %eax
  jmp call_kernel
  .endm

#elif defined(__aarch64__)

  .section .text.call_kernel, "ax", %progbits
  .globl call_kernel
  .type call_kernel, %function
call_kernel:
  svc #0
  .globl return_result
return_result:
  cmn x0, #4095
  b.hs 1f
  ret
1:
  neg w0, w0
  adrp x1, runtime_errno
  str w0, [x1, :lo12:runtime_errno]
  mov x0, #-1
  ret
  .size call_kernel, . - call_kernel

  .macro issue number
  mov x8, #\number
  b call_kernel
  .endm

#else
#error "unsupported architecture"
#endif

  /* Each has a section of its own, so that the linker drops what a program does not use. */
  .macro wrap name, number
  .section .text.\name, "ax", %progbits
  .globl \name
  .type \name, %function
\name:
  issue \number
  .size \name, . - \name
  .endm

  .macro wrap_raw name, number
  wrap kernel_\name, \number
  .endm

  /* Descriptors */
  wrap close, SYS_close
  wrap dup3, SYS_dup3
  wrap fcntl, SYS_fcntl
  wrap ioctl, SYS_ioctl
  wrap lseek, SYS_lseek
  wrap memfd_create, SYS_memfd_create
  wrap openat, SYS_openat
  wrap pipe2, SYS_pipe2
  wrap pwrite, SYS_pwrite64
  wrap read, SYS_read
  wrap readv, SYS_readv
  wrap write, SYS_write

  /* Files */
  wrap chdir, SYS_chdir
  wrap fchdir, SYS_fchdir
  wrap fchmod, SYS_fchmod
  wrap fstat, SYS_fstat
  wrap fstatat, SYS_newfstatat
  wrap ftruncate, SYS_ftruncate
  wrap linkat, SYS_linkat
  wrap mkdirat, SYS_mkdirat
  wrap mknodat, SYS_mknodat
  wrap mount, SYS_mount
  wrap readlinkat, SYS_readlinkat
  wrap renameat, SYS_renameat
  wrap symlinkat, SYS_symlinkat
  wrap umask, SYS_umask
  wrap unlinkat, SYS_unlinkat
  wrap utimensat, SYS_utimensat
  wrap_raw fchmodat, SYS_fchmodat
  wrap_raw getdents64, SYS_getdents64
  wrap_raw utimensat, SYS_utimensat

  /* Events */
  wrap epoll_create1, SYS_epoll_create1
  wrap epoll_ctl, SYS_epoll_ctl
  wrap inotify_add_watch, SYS_inotify_add_watch
  wrap inotify_init1, SYS_inotify_init1
  wrap inotify_rm_watch, SYS_inotify_rm_watch
  wrap_raw epoll_pwait, SYS_epoll_pwait
  wrap_raw ppoll, SYS_ppoll
  wrap_raw signalfd4, SYS_signalfd4

  /* Sockets */
  wrap accept4, SYS_accept4
  wrap bind, SYS_bind
  wrap connect, SYS_connect
  wrap getsockname, SYS_getsockname
  wrap getsockopt, SYS_getsockopt
  wrap listen, SYS_listen
  wrap recvfrom, SYS_recvfrom
  wrap sendto, SYS_sendto
  wrap setsockopt, SYS_setsockopt
  wrap shutdown, SYS_shutdown
  wrap socket, SYS_socket
  wrap socketpair, SYS_socketpair
  wrap_raw recvmsg, SYS_recvmsg
  wrap_raw sendmsg, SYS_sendmsg

  /* Processes. ptrace is right for requests that return nothing by way of memory, such as PTRACE_DETACH. */
  wrap _exit, SYS_exit_group
  wrap execve, SYS_execve
  wrap getpid, SYS_getpid
  wrap getppid, SYS_getppid
  wrap kill, SYS_kill
  wrap prctl, SYS_prctl
  wrap prlimit, SYS_prlimit64
  wrap ptrace, SYS_ptrace
  wrap setsid, SYS_setsid
  wrap unshare, SYS_unshare
  wrap wait4, SYS_wait4
  wrap_raw clone, SYS_clone
  wrap_raw rt_sigaction, SYS_rt_sigaction
  wrap_raw rt_sigprocmask, SYS_rt_sigprocmask
  wrap_raw sched_getaffinity, SYS_sched_getaffinity
  wrap_raw waitid, SYS_waitid

  /* Users. A process of one thread needs no more than the call for all of these. */
  wrap getegid, SYS_getegid
  wrap geteuid, SYS_geteuid
  wrap getgid, SYS_getgid
  wrap getuid, SYS_getuid
  wrap setgroups, SYS_setgroups
  wrap setresgid, SYS_setresgid
  wrap setresuid, SYS_setresuid
  wrap setuid, SYS_setuid

  /* Memory, time, chance */
  wrap getrandom, SYS_getrandom
  wrap mmap, SYS_mmap
  wrap mremap, SYS_mremap
  wrap munmap, SYS_munmap
  wrap nanosleep, SYS_nanosleep
  wrap_raw clock_gettime, SYS_clock_gettime

  .section .note.GNU-stack, "", %progbits
