/* The entries that accept nodes of any type. CUgraphNodeParams contains a type and the parameters of that type. */
#include "nodes.h"

struct any_node {
    int type, reserved[3];
    union {
        struct kernel_node kernel;
        struct fill_node fill;
        struct call call;
        void *graph, *event;
        struct allocation_node allocation;
        CUdeviceptr address;
        struct {
            int flags, reserved;
            void *context;
            struct block_copy copy;
        } copying;
        uint64_t words[29];
    } of;
};

CUresult cuGraphAddNode(void **node, void *graph, void *const *before, size_t count, struct any_node *given) {
    CHECK(ready());
    REQUIRE(given != NULL, INVALID_VALUE);
    switch (given->type) {
    case KERNEL_NODE: return cuGraphAddKernelNode_v2(node, graph, before, count, &given->of.kernel);
    case COPY_NODE: return cuGraphAddMemcpyNode(node, graph, before, count, &given->of.copying.copy, NULL);
    case FILL_NODE: return cuGraphAddMemsetNode(node, graph, before, count, &given->of.fill, NULL);
    case HOST_NODE: return cuGraphAddHostNode(node, graph, before, count, &given->of.call);
    case CHILD_NODE: return cuGraphAddChildGraphNode(node, graph, before, count, given->of.graph);
    case EMPTY_NODE: return cuGraphAddEmptyNode(node, graph, before, count);
    case WAIT_NODE: return cuGraphAddEventWaitNode(node, graph, before, count, given->of.event);
    case RECORD_NODE: return cuGraphAddEventRecordNode(node, graph, before, count, given->of.event);
    case ALLOCATION_NODE: return cuGraphAddMemAllocNode(node, graph, before, count, &given->of.allocation);
    case FREE_NODE: return cuGraphAddMemFreeNode(node, graph, before, count, given->of.address);
    }
    return absent("cuGraphAddNode of a node of this type");
}

CUresult cuGraphAddNode_v2(void **node, void *graph, void *const *before, const void *edges, size_t count,
                           struct any_node *given) {
    (void)edges;
    return cuGraphAddNode(node, graph, before, count, given);
}

CUresult cuGraphKernelNodeSetParams_v2(void *node, const struct kernel_node *given);
CUresult cuGraphMemcpyNodeSetParams(void *node, const struct block_copy *given);
CUresult cuGraphMemsetNodeSetParams(void *node, const struct fill_node *given);
CUresult cuGraphHostNodeSetParams(void *node, const struct call *given);
CUresult cuGraphEventRecordNodeSetEvent(void *node, void *event);
CUresult cuGraphEventWaitNodeSetEvent(void *node, void *event);

/* A node of an executable graph changes in the same way as any other node. */
static CUresult change(void *node, const struct any_node *given) {
    CHECK(ready());
    REQUIRE(given != NULL && node != NULL, INVALID_VALUE);
    switch (given->type) {
    case KERNEL_NODE: return cuGraphKernelNodeSetParams_v2(node, &given->of.kernel);
    case COPY_NODE: return cuGraphMemcpyNodeSetParams(node, &given->of.copying.copy);
    case FILL_NODE: return cuGraphMemsetNodeSetParams(node, &given->of.fill);
    case HOST_NODE: return cuGraphHostNodeSetParams(node, &given->of.call);
    case WAIT_NODE: return cuGraphEventWaitNodeSetEvent(node, given->of.event);
    case RECORD_NODE: return cuGraphEventRecordNodeSetEvent(node, given->of.event);
    }
    return absent("cuGraphNodeSetParams of a node of this type");
}

CUresult cuGraphNodeSetParams(void *node, const struct any_node *given) {
    return change(node, given);
}

CUresult cuGraphExecNodeSetParams(void *executable, void *node, const struct any_node *given) {
    return change(executable_node(executable, node), given);
}
