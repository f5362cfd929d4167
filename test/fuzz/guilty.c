/* The controls of the fuzzer: faults that it must find, made as porter would make them. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* As porter is: nobody may trace it, and the leak detector does its work by tracing. */
static void leak_undumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  char *volatile lost = malloc(100);
  lost[0] = 1;
  lost = NULL;
}

/* As a file operation is: a child without stderr, whose status says only that it failed. */
static void overflow_in_child(void) {
  if (fork() == 0) {
    close(2);
    char *volatile small = malloc(10);
    volatile size_t beyond = 10;
    small[beyond] = 1;
    _exit(small[beyond]);
  }
  wait(NULL);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "leak") == 0) leak_undumpable();
  if (argc > 1 && strcmp(argv[1], "overflow") == 0) overflow_in_child();
  return 0;
}
