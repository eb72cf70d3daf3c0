/* The creation, launches and updates of executable graphs, and changes of their nodes. */
#include "graphs.h"

#include <string.h>

struct node *executable_node(void *executable, void *handle) {
    struct graph *graph = given_graph(executable, EXECUTABLE);
    for (struct node *node = graph != NULL ? graph->first : NULL; node != NULL; node = node->next)
        if (node->origin == handle && given_node(handle) != NULL)
            return node;
    return NULL;
}

CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags) {
    CHECK(ready_in_context());
    REQUIRE(executable != NULL && given_graph(graph, GRAPH) != NULL, INVALID_VALUE);
    CHECK(copy_graph((struct graph **)executable, graph, EXECUTABLE));
    ((struct graph *)*executable)->flags = flags;
    return SUCCESS;
}

CUresult cuGraphInstantiate_v2(void **executable, void *graph, void **failing, char *text, size_t size) {
    if (failing != NULL)
        *failing = NULL;
    if (text != NULL && size > 0)
        *text = 0;
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

CUresult cuGraphInstantiate(void **executable, void *graph, void **failing, char *text, size_t size) {
    return cuGraphInstantiate_v2(executable, graph, failing, text, size);
}

struct instantiation { /* The driver's name of the structure is CUDA_GRAPH_INSTANTIATE_PARAMS. */
    uint64_t flags;
    void *stream, *failing;
    int result;
};

CUresult cuGraphInstantiateWithParams(void **executable, void *graph, struct instantiation *given) {
    enum { IS_MADE = 0, FAILED = 1, INVALID_STRUCTURE = 2 };
    CHECK(ready_in_context());
    REQUIRE(given != NULL, INVALID_VALUE);
    CUresult result = cuGraphInstantiateWithFlags(executable, graph, given->flags);
    given->failing = NULL;
    given->result = result == SUCCESS ? IS_MADE : given_graph(graph, GRAPH) != NULL ? INVALID_STRUCTURE : FAILED;
    return result;
}

CUresult cuGraphExecDestroy(void *executable) {
    CHECK(ready());
    REQUIRE(given_graph(executable, EXECUTABLE) != NULL, INVALID_VALUE);
    end_graph(executable);
    return SUCCESS;
}

CUresult cuGraphExecGetFlags(void *executable, uint64_t *flags) {
    CHECK(ready());
    REQUIRE(flags != NULL && given_graph(executable, EXECUTABLE) != NULL, INVALID_VALUE);
    *flags = ((struct graph *)executable)->flags;
    return SUCCESS;
}

CUresult cuGraphExecGetId(void *executable, unsigned *id) {
    CHECK(ready());
    REQUIRE(id != NULL && given_graph(executable, EXECUTABLE) != NULL, INVALID_VALUE);
    *id = ((struct graph *)executable)->id;
    return SUCCESS;
}

CUresult cuGraphUpload(void *executable, void *stream) {
    (void)stream;
    CHECK(ready_in_context());
    return given_graph(executable, EXECUTABLE) != NULL ? SUCCESS : INVALID_VALUE;
}

CUresult cuGraphLaunch(void *executable, void *stream) {
    CHECK(cuGraphUpload(executable, stream));
    free_on_launch(((struct graph *)executable)->flags & 1);
    return child_or_now(stream, executable);
}

CUresult cuGraphNodeSetEnabled(void *executable, void *handle, unsigned is_enabled) {
    struct node *node = executable_node(executable, handle);
    CHECK(ready());
    REQUIRE(node != NULL && (node->type == KERNEL_NODE || node->type == COPY_NODE || node->type == FILL_NODE),
            INVALID_VALUE);
    node->is_disabled = !is_enabled;
    return SUCCESS;
}

CUresult cuGraphNodeGetEnabled(void *executable, void *handle, unsigned *is_enabled) {
    const struct node *node = executable_node(executable, handle);
    CHECK(ready());
    REQUIRE(node != NULL && is_enabled != NULL, INVALID_VALUE);
    *is_enabled = !node->is_disabled;
    return SUCCESS;
}

/* ---- updates ---- */

struct update { /* The driver's name of the structure is CUgraphExecUpdateResultInfo. */
    int result;
    void *node, *other;
};
enum { UPDATED = 0, FAILED = 1, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3 };

/* Compare two graphs whose nodes are in orders that their dependencies permit. */
static struct update compared(const struct graph *graph, const struct graph *other) {
    struct node *a = graph->first, *b = other->first;
    if (graph->count != other->count)
        return (struct update){TOPOLOGY_CHANGED, NULL, NULL};
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        if (a->type != b->type)
            return (struct update){TYPE_CHANGED, b->origin, NULL};
        int is_same = a->count == b->count;
        for (size_t i = 0; is_same && i < a->count; ++i)
            is_same = a->before[i]->number == b->before[i]->number;
        if (!is_same)
            return (struct update){TOPOLOGY_CHANGED, b->origin, NULL};
        struct update inner = a->child != NULL ? compared(a->child, b->child) : (struct update){UPDATED, NULL, NULL};
        if (inner.result != UPDATED)
            return inner;
    }
    return (struct update){UPDATED, NULL, NULL};
}

CUresult cuGraphExecUpdate_v2(void *executable, void *graph, struct update *update) {
    struct graph *copy;
    CHECK(ready_in_context());
    REQUIRE(given_graph(executable, EXECUTABLE) != NULL && given_graph(graph, GRAPH) != NULL && update != NULL,
            INVALID_VALUE);
    *update = (struct update){FAILED, NULL, NULL};
    CHECK(copy_graph(&copy, graph, EXECUTABLE));
    *update = compared(executable, copy);
    struct node *from = copy->first;
    for (struct node *node = ((struct graph *)executable)->first; node != NULL && update->result == UPDATED;
         node = node->next, from = from->next)
        take_data(node, from);
    struct objects kept = ((struct graph *)executable)->objects;
    if (update->result == UPDATED) { /* The executable graph keeps the objects of the new graph. */
        ((struct graph *)executable)->objects = copy->objects;
        copy->objects = kept;
    }
    end_graph(copy);
    return update->result == UPDATED ? SUCCESS : UPDATE_FAILURE;
}

CUresult cuGraphExecUpdate(void *executable, void *graph, void **node, int *result) {
    struct update update;
    REQUIRE(node != NULL && result != NULL, INVALID_VALUE);
    CUresult status = cuGraphExecUpdate_v2(executable, graph, &update);
    if (status == SUCCESS || status == UPDATE_FAILURE) {
        *node = update.node;
        *result = update.result;
    }
    return status;
}
