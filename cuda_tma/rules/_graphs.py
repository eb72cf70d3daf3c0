"""What is refused of CUDA graphs: the words. None is on the hot path."""

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
    """The driver's error, and what it mostly means. CUDA driver API, cuGraphExecKernelNodeSetParams, Notes."""
    reasons = (
        "the definition or a node that it is to follow may be gone"
        if verb == "add"
        else "the node may be none of the definition that the graph was instantiated from, or the kernel of another "
        "context than the node's"
    )
    return f"{error}: the driver refused to {verb} a node of kernel {kernel}; {reasons}{explain_error(error)}"


def programmatic() -> ValueError:
    """An attribute of launches on streams: in a graph it is a kind of edge, which a capture makes."""
    return ValueError(
        "programmatic_stream_serialization is of launches on a stream; a node has none. Capture the launch instead: "
        "prepared(builder)"
    )


def other_attributes() -> ValueError:
    """CUDA driver API, cuGraphExecKernelNodeSetParams: it sets no attributes."""
    return ValueError(
        "the launch has other clusters or cooperation than the node, which keeps those that it was added with; add a "
        "node of its own, or instantiate the graph anew"
    )


def closed_graph() -> ValueError:
    """Its handle may be another graph's by now."""
    return ValueError("the graph is closed; instantiate its definition anew")


def no_handle(what: str, given: object) -> TypeError:
    """Neither an object with a handle nor one itself."""
    kinds = {
        "graph": "a cuda.core.graph.Graph, cuda.bindings' CUgraphExec or its handle as an int",
        "node": "a cuda.core.graph.KernelNode, cuda.bindings' CUgraphNode or its handle as an int",
    }
    return TypeError(f"{what} is {given!r} ({type(given).__name__}); pass {kinds[what]}")


def no_definition(given: object) -> TypeError:
    """Nodes are added to what a graph is instantiated from."""
    remedy = (
        "; it captures: launch on it, and after end_building() pass its graph_definition"
        if hasattr(given, "begin_building")
        else ""
    )
    return TypeError(f"definition is a {type(given).__name__}; pass a cuda.core.graph.GraphDefinition{remedy}")


def no_nodes(given: object) -> TypeError:
    """One node is no list of them."""
    remedy = "; of one node: after=[node]" if hasattr(given, "handle") else ""
    return TypeError(f"after is {given!r}; pass cuda.core.graph nodes of this definition{remedy}")


def large_argument(argument: int, size: int) -> ValueError:
    """Not a limit of the driver's."""
    return ValueError(f"argument {argument} has {size} bytes; one of more than 128 is changed with update(prepared)")


def unknown_kernel() -> ValueError:
    """A launch that was captured is of a function, and the driver tells no kernel of it."""
    return ValueError("the node does not say which kernel it launches: pass kernel=, the one that was launched")


def other_kernel(kernel: str) -> ValueError:
    """Its arguments would be read as others than they are."""
    return ValueError(f"the node is of another kernel than {kernel}")


def hidden_arguments(kernel: str, name: int | None) -> ValueError:
    """Neither pointers nor a block: `name` is what the driver's `extra` begins with."""
    shown = "both kernelParams and extra are NULL" if name is None else f"extra begins with the unknown name {name:#x}"
    return ValueError(
        f"the driver does not show the arguments of this node of kernel {kernel}: {shown} in what "
        "cuGraphKernelNodeGetParams gives; keep the prepared launch instead, which has them"
    )


def captures_nothing(given: object) -> ValueError:
    """There is no graph yet that could keep anything."""
    return ValueError(
        f"the {type(given).__name__} captures no graph: call keep_alive between begin_building() and end_building(), "
        "or with the definition"
    )


def executable_keeps_nothing(given: object) -> TypeError:
    """CUDA driver API, cuGraphRetainUserObject takes a CUgraph."""
    return TypeError(
        f"graph is a {type(given).__name__}, which is executable and can be given nothing to keep any more; call "
        "keep_alive with the definition or builder that it is made of, before it is instantiated"
    )
