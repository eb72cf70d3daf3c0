"""The options of im2col maps as C values in driver order, and the two encoders that take them.

A module of its own, since a descriptor of a tiled map needs none of it: ``_arguments`` imports it at first use.
"""

from libc.stdint cimport uint32_t, uintptr_t

from .arguments cimport ANY_RANK, MAX_RANK, CompiledOptions, TensorArguments, compile_common
from .._read.context cimport COMPUTE_CAPABILITY_MAJOR
from .._cuda.driver cimport CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS, CUresult, driver

from ..rules import refusals
from ..options import TensorMapIm2colWideOptions
from ..params import Im2colParams, Im2colWideParams

cdef enum:
    WIDE_NEEDS_MAJOR = 10


cdef class CompiledPixels(CompiledOptions):
    """What both modes have: a column of pixels."""

    cdef uint32_t channels_per_pixel, pixels_per_column


cdef class CompiledIm2col(CompiledPixels):
    cdef int lower_corner[MAX_RANK - 2]
    cdef int upper_corner[MAX_RANK - 2]

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) noexcept:
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

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) noexcept:
        """Driver 580 makes such maps on 9.0 too, where no instruction can use them: it is not asked there."""
        cdef int major = 0
        cdef CUresult result = driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id)
        if result != CUDA_SUCCESS:
            return result
        if major < WIDE_NEEDS_MAJOR:
            return CUDA_ERROR_INVALID_VALUE
        if driver.cuTensorMapEncodeIm2colWide == NULL:
            return CUDA_ERROR_NOT_SUPPORTED
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


def compile_pixels(options):
    """The C values of either kind of im2col options."""
    cdef CompiledPixels values
    values = _compile_wide(options) if isinstance(options, TensorMapIm2colWideOptions) else _compile_im2col(options)
    values.channels_per_pixel = _uint32("channels_per_pixel", options.channels_per_pixel, 256)
    values.pixels_per_column = _uint32("pixels_per_column", options.pixels_per_column, 1024)
    return values


cdef CompiledIm2col _compile_im2col(object options):
    cdef CompiledIm2col values = CompiledIm2col.__new__(CompiledIm2col)
    lower, upper = options.pixel_box_lower_corner, options.pixel_box_upper_corner
    if len(lower) != len(upper):
        raise refusals.corner_lengths(lower, upper)
    compile_common(values, options, len(lower) + 2)
    _put_int32(values.lower_corner, "pixel_box_lower_corner", lower)
    _put_int32(values.upper_corner, "pixel_box_upper_corner", upper)
    return values


cdef CompiledIm2colWide _compile_wide(object options):
    cdef CompiledIm2colWide values = CompiledIm2colWide.__new__(CompiledIm2colWide)
    compile_common(values, options, ANY_RANK if options.element_strides is None else len(options.element_strides))
    values.lower_corner_width = _int32("pixel_box_lower_corner_width", options.pixel_box_lower_corner_width)
    values.upper_corner_width = _int32("pixel_box_upper_corner_width", options.pixel_box_upper_corner_width)
    values.mode = options.mode
    return values


cdef int _put_int32(int* target, str name, tuple values) except -1:
    """A value for each spatial dimension, in driver order. A fourth fits no tensor that describe() lets through."""
    for index, value in enumerate(values[::-1][:MAX_RANK - 2]):
        target[index] = _int32(f"{name}[{len(values) - 1 - index}]", value)
    return 0


def _int32(name, value):
    if not -2**31 <= value < 2**31:
        raise refusals.option_range(name, value, "signed", "-32768 to 32767")
    return value


def _uint32(name, value, most):
    if not 0 <= value < 2**32:
        raise refusals.option_range(name, value, "unsigned", f"1 to {most}")
    return value
