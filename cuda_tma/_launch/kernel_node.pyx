"""Kernel nodes of CUDA graphs, which are added to a definition or changed in an executable graph.

The module node_arguments reads them back.

A prepared launch has all checked values that a node needs. The driver copies the arguments. The driver does not keep
alive the memory that the arguments point to; see keep_alive.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from .._cuda.driver cimport (
    CUDA_SUCCESS, CUcontext, CUgraph, CUgraphExec, CUgraphNode, CUresult, KernelNodeParams, LaunchConfigC,
    driver, ensure_driver, error_name, require_success)
from .._kernel_arg cimport pack
from .._read.context cimport enter_context
from .._read.index cimport checked_index
from .._read.property cimport Property, own_property, read_property
from .._tensor_map cimport MAP_BYTES, TensorMapDescriptor
from .contexts cimport require_contexts_in
from .launch_config cimport Configuration
from .prepared cimport Arguments, PreparedLaunch, map_of
from .shared_memory cimport allow_shared_memory_in
from .signature cimport Parameter, Signature
from .typed_map cimport TypedMap, is_of_type

from .._cuda.core import CUDAError
from ..rules import _graphs

cdef enum:
    # Only streams have the attribute CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
    PROGRAMMATIC_STREAM_SERIALIZATION = 6


cdef class NodeParameters:
    """The driver's parameters of a node, with its own block of arguments and a pointer to each argument.

    The node has pointers in place of one block, because other libraries also read graphs, and every reader supports
    pointers.
    """

    cdef Signature signature
    cdef Configuration configuration
    cdef CUcontext context
    cdef Arguments arguments  # The arguments are those of the prepared launch.
    cdef KernelNodeParams native
    cdef unsigned char* block
    cdef bint is_sent  # The flag is true after the driver has accepted this kernel.

    def __dealloc__(self):
        PyMem_Free(self.native.kernel_params)
        PyMem_Free(self.block)


cdef NodeParameters _parameters_of(PreparedLaunch launch, CUcontext context):
    """Return the parameters of a node in the context of the node's descriptors."""
    cdef NodeParameters new = NodeParameters.__new__(NodeParameters)
    cdef KernelNodeParams* native = &new.native
    cdef Signature signature = launch.signature
    cdef const LaunchConfigC* config = &launch.configuration.native
    cdef Arguments arguments = launch._arguments()
    cdef Py_ssize_t index
    require_contexts_in(arguments.maps, context)
    _require_attributes(launch.configuration)
    if config.shared_mem_bytes != 0:
        allow_shared_memory_in(context, config.shared_mem_bytes, signature)
    new.signature, new.configuration, new.context = signature, launch.configuration, context
    new.arguments = arguments
    new.block = <unsigned char*>PyMem_Malloc(signature.block_bytes + 1)
    native.kernel_params = <void**>PyMem_Malloc((signature.count + 1) * sizeof(void*))
    if new.block == NULL or native.kernel_params == NULL:
        raise MemoryError
    memcpy(new.block, <const char*>arguments.block, signature.block_bytes)
    for index in range(signature.count):
        native.kernel_params[index] = new.block + signature.parameters[index].offset
    native.kernel, native.context = signature.function, context
    memcpy(native.grid_dim, config.grid_dim, sizeof(native.grid_dim))
    memcpy(native.block_dim, config.block_dim, sizeof(native.block_dim))
    native.shared_mem_bytes = config.shared_mem_bytes
    return new


cdef int _require_attributes(Configuration configuration) except -1:
    for index in range(configuration.native.attribute_count):
        if configuration.attributes[index].id == PROGRAMMATIC_STREAM_SERIALIZATION:
            raise _graphs.programmatic()
    return 0


# ---- adding ----


def add_node(uintptr_t graph, PreparedLaunch launch, after):
    """Add a kernel node to a CUgraph after other nodes, and return the node; see cuda_tma.graph.

    All handles are ints.
    """
    cdef CUcontext context
    cdef int device_id
    cdef NodeParameters parameters
    cdef CUgraphNode node = NULL
    cdef size_t count = len(after)
    cdef CUgraphNode* dependencies = <CUgraphNode*>PyMem_Malloc((count + 1) * sizeof(CUgraphNode))
    cdef CUresult result
    if dependencies == NULL:
        raise MemoryError
    try:
        for index, each in enumerate(after):
            dependencies[index] = <CUgraphNode><uintptr_t>each
        enter_context(&context, &device_id)
        parameters = _parameters_of(launch, context)
        with nogil:
            result = driver.cuGraphAddKernelNode(
                &node, <CUgraph>graph, dependencies, count, &parameters.native)
    finally:
        PyMem_Free(dependencies)
    if result != CUDA_SUCCESS:
        raise CUDAError(_graphs.refused_node(error_name(result), parameters.signature.name, "add"))
    _set_attributes(node, parameters.configuration)
    return <uintptr_t>node


def remove_node(uintptr_t node):
    """Remove a node, given as an int, from its definition."""
    require_success(driver.cuGraphDestroyNode(<CUgraphNode>node), "cuGraphDestroyNode")


cdef int _set_attributes(CUgraphNode node, Configuration configuration) except -1:
    """Set clusters and cooperation, which are attributes and not parameters of a node.

    Remove a node that cannot have these attributes.
    """
    cdef CUresult result
    for index in range(configuration.native.attribute_count):
        result = driver.cuGraphKernelNodeSetAttribute(
            node, configuration.attributes[index].id, configuration.attributes[index].value)
        if result != CUDA_SUCCESS:
            driver.cuGraphDestroyNode(node)
            require_success(result, "cuGraphKernelNodeSetAttribute")
    return 0


# ---- changing ----


cdef class ExecutableKernelNode:
    """ExecutableKernelNode(graph, node, prepared)\n--

    A kernel node of an executable graph, whose arguments can be changed for the graph's next launches.

    ``live[i] = value`` checks one argument as :func:`cuda_tma.launch` does, sets it, and resends the other arguments.
    ``live.update(prepared)`` sets a whole prepared launch. A refusal changes nothing. Earlier launches keep their
    arguments. The object keeps the graph, and the arguments that it set, alive during its own lifetime.

    CUDA requires that one thread at a time changes and launches a graph (CUDA driver API, "Graph object thread
    safety"). The clusters and the cooperation of the node cannot change.

    Parameters
    ----------
    graph : cuda.core.graph.Graph, cuda.bindings CUgraphExec or int
        The executable graph, with nodes from :func:`add_kernel_node` or from a capture.
    node : cuda.core.graph.KernelNode, cuda.bindings CUgraphNode or int
        The node in the definition from which the graph was instantiated.
    prepared : PreparedLaunch
        The node's present kernel, configuration and arguments. The driver receives nothing before the first change.

    Raises
    ------
    TensorMapError
        If a descriptor belongs to another context than the current one.
    CUDAError
        If the driver refuses the change, for example for a node of another graph.

    Examples
    --------
    ::

        live = cuda_tma.graph.ExecutableKernelNode(graph, node, prepared)
        live[0] = cuda_tma.create_tensor_map(other, options)
        graph.launch(stream)
    """

    cdef object graph, node  # `graph` and `node` own the handles.
    cdef Property is_closed
    cdef CUgraphExec executable
    cdef CUgraphNode handle
    cdef NodeParameters parameters
    cdef list values, maps

    def __cinit__(self, graph, node, PreparedLaunch prepared not None):
        cdef CUcontext context
        cdef int device_id
        ensure_driver()
        self.graph, self.node = graph, node
        self.is_closed = own_property(type(graph), "is_closed")
        self.executable = <CUgraphExec>handle_of(graph, "graph")
        self.handle = <CUgraphNode>handle_of(node, "node")
        enter_context(&context, &device_id)
        self._put(_parameters_of(prepared, context))

    def __init__(self, graph, node, prepared):
        pass  # The method __cinit__ has already initialized the object.

    cdef int _put(self, NodeParameters parameters) except -1:
        cdef Arguments given = parameters.arguments
        cdef list values = list(given.values)
        # A tensor may be the argument for a typed map.
        cdef list maps = values if given.maps is given.values else list(given.maps)
        with cython.critical_section(self):
            self.parameters, self.values, self.maps = parameters, values, maps
        return 0

    def __len__(self):
        return self.parameters.signature.count

    def __getitem__(self, index):
        return self.values[checked_index(index, len(self.values), "arguments")]

    def __setitem__(self, index, value):
        cdef NodeParameters parameters = self.parameters
        cdef Parameter* parameter = &parameters.signature.parameters[
            checked_index(index, parameters.signature.count, "arguments")]
        cdef unsigned char room[MAP_BYTES]
        map = value
        if parameters.is_sent and _is_map_for(parameter, value, parameters.context):
            with cython.critical_section(value):
                self._send_argument(parameters, parameter, (<TensorMapDescriptor>value).map(), MAP_BYTES)
        else:
            map = self._pack(parameters, parameter, value, room)
            self._send_argument(parameters, parameter, room, parameter.size)
        self.values[parameter.index] = value
        if self.maps is not self.values:
            self.maps[parameter.index] = map

    @cython.final
    cdef object _pack(self, NodeParameters parameters, Parameter* parameter, object value, unsigned char* room):
        """Write an argument to `room`.

        Return the value, or the descriptor that was made of a tensor.
        """
        if parameter.size > MAP_BYTES:
            raise _graphs.large_argument(parameter.index, parameter.size)
        map = map_of(parameter, value, self.maps[parameter.index])
        pack(parameter, map, room)
        if type(map) is TensorMapDescriptor and (<TensorMapDescriptor>map)._context != parameters.context:
            require_contexts_in((map,), parameters.context)
        return map

    @cython.final
    cdef inline int _send_argument(
            self, NodeParameters parameters, Parameter* parameter, void* packed, size_t size) except -1:
        """Send one argument in packed form to the driver.

        If the driver accepts the argument, later changes send it again.
        """
        cdef void** place = &parameters.native.kernel_params[parameter.index]
        cdef void* own = place[0]
        cdef CUresult result
        self._require_open()
        place[0] = packed
        result = self._send(parameters)
        place[0] = own
        if result != CUDA_SUCCESS:
            self._refuse(result, parameters)
        memcpy(own, packed, size)
        return 0

    def update(self, PreparedLaunch prepared not None):
        """Set the kernel, the configuration and all arguments of a node from a prepared launch.

        Parameters
        ----------
        prepared : PreparedLaunch
            A launch with the same clusters and cooperation as the node.

        Raises
        ------
        TensorMapError, CUDAError
            As for the class. The node is then unchanged.
        """
        cdef NodeParameters parameters
        cdef CUresult result
        if _attributes(prepared.configuration) != _attributes(self.parameters.configuration):
            raise _graphs.other_attributes()
        parameters = _parameters_of(prepared, self.parameters.context)
        self._require_open()
        result = self._send(parameters)
        if result != CUDA_SUCCESS:
            self._refuse(result, parameters)
        self._put(parameters)

    @cython.final
    cdef inline int _require_open(self) except -1:
        if read_property(<PyObject*>self.is_closed, self.graph) is True:
            raise _graphs.closed_graph()
        return 0

    @cython.final
    cdef inline CUresult _send(self, NodeParameters parameters) noexcept:
        cdef CUgraphExec executable = self.executable
        cdef CUgraphNode node = self.handle
        cdef const KernelNodeParams* native = &parameters.native
        cdef CUresult result
        if parameters.is_sent:
            # The driver's call loads no kernel and writes to no queue. The driver copies arguments in host memory,
            # which takes 377 ns, and releasing the GIL would take another 66 ns (host of an H200).
            return driver.cuGraphExecKernelNodeSetParams(executable, node, native)
        with nogil:  # The driver's call may have to load the kernel; see call.enter.
            result = driver.cuGraphExecKernelNodeSetParams(executable, node, native)
        parameters.is_sent = result == CUDA_SUCCESS
        return result

    @cython.final
    cdef int _refuse(self, CUresult result, NodeParameters parameters) except -1:
        raise CUDAError(_graphs.refused_node(error_name(result), parameters.signature.name, "change"))


cdef inline bint _is_map_for(Parameter* parameter, object value, CUcontext context):
    """Return whether the value is a descriptor that can be copied unchanged, which is the common case."""
    if Py_TYPE(value) != <PyTypeObject*>TensorMapDescriptor or parameter.size != MAP_BYTES:
        return False
    if (<TensorMapDescriptor>value)._context != context:
        return False
    return parameter.typed == NULL or ((<TypedMap>parameter.typed).options is not None and is_of_type(
        <TypedMap>parameter.typed, (<TensorMapDescriptor>value).map()))


cdef tuple _attributes(Configuration configuration):
    """Return the launch attributes that are not among the parameters of a node."""
    return tuple([(configuration.attributes[index].id, configuration.attributes[index].value[0],
                   configuration.attributes[index].value[1], configuration.attributes[index].value[2])
                  for index in range(configuration.native.attribute_count)])


cdef uintptr_t handle_of(object owner, str what) except 0:
    """Return the handle in an object of cuda.core or cuda.bindings, or in an int."""
    handle = None if _is_other(owner, what) else getattr(owner, "handle", owner)
    try:
        value = int(handle)
    except (TypeError, ValueError):
        value = 0
    if value <= 0:
        raise _graphs.no_handle(what, owner)
    return <uintptr_t>value


cdef bint _is_other(object owner, str what):
    """Return whether an object of cuda.core is not an executable graph or node.

    The driver would accept any address.
    """
    return any([hasattr(owner, name) for name in (
        "instantiate", "begin_building", "succ" if what == "graph" else "upload")])
