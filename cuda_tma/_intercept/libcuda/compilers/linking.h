/* A link has inputs of any kind, and a result, which is the PTX that Python makes from the inputs. */
#ifndef CUDA_TMA_LINKING_H
#define CUDA_TMA_LINKING_H

#include "../driver.h"

struct link {
    uint32_t magic;
    struct bytes inputs; /* For each input, the buffer contains its size as 8 bytes, and its bytes. */
    struct bytes linked; /* The linked PTX ends with NUL. */
};

struct link *new_link(void);
int is_link(const struct link *link);
CUresult add_input(struct link *link, const void *data, size_t size);
CUresult add_input_file(struct link *link, const char *path);
CUresult complete_link(struct link *link);
void end_link(struct link *link);

#endif
