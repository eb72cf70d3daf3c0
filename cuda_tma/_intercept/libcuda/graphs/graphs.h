#ifndef CUDA_TMA_GRAPHS_H
#define CUDA_TMA_GRAPHS_H

#include "../driver.h"

typedef CUresult (*operation)(const void *data, size_t size);

/* Whether a stream is being captured. */
int is_capturing(void *stream);

/* Put an operation into the graph of a capturing stream; else run it now. The data is copied. */
CUresult now_or_later(void *stream, operation run, const void *data, size_t size);

/* Between the two, each operation of this thread becomes a node of a graph. */
CUresult begin_node(void *graph);
CUresult end_node(void **node, CUresult result);

/* streams.c: where a stream has the number of the capture that it took part in last, 0 at first; NULL for the default
   streams, which cannot be captured */
uint64_t *capture_of_stream(void *stream);

/* objects.c: what a graph keeps for the program */
struct object;
struct objects {
    size_t count;
    struct object **items;
};
CUresult copy_objects(struct objects *target, const struct objects *source);
void end_objects(struct objects *objects);

/* graphs.c */
struct objects *objects_of(void *graph);

enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_UNMATCHED = 903 };

#endif
