/* The entries for tensor maps. The package's encoder writes the maps, and applies its rules of the driver. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { TILED = 0, IM2COL = 1, IM2COL_WIDE = 2, REPLACE = 3, MOST_RANK = 5, MAP_BYTES = 128 };

/* Python reads the struct request. Fields that a mode does not have are 0. */
struct request {
    uint32_t mode, data_type, rank, interleave, swizzle, l2_promotion, oob_fill, wide_mode;
    uint32_t channels, pixels, box[MOST_RANK], element_strides[MOST_RANK];
    int32_t lower[MOST_RANK], upper[MOST_RANK];
    uint32_t padding[2];
    uint64_t address, dim[MOST_RANK], strides[MOST_RANK];
};

static CUresult begin(struct request *request, const void *map, uint32_t rank, const uint64_t *dim,
                      const uint64_t *strides, const uint32_t *element_strides) {
    REQUIRE(map != NULL && dim != NULL && element_strides != NULL, INVALID_VALUE);
    REQUIRE(rank > 0 && rank <= MOST_RANK && (rank == 1 || strides != NULL), INVALID_VALUE);
    request->rank = rank;
    memcpy(request->dim, dim, rank * sizeof *dim);
    if (rank > 1)
        memcpy(request->strides, strides, (rank - 1) * sizeof *strides);
    memcpy(request->element_strides, element_strides, rank * sizeof *element_strides);
    return SUCCESS;
}

static CUresult end(const struct request *request, void *map) {
    struct bytes reply;
    CUresult result = ask(ASK_TENSOR_MAP, request, sizeof *request, &reply);
    if (result == SUCCESS && reply.size == MAP_BYTES)
        memcpy(map, reply.data, MAP_BYTES);
    free(reply.data);
    return result;
}

CUresult cuTensorMapEncodeTiled(void *map, uint32_t data_type, uint32_t rank, void *address, const uint64_t *dim,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                                uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion, uint32_t oob_fill) {
    struct request request = {TILED,   data_type,    0,        interleave,
                              swizzle, l2_promotion, oob_fill, .address = (uint64_t)address};
    CHECK(ready());
    REQUIRE(box != NULL, INVALID_VALUE);
    CHECK(begin(&request, map, rank, dim, strides, element_strides));
    memcpy(request.box, box, rank * sizeof *box);
    return end(&request, map);
}

CUresult cuTensorMapEncodeIm2col(void *map, uint32_t data_type, uint32_t rank, void *address, const uint64_t *dim,
                                 const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                                 uint32_t pixels, const uint32_t *element_strides, uint32_t interleave,
                                 uint32_t swizzle, uint32_t l2_promotion, uint32_t oob_fill) {
    struct request request = {IM2COL,  data_type,    0,        interleave,
                              swizzle, l2_promotion, oob_fill, .address = (uint64_t)address};
    CHECK(ready());
    REQUIRE(lower != NULL && upper != NULL && rank > 2, INVALID_VALUE);
    CHECK(begin(&request, map, rank, dim, strides, element_strides));
    memcpy(request.lower, lower, (rank - 2) * sizeof *lower);
    memcpy(request.upper, upper, (rank - 2) * sizeof *upper);
    request.channels = channels;
    request.pixels = pixels;
    return end(&request, map);
}

CUresult cuTensorMapEncodeIm2colWide(void *map, uint32_t data_type, uint32_t rank, void *address, const uint64_t *dim,
                                     const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t pixels,
                                     const uint32_t *element_strides, uint32_t interleave, uint32_t mode,
                                     uint32_t swizzle, uint32_t l2_promotion, uint32_t oob_fill) {
    struct request request = {IM2COL_WIDE,  data_type, 0,    interleave, swizzle,
                              l2_promotion, oob_fill,  mode, channels,   pixels,
                              .address = (uint64_t)address};
    CHECK(ready());
    CHECK(begin(&request, map, rank, dim, strides, element_strides));
    request.lower[0] = lower;
    request.upper[0] = upper;
    return end(&request, map);
}

/* The new map replaces the old map in `map`, which Python reads and rewrites. */
CUresult cuTensorMapReplaceAddress(void *map, void *address) {
    struct request request = {REPLACE, .address = (uint64_t)address};
    CHECK(ready());
    REQUIRE(map != NULL, INVALID_VALUE);
    unsigned char data[sizeof request + MAP_BYTES];
    memcpy(data, &request, sizeof request);
    memcpy(data + sizeof request, map, MAP_BYTES);
    struct bytes reply;
    CUresult result = ask(ASK_TENSOR_MAP, data, sizeof data, &reply);
    if (result == SUCCESS && reply.size == MAP_BYTES)
        memcpy(map, reply.data, MAP_BYTES);
    free(reply.data);
    return result;
}
