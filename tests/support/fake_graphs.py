"""The graphs of the fake driver, with kernel nodes, and with the user objects that a graph keeps."""

import ctypes
from dataclasses import dataclass, field

INVALID_VALUE = 1
u32, u64, i32, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p

GRAPH_SIGNATURES = {
    "cuGraphAddKernelNode": (ctypes.POINTER(u64), u64, pointer, ctypes.c_size_t, pointer),
    "cuGraphDestroyNode": (u64,),
    "cuGraphKernelNodeSetAttribute": (u64, ctypes.c_int, pointer),
    "cuGraphKernelNodeGetParams": (u64, pointer),
    "cuGraphExecKernelNodeSetParams": (u64, u64, pointer),
    "cuStreamGetCaptureInfo": (
        u64,
        ctypes.POINTER(i32),
        ctypes.POINTER(u64),
        ctypes.POINTER(u64),
        pointer,
        pointer,
    ),
    "cuUserObjectCreate": (ctypes.POINTER(u64), pointer, pointer, u32, u32),
    "cuUserObjectRelease": (u64, u32),
    "cuGraphRetainUserObject": (u64, u64, u32, u32),
}


def array(kind, address, count):
    return tuple((kind * count).from_address(address))


PARAMETERS_BEGIN = 0x210  # Kernel parameters begin at address 0x210 of constant bank 0 on sm_90.


def offsets(sizes):
    """Return the offsets of parameters with given sizes in a parameter block, as on driver 580."""
    offsets, end = [], PARAMETERS_BEGIN
    for size in sizes:
        alignment = min(size, 128 if size == 128 else 8)
        offsets.append(-(-end // alignment) * alignment - PARAMETERS_BEGIN)
        end = PARAMETERS_BEGIN + offsets[-1] + size
    return offsets


@dataclass
class Launch:
    """The arguments of a call of cuLaunchKernelEx, with the bytes of each kernel argument."""

    function: int
    arguments: list[bytes]
    grid: tuple
    block: tuple
    shared_mem_bytes: int
    stream: int
    attributes: dict


class KernelNodeParams(ctypes.Structure):
    """The C structure CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", u64), ("grid_dim", u32 * 3), ("block_dim", u32 * 3), ("shared_mem_bytes", u32),
        ("kernel_params", u64), ("extra", u64), ("kernel", u64), ("context", u64),
    )  # fmt: skip


@dataclass
class Node:
    """A kernel node with its arguments in the graph's definition, and in each executable graph with changed
    arguments."""

    launch: Launch
    kernel: int
    context: int
    graph: int
    after: tuple = ()
    executable: dict = field(default_factory=dict)


@dataclass
class FakeGraphs:
    """The kernel nodes, and the objects that graphs keep. `kernels` and `errors` belong to the fake driver."""

    # The dictionary maps a stream to the captured graph.
    captures: dict = field(default_factory=dict)
    # The dictionary maps a handle to its Node.
    nodes: dict = field(default_factory=dict)
    # The field selects the parameters that the driver returns: "pointers", or the "address" or "size" of one block, or
    # none.
    shows: str = "pointers"
    # The dictionary maps a user object to the function that the driver calls at its end, and to the argument.
    user_objects: dict = field(default_factory=dict)
    # The list contains pairs of a graph and a user object.
    kept: list = field(default_factory=list)

    def cuGraphAddKernelNode(self, out, graph, after, count, params):
        launch, kernel, context = self._node_launch(params)
        out[0] = 0x9000 + 16 * len(self.nodes)
        self.nodes[out[0]] = Node(launch, kernel, context, graph, array(u64, after, count))
        return 0

    def cuGraphDestroyNode(self, node):
        del self.nodes[node]
        return 0

    def cuGraphKernelNodeSetAttribute(self, node, attribute, value):
        self.nodes[node].launch.attributes[attribute] = array(u32, value, 3)
        return 0

    def cuGraphKernelNodeGetParams(self, node, params):
        """Return parameters with pointers into the node's own memory, as the driver does."""
        found = KernelNodeParams.from_address(params)
        ctypes.memset(params, 0, ctypes.sizeof(found))
        own, values = self.nodes[node], self.nodes[node].launch.arguments
        sizes = self.kernels[own.kernel][1]
        block = ctypes.create_string_buffer(offsets(sizes)[-1] + sizes[-1] if sizes else 1)
        for at, value in zip(offsets(sizes), values, strict=True):
            ctypes.memmove(ctypes.addressof(block) + at, value, len(value))
        pointers = (u64 * (len(values) + 1))(*[ctypes.addressof(block) + at for at in offsets(sizes)])
        size = u64(len(block))
        address, of_size = (1, ctypes.addressof(block)), (2, ctypes.addressof(size))
        names = {"address": address + of_size, "size": of_size + address, "unknown": (7, 0)}
        extra = (u64 * 5)(*names.get(self.shows, ()))
        self._shown = block, pointers, size, extra
        found.kernel, found.context = own.kernel, own.context
        if self.shows == "pointers":
            found.kernel_params = ctypes.addressof(pointers)
        elif self.shows in names:
            found.extra = ctypes.addressof(extra)
        return 0

    def cuGraphExecKernelNodeSetParams(self, executable, node, params):
        launch, _, context = self._node_launch(params)
        if node not in self.nodes or context != self.nodes[node].context:
            return INVALID_VALUE
        self.nodes[node].executable[executable] = launch
        return 0

    def _node_launch(self, params):
        given = KernelNodeParams.from_address(params)
        assert (given.function, given.extra) == (0, 0)
        sizes = self.kernels[given.kernel][1]
        pointers = array(u64, given.kernel_params, len(sizes))
        values = [ctypes.string_at(at, size) for at, size in zip(pointers, sizes, strict=True)]
        shape = tuple(given.grid_dim), tuple(given.block_dim), given.shared_mem_bytes
        return Launch(given.kernel, values, *shape, 0, {}), given.kernel, given.context

    def cuStreamGetCaptureInfo(self, stream, status, identity, graph, dependencies, count):
        status[0], graph[0] = stream in self.captures, self.captures.get(stream, 0)
        return 0

    def cuUserObjectCreate(self, out, value, destroy, count, flags):
        assert (count, flags) == (1, 1)
        out[0] = 0xA000 + len(self.user_objects)
        self.user_objects[out[0]] = ctypes.CFUNCTYPE(None, pointer)(destroy), value
        return 0

    def cuUserObjectRelease(self, user_object, count):
        destroy, value = self.user_objects.pop(user_object)
        destroy(value)
        return 0

    def cuGraphRetainUserObject(self, graph, user_object, count, flags):
        assert (count, flags) == (1, 1)
        self.kept.append((graph, user_object))
        return 0

    def destroy_graph(self, graph, call=lambda destroy, value: destroy(value)):
        """Release the user objects of a graph, as cuGraphDestroy does."""
        for each, user_object in [*self.kept]:
            if each == graph:
                self.kept.remove((each, user_object))
                call(*self.user_objects.pop(user_object))


def call_on_a_native_thread(function, value):
    """Call a function on a thread without Python state, as the driver calls the destructor of a user object. The
    calling thread has the GIL meanwhile."""
    library, thread = ctypes.PyDLL(None), u64()
    assert library.pthread_create(ctypes.byref(thread), None, function, pointer(value)) == 0
    assert library.pthread_join(thread, None) == 0
