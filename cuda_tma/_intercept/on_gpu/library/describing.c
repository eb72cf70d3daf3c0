/* The description of a launch by Python, which contains the stack of the launching statement, and the blocks of torch's
   allocator. */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <stdlib.h>
#include <string.h>

typedef void (*describing)(void);

static describing describer;
static __thread struct description *described;

/* Set the Python function that describes a launch, or NULL at the end of Python. */
void cuda_tma_on_gpu_describe(describing function) {
    describer = function;
}

static void *copy_of(const void *data, size_t size) {
    void *copy = malloc(size + 1);
    if (copy != NULL)
        memcpy(copy, data, size);
    return copy;
}

/* Store the description of this thread's launch: JSON, and pairs of an address and a size, by ascending address. */
void cuda_tma_on_gpu_described(const char *stack, uint64_t size, const uint64_t *blocks, uint64_t blocks_count) {
    if (described == NULL)
        return;
    described->stack = copy_of(stack, size);
    described->stack_size = described->stack != NULL ? size : 0;
    described->blocks = copy_of(blocks, blocks_count * 2 * sizeof *blocks);
    described->blocks_count = described->blocks != NULL ? blocks_count : 0;
}

void describe(struct description *known) {
    describing function = describer;
    if (function == NULL)
        return;
    described = known;
    function();
    described = NULL;
}

/* Pass machine code and its PTX, from a compiler in Python, to the session. */
void cuda_tma_on_gpu_code(const void *code, uint64_t size, const char *ptx, uint64_t ptx_size) {
    unsigned char *data = malloc(sizeof size + size);
    if (data == NULL)
        return;
    memcpy(data, &size, sizeof size);
    memcpy(data + sizeof size, code, size);
    say(SAY_CODE, data, sizeof size + size, ptx, ptx_size, NULL);
    free(data);
}
