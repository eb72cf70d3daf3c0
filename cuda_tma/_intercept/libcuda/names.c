/* The entries of the driver by their names. An entry that no other file defines returns CUDA_ERROR_NOT_SUPPORTED, and
   the session reports the call. The prototypes of the entries are not visible in this file, because their types differ
   from those of the weak definitions. */
#include <string.h>

int absent(const char *name);

#define X(symbol, name, version) \
    __attribute__((weak)) int symbol(void) { return absent(#symbol); }
#include "names.h"
#undef X

static const struct {
    const char *name;
    int version;
    void *entry;
} entries[] = {
#define X(symbol, name, version) {#name, version, (void *)symbol},
#include "names.h"
#undef X
};

enum { COUNT = sizeof entries / sizeof *entries };

/* Return the newest entry with a name that a version of CUDA has. */
void *entry_named(const char *name, int version, int *is_known) {
    void *found = NULL;
    int found_version = -1;
    *is_known = 0;
    for (int i = 0; i < COUNT; ++i) {
        if (strcmp(entries[i].name, name) != 0)
            continue;
        *is_known = 1;
        if (entries[i].version <= version && entries[i].version > found_version) {
            found = entries[i].entry;
            found_version = entries[i].version;
        }
    }
    return found;
}
