"""Kernel nodes of CUDA graphs with checked arguments, changes of nodes in an executable graph, and a node's arguments.

A prepared launch (:func:`cuda_tma.prepare`) has everything that a node needs. A capture does not need this module,
because ``prepared(builder)`` and ``cuda_tma.launch(builder, ...)`` become nodes.

A graph contains the bytes of its arguments, but not the memory to which the arguments point. A captured graph keeps a
tensor alive only after a call of :func:`keep_alive`. :func:`add_kernel_node` keeps tensors alive, as nodes of
``cuda.core`` do.

The sources are the CUDA driver API, Graph Management, and the CUDA programming guide, "CUDA User Objects".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import TensorMapError
from ._launch.keep_alive import captured_graph, keep
from ._launch.kernel_node import ExecutableKernelNode, add_node, remove_node
from ._launch.node_arguments import read_node
from ._launch.prepared import PreparedLaunch
from ._limits import DESCRIPTOR_BYTES
from ._map_type import MapPointer, MapType
from ._tensor_map import TensorMapDescriptor
from .kernel_parameters import KernelParameter, parameters_of
from .rules._graphs import captures_nothing, executable_keeps_nothing, no_definition, no_nodes

if TYPE_CHECKING:
    from cuda.core import Kernel
    from cuda.core.graph import GraphDefinition, GraphNode, KernelNode

__all__ = ["ExecutableKernelNode", "KernelNodeArgument", "add_kernel_node", "arguments_of", "keep_alive"]

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def add_kernel_node(
    definition: GraphDefinition,
    prepared: PreparedLaunch,
    *,
    after: Iterable[GraphNode] = (),
    keeps_alive: bool = True,
) -> KernelNode:
    """Add a kernel node to the definition of a graph.

    Parameters
    ----------
    definition : cuda.core.graph.GraphDefinition
    prepared : PreparedLaunch
        The kernel, the configuration (also with clusters, which ``definition.launch`` does not accept) and the
        arguments. The maps of the launch must belong to the current context, in which the node will run.
    after : iterable of cuda.core.graph.GraphNode
        The nodes that run before the new node.
    keeps_alive : bool
        Whether the graph and all its instances keep alive the kernel and the memory of the arguments.

    Returns
    -------
    cuda.core.graph.KernelNode
        A node that equals a node of ``definition.launch``, so that other nodes can follow it.

    Raises
    ------
    TypeError
        If an argument has another type.
    TensorMapError
        If a descriptor belongs to another context than the current context.
    ValueError
        If the configuration has programmatic stream serialization, which nodes do not have.
    CUDAError
        If the driver refuses the node. The definition is then unchanged.

    Examples
    --------
    ::

        definition = cuda.core.graph.GraphDefinition()
        first = cuda_tma.graph.add_kernel_node(definition, cuda_tma.prepare(copy, config, a, b))
        cuda_tma.graph.add_kernel_node(definition, cuda_tma.prepare(copy, config, b, c), after=[first])
        graph = definition.instantiate()
        graph.launch(stream)
    """
    if not isinstance(prepared, PreparedLaunch):
        raise TypeError(
            f"prepared is a {type(prepared).__name__}; pass the result of cuda_tma.prepare(kernel, config, *args)"
        )
    graph = _definition_handle(definition)
    if graph is None:
        raise no_definition(definition)
    before = tuple(after) if isinstance(after, Iterable) else (None,)
    if not all(hasattr(each, "handle") for each in before):
        raise no_nodes(after)
    node = add_node(graph, prepared, [int(each.handle) for each in before])
    if keeps_alive:
        try:
            keep(graph, (prepared,))
        except BaseException:
            remove_node(node)
            raise
    candidates = before[0].succ if before else definition.nodes()
    return next(each for each in candidates if int(each.handle) == node)  # type: ignore[misc]


def keep_alive(graph: Any, *objects: object) -> None:
    """Keep objects alive while a graph, an instance of the graph, or a launch of an instance exists.

    Parameters
    ----------
    graph : cuda.core.graph.GraphDefinition, or a GraphBuilder or stream that captures
        The graph. For torch, it is the stream that captures: ``torch.cuda.current_stream()``.
    *objects
        Tensors, buffers or any other objects. For a :class:`TensorMapDescriptor`, its present tensor is kept alive. For
        a :class:`PreparedLaunch`, its kernel and its present arguments are kept alive.

    Raises
    ------
    TypeError
        If `graph` is executable and can keep no more objects, or if it is not a graph.
    ValueError
        If the stream does not capture.

    Notes
    -----
    Python's main thread frees the objects some time after the end of the graph. The driver releases them on its own
    thread, which must not free them. Up to Python 3.12, the main thread frees the objects only after it has released
    the GIL, as launches, synchronization, sleeping and I/O do (CPython issue 95820). With driver 580 and Python 3.12, a
    loop without such calls kept a tensor for 10 s (observed). The next call of :func:`keep_alive` always frees the
    objects.

    Examples
    --------
    ::

        builder = device.create_graph_builder().begin_building()
        cuda_tma.launch(builder, config, kernel, x, out)
        cuda_tma.graph.keep_alive(builder, x, out)
        graph = builder.end_building().complete()
        del x, out, builder  # graph.launch(stream) still has them
    """
    handle = _definition_handle(graph)
    if handle is None:
        if hasattr(graph, "upload") and hasattr(graph, "launch"):
            raise executable_keeps_nothing(graph)
        handle = captured_graph(graph)
    if handle is None:
        raise captures_nothing(graph)
    keep(handle, objects)


def _definition_handle(definition: Any) -> int | None:
    """Return the CUgraph of a GraphDefinition, or None for any other object."""
    if not (hasattr(definition, "nodes") and hasattr(definition, "instantiate")):
        return None
    return int(definition.handle)


@dataclass(frozen=True)
class KernelNodeArgument:
    """One argument of a kernel node.

    Attributes
    ----------
    parameter : KernelParameter
        The parameter of the kernel.
    raw : bytes
        The bytes of the argument in the node.
    """

    parameter: KernelParameter
    raw: bytes

    @property
    def value(self) -> TensorMapDescriptor | int | float | bool | bytes:
        """The argument as a Python object.

        A map is a :class:`TensorMapDescriptor` of the node's 128 bytes, which keeps no tensor alive. Arguments with the
        type of a float or a bool are Python floats and bools. Integers (read as signed) and pointers are ints. If the
        kernel's name does not contain the type of a parameter, its size determines the type: 1, 2, 4 or 8 bytes are an
        int, and 128 bytes that could be a map are a map. Other bytes remain bytes.
        """
        kind, size = self.parameter.type, len(self.raw)
        if isinstance(kind, MapType) or (kind is None and size == DESCRIPTOR_BYTES):
            try:
                return TensorMapDescriptor.from_bytes(self.raw)
            except TensorMapError:
                return self.raw
        if kind == "float" and size in _FLOATS:
            return float(struct.unpack(_FLOATS[size], self.raw)[0])
        if kind == "bool" and size == 1:
            return self.raw != b"\0"
        if isinstance(kind, MapPointer) or kind in ("pointer", "integer") or (kind is None and size in (1, 2, 4, 8)):
            return int.from_bytes(self.raw, "little", signed=kind == "integer")
        return self.raw

    def __repr__(self) -> str:
        value = self.value
        is_address = self.parameter.type == "pointer" or isinstance(self.parameter.type, MapPointer)
        shown = hex(value) if is_address and isinstance(value, int) else repr(value)
        return f"{self.parameter.name}={shown}" if self.parameter.name else shown


def arguments_of(node: KernelNode | int, kernel: Kernel | None = None) -> tuple[KernelNodeArgument, ...]:
    """Return the arguments of a kernel node, which the driver returns for the kernel's parameters.

    Parameters
    ----------
    node : cuda.core.graph.KernelNode, cuda.bindings CUgraphNode or int
        A node of a definition, or of a captured graph (``builder.graph_definition.nodes()``), from any launch.
    kernel : Kernel, optional
        The kernel of the node, which is necessary if the node contains only the kernel's function in a context.

    Returns
    -------
    tuple of KernelNodeArgument
        One argument for each parameter. Changes by :meth:`ExecutableKernelNode.update` affect only the executable
        graph, so the result does not contain them.

    Raises
    ------
    ValueError
        If the node launches another kernel, or its kernel is unknown. Also if the driver returns the arguments neither
        as pointers nor as a block.

    Examples
    --------
    ::

        for argument in cuda_tma.graph.arguments_of(node, kernel):
            print(argument)  # map=TensorMapDescriptor(tiled, rank 2, ...), out=0x7f52c8000000, row=96
    """
    kernel, raw = read_node(node, kernel)
    return tuple(map(KernelNodeArgument, parameters_of(kernel), raw))
