"""The compilation and the load of ``floor.c`` on demand, with timers for calls in C."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cuda_tma import TiledParams

from ..comparison import Timer

SOURCE = Path(__file__).with_name("floor.c")
MAP_BYTES = 128
MAP_ALIGNMENT = 128
TIMERS = (
    "encode_ns", "replace_address_ns", "launch_ns", "launch_ex_ns", "set_node_ns", "exchange_ns", "method_ns",
    "launch_tensors_ns", "current_context_ns",
)  # fmt: skip
LAUNCHES = {"cuLaunchKernel": "launch_ns", "cuLaunchKernelEx": "launch_ex_ns"}


class Tiled(ctypes.Structure):
    """The arguments of ``cuTensorMapEncodeTiled``, as in ``floor.c``."""

    _fields_ = (
        ("data_type", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("global_address", ctypes.c_uint64),
        ("global_dim", ctypes.c_uint64 * 5),
        ("global_strides", ctypes.c_uint64 * 5),
        ("box_dim", ctypes.c_uint32 * 5),
        ("element_strides", ctypes.c_uint32 * 5),
        ("interleave", ctypes.c_uint32),
        ("swizzle", ctypes.c_uint32),
        ("l2_promotion", ctypes.c_uint32),
        ("oob_fill", ctypes.c_uint32),
    )

    @classmethod
    def of(cls, params: TiledParams) -> Tiled:
        found = cls()
        for name, kind in cls._fields_:
            value = getattr(params, name)
            setattr(found, name, kind(*value) if isinstance(value, tuple) else int(value))
        return found


class Floor:
    """The compiled library ``floor.c``, each of whose methods returns a timer.

    Parameters
    ----------
    driver : str
        The name of the CUDA driver's library, which is passed to ``dlopen``.

    Raises
    ------
    RuntimeError
        If the C compiler or the driver does not exist.
    """

    def __init__(self, driver: str = "libcuda.so.1"):
        self._library = ctypes.PyDLL(str(compiled()))
        for name in TIMERS:
            getattr(self._library, name).restype = ctypes.c_double
        self._library.open_driver.restype = ctypes.c_char_p
        if error := self._library.open_driver(driver.encode()):
            raise RuntimeError(error.decode())

    def encode(self, params: TiledParams, map: ctypes.Array[ctypes.c_char]) -> Timer:
        """Return a timer of ``cuTensorMapEncodeTiled`` of `params` into `map`."""
        arguments = Tiled.of(params)
        return self._timer("encode_ns", "cuTensorMapEncodeTiled", map, ctypes.byref(arguments))

    def replace_address(self, map: ctypes.Array[ctypes.c_char], address: int) -> Timer:
        """Return a timer of ``cuTensorMapReplaceAddress``."""
        return self._timer("replace_address_ns", "cuTensorMapReplaceAddress", map, ctypes.c_void_p(address))

    def current_context(self) -> Timer:
        """Return a timer of ``cuCtxGetCurrent``."""
        return self._timer("current_context_ns", "cuCtxGetCurrent")

    def launch(
        self, function: int, stream: int, arguments: Sequence[ctypes.Array | ctypes._SimpleCData], by: str
    ) -> Timer:
        """Return a timer of ``cuLaunchKernel`` or ``cuLaunchKernelEx`` with arguments in memory, without a wait for the
        GPU.
        """
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        # The timer keeps the arguments alive, because the C code has only pointers to them.
        pointers.arguments = arguments  # type: ignore[attr-defined]
        handles = ctypes.c_void_p(function), ctypes.c_void_p(stream)
        return self._timer(LAUNCHES[by], by, *handles, pointers)

    def set_node(
        self, graph: int, node: int, kernel: int, context: int, arguments: Sequence[ctypes.Array | ctypes._SimpleCData]
    ) -> Timer:
        """Return a timer of ``cuGraphExecKernelNodeSetParams`` of a CUkernel with arguments in memory."""
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        pointers.arguments = arguments  # type: ignore[attr-defined]
        handles = map(ctypes.c_void_p, (graph, node, kernel, context))
        return self._timer("set_node_ns", "cuGraphExecKernelNodeSetParams", *handles, pointers)

    def exchange(self, tensor: object) -> Timer:
        """Return a timer for an owning export of a tensor by the DLPack C exchange API, and for the call of its
        deleter.
        """
        return self._timer("exchange_ns", "the DLPack exchange", _exchange_api(tensor), ctypes.py_object(tensor))

    def method(self, instance: object, name: str) -> Timer:
        """Return a timer of a call from C of a method without arguments."""
        return self._timer("method_ns", name, ctypes.py_object(instance), ctypes.py_object(name))

    def launch_tensors(
        self, function: int, stream: int, tensors: Sequence[object], params: TiledParams, last: ctypes._SimpleCData
    ) -> Timer:
        """Return a timer for a launch with the maps of tensors and one more argument, including the exports, the
        storages and the maps.
        """
        arguments = [*[map_memory() for _ in tensors], last]
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        objects = (ctypes.py_object * len(tensors))(*map(ctypes.py_object, tensors))
        pointers.arguments = arguments  # type: ignore[attr-defined]
        return self._timer(
            "launch_tensors_ns", "a launch with tensors", _exchange_api(tensors[0]), objects,
            ctypes.c_int64(len(tensors)), ctypes.py_object("untyped_storage"), ctypes.byref(Tiled.of(params)),
            ctypes.c_void_p(function), ctypes.c_void_p(stream), pointers,
        )  # fmt: skip

    def _timer(self, function: str, what: str, *arguments: object) -> Timer:
        call = getattr(self._library, function)

        def timer(calls: int) -> float:
            ns = call(ctypes.c_int64(calls), *arguments)
            if ns < 0:
                raise RuntimeError(f"{what} failed in C with error {-ns:g}")
            return ns

        return timer


def _exchange_api(tensor: object) -> ctypes.c_void_p:
    capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = type(tensor).__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    return ctypes.c_void_p(capsule_pointer(capsule, b"dlpack_exchange_api"))


@functools.cache
def compiled() -> Path:
    """Return the shared library, which the C compiler in the variable ``CC`` (default: gcc) makes."""
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        raise RuntimeError(f"no C compiler {compiler!r} for the floor: install gcc, or name another one in CC")
    library = Path(tempfile.mkdtemp(prefix="floor-")) / "floor.so"
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{compiler} could not compile floor.c: {done.stderr.strip()}")
    return library


def map_memory() -> ctypes.Array[ctypes.c_char]:
    """Return 128 bytes at an address that is a multiple of 128."""
    memory = (ctypes.c_char * (MAP_BYTES + MAP_ALIGNMENT))()
    return (ctypes.c_char * MAP_BYTES).from_buffer(memory, -ctypes.addressof(memory) % MAP_ALIGNMENT)


def map_copy(raw: bytes) -> ctypes.Array[ctypes.c_char]:
    """Return an aligned copy of the bytes of a map."""
    memory = map_memory()
    memory.raw = raw
    return memory
