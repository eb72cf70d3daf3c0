/* The memory of the simulated GPU, which consists of pages of this process in a range of addresses for this purpose.
   The library does not use an address twice, and the 64 KiB after each allocation have no pages. A kernel with a wrong
   access therefore does not access another allocation. A wrong access of the host is a segmentation fault. */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARRAYS 0x1000000000u /* The simulator maps arrays of other libraries between ARRAYS and the arena. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The allocations are sorted by address. Those of registered memory are outside the arena. */
static struct allocation *items;
static size_t count, room;
static uint64_t next_address, used_bytes;

uint64_t whole_pages(uint64_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

/* Return the number of allocations that begin at or before an address. */
static size_t begun_at(uint64_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct allocation *before(uint64_t address) {
    size_t begun = begun_at(address);
    return begun ? &items[begun - 1] : NULL;
}

static struct allocation *insert(const struct allocation *given) {
    if (count == room) {
        size_t more = room ? 2 * room : 64;
        struct allocation *moved = realloc(items, more * sizeof *items);
        if (moved == NULL)
            return NULL;
        items = moved;
        room = more;
    }
    struct allocation *at = items + begun_at(given->address);
    memmove(at + 1, at, (items + count - at) * sizeof *items);
    *at = *given;
    ++count;
    return at;
}

static int is_in_arena(uint64_t address) {
    return address >= ARENA && address < ARENA + ARENA_BYTES;
}

/* Copy the record of the allocation that contains an address, or that ends shortly before it. */
int find_allocation(uint64_t address, struct allocation *found) {
    pthread_mutex_lock(&lock);
    const struct allocation *item = before(address);
    uint64_t reach = item == NULL ? 0 : is_in_arena(address) ? whole_pages(item->size) + GUARD_BYTES : item->size;
    int is_found = item != NULL && address - item->address < reach;
    if (is_found)
        *found = *item;
    pthread_mutex_unlock(&lock);
    return is_found;
}

int is_within(const struct allocation *item, uint64_t address, uint64_t size) {
    uint64_t offset = address - item->address;
    return !item->is_free && offset <= item->size && size <= item->size - offset;
}

void each_allocation(void (*visit)(const struct allocation *item, void *data), void *data) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; ++i)
        visit(&items[i], data);
    pthread_mutex_unlock(&lock);
}

void misuse(uint64_t kind, uint64_t address, uint64_t size) {
    uint64_t data[3] = {kind, address, size};
    ask(ASK_MISUSE, data, sizeof data, NULL);
}

/* ---- addresses and pages ---- */

static CUresult begin_arena(void) {
    int file = arena_file(), pages = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (next_address != 0)
        return SUCCESS;
    void *start = mmap((void *)ARENA, ARENA_BYTES, PROT_NONE, pages | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
    REQUIRE(start == (void *)ARENA, OUT_OF_MEMORY);
    next_address = ARENA;
    return SUCCESS;
}

uint64_t take_addresses(uint64_t size, uint64_t alignment) {
    pthread_mutex_lock(&lock);
    uint64_t taken = 0;
    if (begin_arena() == SUCCESS && size <= ARENA_BYTES && alignment <= ARENA_BYTES) {
        uint64_t first = (next_address + alignment - 1) / alignment * alignment;
        uint64_t last = first + whole_pages(size) + GUARD_BYTES;
        if (last <= ARENA + ARENA_BYTES) {
            taken = first;
            next_address = last;
        }
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

CUresult use_bytes(uint64_t size) {
    uint64_t total = the_device()->total_bytes;
    pthread_mutex_lock(&lock);
    int fits = size <= total && used_bytes <= total - size;
    used_bytes += fits ? size : 0;
    pthread_mutex_unlock(&lock);
    return fits ? SUCCESS : OUT_OF_MEMORY;
}

void unuse_bytes(uint64_t size) {
    pthread_mutex_lock(&lock);
    used_bytes -= size;
    pthread_mutex_unlock(&lock);
}

uint64_t bytes_in_use(void) {
    return used_bytes;
}

void give_back_pages(uint64_t address, uint64_t size) {
    int file = arena_file();
    if (file >= 0)
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, address - ARENA, whole_pages(size));
    mmap((void *)address, whole_pages(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* ---- allocations ---- */

/* Keep the text of a reply, which ends with a NUL, until the end of the process. */
static void remember_place(uint64_t address, struct bytes *reply) {
    int is_text = reply->size > 0 && reply->data[reply->size - 1] == 0;
    pthread_mutex_lock(&lock);
    struct allocation *item = before(address);
    is_text = is_text && item != NULL && item->address == address && !item->is_free;
    if (is_text)
        item->made_at = (char *)reply->data;
    pthread_mutex_unlock(&lock);
    if (!is_text)
        free(reply->data);
}

CUresult add_allocation(const struct allocation *given) {
    uint64_t data[4] = {given->address, given->size, given->kind, given->lies_at ? given->lies_at : given->address};
    struct bytes reply;
    pthread_mutex_lock(&lock);
    int is_added = insert(given) != NULL;
    pthread_mutex_unlock(&lock);
    REQUIRE(is_added, OUT_OF_MEMORY);
    CUresult result = ask(ASK_ALLOCATED, data, sizeof data, &reply);
    remember_place(given->address, &reply);
    return result;
}

CUresult remove_allocation(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct allocation *item = before(address);
    int is_known = item != NULL && item->address == address;
    if (is_known) {
        free(item->made_at);
        memmove(item, item + 1, (items + count - item - 1) * sizeof *items);
        --count;
    }
    pthread_mutex_unlock(&lock);
    return is_known ? ask(ASK_FREED, &address, sizeof address, NULL) : INVALID_VALUE;
}

CUresult allocate(CUdeviceptr *address, size_t size, int kind) {
    CHECK(ready_in_context());
    REQUIRE(address != NULL && size > 0, INVALID_VALUE);
    CHECK(use_bytes(size));
    uint64_t taken = take_addresses(size, PAGE);
    if (taken == 0 || mprotect((void *)taken, whole_pages(size), PROT_READ | PROT_WRITE) != 0) {
        unuse_bytes(size);
        return OUT_OF_MEMORY;
    }
    *address = taken;
    return add_allocation(&(struct allocation){.address = taken, .size = size, .kind = kind});
}

/* Mark an allocation as free. Return whether the allocation was already free. */
static int mark_free(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct allocation *item = before(address);
    int was_free = item->is_free;
    item->is_free = 1;
    used_bytes -= was_free ? 0 : item->size;
    free(item->made_at);
    item->made_at = NULL;
    pthread_mutex_unlock(&lock);
    return was_free;
}

/* Free an allocation whose kind is in a mask. Python first removes the allocation, and waits for a running launch. */
CUresult release(CUdeviceptr address, int kinds) {
    struct allocation item;
    CHECK(ready());
    if (!is_in_arena(address) || !find_allocation(address, &item) || item.address != address ||
        !(kinds >> item.kind & 1)) {
        misuse(INVALID_FREE, address, 0);
        return INVALID_VALUE;
    }
    if (mark_free(address)) {
        misuse(DOUBLE_FREE, address, 0);
        return INVALID_VALUE;
    }
    ask(ASK_FREED, &address, sizeof address, NULL);
    give_back_pages(address, item.size);
    return SUCCESS;
}

/* ---- the places of bytes ---- */

/* Find the bytes of another library's array in this process, at an address that the simulator chose. */
void *array_bytes(uint64_t address, uint64_t size) {
    uint64_t data[2] = {address, size}, found = 0;
    struct bytes reply;
    if (address < ARRAYS || address >= ARENA || ask(ASK_ADDRESS, data, sizeof data, &reply) != SUCCESS)
        return NULL;
    if (reply.size == sizeof found)
        memcpy(&found, reply.data, sizeof found);
    free(reply.data);
    return (void *)found;
}

/* Find the bytes of the GPU's memory in this process. */
void *readable(CUdeviceptr address, size_t size, CUresult *result) {
    struct allocation item;
    *result = SUCCESS;
    if (find_allocation(address, &item)) {
        if (is_within(&item, address, size))
            return (void *)address;
        misuse(item.is_free ? USE_AFTER_FREE : COPY_OUT_OF_BOUNDS, address, size);
    } else {
        void *found = array_bytes(address, size);
        if (found != NULL)
            return found;
        misuse(COPY_OUT_OF_BOUNDS, address, size);
    }
    *result = INVALID_VALUE;
    return NULL;
}

/* Find the bytes in the same way for an address that may belong to the host. */
void *anywhere(uint64_t address, size_t size, CUresult *result) {
    struct allocation item;
    *result = SUCCESS;
    if (is_in_arena(address) || find_allocation(address, &item))
        return readable(address, size, result);
    void *found = array_bytes(address, size);
    return found != NULL ? found : (void *)address;
}
