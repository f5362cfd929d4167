/* Addresses as the protocol writes them, and the end of a connection that its peer can tell from a plain close. */
#ifndef PORTER_SOCKETS_H
#define PORTER_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "wire.h"

enum address_kind { ADDRESS_TCP = 1, ADDRESS_UNIX = 2, ADDRESS_DNS = 3 };

struct address {
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
  };
  socklen_t length;
};

enum { ADDRESS_TEXT = 48 };

/* Literals only: names are the host's business. `localhost` is 127.0.0.1. Returns 0 or an errno. */
int address_read(struct address *a, uint32_t kind, struct bytes text, uint16_t port);
void address_loopback6(struct address *a, uint16_t port);
bool address_is_localhost(struct bytes text);
uint16_t address_port(const struct address *a);
void address_set_port(struct address *a, uint16_t port);
/* Returns the text's length, 0 for a Unix socket. */
uint32_t address_write(const struct address *a, char text[ADDRESS_TEXT]);

/* A socket that does not block, bound to `a`; for TCP and Unix it listens. Afterwards `a` has the port that was chosen.
 * Returns the descriptor, or a negative errno. */
int socket_bind(struct address *a, int type);
/* Small pieces are to travel at once; does nothing where that has no meaning. */
void socket_hurry(int fd);
/* From now on closing it is a reset. */
void socket_will_reset(int fd);
void socket_abort(int fd);

#endif
