"""The conversion of options to C values in driver order.

The module makes 128 bytes or parameters from these values and a tensor's arguments.

Each mode has its own type of values, its own encoder of the driver, and its own parameters.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint64_t, uintptr_t

from .arguments cimport MAX_RANK, TensorArguments, describe, driver_index, row_bytes
from .._compilable cimport Compilable
from .._cuda.driver cimport (
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUresult, driver, error_name, require_success)
from .._read.context cimport COMPUTE_CAPABILITY_MAJOR, compute_capability
from .._read.dlpack cimport DLTensor, ExportedTensor, shape_of

from .._read.dlpack import dtype_name_of
from .._limits import MAX_BOX_DIM, MAX_ELEMENT_STRIDE, MAX_PIXELS_PER_COLUMN, TMA_EXTENDED_SINCE
from .._options import TensorMapIm2colWideOptions, TensorMapOptions
from ..params import Im2colParams, Im2colWideParams, TiledParams
from ..rules import check, _refusals
from ..rules._explain import refusal

cdef enum:
    SMALL = 1  # SMALL is a value of CUtensorMapAllocClass.
    ANY_RANK = -1  # ANY_RANK is for options that do not determine a number of dimensions.
    LARGE_BIT = 1 << 21  # LARGE_BIT is the allocation class in word 2 of a map (codec/_fields.py).
    LARGE_BYTES = 128 * 1024

cdef int WIDE_NEEDS_MAJOR = TMA_EXTENDED_SINCE[0]


# ---- the options of each mode, as arguments of its encoder ----

cdef class CompiledOptions:
    """The values of options for maps, which are compiled once.

    The options, which are frozen, hold the object.

    This class is for tiled maps, and is the base class for the other modes.
    """

    cdef int rank
    cdef int data_type  # The data type -1 means that the tensor's dtype determines the data type.
    cdef int allocation_class  # The allocation class -1 means SMALL, if the driver can set the class.
    cdef uint32_t interleave, swizzle, l2_promotion, oob_fill
    cdef uint32_t box_dim[MAX_RANK]
    cdef uint32_t element_strides[MAX_RANK]

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) except? -1:
        return driver.cuTensorMapEncodeTiled(
            target, tensor.data_type, tensor.rank, <void*><uintptr_t>tensor.global_address, tensor.global_dim,
            tensor.global_strides, self.box_dim, self.element_strides, self.interleave, self.swizzle,
            self.l2_promotion, self.oob_fill)

    cdef object params(self, TensorArguments* tensor):
        return TiledParams(
            box_dim=tuple([self.box_dim[index] for index in range(tensor.rank)]), **self.common_params(tensor))

    cdef dict common_params(self, TensorArguments* tensor):
        """Return the parameters that the maps of all modes have."""
        rank = tensor.rank
        return {
            "data_type": tensor.data_type,
            "global_address": tensor.global_address,
            "global_dim": tuple([tensor.global_dim[index] for index in range(rank)]),
            "global_strides": tuple([tensor.global_strides[index] for index in range(rank - 1)]),
            "element_strides": tuple([self.element_strides[index] for index in range(rank)]),
            "interleave": self.interleave,
            "swizzle": self.swizzle,
            "l2_promotion": self.l2_promotion,
            "oob_fill": self.oob_fill,
            "allocation_class": SMALL if self.allocation_class < 0 else self.allocation_class,
        }


cdef class CompiledPixels(CompiledOptions):
    """The column of pixels that both im2col modes have."""

    cdef uint32_t channels_per_pixel, pixels_per_column


cdef class CompiledIm2col(CompiledPixels):
    cdef int lower_corner[MAX_RANK - 2]
    cdef int upper_corner[MAX_RANK - 2]

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) except? -1:
        return driver.cuTensorMapEncodeIm2col(
            target, tensor.data_type, tensor.rank, <void*><uintptr_t>tensor.global_address, tensor.global_dim,
            tensor.global_strides, self.lower_corner, self.upper_corner, self.channels_per_pixel,
            self.pixels_per_column, self.element_strides, self.interleave, self.swizzle, self.l2_promotion,
            self.oob_fill)

    cdef object params(self, TensorArguments* tensor):
        spatial = range(tensor.rank - 2)
        return Im2colParams(
            pixel_box_lower_corner=tuple([self.lower_corner[index] for index in spatial]),
            pixel_box_upper_corner=tuple([self.upper_corner[index] for index in spatial]),
            channels_per_pixel=self.channels_per_pixel,
            pixels_per_column=self.pixels_per_column,
            **self.common_params(tensor),
        )


cdef class CompiledIm2colWide(CompiledPixels):
    cdef int lower_corner_width, upper_corner_width
    cdef uint32_t mode

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) except? -1:
        """Encode the map, but refuse compute capability 9.0.

        Driver 580 would encode the map there, although no instruction can use it.
        """
        cdef int major = 0
        require_success(
            driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id), "cuDeviceGetAttribute")
        if major < WIDE_NEEDS_MAJOR:
            raise _broken_rules(self, tensor, device_id)
        if driver.cuTensorMapEncodeIm2colWide == NULL:
            raise _refusals.no_im2col_wide()
        return driver.cuTensorMapEncodeIm2colWide(
            target, tensor.data_type, tensor.rank, <void*><uintptr_t>tensor.global_address, tensor.global_dim,
            tensor.global_strides, self.lower_corner_width, self.upper_corner_width, self.channels_per_pixel,
            self.pixels_per_column, self.element_strides, self.interleave, self.mode, self.swizzle, self.l2_promotion,
            self.oob_fill)

    cdef object params(self, TensorArguments* tensor):
        return Im2colWideParams(
            pixel_box_lower_corner_width=self.lower_corner_width,
            pixel_box_upper_corner_width=self.upper_corner_width,
            channels_per_pixel=self.channels_per_pixel,
            pixels_per_column=self.pixels_per_column,
            mode=self.mode,
            **self.common_params(tensor),
        )


# ---- compilation ----

cdef inline PyObject* compiled(Compilable options) except NULL:
    """Return the C values of options, which are compiled at first use.

    Options never change, so their C values never change.

    The result is borrowed, because a reference would be taken and released for each map (layout_of()).
    """
    if options.values is None:
        options.values = _compile(options)
    return <PyObject*>options.values


cdef CompiledOptions _compile(object options):
    if isinstance(options, TensorMapOptions):
        return _compile_tiled(options)
    cdef CompiledPixels values
    values = _compile_wide(options) if isinstance(options, TensorMapIm2colWideOptions) else _compile_im2col(options)
    values.channels_per_pixel = _uint32("channels_per_pixel", options.channels_per_pixel, f"1 to {MAX_BOX_DIM}")
    values.pixels_per_column = _uint32("pixels_per_column", options.pixels_per_column, f"1 to {MAX_PIXELS_PER_COLUMN}")
    return values


cdef CompiledOptions _compile_tiled(object options):
    cdef CompiledOptions values = CompiledOptions.__new__(CompiledOptions)
    _compile_common(values, options, len(options.box_dim))
    _put_uint32(values.box_dim, "box_dim", options.box_dim, f"1 to {MAX_BOX_DIM}")
    return values


cdef int _compile_common(CompiledOptions values, object options, int rank) except -1:
    """Compile the options that all modes have.

    Options of ANY_RANK have no element strides, so all strides are 1.
    """
    element_strides = options.element_strides or (1,) * (MAX_RANK if rank == ANY_RANK else rank)
    if len(element_strides) != rank and rank != ANY_RANK:
        raise _refusals.option_lengths(options)
    if options.interleave == 0 and rank and element_strides[-1] != 1:
        raise _refusals.innermost_element_stride(element_strides)
    values.rank = rank
    _put_uint32(values.element_strides, "element_strides", element_strides, f"1 to {MAX_ELEMENT_STRIDE}")
    values.data_type = -1 if options.data_type is None else options.data_type
    values.allocation_class = -1 if options.allocation_class is None else options.allocation_class
    values.interleave = options.interleave
    values.swizzle = options.swizzle
    values.l2_promotion = options.l2_promotion
    values.oob_fill = options.oob_fill
    return 0


cdef CompiledIm2col _compile_im2col(object options):
    cdef CompiledIm2col values = CompiledIm2col.__new__(CompiledIm2col)
    lower, upper = options.pixel_box_lower_corner, options.pixel_box_upper_corner
    if len(lower) != len(upper):
        raise _refusals.corner_lengths(lower, upper)
    _compile_common(values, options, len(lower) + 2)
    _put_int32(values.lower_corner, "pixel_box_lower_corner", lower)
    _put_int32(values.upper_corner, "pixel_box_upper_corner", upper)
    return values


cdef CompiledIm2colWide _compile_wide(object options):
    cdef CompiledIm2colWide values = CompiledIm2colWide.__new__(CompiledIm2colWide)
    _compile_common(values, options, ANY_RANK if options.element_strides is None else len(options.element_strides))
    values.lower_corner_width = _int32("pixel_box_lower_corner_width", options.pixel_box_lower_corner_width)
    values.upper_corner_width = _int32("pixel_box_upper_corner_width", options.pixel_box_upper_corner_width)
    values.mode = options.mode
    return values


cdef int _put_uint32(uint32_t* target, str name, tuple values, str legal) except -1:
    """Write a value for each dimension, in driver order.

    The function describe() refuses more than MAX_RANK dimensions.
    """
    rank = len(values)
    for dim in range(rank if rank <= MAX_RANK else 0):
        target[driver_index(rank, dim)] = _uint32(f"{name}[{dim}]", values[dim], legal)
    return 0


cdef int _put_int32(int* target, str name, tuple values) except -1:
    """Write a value for each spatial dimension, in driver order.

    The function describe() refuses a fourth spatial dimension.
    """
    for index, value in enumerate(values[::-1][:MAX_RANK - 2]):
        target[index] = _int32(f"{name}[{len(values) - 1 - index}]", value)
    return 0


cdef uint32_t _uint32(str name, object value, str legal) except? 0:
    if not 0 <= value < 2**32:
        raise _refusals.option_range(name, value, "unsigned", legal)
    return value


cdef int32_t _int32(str name, object value) except? 0:
    if not -2**31 <= value < 2**31:
        raise _refusals.option_range(name, value, "signed", "-32768 to 32767")
    return value


# ---- a tensor together with options ----

cdef int describe_for(DLTensor* tensor, Compilable options, TensorArguments* out) except -1:
    """Describe the tensor in driver order, with the data type and interleave of these options."""
    cdef PyObject* values = compiled(options)
    cdef int rank = (<CompiledOptions>values).rank
    if rank != tensor.ndim and rank != ANY_RANK and 1 <= tensor.ndim <= MAX_RANK:
        raise _refusals.option_length(options, shape_of(tensor))
    return describe(tensor, (<CompiledOptions>values).data_type, (<CompiledOptions>values).interleave, out)


cdef object params_from(Compilable options, TensorArguments* arguments):
    """Return the parameters that the encoder of the driver receives."""
    return (<CompiledOptions>compiled(options)).params(arguments)


def tiled_params(ExportedTensor tensor, options):
    """Return the parameters of a tensor and options, without the driver.

    Parameters
    ----------
    tensor : ExportedTensor
        The description from ``describe_tensor`` or ``export_tensor``.
    options : TensorMapOptions, TensorMapIm2colOptions or TensorMapIm2colWideOptions

    Returns
    -------
    TiledParams, Im2colParams or Im2colWideParams

    Raises
    ------
    TensorMapError
        If the tensor cannot be described; see ``refusals``.
    """
    cdef TensorArguments arguments
    describe_for(&tensor.layout, options, &arguments)
    return params_from(options, &arguments)


# ---- the 128 bytes ----

cdef int encode(void* target, Compilable options, TensorArguments* arguments, int device_id) except -1:
    """Let the driver write the 128 bytes. Raise an error that explains a refusal of the driver."""
    cdef PyObject* values = compiled(options)
    cdef int allocation_class = (<CompiledOptions>values).allocation_class
    cdef CUresult result = (<CompiledOptions>values).encode(target, arguments, device_id)
    if result != CUDA_SUCCESS:
        raise _driver_refusal(result, <CompiledOptions>values, arguments, device_id)
    if driver.cuTensorMapSetAllocationClass != NULL:
        result = driver.cuTensorMapSetAllocationClass(
            target, SMALL if allocation_class < 0 else allocation_class, NULL)
        require_success(result, "cuTensorMapSetAllocationClass")
    elif allocation_class >= 0:
        raise _refusals.allocation_class(allocation_class)
    else:
        _fix_allocation_class(<uint32_t*>target, arguments, device_id)
    return 0


cdef int _fix_allocation_class(uint32_t* words, TensorArguments* arguments, int device_id) except -1:
    """Make a map SMALL if the tensor may be in an allocation of less than 128 KiB.

    The change is not verified on hardware.

    On compute capability 10.0 and later, drivers without cuTensorMapSetAllocationClass make maps of such tensors LARGE
    unless the tensors are dense. Loads then fault occasionally. NVIDIA recommends to clear the bit (driver 595.71.05,
    release notes, known issues). The check uses the tensor's extent, which is below the size of its allocation, as the
    checks of CUTLASS and Triton do.
    """
    if (words[2] & LARGE_BIT and _reaches_less_than(arguments, LARGE_BYTES)
            and compute_capability(device_id) >= TMA_EXTENDED_SINCE):
        words[2] &= ~<uint32_t>LARGE_BIT
    return 0


cdef bint _reaches_less_than(TensorArguments* tensor, uint64_t limit_bytes) noexcept:
    """Return whether the last element ends before `limit_bytes` from the first element.

    In an interleaved tensor, the elements of dimension 0 are 16 or 32 bytes apart. Such a tensor extends further than
    this function computes. The map of such a tensor may be SMALL although LARGE is possible, which costs prefetches but
    causes no fault.
    causes no fault.
    """
    cdef uint64_t reach_bytes = row_bytes(tensor)
    cdef uint32_t index
    for index in range(1, tensor.rank):
        if tensor.global_dim[index] > 1:
            if tensor.global_strides[index - 1] >= limit_bytes:
                return False
            reach_bytes += (tensor.global_dim[index] - 1) * tensor.global_strides[index - 1]
    return reach_bytes < limit_bytes


cdef object _driver_refusal(CUresult result, CompiledOptions values, TensorArguments* arguments, int device_id):
    """Return the error for a refusal of the driver, with the explanation."""
    if result == CUDA_ERROR_INVALID_CONTEXT:
        return _refusals.no_context()
    if result != CUDA_ERROR_INVALID_VALUE:
        return _refusals.driver_failure(error_name(result), result)
    return _broken_rules(values, arguments, device_id)


cdef object _broken_rules(CompiledOptions values, TensorArguments* arguments, int device_id):
    """Return an error with every broken rule.

    Only a refused map runs this check, so the check is off the hot path.
    """
    params = values.params(arguments)
    violations = check(params, compute_capability=compute_capability(device_id))
    return refusal(params, violations, dtype_name=dtype_name_of(arguments.dtype))
