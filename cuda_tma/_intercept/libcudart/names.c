/* The entries by their names. An entry that no other file defines returns cudaErrorNotSupported and is reported. */
int absent(const char *name);

#define X(name) \
    __attribute__((weak)) int name(void) { return absent(#name); }
#include "names.h"
#undef X
