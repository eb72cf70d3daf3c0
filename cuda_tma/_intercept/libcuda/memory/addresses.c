/* The entries that query addresses, and that give hints on ranges of addresses. */
#include "memory.h"

#include <string.h>

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CHECK(ready_in_context());
    REQUIRE(free_bytes != NULL && total != NULL, INVALID_VALUE);
    *total = the_device()->total_bytes;
    *free_bytes = *total - bytes_in_use();
    return SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr address) {
    struct allocation item;
    CHECK(ready_in_context());
    REQUIRE(find_allocation(address, &item) && is_within(&item, address, 1), NOT_FOUND);
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
    if (!find_allocation(address, &item) || !is_within(&item, address, 1)) {
        REQUIRE(array_bytes(address, 1) != NULL, INVALID_VALUE);
        item = (struct allocation){.address = address, .size = 1, .kind = DEVICE_MEMORY};
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
    /* The library does not use an address twice, so the address is the identity of the allocation. */
    case 7: *(uint64_t *)data = item.address; return SUCCESS;
    case 8: *(uint32_t *)data = item.kind == MANAGED_MEMORY; return SUCCESS;
    case 9: *(int32_t *)data = 0; return SUCCESS;
    case 10: *(uint32_t *)data = 0; return SUCCESS;
    case 11: *(uint64_t *)data = item.address; return SUCCESS;
    case 12: *(uint64_t *)data = item.size; return SUCCESS;
    case 13: *(uint32_t *)data = 1; return SUCCESS;
    case 14: *(uint64_t *)data = 0; return SUCCESS;
    case 15: *(uint32_t *)data = 0; return SUCCESS;
    case 16: *(uint32_t *)data = 3; return SUCCESS; /* The flags 3 mean read and write. */
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
