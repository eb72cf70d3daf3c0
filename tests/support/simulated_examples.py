"""The examples on the simulator, with tensors on the host and simulated kernels."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import torch

import cuda_tma
from benchmarks.kernels import example
from cuda_tma import simulate
from tests.support.hosted_examples import FACTORIES

# The table contains small sizes for the simulator. For each size, a tile crosses an edge of the tensor.
SIZES = {
    "copy_2d": ((70, 600),),
    "transpose": ((72, 140),),
    "elementwise": (((37, 141), "FLOAT32"), ((37, 141), "FLOAT16"), ((20, 264), "INT32")),
    "gather_rows": ((60, 45),),
    "kv_tiles": ((96, 2, 64, "bfloat16", 2, 2),),
    "gemm": ((136, 264, 136),),
    "conv_im2col": ((1, 64, 7, 8, (3, 1, 1, 1)),),
    "attention": ((1, 2, 1, 70, 130, 64, True), (1, 1, 1, 65, 140, 128, False)),
    "grouped_gemm": (("edges", ((0, 1, 70),), 256, 136),),
}
MULTIPROCESSORS = 2


def run_simulated(name, source=None):
    """Run an example's cases and rivals on the simulator. Raise an AssertionError if a result is wrong, or if a kernel
    has an error."""
    module = example(name)
    module.SOURCE = source or module.SOURCE
    for attribute, value in simulated().items():
        setattr(module, attribute, value)
    # A tile of the reduced size may have bank conflicts, which the test ignores.
    module.bank_conflicts = lambda *_: 1
    module.driver = SimpleNamespace(cuMemcpyDtoDAsync=lambda to, source, size, stream: ctypes.memmove(to, source, size))
    if not hasattr(module, "cases"):
        module.main()
        return
    for _, ours, rivals, *_ in module.cases(SIZES[name]):
        for run in (ours, *rivals.values()):
            run()


def simulated(compute_capability="9.0"):
    """Return the simulator's objects in place of a module's GPU objects, by their names."""
    return {
        "torch": SimpleNamespace(**{**vars(torch), **FACTORIES}),
        "cuda_tma": SimpleNamespace(**{**vars(cuda_tma), **vars(_Doors(compute_capability))}),
        "LaunchConfig": simulate.Config,
    }


class _Doors:
    """The simulator's versions of the package's functions and classes that the examples use."""

    def __init__(self, compute_capability):
        gpu = simulate.Device(compute_capability, multiprocessor_count=MULTIPROCESSORS)
        properties = SimpleNamespace(multiprocessor_count=MULTIPROCESSORS)

        def launch(stream, config, kernel, *arguments):
            gpu.launch(config, kernel.kernel, *map(_unwrapped, arguments)).raise_for_errors()

        def create_tensor_map(tensor, options=None, **keywords):
            return _Map(gpu, tensor, options or keywords)

        device = SimpleNamespace(
            default_stream=None, properties=properties, set_current=lambda: None, create_tensor_map=create_tensor_map
        )
        self.Device = lambda: device
        self.compile = lambda *args, **asked: _Kernel(gpu.compile(*args, **asked))
        self.parameters_of = lambda kernel: kernel.kernel.parameters
        self.launch = launch
        self.prepare = lambda kernel, config, *args: lambda stream: launch(stream, config, kernel, *args)
        self.create_tensor_maps = lambda tensors, options: _Maps(gpu, tensors, options)


class _Kernel:
    def __init__(self, kernel):
        self.kernel = kernel
        self.occupancy = SimpleNamespace(max_active_blocks_per_multiprocessor=lambda threads, smem_bytes: 1)


class _Map:
    """A tensor map whose address can change to the address of another tensor with the same geometry."""

    def __init__(self, gpu, tensor, options):
        self.gpu, self.options, self.form = gpu, options, _form(tensor)
        self.replace_address(tensor)

    def replace_address(self, tensor):
        if _form(tensor) != self.form:
            raise cuda_tma.TensorMapError(f"a tensor of another form: {_form(tensor)}")
        self.map = self.gpu.create_tensor_map(tensor, self.options)

    def __bytes__(self):
        return bytes(self.map)


class _Maps:
    """An array of tensor maps in the simulated memory."""

    def __init__(self, gpu, tensors, options):
        raw = b"".join(bytes(gpu.create_tensor_map(tensor, options)) for tensor in tensors)
        self.memory = np.frombuffer(raw, np.uint8).copy()

    def upload(self, stream):
        return self.memory


def _form(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.dtype


def _unwrapped(value):
    if isinstance(value, _Map):
        return value.map
    is_narrow = isinstance(value, torch.Tensor) and value.dtype.itemsize == 1
    # NumPy has no float8.
    return value.view(torch.uint8) if is_narrow else value
