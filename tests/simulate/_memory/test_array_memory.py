"""Tests of arrays as memory of kernels. Each array has a unique simulated address until Python deletes the array."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from cuda_tma.simulate import Config, UnsupportedInstruction
from cuda_tma.simulate._device import device
from tests.support.array_kernels import FOUR, ONE_TO_FOUR, Exporter, zeros


def segments(gpu):
    return len([*gpu._memory])


# ---- storage that moves ----


def test_a_resized_tensor_has_another_address(gpu, put, torch):
    tensor = torch.zeros(1000)
    address = gpu.address(tensor)
    tensor.resize_(5_000_000)
    others = [np.full(1000, 3, np.float32) for _ in range(3)]
    (finding,) = gpu.launch(FOUR, put, address).findings
    assert finding.kind == "out-of-bounds"
    assert finding.message == (
        f"a write of 4 bytes at 0x{address:x}, where the UntypedStorage of 4000 bytes lay before its storage moved (a "
        "resize moves it): take the address again after that"
    )
    assert all((other == 3).all() for other in others)
    gpu.launch(FOUR, put, gpu.address(tensor)).raise_for_errors()
    assert tensor[:4].tolist() == ONE_TO_FOUR


def test_a_view_of_an_array_that_was_resized_is_refused(gpu, put):
    array = zeros(1000)
    view, before = array[:10], segments(gpu)
    array.resize(20_000_000, refcheck=False)
    with pytest.raises(
        ValueError,
        match=r"the array begins at 0x\w+, outside the array of shape \(20000000,\), .*create the view again",
    ):
        gpu.launch(FOUR, put, view)
    assert segments(gpu) == before
    gpu.launch(FOUR, put, array).raise_for_errors()
    assert array[:5].tolist() == [*ONE_TO_FOUR, 0]
    # NumPy keeps the memory of a mapped array.
    with pytest.raises(ValueError, match="cannot resize an array"):
        array.resize(1, refcheck=False)


# ---- memory that is freed ----


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_freed_memory_is_unmapped(gpu, put, library):
    tensor = pytest.importorskip("torch").zeros(4) if library == "torch" else zeros(4)
    address, before = gpu.address(tensor), segments(gpu)
    del tensor
    (finding,) = gpu.launch(FOUR, put, address).findings
    assert finding.kind == "out-of-bounds"
    assert f"at 0x{address:x}, where the " in finding.message
    assert "lay, which is freed: keep the array as long as a kernel may use its address" in finding.message
    assert segments(gpu) == before - 1


def test_memory_that_is_used_again_is_another_array(gpu, put, torch):
    """In the test, a new tensor gets the storage that a resize of another tensor has freed."""
    for length in range(700, 750):
        tensor = torch.zeros(length)
        gpu.launch(FOUR, put, tensor).raise_for_errors()
        assert tensor[:5].tolist() == [*ONE_TO_FOUR, 0]
        tensor.resize_(200_000)


@pytest.mark.parametrize("library", ["numpy", "torch", "dlpack"])
def test_no_array_outlives_its_last_user(gpu, put, library):
    make = {"numpy": zeros, "dlpack": lambda count: Exporter(zeros(count))}.get(library)
    array = (make or pytest.importorskip("torch").zeros)(1 << 10)
    memory = weakref.ref(array.untyped_storage() if library == "torch" else array)
    gpu.launch(FOUR, put, array).raise_for_errors()
    before = segments(gpu)
    del array
    assert memory() is None
    gpu.launch(FOUR, put, zeros(4)).raise_for_errors()
    # The array of the second launch replaces the deleted array.
    assert segments(gpu) == before


@pytest.mark.parametrize("trace", [False, True])
def test_the_notes_of_the_sanitizer_end_with_the_launch(gpu, put, monkeypatch, trace):
    """Python frees the sanitizer's shadow of an array at the end of the launch, without a collection of reference
    cycles."""
    made = []

    class Kept(device.Sanitizer):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            made.append(weakref.ref(self))

    monkeypatch.setattr(device, "Sanitizer", Kept)
    gc.disable()
    try:
        gpu.launch(FOUR, put, zeros(4), trace=trace).raise_for_errors()
        assert [sanitizer() for sanitizer in made] == [None]
    finally:
        gc.enable()


def test_an_export_ends_with_its_object(gpu, put):
    array = zeros(4)
    memory, exporter = weakref.ref(array), Exporter(array)
    gpu.launch(FOUR, put, exporter).raise_for_errors()
    del array, exporter
    gpu.launch(FOUR, put, zeros(4)).raise_for_errors()
    assert memory() is None


def test_an_address_lasts_as_long_as_any_tensor_of_its_storage(gpu, put, torch):
    whole = torch.zeros(8)
    address, part = gpu.address(whole), whole[2:]
    del whole
    gc.collect()
    gpu.launch(FOUR, put, address).raise_for_errors()
    assert part.tolist() == [3, 4, 0, 0, 0, 0]


def test_an_address_lasts_as_long_as_any_array_of_a_buffer(gpu, put):
    buffer = bytearray(64)
    first, second = np.frombuffer(buffer, np.float32, 2), np.frombuffer(buffer, np.float32)
    address = gpu.address(first)
    assert gpu.address(second) == address
    del first
    gpu.launch(FOUR, put, address).raise_for_errors()
    assert second[:5].tolist() == [*ONE_TO_FOUR, 0]


def test_the_part_that_lives_keeps_its_addresses(gpu, put):
    array = zeros(64)
    whole, part = Exporter(array), Exporter(array[32:40])
    address = gpu.address(whole)
    assert gpu.address(part) == address + 4 * 32
    del whole
    gpu.launch(FOUR, put, address + 4 * 32).raise_for_errors()
    assert array[31:37].tolist() == [0, *ONE_TO_FOUR, 0]
    for beyond in (31, 40):
        (finding,) = gpu.launch(FOUR, put, address + 4 * beyond).findings
        assert finding.kind == "out-of-bounds"
    assert array[:32].tolist() == [0] * 32


# ---- views of one memory, in any order ----


def test_a_smaller_view_may_come_first(gpu, add, torch):
    tensor, buffer, exported = torch.ones(32), bytearray(np.ones(32, np.float32)), np.ones(32, np.float32)
    pairs = [
        (tensor[:10].numpy(), tensor, tensor.numpy()),
        (np.frombuffer(buffer, np.float32, 8), np.frombuffer(buffer, np.float32), np.frombuffer(buffer, np.float32)),
        (np.frombuffer(memoryview(buffer)[:64], np.float32), np.frombuffer(buffer, np.float32, 20), None),
        (Exporter(exported[4:12]), Exporter(exported), exported),
        (np.from_dlpack(tensor[8:16]), tensor, tensor.numpy()),
    ]
    for small, large, values in pairs:
        seen = np.asarray(large) if values is None else values
        expected = seen.copy()
        expected[:4] += getattr(small, "array", small)[:4]
        gpu.launch(FOUR, add, small, large).raise_for_errors()
        np.testing.assert_array_equal(seen, expected)


def test_an_address_stays_when_a_larger_array_of_its_memory_is_mapped(gpu, put):
    whole = zeros(32)
    part = Exporter(whole[8:16])
    address = gpu.address(part)
    assert gpu.address(Exporter(whole)) == address - 32
    gpu.launch(FOUR, put, address).raise_for_errors()
    assert whole[7:13].tolist() == [0, *ONE_TO_FOUR, 0]


def test_two_parts_that_a_third_array_joins_are_refused(gpu):
    whole = zeros(64)
    parts = [Exporter(whole[:8]), Exporter(whole[32:40])]
    addresses = [gpu.address(part) for part in parts]
    with pytest.raises(ValueError, match=r"overlaps a mapped array and extends beyond it; pass the larger"):
        gpu.address(Exporter(whole))
    assert [gpu.address(part) for part in parts] == addresses


def test_an_array_whose_strides_are_negative_is_mapped_from_its_lowest_byte(gpu, put):
    """In the test, the array has negative strides, so that its first element has the highest address."""
    owner = np.ndarray(8, np.float32, bytearray(32), offset=28, strides=(-4,))
    owner[:] = 0
    address = gpu.address(owner)
    gpu.launch(FOUR, put, address - 28).raise_for_errors()
    assert owner[::-1].tolist() == [*ONE_TO_FOUR, 0, 0, 0, 0]
    copied = np.copy(np.zeros((2, 8), np.float32)[::-1, ::-1], order="K")
    address = gpu.address(copied)
    assert gpu.address(copied[-1:, -1:]) == address + copied.strides[0] + 7 * copied.strides[1]
    segment = gpu._memory.find(address)
    assert len(segment.bytes) == 64
    assert segment.bytes.ctypes.data == copied.ctypes.data + min(0, copied.strides[0]) + 7 * min(0, copied.strides[1])


def test_an_array_of_no_elements_is_an_address_of_nothing(gpu, put):
    empty = zeros(0)
    address = gpu.address(empty)
    assert gpu.address(empty) == address != gpu.address(zeros(0))
    (finding,) = gpu.launch(FOUR, put, empty).findings
    assert finding.kind == "out-of-bounds"
    assert f"a write of 4 bytes at 0x{address:x}" in finding.message


# ---- temporaries ----


@pytest.mark.parametrize("versioned", [False, True])
def test_an_object_that_has_dlpack_only_is_written(gpu, put, versioned):
    array = zeros(4)
    gpu.launch(FOUR, put, Exporter(array, versioned=versioned)).raise_for_errors()
    assert array.tolist() == ONE_TO_FOUR


def test_temporaries_stay_until_the_launch_ends(gpu, add):
    out = zeros(4)
    address = gpu.address(out)
    gpu.launch(FOUR, add, Exporter(np.ones(4, np.float32)), Exporter(out)).raise_for_errors()
    gpu.launch_all([(FOUR, add, np.ones(4, np.float32), address)])[0].raise_for_errors()
    assert out.tolist() == [2, 2, 2, 2]


def test_an_array_that_ends_in_another_thread_stays_until_the_launch_ends(gpu, ptx, monkeypatch):
    """An array stays alive until the end of a launch, even if the program deletes the last reference during the
    launch."""
    arrays, out = [np.ones(4, np.float32)], zeros(4)
    address, run = gpu.address(arrays[0]), device.run

    def run_meanwhile(*arguments):
        ends = threading.Thread(target=arrays.clear)
        ends.start()
        ends.join()
        gc.collect()
        gpu.address(zeros(4))
        return run(*arguments)

    monkeypatch.setattr(device, "run", run_meanwhile)
    gpu.launch(FOUR, gpu.load(ptx, "add"), address, out).raise_for_errors()
    assert out.tolist() == [1, 1, 1, 1]


# ---- variables of programs ----


def test_the_variables_of_a_program_end_with_it(gpu, ptx):
    put, array = gpu.load(ptx, "put"), zeros(4)
    before = segments(gpu)
    for _ in range(60):
        kernel = gpu.load(ptx, "keep")
        gpu.launch(FOUR, kernel, array).raise_for_errors()
    del kernel
    gpu.launch(FOUR, put, array).raise_for_errors()
    assert segments(gpu) == before + 1


def test_a_module_that_is_refused_leaves_no_variables(gpu):
    source = "__device__ int count; __global__ void f(cudaTextureObject_t t, float* out) "
    source += "{ count = 1; *out = tex2D<float>(t, 0, 0); }"
    with pytest.raises(UnsupportedInstruction):
        gpu.compile(source, "f")
    assert segments(gpu) == 0


def test_the_address_of_a_variable_whose_program_has_ended(gpu, put):
    source = 'extern "C" __device__ float sum[4]; extern "C" __global__ void where(float** out) { *out = sum; }'
    kernel, out = gpu.compile(source, "where"), np.zeros(1, np.int64)
    gpu.launch(Config(1, 1), kernel, out).raise_for_errors()
    gpu.launch(FOUR, put, int(out[0])).raise_for_errors()
    assert gpu.variable(kernel, "sum").view(np.float32).tolist() == ONE_TO_FOUR
    del kernel
    gc.collect()
    (finding,) = gpu.launch(FOUR, put, int(out[0])).findings
    assert "where the variable sum, 16 bytes lay, whose kernel is gone: keep the kernel" in finding.message
