/* The library does not read images that are linked from several files (nvcc -rdc=true), so the session has no PTX of
   their kernels. */
#include "on_gpu.h"

#include "../../libcuda/compilers/linking.h"

struct link *new_link(void) {
    return NULL;
}

CUresult add_input(struct link *link, const void *data, size_t size) {
    (void)link, (void)data, (void)size;
    return NOT_SUPPORTED;
}

CUresult complete_link(struct link *link) {
    (void)link;
    return NOT_SUPPORTED;
}

void end_link(struct link *link) {
    (void)link;
}
