/* Each kind of thing has its own share of descriptors, so that none takes the others' away. */
#ifndef PORTER_QUOTA_H
#define PORTER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

/* At most `most`, and fewer where 1/`part` of the descriptors is less than that. */
uint32_t quota(uint32_t most, uint32_t part);
/* This descriptor is among the last ones, which are kept for what porter needs to kill a tree and to greet a host. */
bool quota_is_last(int fd);
/* Something was refused for want of room: told to the host, at most once a second. */
void quota_exceeded(int failure, const char *what);

#endif
