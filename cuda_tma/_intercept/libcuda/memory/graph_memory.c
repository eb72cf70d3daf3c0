/* The memory that nodes of graphs allocate and free. The address of such memory is fixed when the program adds the
   node. The memory has pages between the allocating node and the freeing node. */
#define _GNU_SOURCE
#include "memory.h"

#include <sys/mman.h>

enum { USED = 0, MOST_USED = 1, RESERVED = 2, MOST_RESERVED = 3 };

static uint64_t used[4];
/* A launch first frees the memory that an earlier launch of the same graph has not freed. */
static __thread int frees_first;

void free_on_launch(int is_on) {
    frees_first = is_on;
}

static CUresult run_allocation(const void *data, size_t size) {
    const struct graph_memory *memory = data;
    struct allocation known;
    (void)size;
    int file = arena_file(), pages = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (find_allocation(memory->address, &known)) {
        REQUIRE(known.is_free || frees_first, INVALID_VALUE);
        if (!known.is_free)
            CHECK(release(memory->address, 1 << POOL_MEMORY));
        CHECK(remove_allocation(memory->address));
    }
    CHECK(use_bytes(memory->size));
    void *start = mmap((void *)memory->address, whole_pages(memory->size), PROT_READ | PROT_WRITE, pages | MAP_FIXED,
                       file, file < 0 ? 0 : memory->address - ARENA);
    REQUIRE(start != MAP_FAILED, OUT_OF_MEMORY);
    used[USED] += memory->size;
    used[RESERVED] += memory->size;
    for (int i = 0; i < 4; i += 2)
        used[i + 1] = used[i] > used[i + 1] ? used[i] : used[i + 1];
    return add_allocation(&(struct allocation){
        .address = memory->address, .size = memory->size, .kind = POOL_MEMORY});
}

static CUresult run_free(const void *data, size_t size) {
    const struct graph_memory *memory = data;
    struct allocation item;
    (void)size;
    uint64_t bytes = find_allocation(memory->address, &item) && !item.is_free ? item.size : 0;
    CHECK(release(memory->address, 1 << POOL_MEMORY));
    used[USED] -= bytes < used[USED] ? bytes : used[USED];
    return SUCCESS;
}

CUresult allocation_later(CUdeviceptr *address, size_t size, void *stream) {
    CHECK(ready_in_context());
    REQUIRE(address != NULL, INVALID_VALUE);
    struct graph_memory memory = {take_addresses(size, PAGE), size ? size : 1};
    REQUIRE(memory.address != 0, OUT_OF_MEMORY);
    *address = memory.address;
    return now_or_later(stream, ALLOCATION_NODE, run_allocation, &memory, sizeof memory);
}

CUresult free_later(CUdeviceptr address, void *stream) {
    struct graph_memory memory = {address, 0};
    CHECK(ready_in_context());
    REQUIRE(address != 0, INVALID_VALUE);
    return now_or_later(stream, FREE_NODE, run_free, &memory, sizeof memory);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    CHECK(ready());
    REQUIRE(device == 0, INVALID_DEVICE);
    used[RESERVED] = used[USED];
    return SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, unsigned attribute, uint64_t *value) {
    CHECK(ready());
    REQUIRE(device == 0, INVALID_DEVICE);
    REQUIRE(value != NULL && attribute < 4, INVALID_VALUE);
    *value = used[attribute];
    return SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, unsigned attribute, const uint64_t *value) {
    CHECK(ready());
    REQUIRE(device == 0, INVALID_DEVICE);
    REQUIRE(value != NULL && *value == 0 && (attribute == MOST_USED || attribute == MOST_RESERVED), INVALID_VALUE);
    used[attribute] = used[attribute - 1];
    return SUCCESS;
}
