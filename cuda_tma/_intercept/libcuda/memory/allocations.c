/* The entries that allocate and free memory, and those that register memory of the host. */
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

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
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    return is_capturing(stream) ? free_later(address, stream) : cuMemFree_v2(address);
}

CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
    struct allocation known;
    (void)flags;
    CHECK(ready_in_context());
    REQUIRE(address != NULL && size > 0, INVALID_VALUE);
    REQUIRE(!find_allocation((uint64_t)address, &known), ALREADY_REGISTERED);
    uint64_t copy = 0;
    if (arena_file() >= 0) { /* The server process works on a copy of the memory. */
        copy = take_addresses(size, PAGE);
        REQUIRE(copy != 0 && mprotect((void *)copy, whole_pages(size), PROT_READ | PROT_WRITE) == 0, OUT_OF_MEMORY);
    }
    return add_allocation(&(struct allocation){
        .address = (uint64_t)address, .size = size, .kind = REGISTERED_MEMORY, .lies_at = copy});
}

static void copy_one(const struct allocation *item, void *data) {
    void *here = (void *)item->address, *there = (void *)item->lies_at;
    int to_arena = *(const int *)data;
    if (item->kind == REGISTERED_MEMORY && there != NULL)
        memcpy(to_arena ? there : here, to_arena ? here : there, item->size);
}

/* Copy registered memory to its copy for the server before a launch, or back after the launch. */
void copy_registered(int to_arena) {
    if (arena_file() >= 0)
        each_allocation(copy_one, &to_arena);
}

CUresult cuMemHostUnregister(void *address) {
    struct allocation item;
    CHECK(ready());
    REQUIRE(find_allocation((uint64_t)address, &item) && item.kind == REGISTERED_MEMORY, NOT_REGISTERED);
    REQUIRE(item.address == (uint64_t)address, INVALID_VALUE); /* The address is inside of the memory. */
    if (item.lies_at != 0)
        give_back_pages(item.lies_at, item.size);
    return remove_allocation(item.address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
    (void)flags;
    struct allocation item;
    CHECK(ready_in_context());
    REQUIRE(address != NULL && find_allocation((uint64_t)host, &item) && !item.is_free, INVALID_VALUE);
    *address = (uint64_t)host;
    return SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
    CUdeviceptr address;
    CHECK(cuMemHostGetDevicePointer_v2(&address, host, 0));
    REQUIRE(flags != NULL, INVALID_VALUE);
    *flags = 2; /* The flag 2 means that the memory is mapped. */
    return SUCCESS;
}

