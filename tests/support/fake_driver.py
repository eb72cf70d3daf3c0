"""A stand-in for the CUDA driver, by which the extension modules run without a GPU.

The encoder of the stand-in writes the bytes of ``encode``, and accepts the maps that ``check`` accepts. Like driver
580, it also accepts im2col wide maps on every device. Tests compare the encoder with recordings of the real driver. The
memory of the stand-in is a list of address ranges. A test can make any entry point fail. The stand-in stores the last
calls with their arguments.
"""

import ctypes
from collections import deque
from dataclasses import dataclass, field, fields, replace

import cuda_tma
from cuda_tma._cuda import driver as _driver
from tests.support.fake_graphs import (
    GRAPH_SIGNATURES,
    INVALID_VALUE,
    FakeGraphs,
    Launch,
    array,
    i32,
    offsets,
    pointer,
    u32,
    u64,
)

STREAM_CAPTURE_UNSUPPORTED = 900
CAPTURE_MODE_RELAXED = 2
SHARED_MEMORY_BYTES = 227 * 1024  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
ERROR_NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}

SIGNATURES = {
    "cuTensorMapEncodeTiled": (pointer, u32, u32, u64, *[pointer] * 4, u32, u32, u32, u32),
    "cuTensorMapEncodeIm2col": (pointer, u32, u32, u64, *[pointer] * 4, u32, u32, pointer, u32, u32, u32, u32),
    "cuTensorMapEncodeIm2colWide": (
        pointer,
        u32,
        u32,
        u64,
        pointer,
        pointer,
        i32,
        i32,
        u32,
        u32,
        pointer,
        u32,
        u32,
        u32,
        u32,
        u32,
    ),
    "cuTensorMapReplaceAddress": (pointer, u64),
    "cuCtxGetCurrent": (ctypes.POINTER(u64),),
    "cuCtxPushCurrent": (u64,),
    "cuCtxPopCurrent": (ctypes.POINTER(u64),),
    "cuTensorMapSetAllocationClass": (u64, u32, pointer),
    "cuStreamGetGreenCtx": (u64, ctypes.POINTER(u64)),
    "cuCtxGetDevice": (ctypes.POINTER(ctypes.c_int),),
    "cuDeviceGetAttribute": (ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int),
    "cuPointerGetAttribute": (pointer, ctypes.c_int, u64),
    "cuStreamGetCtx": (u64, ctypes.POINTER(u64)),
    "cuMemcpyHtoDAsync": (u64, pointer, ctypes.c_size_t, u64),
    "cuMemAlloc": (ctypes.POINTER(u64), ctypes.c_size_t),
    "cuMemFree": (u64,),
    "cuStreamIsCapturing": (u64, ctypes.POINTER(i32)),
    "cuThreadExchangeStreamCaptureMode": (ctypes.POINTER(i32),),
    "cuLaunchKernelEx": (pointer, u64, pointer, pointer),
    "cuGetErrorName": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuKernelGetParamInfo": (u64, ctypes.c_size_t, ctypes.POINTER(u64), ctypes.POINTER(u64)),
    "cuKernelGetName": (ctypes.POINTER(ctypes.c_char_p), u64),
    "cuKernelGetFunction": (ctypes.POINTER(u64), u64),
    "cuKernelGetAttribute": (ctypes.POINTER(i32), i32, u64, i32),
    "cuKernelSetAttribute": (i32, i32, u64, i32),
    "cuCtxGetId": (u64, ctypes.POINTER(u64)),
    "cuDevicePrimaryCtxGetState": (ctypes.c_int, ctypes.POINTER(u32), ctypes.POINTER(ctypes.c_int)),
    "cuDevicePrimaryCtxRetain": (ctypes.POINTER(u64), ctypes.c_int),
    "cuDevicePrimaryCtxRelease": (ctypes.c_int,),
} | GRAPH_SIGNATURES


def _within(address, ranges):
    return any(low <= address < high for low, high in ranges)


def _judged_as(params, compute_capability):
    """Return the params that the driver checks. Driver 580 checks an im2col wide map on compute capability 9.0 as an
    im2col map with corners along W only."""
    if compute_capability >= (10, 0) or not isinstance(params, cuda_tma.Im2colWideParams):
        return params
    common = {f.name: getattr(params, f.name) for f in fields(cuda_tma.Im2colParams) if hasattr(params, f.name)}
    elsewhere = (0,) * (params.rank - 3)
    return cuda_tma.Im2colParams(
        **common,
        pixel_box_lower_corner=(params.pixel_box_lower_corner_width, *elsewhere),
        pixel_box_upper_corner=(params.pixel_box_upper_corner_width, *elsewhere),
    )


@dataclass
class FakeDriver(FakeGraphs):
    """The state of the fake driver, which its entry points read, and the recorded launches."""

    context: int = 0xC0DE
    stream_context: int = 0xC0DE
    device: int = 0
    compute_capability: tuple = (9, 0)
    # The dictionary maps a context to its device.
    devices: dict = field(default_factory=dict)
    # The dictionary maps an entry point to the CUresult that the entry point returns without an effect.
    errors: dict = field(default_factory=dict)
    # The list contains the last called entry points with their arguments, in order.
    calls: deque = field(default_factory=lambda: deque(maxlen=100))
    # The field contains the params of the last call of an encoder.
    params: object = None
    encoded: int = 0
    # The dictionary maps a device to its active primary context.
    primary: dict = field(default_factory=lambda: {0: 0xC0DE})
    green: tuple = ()
    # The dictionary maps a context to its id, if the id differs from the handle.
    context_ids: dict = field(default_factory=dict)
    stack: list = field(default_factory=list)
    pinned: tuple = ()  # The tuple contains address ranges that cuPointerGetAttribute reports as host memory.
    managed: tuple = ()
    # The dictionary maps a range of managed memory to the ordinal of its device.
    allocated: dict = field(default_factory=dict)
    # The dictionary maps a handle to the name of a kernel and the sizes of its parameters.
    kernels: dict = field(default_factory=dict)
    # The dictionary maps a kernel to its static shared memory, if it has any.
    shared_bytes: dict = field(default_factory=dict)
    # The dictionary maps a kernel and a device to the limit on dynamic shared memory, if it was set.
    shared_limits: dict = field(default_factory=dict)
    launches: list = field(default_factory=list)
    copies: list = field(default_factory=list)
    # The dictionary maps an address of cuMemAlloc to its size and its context.
    memory: dict = field(default_factory=dict)
    # The tuple contains the streams that capture a graph.
    capturing: tuple = ()
    capture_mode: int = 0
    # The field contains the allocation class that the encoders write.
    encodes_class: int = 1
    # If the field is not 0, cuTensorMapReplaceAddress writes half of the address and returns this CUresult.
    half_replaced: int = 0
    # The field contains the lowest address of which cuTensorMapReplaceAddress writes only half.
    half_replaced_from: int = 0
    # The field contains the number of references to each primary context.
    retained: int = 0
    # The field contains the last kernel that was queried, and the offsets of its parameters.
    _parameters: tuple = None

    def install(self, without=()):
        """Replace the real driver by the stand-in, without the given entry points."""
        # The stand-in keeps the ctypes functions, because the pointer to a function is valid only while its Python
        # object exists.
        self._functions = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._entry_point(name))
            for name, types in SIGNATURES.items()
            if name not in without
        }
        _driver.install({name: ctypes.cast(f, pointer).value for name, f in self._functions.items()})

    def _entry_point(self, name):
        call = getattr(self, name)

        def answer(*arguments):
            self.calls.append((name, arguments))
            return self.errors[name] if self.errors.get(name) else call(*arguments)

        return answer

    def called(self, name):
        """Return the arguments of the last calls of a driver function."""
        return [arguments for each, arguments in self.calls if each == name]

    def cuTensorMapEncodeTiled(self, target, data_type, rank, address, dims, strides, box, steps, *enums):
        head = self._head(data_type, rank, address, dims, strides, steps, enums)
        return self.write_map(target, cuda_tma.TiledParams(**head, box_dim=array(u32, box, rank)))

    def cuTensorMapEncodeIm2col(
        self, target, data_type, rank, address, dims, strides, lower, upper, channels, pixels, steps, *enums
    ):
        head = self._head(data_type, rank, address, dims, strides, steps, enums)
        return self.write_map(target, cuda_tma.Im2colParams(
            **head, pixel_box_lower_corner=array(i32, lower, rank - 2),
            pixel_box_upper_corner=array(i32, upper, rank - 2), channels_per_pixel=channels, pixels_per_column=pixels,
        ))  # fmt: skip

    def cuTensorMapEncodeIm2colWide(
        self, target, data_type, rank, address, dims, strides, lower, upper, channels, pixels, steps, interleave, mode,
        *enums,
    ):  # fmt: skip
        head = self._head(data_type, rank, address, dims, strides, steps, (interleave, *enums))
        return self.write_map(target, cuda_tma.Im2colWideParams(
            **head, pixel_box_lower_corner_width=lower, pixel_box_upper_corner_width=upper,
            channels_per_pixel=channels, pixels_per_column=pixels, mode=mode,
        ))  # fmt: skip

    def _head(self, data_type, rank, address, dims, strides, steps, enums):
        """Return the encoder's arguments that all modes of tensor maps have."""
        named = dict(zip(("interleave", "swizzle", "l2_promotion", "oob_fill"), enums, strict=True))
        return {
            "data_type": data_type, "global_address": address, "global_dim": array(u64, dims, rank),
            "global_strides": array(u64, strides, rank - 1), "element_strides": array(u32, steps, rank), **named,
        }  # fmt: skip

    def write_map(self, target, params):
        """Write a tensor map, as each of the driver's three encoders does."""
        if not self.context:
            return 201
        self.encoded += 1
        self.params = params
        if target % 64 or cuda_tma.check(_judged_as(params, self.compute_capability), self.compute_capability):
            return INVALID_VALUE
        ctypes.memmove(target, cuda_tma.encode(replace(params, allocation_class=self.encodes_class)), 128)
        return 0

    def cuTensorMapReplaceAddress(self, target, address):
        """Replace the address in a tensor map. If `half_replaced` is set, write only half of the address, and fail."""
        fails = self.half_replaced and address >= self.half_replaced_from
        ctypes.memmove(target, address.to_bytes(8, "little"), 2 if fails else 8)
        return self.half_replaced if fails else 0

    def cuCtxGetCurrent(self, out):
        out[0] = self.context
        return 0

    def cuCtxPushCurrent(self, context):
        self.stack.append((self.context, self.device))
        self.context, self.device = context, self.devices.get(context, self.device)
        return 0

    def cuCtxPopCurrent(self, out):
        self.context, self.device = self.stack.pop()
        return 0

    def cuTensorMapSetAllocationClass(self, target, allocation_class, out):
        word = u32.from_address(target + 8)
        word.value = word.value & ~(1 << 21) | (allocation_class == 2) << 21
        return 0

    def cuStreamGetGreenCtx(self, stream, out):
        context = self.stream_context if stream else self.context
        out[0] = context + 1 if context in self.green else 0
        return 0

    def cuCtxGetDevice(self, out):
        out[0] = self.device
        return 0

    def cuDeviceGetAttribute(self, out, attribute, device):
        out[0] = {75: self.compute_capability[0], 76: self.compute_capability[1], 97: SHARED_MEMORY_BYTES}[attribute]
        return 0

    def cuPointerGetAttribute(self, out, attribute, address):
        """Return an attribute of memory, which is the type (1 for host, 2 for device), the managed flag, or the ordinal
        of the device."""
        ordinal = next((self.allocated[each] for each in self.allocated if _within(address, [each])), None)
        is_managed = _within(address, self.managed)
        if not is_managed and ordinal is None and not _within(address, self.pinned):
            return INVALID_VALUE
        kind = 1 if _within(address, self.pinned) else 2
        u32.from_address(out).value = {2: kind, 8: int(is_managed), 9: ordinal or 0}[attribute]
        return 0

    def cuStreamGetCtx(self, stream, out):
        out[0] = self.stream_context
        return 0

    def cuMemcpyHtoDAsync(self, target, source, size, stream):
        self.copies.append((target, ctypes.string_at(source, size), stream))
        return 0

    def cuMemAlloc(self, out, size):
        """Refuse the allocation while a stream captures a graph, as the driver does, unless the thread permits it."""
        if self.capturing and self.capture_mode != CAPTURE_MODE_RELAXED:
            return STREAM_CAPTURE_UNSUPPORTED
        out[0] = max([1 << 40, *(address + each for address, (each, _) in self.memory.items())])
        self.memory[out[0]] = size, self.context
        return 0

    def cuMemFree(self, address):
        if self.capturing and self.capture_mode != CAPTURE_MODE_RELAXED:
            return STREAM_CAPTURE_UNSUPPORTED
        assert self.memory.pop(address)[1] == self.context
        return 0

    def cuStreamIsCapturing(self, stream, status):
        status[0] = stream in self.capturing
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        self.capture_mode, mode[0] = mode[0], self.capture_mode
        return 0

    def cuKernelGetParamInfo(self, function, index, offset, size):
        sizes = self.kernels[function][1]
        if index >= len(sizes):
            return INVALID_VALUE
        # The stand-in computes the offsets only once for each kernel, because a kernel may have thousands of
        # parameters.
        if index == 0 or self._parameters[0] != function:
            self._parameters = function, offsets(sizes)
        offset[0], size[0] = self._parameters[1][index], sizes[index]
        return 0

    def cuKernelGetName(self, out, function):
        self._name = ctypes.create_string_buffer(self.kernels[function][0].encode())
        out[0] = ctypes.cast(self._name, ctypes.c_char_p)
        return 0

    def cuKernelGetFunction(self, out, kernel):
        """Return a function handle that differs from the kernel's handle, and that differs in each context."""
        out[0] = kernel | self.context & 15
        self.kernels[out[0]] = self.kernels[kernel]
        return 0

    def cuKernelGetAttribute(self, out, attribute, kernel, device):
        """Return the static shared memory of a kernel, or the limit on its dynamic shared memory."""
        static = self.shared_bytes.get(kernel, 0)
        out[0] = {1: static, 8: self.shared_limits.get((kernel, device), 48 * 1024 - static)}[attribute]
        return 0

    def cuKernelSetAttribute(self, attribute, value, kernel, device):
        assert attribute == 8
        if value + self.shared_bytes.get(kernel, 0) > SHARED_MEMORY_BYTES:
            return INVALID_VALUE
        self.shared_limits[kernel, device] = value
        return 0

    def cuCtxGetId(self, context, out):
        out[0] = self.context_ids.get(context, context)
        return 0

    def cuDevicePrimaryCtxGetState(self, device, flags, is_active):
        is_active[0] = device in self.primary
        return 0

    def cuDevicePrimaryCtxRetain(self, out, device):
        out[0] = self.primary[device]
        self.retained += 1
        return 0

    def cuDevicePrimaryCtxRelease(self, device):
        self.retained -= 1
        return 0

    def cuGetErrorName(self, result, out):
        self._error = ctypes.create_string_buffer(ERROR_NAMES.get(result, b"CUDA_ERROR_UNKNOWN"))
        out[0] = ctypes.cast(self._error, ctypes.c_char_p)
        return 0

    def cuLaunchKernelEx(self, config, function, arguments, extra):
        words = (u32 * 7).from_address(config)
        stream, attributes, count = (u64 * 3).from_address(config + 32)
        kernel, found = function & ~15, {}
        if words[6] > self.shared_limits.get((kernel, self.device), 48 * 1024 - self.shared_bytes.get(kernel, 0)):
            return INVALID_VALUE
        for index in range(count & 0xFFFFFFFF):
            at = attributes + 72 * index
            found[u32.from_address(at).value] = tuple((u32 * 3).from_address(at + 8))
        pointer_key, block, size_key, size, end = (u64 * 5).from_address(extra)
        assert (arguments, pointer_key, size_key, end) == (None, 1, 2, 0)
        memory = ctypes.string_at(block, u64.from_address(size).value)
        sizes = self.kernels[function][1]
        values = [memory[at : at + each] for at, each in zip(offsets(sizes), sizes, strict=True)]
        self.launches.append(Launch(function, values, tuple(words[:3]), tuple(words[3:6]), words[6], stream, found))
        return INVALID_VALUE if words[3] > 1024 else 0
