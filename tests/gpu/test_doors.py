"""Tests that every library, every function and every kind of view gives the same tensor map descriptor."""

import subprocess
import sys

import numpy as np
import pytest
from cuda import core
from cuda.core.utils import StridedMemoryView as CoreView

import cuda_tma
from cuda_tma import TensorMapError

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")

OPTIONS = cuda_tma.TensorMapOptions(box_dim=(16, 32), swizzle="128B")


def matrix(device):
    return torch.arange(64 * 128, dtype=torch.float32, device="cuda").reshape(64, 128)


def test_three_doors_make_the_same_descriptor(device):
    x = matrix(device)
    view = cuda_tma.StridedMemoryView.from_any_interface(x, stream_ptr=-1)
    made = [
        view.as_tensor_map((16, 32), swizzle="128B"),
        view.as_tensor_map(options=OPTIONS),
        device.create_tensor_map(x, OPTIONS),
        cuda_tma.create_tensor_map(x, OPTIONS),
        cuda_tma.create_tensor_map(view, OPTIONS),
        cuda_tma.create_tensor_map(core.utils.StridedMemoryView.from_any_interface(x, stream_ptr=-1), OPTIONS),
        cuda_tma.create_tensor_map(x, {"box_dim": (16, 32), "swizzle": 3}),
        cuda_tma.create_tensor_map(x, core.TensorMapDescriptorOptions((16, 32), swizzle=_core_swizzle())),
    ]
    assert all(descriptor == made[0] for descriptor in made)
    assert {descriptor.params for descriptor in made} == {
        cuda_tma.TiledParams(
            data_type=7,
            global_address=x.data_ptr(),
            global_dim=(128, 64),
            global_strides=(512,),
            box_dim=(32, 16),
            element_strides=(1, 1),
            interleave=0,
            swizzle=3,
            l2_promotion=0,
            oob_fill=0,
        )
    }


def _core_swizzle():
    from cuda.core._tensor_map import TensorMapSwizzle

    return TensorMapSwizzle.SWIZZLE_128B


def test_the_descriptor_shows_its_parameters(device):
    x = matrix(device)
    descriptor = cuda_tma.create_tensor_map(x, OPTIONS)
    assert descriptor.tensor is x
    assert descriptor.device == device == core.Device(0)
    assert descriptor.context == int(device.context.handle)
    assert (descriptor.tx_bytes, descriptor.smem_bytes, descriptor.smem_alignment) == (2048, 2048, 1024)
    assert descriptor.address % 128 == 0
    assert bytes(descriptor) == bytes(memoryview(descriptor)) and len(bytes(descriptor)) == 128
    assert memoryview(descriptor).readonly
    assert repr(descriptor) == (
        "TensorMapDescriptor(tiled, rank 2, float32 (64, 128), box (16, 32), swizzle 128B, device 0)"
    )
    assert hash(descriptor) == hash(cuda_tma.create_tensor_map(x, OPTIONS))


def numba_matrix():
    cuda = pytest.importorskip("numba.cuda")
    return cuda.to_device(np.arange(64 * 128, dtype=np.float32).reshape(64, 128))


def jax_matrix():
    jax = pytest.importorskip("jax")
    return jax.device_put(np.arange(64 * 128, dtype=np.float32).reshape(64, 128))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(64, 128, device="cuda"),
        lambda: torch.zeros(64, 128, device="cuda", requires_grad=True),
        lambda: torch.nn.Parameter(torch.zeros(64, 128, device="cuda")),
        lambda: torch.zeros(64, 128).pin_memory(),
        lambda: cupy.zeros((64, 128), cupy.float32),
        numba_matrix,
        jax_matrix,
    ],
    ids=["torch", "requires_grad", "Parameter", "pinned", "cupy", "numba", "jax"],
)
def test_every_library(device, make):
    tensor = make()
    params = cuda_tma.create_tensor_map(tensor, OPTIONS).params
    assert (params.data_type, params.global_dim, params.global_strides) == (7, (128, 64), (512,))
    address = tensor.data_ptr() if isinstance(tensor, torch.Tensor) else None
    assert address is None or params.global_address == address


def test_a_buffer_and_a_view_of_it(device, stream):
    buffer = device.allocate(64 * 128 * 4, stream=stream)
    stream.sync()
    assert cuda_tma.create_tensor_map(buffer, box_dim=(256,)).params.global_dim == (64 * 128 * 4,)
    view = cuda_tma.StridedMemoryView.from_buffer(buffer, (64, 128), dtype=np.dtype(np.float32))
    descriptor = view.as_tensor_map((16, 32))
    assert descriptor.params.global_address == int(buffer.handle)
    assert descriptor.params.global_dim == (128, 64)
    assert type(view.view(dtype=np.dtype(np.int32))) is cuda_tma.StridedMemoryView
    assert view.view(dtype=np.dtype(np.int32)).as_tensor_map((16, 32)).params.data_type == 3


def test_a_view_of_a_view_keeps_its_offset(device, stream):
    buffer = device.allocate(64 * 128 * 4, stream=stream)
    stream.sync()
    view = cuda_tma.StridedMemoryView.from_buffer(buffer, (64, 128), dtype=np.dtype(np.float32))
    layout = view._layout.to_dense()[8:, 32:]
    part = view.view(layout)
    assert part.ptr == view.ptr + 8 * 512 + 32 * 4
    params = part.as_tensor_map((16, 32)).params
    assert (params.global_address, params.global_dim, params.global_strides) == (part.ptr, (96, 56), (512,))


def test_a_view_without_a_dtype_needs_one(device, stream):
    buffer = device.allocate(64 * 128 * 4, stream=stream)
    stream.sync()
    view = cuda_tma.StridedMemoryView.from_buffer(buffer, (64, 128), itemsize=4)
    with pytest.raises(TensorMapError, match=r"untyped \(4-byte elements\).*pass data_type="):
        view.as_tensor_map((16, 32))
    params = view.as_tensor_map((16, 32), data_type="float32").params
    assert (params.data_type, params.global_dim, params.global_strides) == (7, (128, 64), (512,))


def test_torch_through_its_array_interface_is_still_owned(device):
    x = matrix(device)
    view = cuda_tma.StridedMemoryView.from_cuda_array_interface(x, stream_ptr=-1)
    descriptor = view.view(dtype=np.dtype(np.int32)).as_tensor_map((16, 32))
    assert descriptor.tensor is x and not descriptor.is_stale()
    x.data = torch.zeros_like(x)
    assert descriptor.is_stale()


def test_every_inherited_constructor(device):
    x = matrix(device)
    View = cuda_tma.StridedMemoryView
    with pytest.warns(DeprecationWarning):
        direct = View(x, stream_ptr=-1)
    array = cupy.zeros((64, 128), cupy.float32)
    for view, source in [
        (direct, x),
        (View.from_dlpack(x, stream_ptr=-1), x),
        (View.from_any_interface(x, stream_ptr=0), x),
        (View.from_cuda_array_interface(array, stream_ptr=-1), array),
    ]:
        assert type(view) is View
        assert (view.shape, view.dtype, view.device_id) == ((64, 128), np.float32, 0)
        # cuda.core uses None for the strides of C-contiguous arrays.
        assert view.strides in ((128, 1), None)
        assert view.exporting_obj is source
        assert view.as_tensor_map((16, 32)).params.global_dim == (128, 64)
    host = View.from_array_interface(np.zeros((4, 4), np.float32))
    with pytest.raises(TensorMapError, match="host memory"):
        host.as_tensor_map((4, 4))


def test_views_of_the_view_of_a_buffer(device):
    """In the test, each view contains a Buffer of cuda.core, which has less information than the tensor."""
    View = cuda_tma.StridedMemoryView
    x = matrix(device)
    again = View.from_any_interface(View.from_any_interface(x, stream_ptr=-1).view(), stream_ptr=-1)
    assert (again.shape, again.dtype, again.device_id, again.is_device_accessible) == ((64, 128), np.float32, 0, True)
    descriptor = again.as_tensor_map((16, 32))
    assert descriptor.tensor is x and bytes(descriptor) == bytes(cuda_tma.create_tensor_map(x, box_dim=(16, 32)))
    host = np.ones((4, 8), np.float32)
    again = View.from_any_interface(View.from_any_interface(host, stream_ptr=-1).view(), stream_ptr=-1)
    assert (again.ptr, again.device_id) == (host.ctypes.data, -1)
    assert View.from_any_interface(x[:0, :32], stream_ptr=-1).view().shape == (0, 32)


def test_a_view_waits_for_the_default_stream(device):
    """With stream_ptr=0, the legacy default stream waits for pending work of the current stream."""
    x = torch.zeros(64, 128, device="cuda")
    side = torch.cuda.Stream()
    for view_type in (cuda_tma.StridedMemoryView, CoreView):
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            # The current stream has pending work of the tensor.
            view_type.from_dlpack(x, 0)
        done = torch.cuda.Event()
        done.record(torch.cuda.default_stream())
        # The default stream waits for the current stream.
        assert not done.query(), view_type
        done.synchronize()


def test_a_closed_buffer_is_refused(device, stream):
    buffer = device.allocate(256, stream=stream)
    buffer.close(stream)
    source = 'extern "C" __global__ void take(float* p) {}'
    kernel = (
        core.Program(source, "c++", core.ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("take")
    )
    with pytest.raises(TypeError, match="argument 0 .* a Buffer was passed"):
        cuda_tma.launch(stream, core.LaunchConfig(grid=1, block=1), kernel, buffer)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_fp8_views(device, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = torch.zeros(64, 128, device="cuda").to(getattr(torch, name))
    view = cuda_tma.StridedMemoryView.from_any_interface(x, stream_ptr=-1)
    assert view.dtype == np.dtype(getattr(ml_dtypes, name))
    assert view.as_tensor_map((16, 32)).params.data_type == cuda_tma.TensorMapDataType.UINT8


def test_memory_that_the_gpu_cannot_read_is_refused(device):
    with pytest.raises(TensorMapError, match="host memory"):
        cuda_tma.create_tensor_map(torch.zeros(64, 128), OPTIONS)
    with pytest.raises(TensorMapError, match="host memory"):
        cuda_tma.create_tensor_map(np.zeros((64, 128), np.float32), OPTIONS)


def test_a_thread_without_a_context_gets_an_error(device):
    script = (
        "import cuda_tma, torch, threading\n"
        "x = torch.zeros(64, 128, device='cuda')\n"
        "def work():\n"
        "    try: cuda_tma.create_tensor_map(x, box_dim=(16, 32))\n"
        "    except cuda_tma.TensorMapError as error: print(error)\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "no CUDA context is current" in out and "set_current" in out


def assert_fine(script):
    """Run a script in a separate process, and assert that the process ends without an error."""
    child = subprocess.run([sys.executable, "-c", script + "print('fine')\n"], capture_output=True, text=True)
    assert child.stdout.strip() == "fine", child.stderr


@pytest.mark.parametrize(
    "script",
    [
        "core.Device(0).set_current(); d = cuda_tma.Device(0)",
        "d = cuda_tma.Device(0); d.set_current()",
        "d = cuda_tma.Device(0); core.Device(0).set_current()",
        "core.Device(0); d = cuda_tma.Device(0); d.set_current()",
    ],
)
def test_either_device_class_may_come_first(script):
    """cuda.core keeps one Device object per thread and ordinal, of the class that the process used first."""
    checks = (
        "import cuda_tma, numpy as np; from cuda import core\n" + script + "\n"
        "assert type(core.Device(0)) is core.Device and not hasattr(core.Device(0), 'create_tensor_map')\n"
        "assert type(core.Device(0)) is type(core.Device())\n"
        "assert isinstance(d, core.Device) and d == core.Device(0) and core.Device(0) == d\n"
        "assert hash(d) == hash(core.Device(0)) and d.device_id == 0 and len({d, core.Device(0)}) == 1\n"
        "assert type(cuda_tma.Device()) is cuda_tma.Device and repr(d)\n"
        "s = d.create_stream(); b = d.allocate(4096, stream=s); s.sync()\n"
        "assert d.context.handle == core.Device(0).context.handle\n"
        "assert d.properties.compute_capability_major == d.compute_capability[0]\n"
        "assert d.create_tensor_map(b, cuda_tma.TensorMapOptions((256,))).device == core.Device(0)\n"
        "e = d.create_event(); core.Program('extern \"C\" __global__ void k() {}', 'c++', core.ProgramOptions())\n"
        "core.DeviceMemoryResource(d); s.device == d\n"
    )
    assert_fine(checks)


def test_importing_changes_nothing_in_cuda_core():
    script = (
        "from cuda import core; import cuda.core.utils as u\n"
        "before = {c: dict(vars(c)) for c in (core.Device, u.StridedMemoryView, core.Stream)}; l = core.launch\n"
        "import cuda_tma\n"
        "assert all(dict(vars(c)) == d for c, d in before.items()) and core.launch is l\n"
    )
    assert_fine(script)


def test_an_export_does_not_wait_for_the_gpu(device):
    """A call that creates a map during a long kernel returns before the kernel ends."""
    x = matrix(device)
    cuda_tma.create_tensor_map(x, OPTIONS)
    for tensor in (x, cupy.from_dlpack(x)):
        done = torch.cuda.Event()
        torch.cuda._sleep(2_000_000_000)
        done.record()
        cuda_tma.create_tensor_map(tensor, OPTIONS)
        assert not done.query(), f"exporting a {type(tensor)} waited for the stream"
        torch.cuda.synchronize()


def test_a_map_that_cuda_bindings_encoded_is_adopted(device):
    """The driver encodes a CUtensorMap through cuda.bindings. The descriptor contains exactly the bytes of this map."""
    from cuda.bindings import driver

    x = matrix(device)
    made = cuda_tma.create_tensor_map(x, OPTIONS)
    p = made.params
    enum = driver.CUtensorMapDataType, driver.CUtensorMapInterleave, driver.CUtensorMapSwizzle
    counts = [[driver.cuuint64_t(n) for n in values] for values in (p.global_dim, p.global_strides)]
    boxes = [[driver.cuuint32_t(n) for n in values] for values in (p.box_dim, p.element_strides)]
    result, native = driver.cuTensorMapEncodeTiled(
        enum[0](p.data_type), p.rank, p.global_address, *counts, *boxes, enum[1](p.interleave), enum[2](p.swizzle),
        driver.CUtensorMapL2promotion(p.l2_promotion), driver.CUtensorMapFloatOOBfill(p.oob_fill))  # fmt: skip
    assert result == driver.CUresult.CUDA_SUCCESS
    adopted = cuda_tma.TensorMapDescriptor.from_bytes(native, x)
    assert adopted == made and adopted.tensor is x and hash(adopted) == hash(made)


def test_a_hash_outlives_the_address(device):
    x = matrix(device)
    descriptor = cuda_tma.create_tensor_map(x, OPTIONS)
    before = hash(descriptor)
    descriptor.replace_address(x.clone())
    assert hash(descriptor) == before


def test_an_address_is_replaced_in_the_maps_own_context(device):
    """The address of a map is replaced in the map's own context. In another context of the same device, the driver
    would replace the address without an error."""
    script = (
        "import torch, cuda_tma; from cuda.bindings import driver as d\n"
        "x = torch.zeros(64, 128, device='cuda')\n"
        "m = cuda_tma.create_tensor_map(x, box_dim=(16, 32)); before = bytes(m)\n"
        "made = d.cuCtxCreate(None, 0, 0) if d.CUDA_VERSION >= 13000 else d.cuCtxCreate(0, 0)\n"
        "assert made[0] == 0\n"
        "try: m.replace_address(x.data_ptr())\n"
        "except cuda_tma.TensorMapError as error: print(error)\n"
        "assert bytes(m) == before; d.cuCtxPopCurrent(); m.replace_address(x.data_ptr())\n"
    )
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "the map was made in context 0x" in child.stdout and child.returncode == 0, child.stderr
