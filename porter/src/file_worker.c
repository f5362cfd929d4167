#include "file_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_io.h"
#include "file_ops.h"
#include "kept.h"
#include "spawn.h"

/* An operation leaves its memory to the end of the process. For one that takes no more than its paths that may be the end of
 * a later one; not for ever. */
enum { STAYS = 4, MOST_OPERATIONS = 100 };

static const struct {
  int (*run)(struct reader *request, struct writer *result);
  uint32_t traits;
} operations[] = {
    [1] = {file_stat, STAYS},
    [2] = {file_lstat, STAYS},
    [3] = {file_list, WORKER_GIVES_DATA},
    [4] = {file_read, WORKER_GIVES_DATA | STAYS},
    [5] = {file_write, WORKER_TAKES_DATA | STAYS},
    [6] = {file_mkdir, STAYS},
    [7] = {file_remove, STAYS},
    [8] = {file_rename, STAYS},
    [9] = {file_symlink, STAYS},
    [10] = {file_readlink, STAYS},
    [11] = {file_chmod, STAYS},
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
  return operations[operation_of(&request)].traits & (WORKER_TAKES_DATA | WORKER_GIVES_DATA);
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

static bool run_operation(const uint8_t *payload, uint32_t length, bool may_stay) {
  uint8_t record[WORKER_MAX_RECORD];
  struct writer result = {.data = record + WORKER_HEAD, .capacity = WORKER_MAX_RESULT};
  struct writer head = {.data = record, .capacity = WORKER_HEAD};
  struct reader request = {.at = payload, .end = payload + length};
  uint32_t operation = operation_of(&request);
  int failure = operations[operation].run == NULL ? EINVAL : operations[operation].run(&request, &result);
  bool stays = may_stay && (operations[operation].traits & STAYS) != 0;
  io_flush();
  /* From its answer on a worker is nobody's: what stops an operation must have nothing left to undo. */
  signal(SIGTERM, SIG_DFL);
  io_reset();
  close(WORKER_IN);
  close(WORKER_OUT);
  if (stays) close_from(WORKER_FDS);
  write_u32(&head, (uint32_t)failure);
  write_u32(&head, stays);
  send(WORKER_STATUS, record, WORKER_HEAD + result.length, MSG_NOSIGNAL);
  return stays;
}

/* The next request, with the one descriptor that it may need put in its place. */
static uint32_t await_request(uint8_t *message, size_t size) {
  int fd;
  size_t length, count;
  do {
    count = 1;
    length = kept_await(WORKER_STATUS, message, size, &fd, &count);
    /* A single byte is the word that the input is over, of an operation that failed before it looked. */
  } while (length == 1);
  if (count == 0) return (uint32_t)length;
  int place = file_worker_needs(message, (uint32_t)length) == WORKER_TAKES_DATA ? WORKER_IN : WORKER_OUT;
  if (fd != place) {
    if (dup3(fd, place, O_CLOEXEC) < 0) _exit(0);
    close(fd);
  }
  return (uint32_t)length;
}

_Noreturn void file_worker(const int fds[3], const uint8_t *payload, uint32_t length) {
  static uint8_t message[KEPT_MESSAGE_MOST];
  become_worker(fds);
  for (int count = 1; run_operation(payload, length, count < MOST_OPERATIONS); count++) {
    payload = message;
    length = await_request(message, sizeof message);
  }
  _exit(0);
}
