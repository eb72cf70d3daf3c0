"""The function launch(), which checks the arguments and the context, and calls the driver.

The module looks up the facts of a kernel, a stream and a configuration once and keeps them; see signature, _read.stream
and launch_config. Each launch then only packs and compares values, and calls the driver.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uintptr_t

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUresult, LaunchConfigC, ensure_driver
from .._kernel_arg cimport pack_all
from .._read.stream cimport KnownStream, known_stream
from .._tensor_map cimport MAP_ALIGNMENT
from .call cimport call_driver, function_on, refused
from .contexts cimport require_context_of_tensors, require_contexts
from .launch_config cimport Configuration, configuration_of
from .shared_memory cimport allow_shared_memory
from .signature cimport Signature, signature_of

cdef enum:
    STACK_BLOCK_BYTES = 1024  # A parameter block of up to 1024 bytes is on the stack.


def launch(stream, config, kernel, *args):
    """Launch a kernel as ``cuda.core.launch`` does. Check the arguments against the kernel's parameters.

    Parameters
    ----------
    stream : Stream, GraphBuilder, or object with ``__cuda_stream__``
    config : LaunchConfig or mapping of its fields
    kernel : cuda.core.Kernel
    *args
        One for each parameter of the kernel. In addition to all arguments of cuda.core:

        - a ``TensorMapDescriptor`` (ours or cuda.core's), or cuda.bindings' ``CUtensorMap``, of which only the
          128 bytes are known, for a ``const __grid_constant__ CUtensorMap`` parameter;
        - for a typed map (``TiledMap<Tile<...>>``), a descriptor of that tile, or a tensor as for
          :func:`create_tensor_map`. Its map is made from the type, in the current context, for this launch;
          its elements must be the type's numbers (bfloat16 is not float16). ``Im2colMap`` takes only descriptors;
        - an array (torch, CuPy, JAX, numba-cuda, a view) for a pointer;
        - a Python int for an integer of 1, 2, 4 or 8 bytes or a pointer, a float for a float or double,
          a bool for a bool: each is converted to the parameter's own size;
        - a structured numpy scalar, a ``ctypes.Structure`` or ``bytes`` for a struct of the same size.

    Notes
    -----
    If `config` leaves ``shmem_size`` out, a kernel of :func:`cuda_tma.compile` gets the dynamic shared memory that it
    requests. The function raises the kernel's limit if the limit is too low.

    If the stream captures a graph, the launch becomes one of the graph's nodes. The graph keeps an argument alive only
    if :func:`cuda_tma.graph.keep_alive` requests it. A refused argument leaves the capture unchanged.

    Raises
    ------
    TypeError
        If the number of arguments, or the size or kind of an argument, does not match the kernel. Sizes are known for
        every kernel. Kinds (such as an int in place of a float) and typed maps are known for kernels of
        :func:`cuda_tma.compile`. Kinds and typed maps are also known if the lowered name contains the types, which
        ``extern "C"`` names do not.
    OverflowError
        If an int does not fit in its parameter.
    TensorMapError
        If a descriptor does not fit the parameter's typed map, or belongs to another context than the stream. Also if
        no map can be made of a tensor.
    ValueError
        If the stream is closed, or if the device has less shared memory than requested. Also if the driver does not
        accept the configuration, because its extents exceed the limits or differ from those of the compilation.
    CUDAError
        If the driver refuses the launch.

    Examples
    --------
    ::

        kernel = cuda_tma.compile(source, "gemm")  # with three typed maps and an int
        cuda_tma.launch(stream, config, kernel, a, b, c, k_tiles)  # tensors: their maps are made now
    """
    cdef KnownStream known
    cdef Signature signature
    cdef Configuration configuration
    cdef LaunchConfigC native
    cdef CUresult result
    cdef CUcontext made
    cdef unsigned char stack[STACK_BLOCK_BYTES + 2 * MAP_ALIGNMENT]
    cdef unsigned char* block = stack
    ensure_driver()
    known = known_stream(stream)
    signature = signature_of(kernel)
    configuration = configuration_of(config, signature)
    if signature.block_bytes > STACK_BLOCK_BYTES:
        owner = PyBytes_FromStringAndSize(NULL, signature.block_bytes + 2 * MAP_ALIGNMENT)
        block = <unsigned char*>PyBytes_AS_STRING(owner)
    block = _aligned(block) + signature.lead_bytes
    if pack_all(signature, args, known.context, block, &made):
        if made != NULL and made != known.context:
            require_context_of_tensors(args, signature, made, known)
        require_contexts(args, known)
    # The launch uses a copy, because another thread may launch with the same configuration on another stream.
    native = configuration.native
    native.stream = known.handle
    if native.shared_mem_bytes != 0 and (configuration.allowed_in != known.context_id or known.context_id == 0):
        allow_shared_memory(configuration, signature, known)
    result = call_driver(&native, function_on(known, signature), block, signature.block_bytes)
    if result != CUDA_SUCCESS:
        raise refused(result, signature, config)


cdef inline unsigned char* _aligned(unsigned char* memory) noexcept:
    """Align a block.

    The driver writes maps only at multiples of 64 (cuTensorMapEncodeTiled, tensorMap).
    """
    return <unsigned char*>((<uintptr_t>memory + MAP_ALIGNMENT - 1) & ~<uintptr_t>(MAP_ALIGNMENT - 1))
