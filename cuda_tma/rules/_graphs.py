"""The errors of CUDA graphs.

The functions are not on the hot path.
"""

from __future__ import annotations

from .._cuda_errors import explain_error

__all__ = [
    "captures_nothing",
    "closed_graph",
    "executable_keeps_nothing",
    "hidden_arguments",
    "large_argument",
    "no_definition",
    "no_handle",
    "no_nodes",
    "other_attributes",
    "other_kernel",
    "programmatic",
    "refused_node",
    "unknown_kernel",
]


def refused_node(error: str, kernel: str, verb: str) -> str:
    """Return an error of the driver with its usual meaning (CUDA driver API, cuGraphExecKernelNodeSetParams, Notes)."""
    reasons = (
        "the definition or one of the preceding nodes may no longer exist"
        if verb == "add"
        else "the node may belong to another definition than the one that the graph was instantiated from, or the "
        "kernel to another context than the node's"
    )
    return f"{error}: the driver refused to {verb} a node of kernel {kernel}; {reasons}{explain_error(error)}"


def programmatic() -> ValueError:
    """Refuse an attribute for launches on streams.

    In a graph, this attribute is a kind of edge, which only a capture adds.
    """
    return ValueError(
        "programmatic_stream_serialization applies to launches on a stream, not to a node. Capture the launch instead: "
        "prepared(builder)"
    )


def other_attributes() -> ValueError:
    """Refuse new attributes of a node, which cuGraphExecKernelNodeSetParams does not set (CUDA driver API)."""
    return ValueError(
        "the launch has other clusters or cooperation than the node, which keeps its own; add a new "
        "node, or instantiate the graph again"
    )


def closed_graph() -> ValueError:
    """Refuse a closed graph, because its handle may already belong to another graph."""
    return ValueError("the graph is closed; instantiate its definition again")


def no_handle(what: str, given: object) -> TypeError:
    """Refuse an object that is not a handle and does not contain one."""
    kinds = {
        "graph": "a cuda.core.graph.Graph, cuda.bindings' CUgraphExec or its handle as an int",
        "node": "a cuda.core.graph.KernelNode, cuda.bindings' CUgraphNode or its handle as an int",
    }
    return TypeError(f"{what} is {given!r} ({type(given).__name__}); pass {kinds[what]}")


def no_definition(given: object) -> TypeError:
    """Refuse to add nodes to an object that is not a graph definition."""
    remedy = (
        "; it captures: launch on it, and after end_building() pass its graph_definition"
        if hasattr(given, "begin_building")
        else ""
    )
    return TypeError(f"definition is a {type(given).__name__}; pass a cuda.core.graph.GraphDefinition{remedy}")


def no_nodes(given: object) -> TypeError:
    """Refuse one node in place of a list of nodes."""
    remedy = "; for one node: after=[node]" if hasattr(given, "handle") else ""
    return TypeError(f"after is {given!r}; pass cuda.core.graph nodes of this definition{remedy}")


def large_argument(argument: int, size: int) -> ValueError:
    """Refuse a separate change of a large argument. This package (not the driver) sets the limit."""
    return ValueError(f"argument {argument} has {size} bytes; change one of more than 128 with update(prepared)")


def unknown_kernel() -> ValueError:
    """Refuse a node of a captured launch, for which the driver returns no kernel."""
    return ValueError("the kernel of the node is unknown: pass kernel=, the kernel that was launched")


def other_kernel(kernel: str) -> ValueError:
    """Refuse a node of another kernel, which would read the arguments as other types."""
    return ValueError(f"the node launches another kernel than {kernel}")


def hidden_arguments(kernel: str, name: int | None) -> ValueError:
    """Refuse a node without pointers or a block of arguments.

    `name` is the first name in the driver's `extra`.
    """
    shown = "both kernelParams and extra are NULL" if name is None else f"extra begins with the unknown name {name:#x}"
    return ValueError(
        f"the driver does not show the arguments of this node of kernel {kernel}: {shown} in the result of "
        "cuGraphKernelNodeGetParams; keep the prepared launch instead, which has them"
    )


def captures_nothing(given: object) -> ValueError:
    """Refuse to keep objects alive if no graph is being captured."""
    return ValueError(
        f"the {type(given).__name__} captures no graph: call keep_alive between begin_building() and end_building(), "
        "or with the definition"
    )


def executable_keeps_nothing(given: object) -> TypeError:
    """Refuse an executable graph, because cuGraphRetainUserObject takes a CUgraph (CUDA driver API)."""
    return TypeError(
        f"graph is a {type(given).__name__}, which is executable and can keep no more objects alive; call "
        "keep_alive with its definition or builder before it is instantiated"
    )
