/* The allocations that a program has not freed at its end. The library writes the allocations to a file of the session,
   which the command reads. At that time Python has ended, and its objects have freed their memory. The text for each
   allocation is the reply to the request at the allocation's creation. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_LINES = 10000 };

struct writing {
    FILE *file;
    uint64_t lines, others, other_bytes;
};

static void write_leak(const struct allocation *item, void *data) {
    struct writing *writing = data;
    if (item->is_free || item->made_at == NULL)
        return;
    if (writing->file != NULL && writing->lines < MOST_LINES) {
        fprintf(writing->file, "%d %llu %s\n", item->kind, (unsigned long long)item->size, item->made_at);
        ++writing->lines;
    } else {
        ++writing->others;
        writing->other_bytes += item->size;
    }
}

static void count_leak(const struct allocation *item, void *data) {
    *(int *)data |= !item->is_free && item->made_at != NULL;
}

__attribute__((destructor)) static void write_leaks(void) {
    const char *folder = getenv("CUDA_TMA_SESSION");
    char path[4096];
    int is_needed = 0;
    if (folder == NULL || ready() != SUCCESS)
        return;
    each_allocation(count_leak, &is_needed);
    if (!is_needed || snprintf(path, sizeof path, "%s/%ld.leaks", folder, (long)getpid()) >= (int)sizeof path)
        return;
    struct writing writing = {.file = fopen(path, "ae")};
    if (writing.file == NULL)
        return;
    each_allocation(write_leak, &writing);
    if (writing.others > 0)
        fprintf(writing.file, "-1 %llu %llu\n", (unsigned long long)writing.other_bytes,
                (unsigned long long)writing.others);
    fclose(writing.file);
}
