/* The entries for nodes that a program adds, queries and changes. */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

/* Make a node of an operation, or replace the data of a node by it. */
#define ADD(call)                                \
    do {                                         \
        CHECK(begin_node(graph, before, count)); \
        return end_node(node, (call));           \
    } while (0)
#define CHANGE(node, call)           \
    do {                             \
        CHECK(begin_change(node));   \
        return end_change(call);     \
    } while (0)

static CUresult given_of(void *handle, int type, struct node **node, const void *target) {
    CHECK(ready());
    *node = given_node(handle);
    return *node != NULL && (*node)->type == type && target != NULL ? SUCCESS : INVALID_VALUE;
}

/* ---- kernels ---- */

static CUresult launch(const struct kernel_node *given) {
    REQUIRE(given != NULL, INVALID_VALUE);
    struct config config = {{0}, {0}, given->shared_bytes, NULL, NULL, 0};
    memcpy(config.grid, given->grid, sizeof config.grid);
    memcpy(config.block, given->block, sizeof config.block);
    return cuLaunchKernelEx(&config, given->function != NULL ? given->function : given->kernel, given->values,
                            given->extra);
}

/* The given structure is of the first version, which ends earlier. */
static struct kernel_node widened(const struct kernel_node *given) {
    struct kernel_node wide = {0};
    if (given != NULL)
        memcpy(&wide, given, offsetof(struct kernel_node, kernel));
    return wide;
}

CUresult cuGraphAddKernelNode_v2(void **node, void *graph, void *const *before, size_t count,
                                 const struct kernel_node *given) {
    ADD(launch(given));
}

CUresult cuGraphAddKernelNode(void **node, void *graph, void *const *before, size_t count,
                              const struct kernel_node *given) {
    struct kernel_node wide = widened(given);
    return cuGraphAddKernelNode_v2(node, graph, before, count, given != NULL ? &wide : NULL);
}

static CUresult describe(void *handle, struct kernel_node *target, size_t size) {
    struct node *node;
    CHECK(given_of(handle, KERNEL_NODE, &node, target));
    struct kernel_data *data = (struct kernel_data *)node->data;
    struct function *function = data->function;
    if (node->values == NULL)
        node->values = calloc(function->count + 1, sizeof *node->values);
    REQUIRE(node->values != NULL, OUT_OF_MEMORY);
    for (uint32_t i = 0; i < function->count; ++i)
        node->values[i] = (unsigned char *)(data + 1) + function->parameters[i].offset;
    struct kernel_node found = {.function = function, .shared_bytes = data->fixed.shared_bytes,
                                .values = node->values, .kernel = function};
    memcpy(found.grid, data->fixed.grid, sizeof found.grid);
    memcpy(found.block, data->fixed.block, sizeof found.block);
    memcpy(target, &found, size);
    return SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(void *node, struct kernel_node *target) {
    return describe(node, target, sizeof *target);
}

CUresult cuGraphKernelNodeGetParams(void *node, struct kernel_node *target) {
    return describe(node, target, offsetof(struct kernel_node, kernel));
}

CUresult cuGraphKernelNodeSetParams_v2(void *node, const struct kernel_node *given) {
    CHANGE(given_node(node), launch(given));
}

CUresult cuGraphKernelNodeSetParams(void *node, const struct kernel_node *given) {
    struct kernel_node wide = widened(given);
    return cuGraphKernelNodeSetParams_v2(node, given != NULL ? &wide : NULL);
}

CUresult cuGraphExecKernelNodeSetParams_v2(void *executable, void *node, const struct kernel_node *given) {
    CHANGE(executable_node(executable, node), launch(given));
}

CUresult cuGraphExecKernelNodeSetParams(void *executable, void *node, const struct kernel_node *given) {
    struct kernel_node wide = widened(given);
    return cuGraphExecKernelNodeSetParams_v2(executable, node, given != NULL ? &wide : NULL);
}

/* ---- copies and fills ---- */

static CUresult copy(const struct block_copy *given) {
    return given != NULL ? block_copy_later(given, NULL) : INVALID_VALUE;
}

CUresult cuGraphAddMemcpyNode(void **node, void *graph, void *const *before, size_t count,
                              const struct block_copy *given, void *context) {
    (void)context;
    ADD(copy(given));
}

CUresult cuGraphMemcpyNodeGetParams(void *handle, struct block_copy *target) {
    struct node *node;
    CHECK(given_of(handle, COPY_NODE, &node, target));
    REQUIRE(node->run == run_block_copy, NOT_SUPPORTED);
    memcpy(target, node->data, sizeof *target);
    return SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(void *node, const struct block_copy *given) {
    CHANGE(given_node(node), copy(given));
}

CUresult cuGraphExecMemcpyNodeSetParams(void *executable, void *node, const struct block_copy *given, void *context) {
    (void)context;
    CHANGE(executable_node(executable, node), copy(given));
}

static CUresult fill(const struct fill_node *given) {
    REQUIRE(given != NULL, INVALID_VALUE);
    REQUIRE(given->element_bytes == 1 || given->element_bytes == 2 || given->element_bytes == 4, INVALID_VALUE);
    struct fill fill = {given->target, given->pitch, given->element_bytes, given->width, given->height, {0}};
    memcpy(fill.value, &given->value, sizeof fill.value);
    return fill_later(&fill, NULL);
}

CUresult cuGraphAddMemsetNode(void **node, void *graph, void *const *before, size_t count,
                              const struct fill_node *given, void *context) {
    (void)context;
    ADD(fill(given));
}

CUresult cuGraphMemsetNodeGetParams(void *handle, struct fill_node *target) {
    struct node *node;
    CHECK(given_of(handle, FILL_NODE, &node, target));
    const struct fill *data = (const struct fill *)node->data;
    uint32_t value;
    memcpy(&value, data->value, sizeof value);
    *target = (struct fill_node){data->target, data->pitch, value, data->size, data->width, data->height};
    return SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(void *node, const struct fill_node *given) {
    CHANGE(given_node(node), fill(given));
}

CUresult cuGraphExecMemsetNodeSetParams(void *executable, void *node, const struct fill_node *given, void *context) {
    (void)context;
    CHANGE(executable_node(executable, node), fill(given));
}

/* ---- functions of the host ---- */

static CUresult call(const struct call *given) {
    return given != NULL ? cuLaunchHostFunc(NULL, given->function, given->data) : INVALID_VALUE;
}

CUresult cuGraphAddHostNode(void **node, void *graph, void *const *before, size_t count, const struct call *given) {
    ADD(call(given));
}

CUresult cuGraphHostNodeGetParams(void *handle, struct call *target) {
    struct node *node;
    CHECK(given_of(handle, HOST_NODE, &node, target));
    memcpy(target, node->data, sizeof *target);
    return SUCCESS;
}

CUresult cuGraphHostNodeSetParams(void *node, const struct call *given) {
    CHANGE(given_node(node), call(given));
}

CUresult cuGraphExecHostNodeSetParams(void *executable, void *node, const struct call *given) {
    CHANGE(executable_node(executable, node), call(given));
}

/* ---- others ---- */

CUresult cuGraphAddEmptyNode(void **node, void *graph, void *const *before, size_t count) {
    ADD(now_or_later(NULL, EMPTY_NODE, run_nothing, "", 0));
}

CUresult cuGraphAddChildGraphNode(void **node, void *graph, void *const *before, size_t count, void *child) {
    ADD(given_graph(child, GRAPH) != NULL ? child_or_now(NULL, child) : INVALID_VALUE);
}

CUresult cuGraphChildGraphNodeGetGraph(void *handle, void **graph) {
    struct node *node;
    CHECK(given_of(handle, CHILD_NODE, &node, graph));
    *graph = node->child;
    return SUCCESS;
}

CUresult cuGraphExecChildGraphNodeSetParams(void *executable, void *node, void *child) {
    CHANGE(executable_node(executable, node),
           given_graph(child, GRAPH) != NULL ? child_or_now(NULL, child) : INVALID_VALUE);
}

static CUresult event_node(int type, void *event) {
    REQUIRE(event != NULL, INVALID_VALUE);
    return now_or_later(NULL, type, type == RECORD_NODE ? run_record : run_nothing, &event, sizeof event);
}

#define EVENT(name, type)                                                                                          \
    CUresult cuGraphAddEvent##name##Node(void **node, void *graph, void *const *before, size_t count,              \
                                         void *event) {                                                            \
        ADD(event_node(type, event));                                                                              \
    }                                                                                                              \
    CUresult cuGraphEvent##name##NodeGetEvent(void *handle, void **event) {                                        \
        struct node *node;                                                                                         \
        CHECK(given_of(handle, type, &node, event));                                                               \
        memcpy(event, node->data, sizeof *event);                                                                  \
        return SUCCESS;                                                                                            \
    }                                                                                                              \
    CUresult cuGraphEvent##name##NodeSetEvent(void *node, void *event) {                                           \
        CHANGE(given_node(node), event_node(type, event));                                                         \
    }                                                                                                              \
    CUresult cuGraphExecEvent##name##NodeSetEvent(void *executable, void *node, void *event) {                     \
        CHANGE(executable_node(executable, node), event_node(type, event));                                        \
    }
EVENT(Record, RECORD_NODE)
EVENT(Wait, WAIT_NODE)

/* ---- memory ---- */

CUresult cuGraphAddMemAllocNode(void **node, void *graph, void *const *before, size_t count,
                                struct allocation_node *given) {
    ADD(given != NULL ? allocation_later(&given->address, given->size, NULL) : INVALID_VALUE);
}

CUresult cuGraphMemAllocNodeGetParams(void *handle, struct allocation_node *target) {
    struct node *node;
    CHECK(given_of(handle, ALLOCATION_NODE, &node, target));
    const struct graph_memory *memory = (const struct graph_memory *)node->data;
    *target = (struct allocation_node){.properties = {1, 0, 1, 0}, .size = memory->size, .address = memory->address};
    return SUCCESS;
}

CUresult cuGraphAddMemFreeNode(void **node, void *graph, void *const *before, size_t count, CUdeviceptr address) {
    ADD(free_later(address, NULL));
}

CUresult cuGraphMemFreeNodeGetParams(void *handle, CUdeviceptr *address) {
    struct node *node;
    CHECK(given_of(handle, FREE_NODE, &node, address));
    *address = ((const struct graph_memory *)node->data)->address;
    return SUCCESS;
}
