#include "die.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void die(const char *what) {
  text_complain(what, "");
  exit(125);
}

void die_errno(const char *what) {
  char reason[128];
  struct text text = {.data = reason, .capacity = sizeof reason};
  text_add(&text, ": ");
  text_add(&text, strerror(errno));
  text_complain(what, reason);
  exit(125);
}
