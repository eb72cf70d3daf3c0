/* The entries that query the nodes and dependencies of a graph, and that change its dependencies. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGE_BYTES = 8 }; /* CUgraphEdgeData has 8 bytes. CUgraphEdgeData is zero for an ordinary dependency. */

/* Fill the array that a program has for handles. Without an array, return the number of handles. */
CUresult list_nodes(void **nodes, size_t *count, struct node *const *found, size_t total) {
    REQUIRE(count != NULL, INVALID_VALUE);
    size_t room = nodes == NULL ? 0 : *count;
    for (size_t i = 0; i < room; ++i)
        nodes[i] = i < total ? found[i] : NULL;
    *count = nodes == NULL || total < room ? total : room;
    return SUCCESS;
}

static CUresult list_of(struct graph *graph, int only_roots, void **nodes, size_t *count) {
    CHECK(ready());
    REQUIRE(graph != NULL, INVALID_VALUE);
    struct node **found = malloc((graph->count + 1) * sizeof *found);
    REQUIRE(found != NULL, OUT_OF_MEMORY);
    size_t total = 0;
    for (struct node *node = graph->first; node != NULL; node = node->next)
        if (!only_roots || node->count == 0)
            found[total++] = node;
    CUresult result = list_nodes(nodes, count, found, total);
    free(found);
    return result;
}

CUresult cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
    return list_of(given_graph(graph, GRAPH), 0, nodes, count);
}

CUresult cuGraphGetRootNodes(void *graph, void **nodes, size_t *count) {
    return list_of(given_graph(graph, GRAPH), 1, nodes, count);
}

static void clear_edges(void *data, const size_t *count) {
    if (data != NULL && count != NULL)
        memset(data, 0, *count * EDGE_BYTES);
}

CUresult cuGraphGetEdges_v2(void *handle, void **from, void **to, void *data, size_t *count) {
    struct graph *graph = given_graph(handle, GRAPH);
    CHECK(ready());
    REQUIRE(graph != NULL && count != NULL && (from == NULL) == (to == NULL), INVALID_VALUE);
    size_t room = from == NULL ? 0 : *count, total = 0;
    for (struct node *node = graph->first; node != NULL; node = node->next)
        for (size_t i = 0; i < node->count; ++i, ++total)
            if (total < room) {
                from[total] = node->before[i];
                to[total] = node;
            }
    for (size_t i = total; i < room; ++i)
        from[i] = to[i] = NULL;
    *count = from == NULL || total < room ? total : room;
    clear_edges(from == NULL ? NULL : data, count);
    return SUCCESS;
}

CUresult cuGraphGetEdges(void *graph, void **from, void **to, size_t *count) {
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(void *handle, void **nodes, void *data, size_t *count) {
    struct node *node = given_node(handle);
    CHECK(ready());
    REQUIRE(node != NULL, INVALID_VALUE);
    CHECK(list_nodes(nodes, count, node->before, node->count));
    clear_edges(nodes == NULL ? NULL : data, count);
    return SUCCESS;
}

CUresult cuGraphNodeGetDependencies(void *node, void **nodes, size_t *count) {
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(void *handle, void **nodes, void *data, size_t *count) {
    struct node *node = given_node(handle);
    CHECK(ready());
    REQUIRE(node != NULL, INVALID_VALUE);
    struct node **found = malloc((node->graph->count + 1) * sizeof *found);
    REQUIRE(found != NULL, OUT_OF_MEMORY);
    size_t total = 0;
    for (struct node *other = node->graph->first; other != NULL; other = other->next)
        for (size_t i = 0; i < other->count; ++i)
            if (other->before[i] == node)
                found[total++] = other;
    CUresult result = list_nodes(nodes, count, found, total);
    free(found);
    clear_edges(result != SUCCESS || nodes == NULL ? NULL : data, count);
    return result;
}

CUresult cuGraphNodeGetDependentNodes(void *node, void **nodes, size_t *count) {
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

static CUresult given_edges(void *graph, void *const *from, void *const *to, size_t count) {
    CHECK(ready());
    REQUIRE(given_graph(graph, GRAPH) != NULL && (count == 0 || (from != NULL && to != NULL)), INVALID_VALUE);
    for (size_t i = 0; i < count; ++i) {
        const struct node *first = given_node(from[i]), *last = given_node(to[i]);
        REQUIRE(first != NULL && last != NULL && first->graph == graph && last->graph == graph, INVALID_VALUE);
    }
    return SUCCESS;
}

static int has_edge(const struct node *node, const struct node *before) {
    for (size_t i = 0; i < node->count; ++i)
        if (node->before[i] == before)
            return 1;
    return 0;
}

CUresult cuGraphAddDependencies_v2(void *graph, void *const *from, void *const *to, const void *data, size_t count) {
    (void)data;
    CHECK(given_edges(graph, from, to, count));
    for (size_t i = 0; i < count; ++i)
        REQUIRE(from[i] != to[i] && !has_edge(to[i], from[i]), INVALID_VALUE);
    for (size_t i = 0; i < count; ++i)
        CHECK(depend(to[i], (struct node *const *)&from[i], 1));
    return SUCCESS;
}

CUresult cuGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies_v2(void *graph, void *const *from, void *const *to, const void *data,
                                      size_t count) {
    (void)data;
    CHECK(given_edges(graph, from, to, count));
    for (size_t i = 0; i < count; ++i)
        REQUIRE(has_edge(to[i], from[i]), INVALID_VALUE);
    for (size_t i = 0; i < count; ++i) {
        struct node *node = to[i];
        size_t at = 0;
        while (at < node->count && node->before[at] != from[i])
            ++at;
        if (at < node->count)
            node->before[at] = node->before[--node->count];
    }
    return SUCCESS;
}

CUresult cuGraphRemoveDependencies(void *graph, void *const *from, void *const *to, size_t count) {
    return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetType(void *node, int *type) {
    CHECK(ready());
    REQUIRE(type != NULL && given_node(node) != NULL, INVALID_VALUE);
    *type = ((struct node *)node)->type;
    return SUCCESS;
}

CUresult cuGraphNodeGetContainingGraph(void *node, void **graph) {
    CHECK(ready());
    REQUIRE(graph != NULL && given_node(node) != NULL, INVALID_VALUE);
    *graph = ((struct node *)node)->graph;
    return SUCCESS;
}

CUresult cuGraphNodeGetLocalId(void *node, unsigned *id) {
    CHECK(ready());
    REQUIRE(id != NULL && given_node(node) != NULL, INVALID_VALUE);
    *id = ((struct node *)node)->number;
    return SUCCESS;
}

CUresult cuGraphNodeGetToolsId(void *node, uint64_t *id) {
    CHECK(ready());
    REQUIRE(id != NULL && given_node(node) != NULL, INVALID_VALUE);
    *id = (uint64_t)((struct node *)node)->graph->id << 32 | ((struct node *)node)->number;
    return SUCCESS;
}

CUresult cuGraphDebugDotPrint(void *handle, const char *path, unsigned flags) {
    static const char *const names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
                                        "EVENT_WAIT", "EVENT_RECORD", "", "", "MEM_ALLOC", "MEM_FREE"};
    const struct graph *graph = given_graph(handle, GRAPH);
    (void)flags;
    CHECK(ready());
    FILE *file = graph != NULL && path != NULL ? fopen(path, "we") : NULL;
    REQUIRE(file != NULL, INVALID_VALUE);
    fprintf(file, "digraph dot {\n");
    for (const struct node *node = graph->first; node != NULL; node = node->next) {
        fprintf(file, "\"graph_%u_node_%u\" [label=\"%u\\n%s\"];\n", graph->id, node->number, node->number,
                names[node->type]);
        for (size_t i = 0; i < node->count; ++i)
            fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\";\n", graph->id, node->before[i]->number,
                    graph->id, node->number);
    }
    fprintf(file, "}\n");
    return fclose(file) == 0 ? SUCCESS : INVALID_VALUE;
}
