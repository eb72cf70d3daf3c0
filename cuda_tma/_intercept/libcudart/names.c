/* The entries of the runtime by their names. An entry that no other file defines returns cudaErrorNotSupported, and the
   session reports the call. */
int absent(const char *name);

#define X(name) \
    __attribute__((weak)) int name(void) { return absent(#name); }
#include "names.h"
#undef X
