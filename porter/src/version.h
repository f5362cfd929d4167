/* The protocol that this porter speaks; see docs/protocol.md, section 3. PORTER_BUILD_ID comes from the Makefile. */
#ifndef PORTER_VERSION_H
#define PORTER_VERSION_H

enum { PROTOCOL_MAJOR = 1, PROTOCOL_MINOR = 2 };
/* Feature bits of the greeting. */
enum { FEATURE_TREE_LIMITS = 1, FEATURE_BORROWS = 2, FEATURE_READ_HOLES = 4 };

#endif
