#ifndef CUDA_TMA_MEMORY_H
#define CUDA_TMA_MEMORY_H

#include "../graphs/graphs.h"

#define PAGE 4096u
#define GUARD_BYTES 65536u

struct allocation {
    uint64_t address, size;
    int kind, is_free;
    /* If `lies_at` is not 0, a server process has the bytes at that place of the arena. */
    uint64_t lies_at;
    /* The text `made_at` is the report if the memory leaks. The text is NULL if the leak is not reported. */
    char *made_at;
};

/* The file memory.c defines the functions below, which copy the records of allocations. */
int find_allocation(uint64_t address, struct allocation *found);
int is_within(const struct allocation *item, uint64_t address, uint64_t size);
void each_allocation(void (*visit)(const struct allocation *item, void *data), void *data);
uint64_t bytes_in_use(void);
uint64_t whole_pages(uint64_t size);
void *array_bytes(uint64_t address, uint64_t size);

/* Return unused addresses of the arena without pages, or 0 if all addresses are in use. */
uint64_t take_addresses(uint64_t size, uint64_t alignment);

/* Count bytes of the GPU's memory as used. Fail if the sum exceeds the size of the memory. */
CUresult use_bytes(uint64_t size);
void unuse_bytes(uint64_t size);

/* Return pages to the system. The addresses of the pages stay reserved. */
void give_back_pages(uint64_t address, uint64_t size);

/* Make bytes that have pages accessible to kernels and copies, or make the bytes inaccessible again. */
CUresult add_allocation(const struct allocation *given);
CUresult remove_allocation(uint64_t address);

#endif
