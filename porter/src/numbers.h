/* Stream numbers of the host: none is used twice in the life of a porter, and a new host goes on above the highest. */
#ifndef PORTER_NUMBERS_H
#define PORTER_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

void number_use(uint32_t stream);
uint32_t number_highest(void);
/* An exec with this number was forgotten: a request that repeats it must not start it again. */
void number_bury(uint32_t stream);
bool number_is_buried(uint32_t stream);

#endif
