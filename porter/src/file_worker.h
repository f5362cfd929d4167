/*
 * The process in which a file operation runs: a fork of porter that keeps three descriptors, does what the request says
 * and answers with one record. It may be killed at any moment, and may hang on what the sandbox planted: that harms nobody.
 * After a small operation that it answered it may stay for another one (kept.h); it never has two at a time.
 */
#ifndef PORTER_FILE_WORKER_H
#define PORTER_FILE_WORKER_H

#include <stdint.h>

enum {
  WORKER_MAX_RESULT = 4096 + 8,
  /* What an operation moves besides its request and its result. */
  WORKER_TAKES_DATA = 1,
  WORKER_GIVES_DATA = 2,
};

/* What it answers: failure, whether it stays, then the result. */
enum { WORKER_HEAD = 8, WORKER_MAX_RECORD = WORKER_HEAD + WORKER_MAX_RESULT };

uint32_t file_worker_needs(const uint8_t *payload, uint32_t length);
/* `fds`: status socket, data in, data out; -1 where there is none. */
_Noreturn void file_worker(const int fds[3], const uint8_t *payload, uint32_t length);

#endif
