"""Make a random sequence of calls of ``libcuda.so.1``, and compare the results with a model.

The arguments are ``python driver_calls.py NUMBER CALLS``.

The model contains the content of each allocation, and the live streams, events, modules and functions. A call with only
right arguments must succeed, and memory must have the content of the model. A call with an ended or unknown handle, or
beyond an allocation, must return an error and change nothing.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from random import Random

import numpy as np

PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 values, .param .u32 number) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [values];
    ld.param.u32 %r3, [number];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""
u64, pointer, size = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t
MOST = 12  # MOST limits the number of objects of each kind that exist at the same time.


class Sequence:
    """The model of the driver, and the library that the model is compared with."""

    def __init__(self, number: int):
        self.draw, self.cuda, self.faults = Random(number), ctypes.CDLL("libcuda.so.1"), list[str]()
        self.memory: dict[int, np.ndarray] = {}
        self.live: dict[str, list[int]] = {"stream": [], "event": [], "module": []}
        self.ended: dict[str, list[int]] = {"memory": [], "stream": [], "event": [], "module": []}
        self.recorded: set[int] = set()
        context = pointer()
        self.must("cuInit", 0)
        self.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.must("cuCtxSetCurrent", context)

    # ---- calls ----

    def must(self, entry: str, *arguments: object) -> None:
        """Call an entry, which must succeed."""
        if status := getattr(self.cuda, entry)(*arguments):
            self.faults.append(f"{entry}{arguments} returns {status}, not 0")

    def must_not(self, entry: str, *arguments: object) -> None:
        """Call an entry, which must return an error."""
        if not getattr(self.cuda, entry)(*arguments):
            self.faults.append(f"{entry}{arguments} returns 0, not an error")

    def made(self, kind: str, entry: str, *arguments: object) -> None:
        """Make an object. If there are many objects, end the oldest object."""
        if len(self.live[kind]) >= MOST:
            self.end(kind)
        handle = u64()
        self.must(entry, ctypes.byref(handle), *arguments)
        if handle.value in self.live[kind] or not handle.value:
            self.faults.append(f"{entry} returns the handle {handle.value:#x} of a live object")
        self.live[kind].append(handle.value)

    def end(self, kind: str) -> None:
        """End a live object of the given kind."""
        if self.live[kind]:
            handle = self.live[kind].pop(self.draw.randrange(len(self.live[kind])))
            self.ended[kind] = [*self.ended[kind][-20:], handle]
            self.recorded.discard(handle)
            self.must({"stream": "cuStreamDestroy_v2", "event": "cuEventDestroy_v2", "module": "cuModuleUnload"}[kind],
                      u64(handle))  # fmt: skip

    def gone(self, kind: str) -> int:
        """Return the handle of an object that no longer exists and that is not in use again, or 0 without such a
        handle.

        The model uses only handles that the library has returned, because NVIDIA's library also reads memory at other
        values.
        """
        known = self.memory if kind == "memory" else self.live[kind]
        found = [each for each in self.ended[kind] if each not in known]
        return self.draw.choice(found) if found else 0

    def some(self) -> tuple[int, np.ndarray]:
        """Return an allocation. If there are few allocations, the result is often a new allocation."""
        if not self.memory or (len(self.memory) < MOST and self.draw.random() < 0.2):
            self.allocate()
        address = self.draw.choice([*self.memory])
        return address, self.memory[address]

    def stream(self) -> u64:
        return u64(self.draw.choice([0, *self.live["stream"]]))

    # ---- right calls ----

    def allocate(self) -> None:
        """Allocate memory, and fill the memory with known bytes."""
        if len(self.memory) >= MOST:
            self.free()
        count, address = self.draw.choice((1, 3, 64, 1000, 4096)), u64()
        self.must("cuMemAlloc_v2", ctypes.byref(address), size(4 * count))
        begin, end = address.value, address.value + 4 * count
        if any(begin < at + held.nbytes and at < end for at, held in self.memory.items()):
            self.faults.append(f"cuMemAlloc_v2 returns {begin:#x}, inside of a live allocation")
        self.memory[begin] = np.full(count, self.draw.getrandbits(32), np.uint32)
        self.must("cuMemsetD32_v2", address, int(self.memory[begin][0]), size(count))

    def free(self) -> None:
        address, _ = self.some()
        del self.memory[address]
        self.ended["memory"] = [*self.ended["memory"][-20:], address]
        self.must("cuMemFree_v2", u64(address))

    def part(self) -> tuple[int, np.ndarray]:
        """Return the address of a part of an allocation, and the content of the part in the model."""
        address, held = self.some()
        first = self.draw.randrange(len(held))
        return address + 4 * first, held[first : first + self.draw.randint(1, len(held) - first)]

    def write(self) -> None:
        address, held = self.part()
        held[:] = np.arange(len(held), dtype=np.uint32) * np.uint32(self.draw.getrandbits(32))
        content = held.copy()
        if self.draw.random() < 0.5:
            self.must("cuMemcpyHtoD_v2", u64(address), pointer(content.ctypes.data), size(content.nbytes))
        else:
            stream = self.stream()
            self.must("cuMemcpyHtoDAsync_v2", u64(address), pointer(content.ctypes.data), size(content.nbytes), stream)
            self.must("cuStreamSynchronize", stream)

    def read(self) -> None:
        address, held = self.part()
        found = np.zeros_like(held)
        self.must("cuMemcpyDtoH_v2", pointer(found.ctypes.data), u64(address), size(found.nbytes))
        if not np.array_equal(found, held):
            self.faults.append(f"{len(held)} words at {address:#x} differ from the model")

    def copy(self) -> None:
        (to, target), (source, held) = self.part(), self.part()
        count = min(len(target), len(held))
        if not (to < source + 4 * count and source < to + 4 * count):
            target[:count] = held[:count]
            self.must("cuMemcpyDtoD_v2", u64(to), u64(source), size(4 * count))

    def fill(self) -> None:
        address, held = self.part()
        held[:] = value = self.draw.getrandbits(32)
        self.must("cuMemsetD32_v2", u64(address), value, size(len(held)))

    def launch(self) -> None:
        if not self.live["module"]:
            self.made("module", "cuModuleLoadData", PTX)
        function, (address, held) = u64(), self.part()
        self.must("cuModuleGetFunction", ctypes.byref(function), u64(self.draw.choice(self.live["module"])), b"add")
        threads, number, at = min(len(held), 1024), ctypes.c_uint32(self.draw.getrandbits(32)), u64(address)
        held[:threads] += np.uint32(number.value)
        values, stream = (pointer * 2)(ctypes.addressof(at), ctypes.addressof(number)), self.stream()
        self.must("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, stream, values, None)

    def event(self) -> None:
        if not self.live["event"]:
            self.made("event", "cuEventCreate", 0)
        event = self.draw.choice(self.live["event"])
        self.must("cuEventRecord", u64(event), self.stream())
        self.recorded.add(event)
        self.must("cuEventSynchronize", u64(event))
        self.must("cuEventQuery", u64(event))

    # ---- wrong calls ----

    def wrong_memory(self) -> None:
        """Use freed memory, or memory beyond an allocation."""
        address, held = self.some()
        found, gone = np.zeros(len(held) + 70_000, np.uint32), self.gone("memory")
        if self.draw.random() < 0.5:
            self.must_not("cuMemcpyDtoH_v2", pointer(found.ctypes.data), u64(address), size(found.nbytes))
        elif gone and not any(at <= gone < at + each.nbytes for at, each in self.memory.items()):
            self.must_not("cuMemcpyHtoD_v2", u64(gone), pointer(found.ctypes.data), size(4))
            self.must_not("cuMemFree_v2", u64(gone))

    def wrong_handle(self) -> None:
        """Use an ended stream, event or module."""
        kind = self.draw.choice(("stream", "event", "module"))
        gone, out = u64(self.gone(kind)), u64()
        if not gone.value:
            return
        if kind == "stream":
            self.must_not(self.draw.choice(("cuStreamSynchronize", "cuStreamQuery", "cuStreamDestroy_v2")), gone)
        elif kind == "event":
            self.must_not(self.draw.choice(("cuEventSynchronize", "cuEventQuery", "cuEventDestroy_v2")), gone)
        else:
            self.must_not("cuModuleGetFunction", ctypes.byref(out), gone, b"add")

    def wrong_launch(self) -> None:
        """Request a function that does not exist, or launch with a wrong configuration."""
        if not self.live["module"]:
            self.made("module", "cuModuleLoadData", PTX)
        function, module = u64(), u64(self.live["module"][0])
        self.must_not("cuModuleGetFunction", ctypes.byref(function), module, b"no_function")
        self.must("cuModuleGetFunction", ctypes.byref(function), module, b"add")
        threads = self.draw.choice((0, 1025, 1 << 31))
        values = (pointer * 2)(ctypes.addressof(u64()), ctypes.addressof(u64()))
        self.must_not("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, u64(), values, None)

    # ---- the sequence ----

    def run(self, calls: int) -> None:
        """Make random calls until a call is wrong."""
        kinds: list[tuple[Callable[[], object], int]] = [
            (self.allocate, 2), (self.free, 2), (self.write, 6), (self.read, 6), (self.copy, 4), (self.fill, 3),
            (self.launch, 3), (self.event, 3), (self.wrong_memory, 2), (self.wrong_handle, 2), (self.wrong_launch, 1),
            (lambda: self.made("stream", "cuStreamCreate", 0), 1), (lambda: self.end("stream"), 1),
            (lambda: self.made("event", "cuEventCreate", 0), 1), (lambda: self.end("event"), 1),
            (lambda: self.made("module", "cuModuleLoadData", PTX), 1), (lambda: self.end("module"), 1),
        ]  # fmt: skip
        for _ in range(calls):
            self.draw.choices([call for call, _ in kinds], [weight for _, weight in kinds])[0]()
            if self.faults:
                break


if __name__ == "__main__":
    sequence = Sequence(int(sys.argv[1]))
    sequence.run(int(sys.argv[2]))
    print(*sequence.faults, sep="\n")
    print(f"{sys.argv[2]} calls, {len(sequence.faults)} faults")
