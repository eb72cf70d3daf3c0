/* The capture of streams into graphs, and the operations that a thread adds to a graph directly. */
#include "graphs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CAPTURES = 64 };

static struct {
    uint64_t number; /* The number is 0 if the entry of the table is unused. */
    struct graph *graph;
} captures[MOST_CAPTURES];
static uint64_t numbers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __thread struct { /* Each thread has a graph to which its operations add nodes. */
    struct graph *graph;
    struct frontier before;
    struct node *made, *changed;
} building;

static struct graph *graph_of(uint64_t number) {
    struct graph *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; number != 0 && i < MOST_CAPTURES; ++i)
        if (captures[i].number == number)
            found = captures[i].graph;
    pthread_mutex_unlock(&lock);
    return found;
}

static struct graph *captured(void *stream) {
    if (building.graph != NULL)
        return building.graph;
    const struct frontier *frontier = frontier_of(stream);
    return frontier != NULL ? graph_of(frontier->capture) : NULL;
}

int is_capturing(void *stream) {
    return captured(stream) != NULL;
}

static CUresult set(struct frontier *frontier, uint64_t capture, struct node *const *nodes, size_t count) {
    struct node **copy = malloc((count + 1) * sizeof *copy);
    REQUIRE(copy != NULL, OUT_OF_MEMORY);
    if (count > 0)
        memcpy(copy, nodes, count * sizeof *copy);
    free(frontier->nodes);
    *frontier = (struct frontier){capture, count, copy};
    return SUCCESS;
}

static int has_node(const struct frontier *frontier, const struct node *node) {
    for (size_t i = 0; i < frontier->count; ++i)
        if (frontier->nodes[i] == node)
            return 1;
    return 0;
}

static CUresult add(struct frontier *frontier, struct node *const *nodes, size_t count) {
    struct node **more = realloc(frontier->nodes, (frontier->count + count + 1) * sizeof *more);
    REQUIRE(more != NULL, OUT_OF_MEMORY);
    frontier->nodes = more;
    for (size_t i = 0; i < count; ++i)
        if (!has_node(frontier, nodes[i]))
            more[frontier->count++] = nodes[i];
    return SUCCESS;
}

/* If the capture still runs, add the dependencies of an event to a waiting stream, or those of a stream to a recorded
   event. */
CUresult join(struct frontier *target, const struct frontier *source) {
    if (graph_of(source->capture) == NULL)
        return SUCCESS;
    if (target->capture != source->capture)
        CHECK(set(target, source->capture, NULL, 0));
    return add(target, source->nodes, source->count);
}

static CUresult put(void *stream, struct graph *graph, int type, operation run, const void *data, size_t size,
                    struct graph *child) {
    struct frontier *frontier = building.graph != NULL ? &building.before : frontier_of(stream);
    struct node *node = append_node(graph, type, run, data, size);
    REQUIRE(node != NULL, OUT_OF_MEMORY);
    node->child = child;
    CHECK(depend(node, frontier->nodes, frontier->count));
    building.made = building.graph != NULL ? node : NULL;
    return building.graph != NULL ? SUCCESS : set(frontier, frontier->capture, &node, 1);
}

CUresult now_or_later(void *stream, enum node_type type, operation run, const void *data, size_t size) {
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    struct graph *graph = captured(stream);
    return graph == NULL ? run(data, size) : put(stream, graph, type, run, data, size, NULL);
}

CUresult run_nothing(const void *data, size_t size) {
    (void)data, (void)size;
    return SUCCESS;
}

/* Run a graph. In a stream that is being captured, a copy of the graph becomes a node. */
CUresult child_or_now(void *stream, struct graph *graph) {
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    struct graph *target = captured(stream), *child;
    if (target == NULL)
        return run_graph(graph);
    CHECK(copy_graph(&child, graph, GRAPH));
    return put(stream, target, CHILD_NODE, run_nothing, "", 0, child);
}

/* ---- nodes that a program adds ---- */

static CUresult given_nodes(void *graph, void *const *nodes, size_t count) {
    REQUIRE(given_graph(graph, GRAPH) != NULL && (count == 0 || nodes != NULL), INVALID_VALUE);
    for (size_t i = 0; i < count; ++i)
        REQUIRE(given_node(nodes[i]) != NULL && given_node(nodes[i])->graph == graph, INVALID_VALUE);
    return SUCCESS;
}

CUresult begin_node(void *graph, void *const *before, size_t count) {
    CHECK(ready_in_context());
    CHECK(given_nodes(graph, before, count));
    CHECK(set(&building.before, 0, (struct node *const *)before, count));
    building.graph = graph;
    building.made = NULL;
    return SUCCESS;
}

CUresult end_node(void **node, CUresult result) {
    building.graph = NULL;
    CHECK(result);
    REQUIRE(node != NULL && building.made != NULL, INVALID_VALUE);
    *node = building.made;
    return SUCCESS;
}

CUresult begin_change(struct node *node) {
    CHECK(ready_in_context());
    REQUIRE(node != NULL, INVALID_VALUE);
    CHECK(set(&building.before, 0, NULL, 0));
    building.graph = make_graph(EXECUTABLE);
    REQUIRE(building.graph != NULL, OUT_OF_MEMORY);
    building.changed = node;
    building.made = NULL;
    return SUCCESS;
}

CUresult end_change(CUresult result) {
    struct graph *scratch = building.graph;
    struct node *made = building.made, *changed = building.changed;
    building.graph = NULL;
    if (result == SUCCESS && (made == NULL || made->type != changed->type))
        result = INVALID_VALUE;
    if (result == SUCCESS)
        take_data(changed, made);
    end_graph(scratch);
    end_handle(scratch, sizeof *scratch);
    return result;
}

/* ---- captures ---- */

CUresult cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *before, const void *edges, size_t count,
                                     int mode) {
    struct frontier *frontier = frontier_of(stream);
    (void)edges, (void)mode;
    CHECK(ready_in_context());
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    REQUIRE(frontier != NULL, CAPTURE_UNSUPPORTED); /* The stream is a default stream. */
    REQUIRE(!is_capturing(stream), CAPTURE_UNMATCHED);
    CHECK(given_nodes(graph, before, count));
    uint64_t number = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CAPTURES && number == 0; ++i)
        if (captures[i].number == 0) {
            captures[i].graph = graph;
            captures[i].number = number = ++numbers;
        }
    pthread_mutex_unlock(&lock);
    REQUIRE(number != 0, OUT_OF_MEMORY);
    return set(frontier, number, (struct node *const *)before, count);
}

CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
    CHECK(ready_in_context());
    struct graph *graph = make_graph(GRAPH);
    REQUIRE(graph != NULL, OUT_OF_MEMORY);
    CUresult result = cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, mode);
    if (result != SUCCESS)
        end_graph(graph);
    return result;
}

CUresult cuStreamBeginCapture(void *stream, int mode) {
    return cuStreamBeginCapture_v2(stream, mode);
}

CUresult cuStreamEndCapture(void *stream, void **graph) {
    CHECK(ready_in_context());
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    REQUIRE(graph != NULL, INVALID_VALUE);
    struct graph *made = captured(stream);
    REQUIRE(made != NULL, CAPTURE_UNMATCHED);
    uint64_t number = frontier_of(stream)->capture;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CAPTURES; ++i)
        if (captures[i].number == number)
            captures[i].number = 0;
    pthread_mutex_unlock(&lock);
    *graph = made;
    return SUCCESS;
}

CUresult cuStreamIsCapturing(void *stream, int *status) {
    CHECK(ready_in_context());
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    REQUIRE(status != NULL, INVALID_VALUE);
    *status = is_capturing(stream);
    return SUCCESS;
}

/* `nodes` receives an array of this library, which contains the nodes on which the next operation depends. */
CUresult cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *number, void **graph, void ***nodes,
                                   size_t *count) {
    CHECK(cuStreamIsCapturing(stream, status));
    struct frontier *frontier = frontier_of(stream);
    if (!*status || frontier == NULL)
        return SUCCESS;
    if (number != NULL)
        *number = frontier->capture;
    if (graph != NULL)
        *graph = captured(stream);
    if (nodes != NULL)
        *nodes = (void **)frontier->nodes;
    if (count != NULL)
        *count = frontier->count;
    return SUCCESS;
}

CUresult cuStreamGetCaptureInfo(void *stream, int *status, uint64_t *number) {
    return cuStreamGetCaptureInfo_v2(stream, status, number, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *number, void **graph, void ***nodes,
                                   void **edges, size_t *count) {
    static const uint64_t ordinary[1024]; /* The fields of CUgraphEdgeData are zeros. */
    CHECK(cuStreamGetCaptureInfo_v2(stream, status, number, graph, nodes, count));
    if (edges != NULL)
        *edges = (void *)ordinary;
    return count == NULL || !*status || *count <= 1024 ? SUCCESS : INVALID_VALUE;
}

CUresult cuStreamUpdateCaptureDependencies_v2(void *stream, void *const *nodes, const void *edges, size_t count,
                                              unsigned flags) {
    enum { REPLACE = 1 };
    struct frontier *frontier = frontier_of(stream);
    (void)edges;
    CHECK(ready_in_context());
    REQUIRE(frontier != NULL && graph_of(frontier->capture) != NULL, CAPTURE_UNMATCHED);
    CHECK(given_nodes(graph_of(frontier->capture), nodes, count));
    return flags & REPLACE ? set(frontier, frontier->capture, (struct node *const *)nodes, count)
                           : add(frontier, (struct node *const *)nodes, count);
}

CUresult cuStreamUpdateCaptureDependencies(void *stream, void *const *nodes, size_t count, unsigned flags) {
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
