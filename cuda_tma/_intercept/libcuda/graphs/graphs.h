#ifndef CUDA_TMA_GRAPHS_H
#define CUDA_TMA_GRAPHS_H

#include "../driver.h"

typedef CUresult (*operation)(const void *data, size_t size);

/* The members of enum node_type are values of CUgraphNodeType. */
enum node_type {
    KERNEL_NODE = 0,
    COPY_NODE = 1,
    FILL_NODE = 2,
    HOST_NODE = 3,
    CHILD_NODE = 4,
    EMPTY_NODE = 5,
    WAIT_NODE = 6,
    RECORD_NODE = 7,
    ALLOCATION_NODE = 10,
    FREE_NODE = 11
};

enum {
    GRAPH = 0x96A9400,
    EXECUTABLE = 0x96A9401,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_UNMATCHED = 903,
    UPDATE_FAILURE = 910
};

/* ---- the data of nodes ---- */

struct kernel_data { /* The parameters follow the structure. */
    struct function *function;
    struct launch fixed;
};

struct fill {
    CUdeviceptr target;
    size_t pitch, size, width, height;
    unsigned char value[4]; /* The value of a fill has `size` bytes. */
};

struct side { /* The struct side is one side of CUDA_MEMCPY3D. */
    size_t x, y, z, level;
    unsigned memory_type;
    const void *host;
    CUdeviceptr device;
    void *array, *reserved;
    size_t pitch, height;
};

struct block_copy { /* The driver's name of the structure is CUDA_MEMCPY3D. */
    struct side source, target;
    size_t width, height, depth;
};

struct call {
    void (*function)(void *);
    void *data;
};

struct graph_memory {
    uint64_t address, size;
};

CUresult run_kernel(const void *data, size_t size);
CUresult run_fill(const void *data, size_t size);
CUresult run_block_copy(const void *data, size_t size);
CUresult run_call(const void *data, size_t size);
CUresult run_record(const void *event, size_t size);
CUresult run_nothing(const void *data, size_t size);

/* ---- nodes and graphs ---- */

struct objects {
    size_t count;
    struct object **items;
};

struct node {
    uint32_t magic;
    int type, is_disabled;
    unsigned number; /* The number of a node is its index in its graph. */
    struct graph *graph, *child;
    operation run;
    size_t size, count;
    unsigned char *data;
    struct node **before; /* A node depends on the nodes in `before`. */
    /* In a copy, `origin` is the original node. While a graph is copied, `copy` is the copy of the node. */
    struct node *next, *origin, *copy;
    void **values; /* A kernel node has pointers to its parameters, for a program that queries them. */
};

struct graph { /* An executable graph is a copy whose nodes are in an order that its dependencies permit. */
    uint32_t magic;
    unsigned numbers, id;
    uint64_t flags;
    size_t count;
    struct node *first;
    struct objects objects;
};

struct graph *given_graph(void *handle, uint32_t magic); /* given_graph() returns NULL if the graph has another type. */
struct node *given_node(void *handle);
struct graph *make_graph(uint32_t magic);
struct node *append_node(struct graph *graph, int type, operation run, const void *data, size_t size);
CUresult depend(struct node *node, struct node *const *before, size_t count);
CUresult copy_graph(struct graph **made, const struct graph *graph, uint32_t magic);
CUresult run_graph(const struct graph *graph);
void end_graph(struct graph *graph);
void take_data(struct node *target, struct node *source); /* take_data() also frees the source. */
CUresult list_nodes(void **nodes, size_t *count, struct node *const *found, size_t total);

/* ---- captures ---- */

/* A captured stream has the nodes on which its next operation depends. An event has the nodes that it recorded. */
struct frontier {
    uint64_t capture; /* The number is that of the stream's last capture, and is 0 before a capture. */
    size_t count;
    struct node **nodes;
};
/* The file streams.c defines these functions. The second returns NULL for default streams, which cannot be captured. */
int is_stream(const void *stream);
struct frontier *frontier_of(void *stream);
CUresult join(struct frontier *target, const struct frontier *source);

/* Return whether a stream is being captured. */
int is_capturing(void *stream);

/* Add an operation to the graph of a stream that is being captured, or run the operation now. The data is copied. */
CUresult now_or_later(void *stream, enum node_type type, operation run, const void *data, size_t size);
CUresult child_or_now(void *stream, struct graph *graph);

/* Between begin_node() and end_node(), each operation of this thread becomes a node of a graph. */
CUresult begin_node(void *graph, void *const *before, size_t count);
CUresult end_node(void **node, CUresult result);

/* Between begin_change() and end_change(), each operation of this thread replaces the data of a node. */
CUresult begin_change(struct node *node);
CUresult end_change(CUresult result);

/* The functions below run an operation in a stream, or add it to the graph that captures the stream. */
CUresult fill_later(const struct fill *fill, void *stream);
CUresult block_copy_later(const struct block_copy *copy, void *stream);
CUresult allocation_later(CUdeviceptr *address, size_t size, void *stream);
CUresult free_later(CUdeviceptr address, void *stream);
/* The file graph_memory.c defines free_on_launch(), for CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH. */
void free_on_launch(int is_on);

/* ---- objects.c: the objects that a graph keeps for the program ---- */

CUresult copy_objects(struct objects *target, const struct objects *source);
void end_objects(struct objects *objects);
struct objects *objects_of(void *graph);

#endif
