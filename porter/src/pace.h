/*
 * How often porter reads small pieces of output and of connections.
 *
 * A program may write one byte at a time. Each piece is a frame for the daemon to decode, and each of porter's writes wakes a chain of
 * processes outside: the engine, its shim and the daemon. So small pieces have a budget, one for all execs and connections. When it
 * is used up, porter reads a moment later what has come together meanwhile. Large pieces and answers to what the host sent are free,
 * so neither throughput nor a dialogue gets slower.
 */
#ifndef PORTER_PACE_H
#define PORTER_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* A turn of the loop begins. */
void pace_turn(uint64_t now_ms);
/* Something may be read now. */
bool pace_allows(void);
/* In how many ms something may be read again; at least 1. */
int pace_wait_ms(void);
/* So much was read at once. */
void pace_spend(uint64_t bytes);
/* The host sent data to a program: the answer is free. */
void pace_earn(void);

#endif
