"""The replacement of the module ``torch.cuda`` for the simulated GPU, with the GPU's properties, streams and events."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from ..patches import Patches
from .marks import GPU, is_cuda_device

__all__ = ["Properties", "functions", "install"]

_GIB = 1 << 30
_NOTHING = (
    *("synchronize", "empty_cache", "init", "_lazy_init", "ipc_collect", "set_stream", "_sleep", "set_sync_debug_mode"),
    *("reset_peak_memory_stats", "reset_accumulated_memory_stats", "set_per_process_memory_fraction"),
    *("reset_max_memory_allocated", "reset_max_memory_cached"),
)
_ZERO = (
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached"),
    *("max_memory_cached", "current_device", "get_sync_debug_mode", "utilization"),
)


class Properties(SimpleNamespace):
    """The result of ``torch.cuda.get_device_properties(0)``, with the fields that scripts read."""


def properties_of(device: Any) -> Properties:
    """Return the properties of a simulated GPU, with the limits of its compute capability from the CUDA guide."""
    major, minor = device.compute_capability
    shared = (99 if major == 12 else 227) << 10
    return Properties(
        name=f"simulated GPU of compute capability {major}.{minor}",
        major=major,
        minor=minor,
        total_memory=16 * _GIB,
        multi_processor_count=device.multiprocessor_count,
        max_threads_per_multi_processor=1536 if major == 12 else 2048,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        warp_size=32,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + 1024,
        L2_cache_size=50 << 20,
        clock_rate=1_000_000,
        memory_clock_rate=1_000_000,
        memory_bus_width=1024,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


class Stream:
    """A stream on which every operation is complete when the call returns."""

    cuda_stream = stream_id = device_index = 0
    device, device_type, priority = GPU, 1, 0

    def __init__(self, device: Any = None, priority: int = 0, **_: Any):
        self.priority = priority

    def query(self) -> bool:
        """Return True, because all work is complete."""
        return True

    def is_capturing(self) -> bool:
        """Return False, because graphs are not supported."""
        return False

    def synchronize(self) -> None:
        """Return at once, because all work is complete."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once, because the work of every stream is complete."""

    def wait_event(self, event: Any) -> None:
        """Return at once, because every event is complete."""

    def record_event(self, event: Any = None) -> Any:
        """Return the event, which is complete."""
        return Event() if event is None else event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Event:
    """An event that is complete when it is recorded. The simulator measures no time, so the time between two events
    is NaN."""

    cuda_event, device = 0, GPU
    note: Callable[[str], None] = staticmethod(lambda text: None)

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any):
        pass

    def record(self, stream: Any = None) -> None:
        """Return at once, because the event is complete."""

    def wait(self, stream: Any = None) -> None:
        """Return at once, because the event is complete."""

    def query(self) -> bool:
        """Return True, because the event is complete."""
        return True

    def synchronize(self) -> None:
        """Return at once, because the event is complete."""

    def elapsed_time(self, end_event: Any) -> float:
        """Return NaN, and report a note."""
        self.note("torch.cuda.Event.elapsed_time returns NaN: the simulator measures no time")
        return math.nan


class _Context:
    """A context manager without an effect, in place of ``torch.cuda.device``, ``torch.cuda.stream`` and similar
    classes.
    """

    def __init__(self, *arguments: Any, **_: Any):
        if arguments and not isinstance(arguments[0], (Stream, torch.Tensor)):
            is_cuda_device(arguments[0])
        self.idx, self.stream = 0, arguments[0] if arguments else None

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def functions(device: Any) -> dict[str, Any]:
    """Return the attributes of ``torch.cuda`` by their names."""
    properties, stream = properties_of(device), Stream()
    return {
        **{name: lambda *_, **__: None for name in _NOTHING},
        **{name: lambda *_, **__: 0 for name in _ZERO},
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "device_count": lambda: 1,
        "set_device": lambda device: is_cuda_device(device) and None,
        "get_device_name": lambda device=None: properties.name,
        "get_device_capability": lambda device=None: (properties.major, properties.minor),
        "get_device_properties": lambda device=None: properties,
        "get_arch_list": lambda: [f"sm_{properties.major}{properties.minor}"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "can_device_access_peer": lambda device, peer: False,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "memory_stats": lambda device=None: {},
        "memory_summary": lambda device=None, abbreviated=False: "The simulator counts no memory.",
        "memory_snapshot": lambda *_, **__: [],
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "get_stream_from_external": lambda pointer, device=None: stream,
        **dict.fromkeys(("manual_seed", "manual_seed_all"), _seed),
        **{name: lambda: torch.seed() and None for name in ("seed", "seed_all")},
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "set_rng_state": lambda new_state, device="cuda": torch.set_rng_state(new_state.cpu()),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda new_states: torch.set_rng_state(new_states[0].cpu()),
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        **dict.fromkeys(("device", "device_of", "stream", "StreamContext", "_DeviceGuard"), _Context),
    }


def _seed(seed: int) -> None:
    """Seed the generator of the CPU, which also generates the numbers of the GPU. ``torch.manual_seed`` calls this
    function.
    """
    torch.default_generator.manual_seed(int(seed))


@contextlib.contextmanager
def _range(*_: Any, **__: Any) -> Iterator[None]:
    yield


def install(patches: Patches, session: Any) -> None:
    """Replace the attributes of ``torch.cuda``, and the attributes of torch that report a GPU."""
    for name, value in functions(session.device).items():
        patches.replace(torch.cuda, name, value)
    patches.replace(torch.cuda.random, "manual_seed_all", _seed)
    patches.replace(Event, "note", staticmethod(session.note))
    nvtx = {"range": _range, **{name: lambda *_, **__: 0 for name in ("range_push", "range_pop", "mark")}}
    patches.replace(torch.cuda, "nvtx", SimpleNamespace(**nvtx))
    if torch.version.cuda is None:
        patches.replace(torch.version, "cuda", "13.0")
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        patches.replace(torch._C, "_cuda_getCurrentRawStream", lambda device=0: 0)
    patches.replace(torch.backends.cuda, "is_built", lambda: True)
    _install_accelerator(patches)


def _install_accelerator(patches: Patches) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_accelerator": lambda check_available=False: torch.device("cuda"),
            "current_device_index": lambda: 0,
            "synchronize": lambda device=None: None,
            "set_device_index": lambda device: is_cuda_device(device) and None,
            "current_stream": lambda device=None: torch.cuda.current_stream(),
        }.items():
            patches.replace(accelerator, name, value)
