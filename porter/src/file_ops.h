/*
 * The operations of docs/protocol.md, section 6. Each reads its own fields, does its work, writes its result and returns
 * 0 or an errno. They run in a worker and may block, but never on something that is not a regular file or a directory.
 */
#ifndef PORTER_FILE_OPS_H
#define PORTER_FILE_OPS_H

#include "wire.h"

int file_stat(struct reader *request, struct writer *result);
int file_lstat(struct reader *request, struct writer *result);
int file_list(struct reader *request, struct writer *result);
int file_read(struct reader *request, struct writer *result);
int file_write(struct reader *request, struct writer *result);
int file_mkdir(struct reader *request, struct writer *result);
int file_remove(struct reader *request, struct writer *result);
int file_rename(struct reader *request, struct writer *result);
int file_symlink(struct reader *request, struct writer *result);
int file_readlink(struct reader *request, struct writer *result);
int file_chmod(struct reader *request, struct writer *result);
int file_watch(struct reader *request, struct writer *result);
int file_put_tree(struct reader *request, struct writer *result);
int file_get_tree(struct reader *request, struct writer *result);

#endif
