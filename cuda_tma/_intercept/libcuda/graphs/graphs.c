/* Graphs, which consist of nodes with dependencies. A graph stores its nodes in the order in which the program added
   them. An executable graph runs the nodes in the first order that the dependencies permit. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

enum { NODE = 0x40DE000, DEAD = 0xDEAD0000 };

static unsigned ids;

struct graph *given_graph(void *handle, uint32_t magic) {
    struct graph *graph = handle;
    return kind_of(graph) == magic ? graph : NULL;
}

struct node *given_node(void *handle) {
    struct node *node = handle;
    return kind_of(node) == NODE ? node : NULL;
}

struct objects *objects_of(void *graph) {
    return given_graph(graph, GRAPH) != NULL ? &((struct graph *)graph)->objects : NULL;
}

struct graph *make_graph(uint32_t magic) {
    struct graph *graph = make_handle(sizeof *graph);
    if (graph != NULL) {
        graph->magic = magic;
        graph->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    }
    return graph;
}

struct node *append_node(struct graph *graph, int type, operation run, const void *data, size_t size) {
    struct node *node = make_handle(sizeof *node), **end = &graph->first;
    unsigned char *copy = node != NULL ? malloc(size + 1) : NULL;
    if (copy == NULL) {
        end_handle(node, sizeof *node);
        return NULL;
    }
    memcpy(copy, data, size);
    *node = (struct node){.magic = NODE, .type = type, .number = graph->numbers++, .graph = graph, .run = run,
                          .size = size, .data = copy};
    while (*end != NULL)
        end = &(*end)->next;
    *end = node;
    ++graph->count;
    return node;
}

static int depends(const struct node *node, const struct node *other) {
    for (size_t i = 0; i < node->count; ++i)
        if (node->before[i] == other)
            return 1;
    return 0;
}

/* Add dependencies, so that a node runs after other nodes. Each of the other nodes counts once. */
CUresult depend(struct node *node, struct node *const *before, size_t count) {
    if (count == 0)
        return SUCCESS;
    struct node **more = realloc(node->before, (node->count + count) * sizeof *more);
    REQUIRE(more != NULL, OUT_OF_MEMORY);
    node->before = more;
    for (size_t i = 0; i < count; ++i)
        if (!depends(node, before[i]))
            node->before[node->count++] = before[i];
    return SUCCESS;
}

static void end_data(struct node *node) {
    free(node->data);
    free(node->values);
    if (node->child != NULL)
        end_graph(node->child);
    node->data = NULL;
    node->values = NULL;
    node->child = NULL;
}

void take_data(struct node *target, struct node *source) {
    end_data(target);
    target->run = source->run;
    target->size = source->size;
    target->data = source->data;
    target->child = source->child;
    source->data = NULL;
    source->child = NULL;
}

/* The few bytes of a node are not freed, so that the library still recognizes the handle of a destroyed node. */
static void end_one(struct node *node) {
    end_data(node);
    free(node->before);
    node->magic = DEAD;
    if (node->graph->magic == EXECUTABLE) /* Programs have no handles of the nodes in executable graphs. */
        end_handle(node, sizeof *node);
}

void end_graph(struct graph *graph) {
    for (struct node *node = graph->first, *next; node != NULL; node = next) {
        next = node->next;
        end_one(node);
    }
    end_objects(&graph->objects);
    graph->first = NULL;
    graph->magic = DEAD;
}

static void forget(struct node *node, const struct node *other) {
    for (size_t i = 0; i < node->count; ++i)
        if (node->before[i] == other)
            node->before[i--] = node->before[--node->count];
}

CUresult cuGraphDestroyNode(void *handle) {
    struct node *node = given_node(handle);
    CHECK(ready());
    REQUIRE(node != NULL && node->graph->magic == GRAPH, INVALID_VALUE);
    struct node **at = &node->graph->first;
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    --node->graph->count;
    for (struct node *other = node->graph->first; other != NULL; other = other->next)
        forget(other, node);
    end_one(node);
    return SUCCESS;
}

/* ---- copies ---- */

static int is_ready(const struct node *node) {
    for (size_t i = 0; i < node->count; ++i)
        if (node->before[i]->copy == NULL)
            return 0;
    return 1;
}

static CUresult copy_node(struct graph *graph, struct node *node) {
    struct node *made = append_node(graph, node->type, node->run, node->data, node->size);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    made->origin = node;
    made->is_disabled = node->is_disabled;
    node->copy = made;
    for (size_t i = 0; i < node->count; ++i)
        CHECK(depend(made, &node->before[i]->copy, 1));
    return node->child != NULL ? copy_graph(&made->child, node->child, graph->magic) : SUCCESS;
}

/* Copy the nodes in an order that their dependencies permit. Fail if no such order exists. */
static CUresult copy_nodes(struct graph *target, const struct graph *source) {
    for (struct node *node = source->first; node != NULL; node = node->next)
        node->copy = NULL;
    while (target->count < source->count) {
        size_t before = target->count;
        for (struct node *node = source->first; node != NULL; node = node->next)
            if (node->copy == NULL && is_ready(node))
                CHECK(copy_node(target, node));
        REQUIRE(target->count > before, INVALID_VALUE); /* The dependencies form a cycle. */
    }
    return SUCCESS;
}

CUresult copy_graph(struct graph **made, const struct graph *graph, uint32_t magic) {
    *made = make_graph(magic);
    REQUIRE(*made != NULL, OUT_OF_MEMORY);
    CUresult result = copy_objects(&(*made)->objects, &graph->objects);
    result = result == SUCCESS ? copy_nodes(*made, graph) : result;
    if (result != SUCCESS) {
        end_graph(*made);
        *made = NULL;
    }
    return result;
}

CUresult run_graph(const struct graph *graph) {
    for (const struct node *node = graph->first; node != NULL; node = node->next)
        if (node->type == CHILD_NODE)
            CHECK(run_graph(node->child));
        else if (!node->is_disabled)
            CHECK(node->run(node->data, node->size));
    return SUCCESS;
}

/* ---- entries ---- */

CUresult cuGraphCreate(void **graph, unsigned flags) {
    CHECK(ready());
    REQUIRE(graph != NULL && flags == 0, INVALID_VALUE);
    *graph = make_graph(GRAPH);
    return *graph != NULL ? SUCCESS : OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(void *graph) {
    CHECK(ready());
    REQUIRE(given_graph(graph, GRAPH) != NULL, INVALID_VALUE);
    end_graph(graph);
    return SUCCESS;
}

CUresult cuGraphClone(void **clone, void *graph) {
    CHECK(ready());
    REQUIRE(clone != NULL && given_graph(graph, GRAPH) != NULL, INVALID_VALUE);
    return copy_graph((struct graph **)clone, graph, GRAPH);
}

CUresult cuGraphNodeFindInClone(void **found, void *node, void *clone) {
    CHECK(ready());
    REQUIRE(found != NULL && given_node(node) != NULL && given_graph(clone, GRAPH) != NULL, INVALID_VALUE);
    for (struct node *each = ((struct graph *)clone)->first; each != NULL; each = each->next)
        if (each->origin == node) {
            *found = each;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

CUresult cuGraphGetId(void *graph, unsigned *id) {
    CHECK(ready());
    REQUIRE(id != NULL && given_graph(graph, GRAPH) != NULL, INVALID_VALUE);
    *id = ((struct graph *)graph)->id;
    return SUCCESS;
}
