#include "file_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_io.h"
#include "file_ops.h"
#include "spawn.h"

static const struct {
  int (*run)(struct reader *request, struct writer *result);
  uint32_t needs;
} operations[] = {
    [1] = {file_stat, 0},
    [2] = {file_lstat, 0},
    [3] = {file_list, WORKER_GIVES_DATA},
    [4] = {file_read, WORKER_GIVES_DATA},
    [5] = {file_write, WORKER_TAKES_DATA},
    [6] = {file_mkdir, 0},
    [7] = {file_remove, 0},
    [8] = {file_rename, 0},
    [9] = {file_symlink, 0},
    [10] = {file_readlink, 0},
    [11] = {file_chmod, 0},
    [12] = {file_watch, WORKER_GIVES_DATA},
    [13] = {file_put_tree, WORKER_TAKES_DATA},
    [14] = {file_get_tree, WORKER_GIVES_DATA},
};

static uint32_t operation_of(struct reader *request) {
  uint32_t operation = read_u32(request);
  return operation < sizeof operations / sizeof *operations ? operation : 0;
}

uint32_t file_worker_needs(const uint8_t *payload, uint32_t length) {
  struct reader request = {.at = payload, .end = payload + length};
  return operations[operation_of(&request)].needs;
}

/* Leaves the three at their fixed numbers, and nothing else of porter's. */
static void keep_descriptors(const int fds[3]) {
  int moved[3];
  for (int i = 0; i < 3; i++) moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, WORKER_FDS);
  for (int i = 0; i < 3; i++) {
    if (moved[i] >= 0) dup2(moved[i], WORKER_STATUS + i);
    else close(WORKER_STATUS + i);
  }
  close_from(WORKER_FDS);
  /* 0 and 1 are /dev/null in porter already. */
  if (dup2(0, 2) < 0) close(2);
}

static void become_worker(const int fds[3]) {
  keep_descriptors(fds);
  prctl(PR_SET_NAME, "porter-file");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* Modes are what the host asks for. */
  umask(0);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn void file_worker(const int fds[3], const uint8_t *payload, uint32_t length) {
  uint8_t record[4 + WORKER_MAX_RESULT];
  struct writer result = {.data = record + 4, .capacity = WORKER_MAX_RESULT};
  struct writer head = {.data = record, .capacity = 4};
  struct reader request = {.at = payload, .end = payload + length};
  become_worker(fds);
  uint32_t operation = operation_of(&request);
  int failure = operations[operation].run == NULL ? EINVAL : operations[operation].run(&request, &result);
  io_flush();
  close(WORKER_OUT);
  write_u32(&head, (uint32_t)failure);
  send(WORKER_STATUS, record, 4 + result.length, MSG_NOSIGNAL);
  _exit(0);
}
