/* Things that the host should know and did not ask for. */
#ifndef PORTER_NOTICE_H
#define PORTER_NOTICE_H

#include <stdint.h>

enum notice_kind { NOTICE_TERM_IGNORED = 1, NOTICE_SUPERVISOR_LOST = 2, NOTICE_EXHAUSTED = 3, NOTICE_LENDER_WANTED = 4 };

void notice(enum notice_kind kind, uint32_t value, const char *text);

#endif
