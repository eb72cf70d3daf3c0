/* Graphs that streams are captured into, or that a program adds nodes to. A graph has its operations in the order in
   which the program issued them, in all streams that take part: that is one of the orders that the graph allows, for a
   node depends on earlier ones, and a launch runs them so. */
#include "graphs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH = 0x96A9400, EXECUTABLE = 0x96A9401, DEAD = 0xDEAD0000, MOST_CAPTURES = 64 };

struct node {
    operation run;
    size_t size;
    struct node *next;
    unsigned char data[];
};

struct graph { /* an executable graph is a copy */
    uint32_t magic;
    struct node *first, **end;
    size_t count;
    struct objects objects;
};

static struct {
    uint64_t number; /* 0: free */
    struct graph *graph;
} captures[MOST_CAPTURES];
static uint64_t numbers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct graph *make_graph(uint32_t magic) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph != NULL) {
        graph->magic = magic;
        graph->end = &graph->first;
    }
    return graph;
}

static CUresult append(struct graph *graph, operation run, const void *data, size_t size) {
    struct node *node = malloc(sizeof *node + size);
    REQUIRE(node != NULL, OUT_OF_MEMORY);
    *node = (struct node){.run = run, .size = size, .next = NULL};
    memcpy(node->data, data, size);
    *graph->end = node;
    graph->end = &node->next;
    ++graph->count;
    return SUCCESS;
}

static void end_graph(struct graph *graph) {
    for (struct node *node = graph->first, *next; node != NULL; node = next) {
        next = node->next;
        free(node);
    }
    end_objects(&graph->objects);
    graph->first = NULL;
    graph->end = &graph->first;
    graph->magic = DEAD; /* the few bytes stay, so that the handle is still known as one of a graph that has gone */
}

static int is_graph(const struct graph *graph, uint32_t magic) {
    return graph != NULL && graph->magic == magic;
}

struct objects *objects_of(void *graph) {
    return is_graph(graph, GRAPH) ? &((struct graph *)graph)->objects : NULL;
}

/* ---- captures ---- */

static struct graph *graph_of(uint64_t number) {
    for (int i = 0; number != 0 && i < MOST_CAPTURES; ++i)
        if (captures[i].number == number)
            return captures[i].graph;
    return NULL;
}

static __thread struct graph *building; /* what this thread adds a node to */

CUresult begin_node(void *graph) {
    CHECK(ready_in_context());
    REQUIRE(is_graph(graph, GRAPH), INVALID_VALUE);
    building = graph;
    return SUCCESS;
}

CUresult end_node(void **node, CUresult result) {
    struct graph *graph = building;
    building = NULL;
    CHECK(result);
    REQUIRE(node != NULL, INVALID_VALUE);
    *node = (char *)graph->end - offsetof(struct node, next); /* the last node has the end of the list */
    return SUCCESS;
}

static struct graph *captured(void *stream) {
    if (building != NULL)
        return building;
    uint64_t *number = capture_of_stream(stream);
    if (number == NULL || *number == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    struct graph *graph = graph_of(*number);
    pthread_mutex_unlock(&lock);
    return graph;
}

int is_capturing(void *stream) {
    return captured(stream) != NULL;
}

CUresult now_or_later(void *stream, operation run, const void *data, size_t size) {
    struct graph *graph = captured(stream);
    return graph == NULL ? run(data, size) : append(graph, run, data, size);
}

CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)mode;
    CHECK(ready_in_context());
    uint64_t *number = capture_of_stream(stream);
    REQUIRE(number != NULL, CAPTURE_UNSUPPORTED); /* a default stream */
    REQUIRE(!is_capturing(stream), CAPTURE_UNMATCHED);
    struct graph *graph = make_graph(GRAPH);
    REQUIRE(graph != NULL, OUT_OF_MEMORY);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST_CAPTURES && captures[i].number != 0)
        ++i;
    if (i < MOST_CAPTURES) {
        captures[i].graph = graph;
        captures[i].number = *number = ++numbers;
    }
    pthread_mutex_unlock(&lock);
    REQUIRE(i < MOST_CAPTURES, OUT_OF_MEMORY);
    return SUCCESS;
}

CUresult cuStreamBeginCapture(void *stream, int mode) {
    return cuStreamBeginCapture_v2(stream, mode);
}

CUresult cuStreamEndCapture(void *stream, void **graph) {
    CHECK(ready_in_context());
    REQUIRE(graph != NULL, INVALID_VALUE);
    struct graph *made = captured(stream);
    REQUIRE(made != NULL, CAPTURE_UNMATCHED);
    uint64_t *number = capture_of_stream(stream);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CAPTURES; ++i)
        if (captures[i].number == *number)
            captures[i].number = 0;
    pthread_mutex_unlock(&lock);
    *graph = made;
    return SUCCESS;
}

CUresult cuStreamIsCapturing(void *stream, int *status) {
    CHECK(ready_in_context());
    REQUIRE(status != NULL, INVALID_VALUE);
    *status = is_capturing(stream);
    return SUCCESS;
}

CUresult cuStreamGetCaptureInfo(void *stream, int *status, uint64_t *number) {
    CHECK(cuStreamIsCapturing(stream, status));
    if (*status && number != NULL)
        *number = *capture_of_stream(stream);
    return SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *number, void **graph) {
    CHECK(cuStreamGetCaptureInfo(stream, status, number));
    if (*status && graph != NULL)
        *graph = captured(stream);
    return SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *number, void **graph) {
    return cuStreamGetCaptureInfo_v2(stream, status, number, graph);
}

/* ---- graphs ---- */

CUresult cuGraphCreate(void **graph, unsigned flags) {
    CHECK(ready());
    REQUIRE(graph != NULL && flags == 0, INVALID_VALUE);
    *graph = make_graph(GRAPH);
    return *graph != NULL ? SUCCESS : OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(void *graph) {
    CHECK(ready());
    REQUIRE(is_graph(graph, GRAPH), INVALID_VALUE);
    end_graph(graph);
    return SUCCESS;
}

static CUresult copy_nodes(struct graph *target, const struct graph *source) {
    for (const struct node *node = source->first; node != NULL; node = node->next)
        CHECK(append(target, node->run, node->data, node->size));
    return SUCCESS;
}

static CUresult copy_graph(void **made, const struct graph *graph, uint32_t magic) {
    CHECK(ready_in_context());
    REQUIRE(made != NULL && is_graph(graph, GRAPH), INVALID_VALUE);
    struct graph *copy = make_graph(magic);
    REQUIRE(copy != NULL, OUT_OF_MEMORY);
    *made = copy;
    CHECK(copy_objects(&copy->objects, &graph->objects));
    return copy_nodes(copy, graph);
}

CUresult cuGraphClone(void **clone, void *graph) {
    return copy_graph(clone, graph, GRAPH);
}

CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags) {
    (void)flags;
    return copy_graph(executable, graph, EXECUTABLE);
}

CUresult cuGraphInstantiate_v2(void **executable, void *graph) {
    return copy_graph(executable, graph, EXECUTABLE);
}

CUresult cuGraphInstantiate(void **executable, void *graph) {
    return copy_graph(executable, graph, EXECUTABLE);
}

/* The parameters are flags, a stream, and two results: the failing node, and whether there is one. */
CUresult cuGraphInstantiateWithParams(void **executable, void *graph, void *parameters) {
    (void)parameters;
    return copy_graph(executable, graph, EXECUTABLE);
}

CUresult cuGraphExecDestroy(void *executable) {
    CHECK(ready());
    REQUIRE(is_graph(executable, EXECUTABLE), INVALID_VALUE);
    end_graph(executable);
    return SUCCESS;
}

CUresult cuGraphUpload(void *executable, void *stream) {
    (void)stream;
    CHECK(ready_in_context());
    return is_graph(executable, EXECUTABLE) ? SUCCESS : INVALID_VALUE;
}

CUresult cuGraphLaunch(void *executable, void *stream) {
    CHECK(cuGraphUpload(executable, stream));
    struct graph *graph = captured(stream);
    if (graph != NULL)
        return copy_nodes(graph, executable);
    for (const struct node *node = ((struct graph *)executable)->first; node != NULL; node = node->next)
        CHECK(node->run(node->data, node->size));
    return SUCCESS;
}

/* Without room for handles, return the number of nodes. */
CUresult cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
    CHECK(ready());
    REQUIRE(is_graph(graph, GRAPH) && count != NULL, INVALID_VALUE);
    size_t i = 0, room = nodes == NULL ? 0 : *count;
    for (struct node *node = ((struct graph *)graph)->first; node != NULL && i < room; node = node->next)
        nodes[i++] = node;
    for (size_t rest = i; rest < room; ++rest)
        nodes[rest] = NULL;
    *count = nodes == NULL ? ((struct graph *)graph)->count : i;
    return SUCCESS;
}
