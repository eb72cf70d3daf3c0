/* Memory of the simulated GPU: pages of this process, in a range of addresses that nothing else uses.

   No address is used twice, and 64 KiB behind each allocation have no pages: a wrong access of a kernel meets nothing,
   and a wrong access of the host is a segmentation fault. */
#define _GNU_SOURCE
#include "graphs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define GUARD_BYTES 65536u
#define ARRAYS 0x1000000000u /* the simulator maps arrays of other libraries from here to the arena */

struct allocation {
    uint64_t address, size;
    int kind, is_free;
    uint64_t copy; /* of registered memory that a server process works on: where in the arena */
};

struct table {
    struct allocation *items;
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table arena, registered; /* the first one is sorted by address */
static uint64_t next_address, used_bytes;

static uint64_t pages(uint64_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

static struct allocation *append(struct table *table) {
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        struct allocation *items = realloc(table->items, room * sizeof *items);
        if (items == NULL)
            return NULL;
        table->items = items;
        table->room = room;
    }
    return &table->items[table->count++];
}

/* The last allocation that begins at an address of the arena or before it. */
static struct allocation *before(uint64_t address) {
    size_t low = 0, high = arena.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena.items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &arena.items[low - 1] : NULL;
}

static int is_in_arena(uint64_t address) {
    return address >= ARENA && address < ARENA + ARENA_BYTES;
}

/* Copy the allocation that an address lies in; `address` may be the end of an allocation of no bytes. */
static int find(uint64_t address, struct allocation *found) {
    int is_found = 0;
    pthread_mutex_lock(&lock);
    if (is_in_arena(address)) {
        struct allocation *item = before(address);
        is_found = item != NULL && address < item->address + pages(item->size) + GUARD_BYTES;
        if (is_found)
            *found = *item;
    }
    for (size_t i = 0; i < registered.count && !is_found; ++i) {
        struct allocation *item = &registered.items[i];
        is_found = !item->is_free && address >= item->address && address < item->address + item->size;
        if (is_found)
            *found = *item;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

static int has(const struct allocation *item, uint64_t address, uint64_t size) {
    uint64_t offset = address - item->address;
    return !item->is_free && offset <= item->size && size <= item->size - offset;
}

static void misuse(uint64_t kind, uint64_t address, uint64_t size) {
    uint64_t data[3] = {kind, address, size};
    ask(ASK_MISUSE, data, sizeof data, NULL);
}

/* Reserve addresses, and give them pages. */
static CUresult reserve(uint64_t size, int kind, uint64_t *address) {
    if (next_address == 0) {
        int file = arena_file(), kind_of_pages = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
        void *start = mmap((void *)ARENA, ARENA_BYTES, PROT_NONE, kind_of_pages | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                           file, 0);
        REQUIRE(start == (void *)ARENA, OUT_OF_MEMORY);
        next_address = ARENA;
    }
    REQUIRE(size <= the_device()->total_bytes && used_bytes + size <= the_device()->total_bytes, OUT_OF_MEMORY);
    REQUIRE(pages(size) + GUARD_BYTES <= ARENA + ARENA_BYTES - next_address, OUT_OF_MEMORY);
    REQUIRE(mprotect((void *)next_address, pages(size), PROT_READ | PROT_WRITE) == 0, OUT_OF_MEMORY);
    struct allocation *item = append(&arena);
    REQUIRE(item != NULL, OUT_OF_MEMORY);
    *item = (struct allocation){next_address, size, kind, 0, 0};
    *address = next_address;
    next_address += pages(size) + GUARD_BYTES;
    used_bytes += size;
    return SUCCESS;
}

CUresult allocate(CUdeviceptr *address, size_t size, int kind) {
    CHECK(ready_in_context());
    REQUIRE(address != NULL && size > 0, INVALID_VALUE);
    pthread_mutex_lock(&lock);
    CUresult result = reserve(size, kind, address);
    pthread_mutex_unlock(&lock);
    CHECK(result);
    uint64_t data[4] = {*address, size, kind, *address};
    return ask(ASK_ALLOCATED, data, sizeof data, NULL);
}

/* Give the pages back to the system; their addresses stay reserved. */
static void give_back(uint64_t address, uint64_t size) {
    int file = arena_file();
    if (file >= 0)
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, address - ARENA, pages(size));
    mmap((void *)address, pages(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Free an allocation whose kind is among those of a mask; Python forgets it first, and waits for a running launch. */
CUresult release(CUdeviceptr address, int kinds) {
    struct allocation item;
    CHECK(ready());
    if (!is_in_arena(address) || !find(address, &item) || item.address != address || !(kinds >> item.kind & 1)) {
        misuse(INVALID_FREE, address, 0);
        return INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    struct allocation *known = before(address);
    int was_free = known->is_free;
    known->is_free = 1;
    used_bytes -= was_free ? 0 : item.size;
    pthread_mutex_unlock(&lock);
    if (was_free) {
        misuse(DOUBLE_FREE, address, 0);
        return INVALID_VALUE;
    }
    ask(ASK_FREED, &address, sizeof address, NULL);
    give_back(address, item.size);
    return SUCCESS;
}

/* Bytes of an array of another library of this process, whose address the simulator chose. */
static void *array(uint64_t address, uint64_t size) {
    uint64_t data[2] = {address, size}, found = 0;
    struct bytes reply;
    if (address < ARRAYS || address >= ARENA || ask(ASK_ADDRESS, data, sizeof data, &reply) != SUCCESS)
        return NULL;
    if (reply.size == sizeof found)
        memcpy(&found, reply.data, sizeof found);
    free(reply.data);
    return (void *)found;
}

/* Where bytes of the GPU's memory lie in this process. */
void *readable(CUdeviceptr address, size_t size, CUresult *result) {
    struct allocation item;
    *result = SUCCESS;
    if (find(address, &item)) {
        if (has(&item, address, size))
            return (void *)address;
        misuse(item.is_free ? USE_AFTER_FREE : COPY_OUT_OF_BOUNDS, address, size);
    } else {
        void *found = array(address, size);
        if (found != NULL)
            return found;
        misuse(COPY_OUT_OF_BOUNDS, address, size);
    }
    *result = INVALID_VALUE;
    return NULL;
}

/* The same for an address that may be of the host. */
void *anywhere(uint64_t address, size_t size, CUresult *result) {
    struct allocation item;
    *result = SUCCESS;
    if (is_in_arena(address) || find(address, &item))
        return readable(address, size, result);
    void *found = array(address, size);
    return found != NULL ? found : (void *)address;
}

/* ---- allocation ---- */

enum {
    OF_DEVICE = 1 << DEVICE_MEMORY | 1 << POOL_MEMORY | 1 << MANAGED_MEMORY,
    OF_HOST = 1 << HOST_MEMORY
};

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    return allocate(address, size, DEVICE_MEMORY);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
    REQUIRE(pitch != NULL && width > 0 && height > 0, INVALID_VALUE);
    REQUIRE(element == 4 || element == 8 || element == 16, INVALID_VALUE);
    *pitch = (width + 511) / 512 * 512;
    REQUIRE(*pitch >= width && height <= SIZE_MAX / *pitch, OUT_OF_MEMORY);
    return allocate(address, *pitch * height, DEVICE_MEMORY);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) {
    REQUIRE(flags != 0, INVALID_VALUE);
    return allocate(address, size, MANAGED_MEMORY);
}

CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    (void)flags;
    return allocate((CUdeviceptr *)address, size, HOST_MEMORY);
}

CUresult cuMemAllocHost_v2(void **address, size_t size) {
    return cuMemHostAlloc(address, size, 0);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    return address == 0 ? ready() : release(address, OF_DEVICE);
}

CUresult cuMemFreeHost(void *address) {
    return address == NULL ? ready() : release((CUdeviceptr)address, OF_HOST);
}

CUresult cuMemFreeAsync(CUdeviceptr address, void *stream) {
    REQUIRE(!is_capturing(stream), CAPTURE_UNSUPPORTED);
    return cuMemFree_v2(address);
}

CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
    (void)flags;
    struct allocation known;
    CHECK(ready_in_context());
    REQUIRE(address != NULL && size > 0, INVALID_VALUE);
    REQUIRE(!find((uint64_t)address, &known), ALREADY_REGISTERED);
    pthread_mutex_lock(&lock);
    uint64_t copy = 0;
    CUresult result = arena_file() >= 0 ? reserve(size, REGISTERED_MEMORY, &copy) : SUCCESS;
    struct allocation *item = result == SUCCESS ? append(&registered) : NULL;
    if (item != NULL)
        *item = (struct allocation){(uint64_t)address, size, REGISTERED_MEMORY, 0, copy};
    pthread_mutex_unlock(&lock);
    REQUIRE(item != NULL, OUT_OF_MEMORY);
    uint64_t data[4] = {(uint64_t)address, size, REGISTERED_MEMORY, copy ? copy : (uint64_t)address};
    return ask(ASK_ALLOCATED, data, sizeof data, NULL);
}

/* Copy registered memory to where the server has it, before a launch, or back, after it. */
void copy_registered(int to_arena) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < registered.count; ++i) {
        void *here = (void *)registered.items[i].address, *there = (void *)registered.items[i].copy;
        if (there != NULL)
            memcpy(to_arena ? there : here, to_arena ? here : there, registered.items[i].size);
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuMemHostUnregister(void *address) {
    CHECK(ready());
    uint64_t given = (uint64_t)address, copy = 0;
    int is_found = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < registered.count && !is_found; ++i)
        if (registered.items[i].address == given) {
            copy = registered.items[i].copy;
            registered.items[i] = registered.items[--registered.count];
            is_found = 1;
        }
    if (copy) {
        struct allocation *item = before(copy);
        item->is_free = 1;
        used_bytes -= item->size;
        give_back(copy, item->size);
    }
    pthread_mutex_unlock(&lock);
    REQUIRE(is_found, NOT_REGISTERED);
    return ask(ASK_FREED, &given, sizeof given, NULL);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
    (void)flags;
    struct allocation item;
    CHECK(ready_in_context());
    REQUIRE(address != NULL && find((uint64_t)host, &item) && !item.is_free, INVALID_VALUE);
    *address = (uint64_t)host;
    return SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
    CUdeviceptr address;
    CHECK(cuMemHostGetDevicePointer_v2(&address, host, 0));
    REQUIRE(flags != NULL, INVALID_VALUE);
    *flags = 2; /* mapped */
    return SUCCESS;
}

/* ---- what is known of addresses ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CHECK(ready_in_context());
    REQUIRE(free_bytes != NULL && total != NULL, INVALID_VALUE);
    *total = the_device()->total_bytes;
    *free_bytes = *total - used_bytes;
    return SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr address) {
    struct allocation item;
    CHECK(ready_in_context());
    REQUIRE(find(address, &item) && has(&item, address, 1), NOT_FOUND);
    if (start != NULL)
        *start = item.address;
    if (size != NULL)
        *size = item.size;
    return SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
    struct allocation item;
    CHECK(ready());
    REQUIRE(data != NULL, INVALID_VALUE);
    if (!find(address, &item) || !has(&item, address, 1)) {
        REQUIRE(array(address, 1) != NULL, INVALID_VALUE);
        item = (struct allocation){address, 1, DEVICE_MEMORY, 0, 0};
    }
    int is_host = item.kind == HOST_MEMORY || item.kind == REGISTERED_MEMORY;
    switch (attribute) {
    case 1: *(void **)data = current_context(); return SUCCESS;
    case 2: *(uint32_t *)data = is_host ? 1 : 2; return SUCCESS;
    case 3: *(CUdeviceptr *)data = address; return SUCCESS;
    case 4:
        REQUIRE(is_host || item.kind == MANAGED_MEMORY, INVALID_VALUE);
        *(uint64_t *)data = address;
        return SUCCESS;
    case 6: *(uint32_t *)data = 1; return SUCCESS;
    case 7: *(uint64_t *)data = item.address; return SUCCESS; /* no address is used twice */
    case 8: *(uint32_t *)data = item.kind == MANAGED_MEMORY; return SUCCESS;
    case 9: *(int32_t *)data = 0; return SUCCESS;
    case 10: *(uint32_t *)data = 0; return SUCCESS;
    case 11: *(uint64_t *)data = item.address; return SUCCESS;
    case 12: *(uint64_t *)data = item.size; return SUCCESS;
    case 13: *(uint32_t *)data = 1; return SUCCESS;
    case 14: *(uint64_t *)data = 0; return SUCCESS;
    case 15: *(uint32_t *)data = 0; return SUCCESS;
    case 16: *(uint32_t *)data = 3; return SUCCESS; /* read and write */
    case 17: *(uint64_t *)data = 0; return SUCCESS;
    }
    return NOT_SUPPORTED;
}

CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **data, CUdeviceptr address) {
    CHECK(ready());
    REQUIRE(attributes != NULL && data != NULL, INVALID_VALUE);
    for (unsigned i = 0; i < count; ++i) {
        static const unsigned char sizes[18] = {0, 8, 4, 8, 8, 16, 4, 8, 4, 4, 4, 8, 8, 4, 8, 4, 4, 8};
        int attribute = attributes[i];
        REQUIRE(attribute > 0 && attribute < 18 && data[i] != NULL, INVALID_VALUE);
        if (cuPointerGetAttribute(data[i], attribute, address) != SUCCESS)
            memset(data[i], attribute == 9 ? 0xFF : 0, sizes[attribute]);
    }
    return SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address) {
    (void)attribute, (void)address;
    CHECK(ready());
    return value != NULL ? SUCCESS : INVALID_VALUE;
}
