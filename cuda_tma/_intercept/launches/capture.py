"""The conversion of a launch that is about to run to a recorded launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..._budget import RECORDED_BYTES
from ...simulate._config import Config
from ...simulate._device.device import Device
from ...simulate._kernel import Kernel
from ...simulate._tensor_map import TensorMap
from .recorded import MemorySegment, RecordedLaunch

__all__ = ["MemoryTooLarge", "captured"]


class MemoryTooLarge(Exception):
    """The error for a launch whose memory does not fit into a recording."""


def captured(device: Device, config: Config, loaded: Kernel, arguments: Sequence[Any], **known: Any) -> RecordedLaunch:
    """Return a launch together with the present content of its device's whole memory.

    Parameters
    ----------
    device : Device
    config : Config
    loaded : Kernel
    arguments : sequence
        The arguments of :meth:`Device.launch`.
    **known
        The other fields of :class:`RecordedLaunch`, which are `kernel`, `runtime`, `sources`, `generated` and
        `launched_at`.

    Raises
    ------
    TypeError, ValueError
        If the arguments or the configuration of the launch are wrong.
    MemoryTooLarge
    """
    memory = device._memory
    with memory.launch() as address:
        block = device._block(loaded, arguments, address)
        total = sum(len(segment.bytes) for segment in memory)
        if total > RECORDED_BYTES:
            raise MemoryTooLarge(f"its memory has {total} bytes, more than the {RECORDED_BYTES} bytes of a recording")
        segments = tuple(
            MemorySegment(segment.start, segment.bytes.tobytes(), segment.name, not segment.writeable)
            for segment in memory
        )
        next_address, formers = memory.next_address, memory.formers
    declared = loaded.program.entry.function.params
    module = loaded.program.module
    return RecordedLaunch(
        entry=loaded.name,
        ptx=loaded.ptx,
        config=replace(config, shmem_size=config.shmem_size or loaded.parameters.dynamic_shared_bytes),
        arguments=tuple(block[each.offset : each.offset + each.size_bytes].tobytes() for each in declared),
        tensor_maps=tuple(number for number, each in enumerate(arguments) if isinstance(each, TensorMap)),
        memory=segments,
        variables={
            name: loaded.program.addresses[name]
            for name, variable in module.variables.items()
            if variable.space in ("global", "const")
        },
        formers=formers,
        next_address=next_address,
        compute_capability=device.compute_capability,
        multiprocessor_count=device.multiprocessor_count,
        source=loaded.source,
        parameter_names=tuple(parameter.name for parameter in loaded.parameters),
        **known,
    )
