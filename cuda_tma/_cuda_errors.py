"""The table of the driver's errors and their meaning in programs with TMA.

Errors of the package, the command line and the documentation use the table.

The names, the texts and the list of sticky errors are from the CUDA 13.5 driver API, ``CUresult``. The driver API
documents no causes in TMA. The causes in each row were observed on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CUDA_ERRORS", "DOCUMENTED", "OBSERVED", "CudaError", "explain_error", "find_error"]

DOCUMENTED = "CUDA 13.5 driver API, CUresult (documented, not verified on hardware)"
OBSERVED = "CUDA 13.5 driver API, CUresult; observed: driver 580, sm_90"
# Each row contains the number of an error, and causes of the error that were observed on a GPU.
_CAUSES = {
    700: (
        "the map is a copy in local memory",
        "the map is a copy in shared memory",
        "the map's address is 0",
        "the map's address is wild",
        "the map was freed",
        "a map at a wild address is prefetched",
        "a box is prefetched by a map at a wild address",
        "the map's tensor was freed",
        "the map's tensor ends past its memory",
        "the map's tensor has address 0",
        "the map of a store has a wild tensor",
        "the tile runs over the end of shared memory",
        "the stored tile runs over the end of shared memory",
        "a bulk load of more than shared memory",
        "a bulk load from a wild address",
        "a bulk load from shared memory's address",
        "a bulk store to a wild address",
        "a barrier is made outside of shared memory",
        "an arrival outside of shared memory",
        "a wgmma whose descriptor is all ones",
        "a wgmma of matrices past the end of shared memory",
    ),
    715: (
        "the map's bytes are zeros",
        "a rank-2 map in a rank-1 load",
        "a rank-2 map in a rank-3 load",
        "a rank-3 map in a rank-2 load",
        "a rank-2 map in a rank-5 load",
        "a tiled map in an im2col load",
        "an im2col map in a tiled load",
        "a rank-2 map in a rank-3 store",
        "a rank-2 map in a rank-1 store",
        "a reduction with an operation that the type does not have",
        "the map has an invalid data type",
        "the map has an invalid interleave",
        "the map has rank 8",
        "the box is wider than the swizzle's span",
        "the box's rows are not a multiple of 16 bytes",
        "interleave 32B with rank 2",
        "the innermost coordinate is not a multiple of 16 bytes",
        "an arrival at global memory",
        "a named barrier with a count that is not a multiple of 32",
        "multicast without a cluster, to CTAs 0 and 1",
        "a wgmma of one warp",
    ),
    716: (
        "the map lies 32 bytes past a multiple of 64",
        "the map lies 16 bytes past a multiple of 64",
        "the map lies 1 byte past a multiple of 64",
        "the tile is 64 bytes past a multiple of 128",
        "the tile is 16 bytes past a multiple of 128",
        "the tile is 8 bytes past a multiple of 128",
        "the stored tile is 64 bytes past a multiple of 128",
        "the stored tile is 16 bytes past a multiple of 128",
        "a bulk load from 8 bytes past a multiple of 16",
        "a bulk load to 8 bytes past a multiple of 16",
        "a bulk load from an odd wild address",
        "a bulk store to 8 bytes past a multiple of 16",
        "a load counted 4 bytes past a barrier",
        "a barrier is made 4 bytes past a multiple of 8",
    ),
    719: (
        "more arrive than the barrier expects",
        "an arrival 4 bytes past a barrier",
        "an arrival at a barrier that was never made",
        "an arrival at address 0",
        "more bytes are expected than the tx-count holds",
        "2^20 bytes are expected",
        "multicast to CTAs that the cluster does not have",
        "multicast to CTA 7 of a cluster of 2",
        "multicast to a CTA that has ended",
        "an arrival at CTA 7 of a cluster of 2",
        "an arrival at a CTA that has ended",
        "a store to CTA 7 of a cluster of 2",
        "a store to a CTA that has ended",
        "a load of CTA 7 of a cluster of 2",
        "a load of a CTA that has ended",
        "a bulk copy to CTA 7 of a cluster of 2",
        "a bulk copy to a CTA that has ended",
    ),
}


@dataclass(frozen=True, slots=True)
class CudaError:
    """One error of the driver.

    Attributes
    ----------
    number : int
        The number in ``CUresult``, and in ``cudaError_t``.
    name, runtime_name : str
        The names in the driver API and in the runtime API.
    text : str
        The text of ``cuGetErrorString``.
    is_sticky : bool
        Whether the error destroys the context of the kernel. Nearly every later call then returns the same error.
    meaning : str
        The meaning of the error for the call that returned it.
    causes : tuple of str
        The recorded causes of the error in TMA.
    source : str
        The source of the row: a document or an observation.
    """

    number: int
    name: str
    runtime_name: str
    text: str
    is_sticky: bool = False
    meaning: str = ""
    causes: tuple[str, ...] = ()
    source: str = DOCUMENTED


_STICKY = (
    "it is sticky: a kernel of this context ended in it, and since then nearly every call returns it, even the "
    "creation of a valid tensor map. Check the earlier launches: run again with CUDA_LAUNCH_BLOCKING=1, and the "
    "first launch to fail is the cause. The process must be restarted"
)


_USABLE = "No kernel ended in it; the context is still usable"


def _of_the_call(number: int, name: str, runtime_name: str, text: str, meaning: str) -> CudaError:
    return CudaError(number, name, runtime_name, text, meaning=f"{meaning}. {_USABLE}")


def _sticky(number: int, name: str, runtime_name: str, text: str, source: str = OBSERVED) -> CudaError:
    return CudaError(number, name, runtime_name, text, True, _STICKY, _CAUSES.get(number, ()), source)


_ROWS = (
    CudaError(
        1,
        "CUDA_ERROR_INVALID_VALUE",
        "cudaErrorInvalidValue",
        "invalid argument",
        meaning="this call's own arguments are at fault, and the context is still usable",
        source=OBSERVED,
    ),
    CudaError(
        201,
        "CUDA_ERROR_INVALID_CONTEXT",
        "cudaErrorDeviceUninitialized",
        "invalid device context",
        meaning="no context is current in this thread: make the device's current before a tensor map is created",
        source=OBSERVED,
    ),
    _sticky(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    CudaError(
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "cudaErrorLaunchOutOfResources",
        "too many resources requested for launch",
        meaning="this launch needs more threads, registers or shared memory than exist; the context is still usable",
    ),
    _sticky(
        702,
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "cudaErrorLaunchTimeout",
        "the launch timed out and was terminated",
        DOCUMENTED,
    ),
    _of_the_call(
        703,
        "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING",
        "cudaErrorLaunchIncompatibleTexturing",
        "launch uses incompatible texturing mode",
        "this launch binds textures in a way that its kernel does not accept",
    ),
    _of_the_call(
        704,
        "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        "cudaErrorPeerAccessAlreadyEnabled",
        "peer access is already enabled",
        "this context can already read that device's memory: the call was not needed",
    ),
    _of_the_call(
        705,
        "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
        "cudaErrorPeerAccessNotEnabled",
        "peer access has not been enabled",
        "peer access was to be disabled, but was never enabled",
    ),
    _of_the_call(
        708,
        "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
        "cudaErrorSetOnActiveProcess",
        "cannot set while device is active in this process",
        "the device's context already existed: set its flags before the first call that needs it",
    ),
    CudaError(
        709,
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        "cudaErrorContextIsDestroyed",
        "context is destroyed",
        meaning="the context that is current in this thread was destroyed, or its device was reset: its memory no "
        "longer exists, including tensors and the targets of tensor maps",
    ),
    _sticky(710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered"),
    _of_the_call(
        711,
        "CUDA_ERROR_TOO_MANY_PEERS",
        "cudaErrorTooManyPeers",
        "peer mapping resources exhausted",
        "this device cannot have as many peers as were requested",
    ),
    _of_the_call(
        712,
        "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        "cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped",
        "this host memory, or part of it, is already pinned",
    ),
    _of_the_call(
        713,
        "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
        "cudaErrorHostMemoryNotRegistered",
        "pointer does not correspond to a registered memory region",
        "this host memory was not pinned by cuMemHostRegister",
    ),
    _sticky(714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError", "hardware stack error", DOCUMENTED),
    _sticky(
        715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", "an illegal instruction was encountered"
    ),
    _sticky(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", "misaligned address"),
    _sticky(
        717,
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "cudaErrorInvalidAddressSpace",
        "operation not supported on global/shared address space",
    ),
    _sticky(718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", "invalid program counter"),
    _sticky(719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure"),
    CudaError(
        720,
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        "cudaErrorCooperativeLaunchTooLarge",
        "too many blocks in cooperative launch",
        meaning="this cooperative launch has more CTAs than fit on the device at once; the context is still usable",
        source=OBSERVED,
    ),
    CudaError(
        801,
        "CUDA_ERROR_NOT_SUPPORTED",
        "cudaErrorNotSupported",
        "operation not supported",
        meaning="this device does not support it: tensor maps need compute capability 9.0",
    ),
    CudaError(
        912,
        "CUDA_ERROR_INVALID_CLUSTER_SIZE",
        "cudaErrorInvalidClusterSize",
        "a kernel launch error has occurred due to cluster misconfiguration",
        meaning="this launch's grid and cluster do not fit each other or the device; the context is still usable",
        source=OBSERVED,
    ),
    CudaError(
        999,
        "CUDA_ERROR_UNKNOWN",
        "cudaErrorUnknown",
        "unknown error",
        meaning="an internal error of unknown cause; if the earlier calls succeeded and the map breaks no rule, check "
        "the earlier launches as for a sticky error",
    ),
)
CUDA_ERRORS = {row.number: row for row in _ROWS}
_BY_NAME = {name: row for row in _ROWS for name in (row.name, row.runtime_name)}


def find_error(given: int | str) -> CudaError | None:
    """Return the error with a number, or with a name in either API.

    Return None if the table does not contain the error.

    >>> find_error(716) == find_error("cudaErrorMisalignedAddress"), find_error("CUDA_SUCCESS")
    (True, None)
    """
    return CUDA_ERRORS.get(given) if isinstance(given, int) else _BY_NAME.get(given)


def explain_error(given: int | str) -> str:
    """Return the meaning of an error in TMA, as the end of a message.

    The text is empty if the table does not contain the error.

    >>> print(explain_error("CUDA_ERROR_NOT_SUPPORTED"))
    : this device does not support it: tensor maps need compute capability 9.0
    """
    error = find_error(given)
    if error is None:
        return ""
    more = f" (causes of {error.number} in TMA: cuda-tma explain {error.number})" if error.is_sticky else ""
    return f": {error.meaning}{more}"
