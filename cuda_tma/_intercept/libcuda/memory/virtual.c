/* The entries for virtual memory: ranges of addresses, physical memory, and mappings between them. Physical memory is a
   file. A server process has only the file of the arena. Physical memory is therefore stored in that file, at the place
   of its first mapping. A copy or a bulk operation may cross several mappings, because adjacent mappings are one
   allocation. */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULE (2ull << 20)
enum { PHYSICAL = 0x9115CA1, DEAD = 0xDEAD0000, PINNED = 1, PROPERTY_BYTES = 32, READ_WRITE = 3 };

struct physical {
    uint32_t magic;
    int references, file; /* The number -1 in `file` stands for the file of the arena. */
    uint64_t size, offset;
    unsigned char properties[PROPERTY_BYTES];
};

struct mapping {
    uint64_t address, size;
    struct physical *physical;
    int access;
    struct mapping *next;
};

struct range {
    uint64_t address, size;
    struct range *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings; /* The mappings are sorted by address. */
static struct range *ranges;

static int is_physical(const struct physical *physical) {
    return kind_of(physical) == PHYSICAL;
}

static CUresult given_properties(const int *properties) {
    CHECK(ready());
    REQUIRE(properties != NULL && properties[0] == PINNED, INVALID_VALUE);
    int location = properties[2], number = properties[3];
    /* The locations are the device, the host and the NUMA nodes of the host. */
    REQUIRE(location == 1 || location == 2 || location == 3 || location == 4, INVALID_VALUE);
    return location != 1 || number == 0 ? SUCCESS : INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *size, const void *properties, unsigned option) {
    CHECK(given_properties(properties));
    REQUIRE(size != NULL && option <= 1, INVALID_VALUE);
    *size = GRANULE;
    return SUCCESS;
}

/* ---- ranges ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wished, uint64_t flags) {
    (void)wished; /* The function ignores the argument `wished`, which is a hint. */
    CHECK(ready());
    REQUIRE(address != NULL && flags == 0 && size > 0 && size % GRANULE == 0, INVALID_VALUE);
    REQUIRE((alignment & (alignment - 1)) == 0, INVALID_VALUE);
    struct range *range = calloc(1, sizeof *range);
    uint64_t taken = range != NULL ? take_addresses(size, alignment > GRANULE ? alignment : GRANULE) : 0;
    if (taken == 0) {
        free(range);
        return OUT_OF_MEMORY;
    }
    *range = (struct range){taken, size, ranges};
    ranges = range;
    *address = taken;
    return SUCCESS;
}

static struct mapping *first_in(uint64_t address, uint64_t size) {
    for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        if (mapping->address + mapping->size > address && mapping->address < address + size)
            return mapping;
    return NULL;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    CHECK(ready());
    for (struct range **at = &ranges; *at != NULL; at = &(*at)->next) {
        struct range *range = *at;
        if (range->address != address || range->size != size)
            continue;
        REQUIRE(first_in(address, size) == NULL, INVALID_VALUE);
        *at = range->next;
        free(range);
        return SUCCESS;
    }
    return INVALID_VALUE;
}

static int is_reserved(uint64_t address, uint64_t size) {
    for (const struct range *range = ranges; range != NULL; range = range->next)
        if (address >= range->address && address - range->address <= range->size &&
            size <= range->size - (address - range->address))
            return 1;
    return 0;
}

/* ---- physical memory ---- */

CUresult cuMemCreate(void **handle, size_t size, const void *properties, uint64_t flags) {
    CHECK(given_properties(properties));
    REQUIRE(handle != NULL && flags == 0 && size > 0 && size % GRANULE == 0, INVALID_VALUE);
    CHECK(use_bytes(size));
    struct physical *made = make_handle(sizeof *made);
    int file = arena_file() >= 0 ? -1 : memfd_create("cuda-tma-physical", MFD_CLOEXEC);
    if (made == NULL || (arena_file() < 0 && (file < 0 || ftruncate(file, size) != 0))) {
        unuse_bytes(size);
        end_handle(made, sizeof *made);
        return OUT_OF_MEMORY;
    }
    *made = (struct physical){.magic = PHYSICAL, .references = 1, .file = file, .size = size};
    memcpy(made->properties, properties, PROPERTY_BYTES);
    *handle = made;
    return SUCCESS;
}

static void let_go(struct physical *physical) {
    if (--physical->references > 0)
        return;
    physical->magic = DEAD;
    unuse_bytes(physical->size);
    if (physical->file >= 0)
        close(physical->file);
    else if (physical->offset != 0)
        give_back_pages(ARENA + physical->offset, physical->size);
}

CUresult cuMemRelease(void *handle) {
    CHECK(ready());
    REQUIRE(is_physical(handle), INVALID_VALUE);
    let_go(handle);
    return SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(void *properties, void *handle) {
    CHECK(ready());
    REQUIRE(properties != NULL && is_physical(handle), INVALID_VALUE);
    memcpy(properties, ((struct physical *)handle)->properties, PROPERTY_BYTES);
    return SUCCESS;
}

CUresult cuMemRetainAllocationHandle(void **handle, void *address) {
    CHECK(ready());
    struct mapping *mapping = first_in((uint64_t)address, 1);
    REQUIRE(handle != NULL && mapping != NULL, INVALID_VALUE);
    ++mapping->physical->references;
    *handle = mapping->physical;
    return SUCCESS;
}

/* ---- mappings ---- */

/* Find the place of physical memory in the file of the arena. The place is at the first mapping of the memory, if no
   other memory is there. */
static CUresult place(struct physical *physical, uint64_t address) {
    if (physical->file >= 0 || physical->offset != 0)
        return SUCCESS;
    uint64_t own = take_addresses(physical->size, GRANULE);
    for (const struct mapping *other = mappings; other != NULL && address != 0; other = other->next) {
        uint64_t first = ARENA + other->physical->offset;
        if (first < address + physical->size && first + other->physical->size > address)
            address = 0;
    }
    REQUIRE(own != 0, OUT_OF_MEMORY);
    physical->offset = (address != 0 ? address : own) - ARENA;
    return SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, void *handle, uint64_t flags) {
    CHECK(ready());
    struct physical *physical = handle;
    REQUIRE(is_physical(physical) && flags == 0 && offset == 0 && size == physical->size, INVALID_VALUE);
    REQUIRE(address % GRANULE == 0 && is_reserved(address, size) && first_in(address, size) == NULL, INVALID_VALUE);
    CHECK(place(physical, address));
    int file = physical->file >= 0 ? physical->file : arena_file();
    struct mapping *made = calloc(1, sizeof *made), **at = &mappings;
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    if (mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, file, physical->offset) == MAP_FAILED) {
        free(made);
        return OUT_OF_MEMORY;
    }
    while (*at != NULL && (*at)->address < address)
        at = &(*at)->next;
    *made = (struct mapping){address, size, physical, 0, *at};
    *at = made;
    ++physical->references;
    return SUCCESS;
}

static uint64_t lies_at(const struct mapping *mapping) {
    return mapping->physical->file >= 0 ? mapping->address : ARENA + mapping->physical->offset;
}

static int joins(const struct mapping *mapping) {
    const struct mapping *next = mapping->next;
    return next != NULL && next->access != 0 && next->address == mapping->address + mapping->size &&
           lies_at(next) == lies_at(mapping) + mapping->size;
}

/* Remove the allocation at an address, and extend the range by the allocation. */
static void forget(uint64_t at, uint64_t *first, uint64_t *last) {
    struct allocation item;
    if (!find_allocation(at, &item) || item.kind != VIRTUAL_MEMORY || !is_within(&item, at, 1))
        return;
    *first = item.address < *first ? item.address : *first;
    *last = item.address + item.size > *last ? item.address + item.size : *last;
    remove_allocation(item.address);
}

/* Remove the allocations of a range and of its neighbors. Add the allocations that the mappings of the range now form.
   */
static CUresult renew(uint64_t address, uint64_t size, struct mapping *changed, int access) {
    struct allocation item;
    uint64_t first = address, last = address + size;
    forget(address - 1, &first, &last);
    for (uint64_t at = address; at <= address + size; at += GRANULE)
        forget(at, &first, &last);
    changed->access = access;
    for (const struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
        if (mapping->address < first || mapping->address >= last || mapping->access == 0)
            continue;
        item = (struct allocation){
            .address = mapping->address, .size = mapping->size, .kind = VIRTUAL_MEMORY, .lies_at = lies_at(mapping)};
        for (; joins(mapping); mapping = mapping->next)
            item.size += mapping->next->size;
        CHECK(add_allocation(&item));
    }
    return SUCCESS;
}

static CUresult set_access(struct mapping *mapping, int access) {
    int pages = access == READ_WRITE ? PROT_READ | PROT_WRITE : access ? PROT_READ : PROT_NONE;
    REQUIRE(mprotect((void *)mapping->address, mapping->size, pages) == 0, INVALID_VALUE);
    return (access != 0) == (mapping->access != 0) ? (mapping->access = access, SUCCESS)
                                                   : renew(mapping->address, mapping->size, mapping, access);
}

/* Return the number of mapped bytes at the beginning of a range. */
static uint64_t mapped_bytes(uint64_t address, uint64_t size) {
    uint64_t at = address;
    for (const struct mapping *each = mappings; each != NULL && at < address + size; each = each->next)
        if (each->address == at)
            at += each->size;
    return at - address;
}

struct access {
    unsigned location, number, flags;
};

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const struct access *given, size_t count) {
    CHECK(ready());
    REQUIRE(given != NULL && count > 0 && size > 0 && mapped_bytes(address, size) == size, INVALID_VALUE);
    int access = 0;
    for (size_t i = 0; i < count; ++i) {
        REQUIRE(given[i].flags == 0 || given[i].flags == 1 || given[i].flags == READ_WRITE, INVALID_VALUE);
        access |= given[i].flags;
    }
    pthread_mutex_lock(&lock);
    CUresult result = SUCCESS;
    for (struct mapping *each = first_in(address, size); each != NULL && each->address < address + size;
         each = each->next)
        result = result == SUCCESS ? set_access(each, access) : result;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemGetAccess(uint64_t *flags, const void *location, CUdeviceptr address) {
    CHECK(ready());
    const struct mapping *mapping = first_in(address, 1);
    REQUIRE(flags != NULL && location != NULL && mapping != NULL, INVALID_VALUE);
    *flags = mapping->access;
    return SUCCESS;
}

static void unmap(struct mapping *mapping) {
    struct mapping **at = &mappings;
    set_access(mapping, 0);
    mmap((void *)mapping->address, mapping->size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    while (*at != mapping)
        at = &(*at)->next;
    *at = mapping->next;
    let_go(mapping->physical);
    free(mapping);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    CHECK(ready());
    REQUIRE(size > 0 && mapped_bytes(address, size) == size, INVALID_VALUE);
    pthread_mutex_lock(&lock);
    for (struct mapping *each = first_in(address, size); each != NULL; each = first_in(address, size))
        unmap(each);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
