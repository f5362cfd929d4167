#include "die.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *what) {
  dprintf(2, "porter: %s\n", what);
  exit(125);
}

void die_errno(const char *what) {
  dprintf(2, "porter: %s: %s\n", what, strerror(errno));
  exit(125);
}
