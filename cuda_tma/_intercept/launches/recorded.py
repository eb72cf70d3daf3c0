"""A recorded launch as one frozen value, with the kernel, its configuration and arguments, and the memory before the
launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...simulate._config import Config
from ...simulate._memory.global_memory import Former
from ...simulate._ptx import Place

__all__ = ["Hardware", "MemorySegment", "RecordedLaunch"]


@dataclass(frozen=True, slots=True)
class MemorySegment:
    """The content of one allocation before a launch.

    Attributes
    ----------
    address : int
    data : bytes
        The bytes of the allocation. Segments with equal content share one object.
    name : str
        The text by which findings refer to the allocation.
    is_read_only : bool
    """

    address: int
    data: bytes = field(repr=False)
    name: str = ""
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """The outcome of a launch on a GPU.

    Attributes
    ----------
    name : str
        The name of the GPU.
    result : int
        The ``CUresult``, which is 0 if the launch succeeded.
    seconds : float
        The time from the call to the end of the launch.
    changed : tuple of MemorySegment
        The bytes that the launch has changed, by ascending address. All changed bytes are in the memory before the
        launch.
    """

    name: str
    result: int = 0
    seconds: float = 0.0
    changed: tuple[MemorySegment, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch of any runtime, with all values that a replay needs.

    Attributes
    ----------
    kernel : str
        The name that the runtime uses for the kernel.
    entry : str
        The name of the kernel in `ptx`.
    ptx : str
    config : Config
        The grid, the block, the cluster, the dynamic shared memory, and the attributes of the launch.
    arguments : tuple of bytes
        The bytes of each parameter in order. A pointer is a 64-bit address, and a tensor map has 128 bytes.
    tensor_maps : tuple of int
        The indices of the arguments that are tensor maps.
    memory : tuple of MemorySegment
        The segments by ascending address.
    variables : mapping of str to int
        The addresses of the module's ``__device__`` and ``__constant__`` variables, whose bytes are in `memory`.
    formers : tuple of Former
        The freed allocations that a finding can mention.
    next_address : int
        The address of the next allocation, such as an allocation by ``malloc`` in the kernel.
    compute_capability : tuple of int
    multiprocessor_count : int
    runtime : str
        The name of the compiler or runtime, such as ``"triton"``.
    sources : mapping of str to str
        The name and the text of each file that findings may quote.
    generated : tuple of str
        The names of the sources that a compiler generated.
    embedded : mapping of str to Place
        The names of the sources that are string literals of the program, and the place of each literal's first line.
    source : str
        The C++ text of the kernel, or an empty string if the text is not known.
    parameter_names : tuple of str
        The names of the parameters in the C++ source, or an empty tuple if the source is not known.
    launched_at : Place or None
        The statement of the program that launched the kernel.
    hardware : Hardware or None
        The outcome on a GPU, if a GPU ran the launch.
    """

    kernel: str
    entry: str
    ptx: str = field(repr=False)
    config: Config
    arguments: tuple[bytes, ...] = field(repr=False)
    tensor_maps: tuple[int, ...] = ()
    memory: tuple[MemorySegment, ...] = field(default=(), repr=False)
    variables: Mapping[str, int] = field(default_factory=dict, repr=False)
    formers: tuple[Former, ...] = field(default=(), repr=False)
    next_address: int = 0
    compute_capability: tuple[int, int] = (9, 0)
    multiprocessor_count: int = 8
    runtime: str = ""
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    generated: tuple[str, ...] = ()
    embedded: Mapping[str, Place] = field(default_factory=dict, repr=False)
    source: str = field(default="", repr=False)
    parameter_names: tuple[str, ...] = ()
    launched_at: Place | None = None
    hardware: Hardware | None = None
