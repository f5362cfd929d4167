#include "die.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void die(const char *what) {
  complain(what, NULL);
  exit(125);
}

void die_errno(const char *what) {
  complain(what, ": ", strerror(errno), NULL);
  exit(125);
}
