/*
 * The doors: stdin and stdout, which serve the first connection, and a socket that `porter relay` connects to, which
 * serves every later one. A connection that greets properly becomes the host; see host.h.
 */
#ifndef PORTER_DOORS_H
#define PORTER_DOORS_H

#include <stdint.h>

void doors_open(int in_fd, int out_fd);
/* The only door then: a socket that listens already, and that nobody inside can reach. */
void doors_open_given(int fd);
/* Closes what has not greeted in time; returns in how many ms to come again, -1 for never. */
int doors_expire(uint64_t now_ms);
/* The other end: connects to the porter with this pid, hands it stdin and stdout, and waits until it has done with them. Returns
 * the exit status. */
int doors_relay(int porter_pid);
/* The first byte of a lender (lender.h), which connects by the same socket as a relay. */
#define DOORS_LENDER "L"
/* A connection to the porter with this pid; -1 where there is none. */
int doors_connect(int porter_pid);
/* For a fork of porter: what the host proves itself with is nothing to carry about. */
void doors_forget_token(void);

#endif
