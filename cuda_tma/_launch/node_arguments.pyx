"""The function that reads the arguments of a kernel node back from the driver."""

from libc.stdint cimport uintptr_t

from .._cuda.driver cimport CUfunction, CUgraphNode, KernelNodeParams, driver, ensure_driver, require_success
from .call cimport BUFFER_POINTER, BUFFER_SIZE
from .kernel_node cimport handle_of
from .signature cimport Parameter, Signature, signature_of

from cuda.core import Kernel

from ..rules import _graphs


def read_node(node, kernel):
    """Return the kernel of a node, and the bytes of each of the node's arguments; see cuda_tma.graph.arguments_of.

    Parameters
    ----------
    node : cuda.core.graph.KernelNode, cuda.bindings CUgraphNode or int
    kernel : Kernel or None
        The kernel of the node, or None to read it from the node. Not every node contains its kernel.

    Returns
    -------
    kernel : Kernel
    arguments : tuple of bytes
    """
    cdef KernelNodeParams native
    cdef CUgraphNode handle
    cdef Signature signature
    ensure_driver()
    handle = <CUgraphNode>handle_of(node, "node")
    require_success(driver.cuGraphKernelNodeGetParams(handle, &native), "cuGraphKernelNodeGetParams")
    if kernel is None:
        if native.kernel == NULL:
            raise _graphs.unknown_kernel()
        kernel = Kernel.from_handle(<uintptr_t>native.kernel)
    signature = signature_of(kernel)
    if not _is_kernel_of(&native, signature):
        raise _graphs.other_kernel(signature.name)
    return kernel, _arguments(&native, signature)


cdef bint _is_kernel_of(const KernelNodeParams* native, Signature signature):
    """Return whether the kernel of a node is the given one, as a CUkernel or as the kernel's function in a context."""
    cdef CUfunction function = NULL, kernel = signature.function
    if native.kernel != NULL and native.kernel == kernel or native.function == kernel:
        return True
    if native.function == NULL or driver.cuKernelGetFunction == NULL:
        return False
    with nogil:
        driver.cuKernelGetFunction(&function, kernel)
    return native.function == function or native.function == signature.function_in_context


cdef tuple _arguments(const KernelNodeParams* native, Signature signature):
    """Return the bytes of each argument, to which the node has pointers or which the node has as one block."""
    cdef Parameter* parameter
    cdef const char* block = NULL
    found = []
    if native.kernel_params == NULL:
        if signature.count == 0:
            return ()
        block = _block_of(native.extra)
        if block == NULL:
            raise _graphs.hidden_arguments(
                signature.name, None if native.extra == NULL else <uintptr_t>native.extra[0])
    for index in range(signature.count):
        parameter = &signature.parameters[index]
        if block != NULL:
            found.append(block[parameter.offset:parameter.offset + parameter.size])
        else:
            found.append((<const char*>native.kernel_params[index])[:parameter.size])
    return tuple(found)


cdef const char* _block_of(void** extra) noexcept:
    """Return the block of arguments in `extra`, or NULL if `extra` has no block.

    `extra` contains names, each followed by its value, in any order (CUDA driver API, cuLaunchKernel).
    """
    if extra != NULL and <uintptr_t>extra[0] == BUFFER_SIZE:
        extra += 2
    if extra == NULL or <uintptr_t>extra[0] != BUFFER_POINTER:
        return NULL
    return <const char*>extra[1]
