# The tool tools/write_options.py writes this file from cuda_tma/_option_table.py.

cdef enum:
    KEYWORDS = 8  # TensorMapOptions has this number of fields.


def create_tensor_map(
        tensor, options=None, *, box_dim=None, element_strides=None, data_type=None, interleave=None, swizzle=None, l2_promotion=None, oob_fill=None, allocation_class=None):
    """Make a descriptor of a tensor in the current CUDA context.

    Parameters
    ----------
    tensor : tensor or view
        A torch, CuPy, JAX or numba-cuda array, a cuda.core Buffer, or a ``StridedMemoryView`` (ours or cuda.core's),
        on the current device or in pinned or managed memory.
    options : TensorMapOptions, TensorMapIm2colOptions, TensorMapIm2colWideOptions, mapping, or cuda.core's options
        The options, whose type selects the mode: tiled, im2col or im2col wide.
    box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class
        Fields of :class:`TensorMapOptions`, instead of `options`.

    Returns
    -------
    TensorMapDescriptor

    Raises
    ------
    TensorMapError
        If no map can be made of the tensor with the options. The error contains every reason and its remedy.
    RuntimeError
        If there is no NVIDIA driver.
    """
    return _create(tensor, _options(
        options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class), ANY_DEVICE)


def as_tensor_map(
        self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None, swizzle=None, l2_promotion=None, oob_fill=None, allocation_class=None):
    """Make a descriptor of this view, as :func:`create_tensor_map` does, with cuda.core's order of arguments."""
    return _create(self, _options(
        options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class), ANY_DEVICE)


class OnDevice:
    """The base class of Device, which contains its method for tensor maps."""

    def create_tensor_map(
            self, tensor, options=None, *, box_dim=None, element_strides=None, data_type=None, interleave=None, swizzle=None, l2_promotion=None, oob_fill=None, allocation_class=None):
        """Make a descriptor of a tensor on this device, which must be the current one.

        See :func:`cuda_tma.create_tensor_map`.
        """
        return _create(tensor, _options(
            options, box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class), read_property(<PyObject*>_ordinal, self))


cdef inline Compilable _options(
        object options, object box_dim, object element_strides, object data_type, object interleave, object swizzle, object l2_promotion, object oob_fill, object allocation_class):
    """Return the package's options unchanged, and options made from any other arguments.

    A check of keywords takes as long as ten descriptors, and a look-up of them as long as one. The function therefore
    compares the keywords by identity with those of the last call, which a loop repeats.
    """
    cdef PyObject* keywords[KEYWORDS]
    if isinstance(options, Compilable) and (
            box_dim
            is element_strides
            is data_type
            is interleave
            is swizzle
            is l2_promotion
            is oob_fill
            is allocation_class is None):
        return <Compilable>options
    if options is None and not FREE_THREADED:
        # Without a GIL, the two variables below could belong to two calls.
        keywords[0] = <PyObject*>box_dim
        keywords[1] = <PyObject*>element_strides
        keywords[2] = <PyObject*>data_type
        keywords[3] = <PyObject*>interleave
        keywords[4] = <PyObject*>swizzle
        keywords[5] = <PyObject*>l2_promotion
        keywords[6] = <PyObject*>oob_fill
        keywords[7] = <PyObject*>allocation_class
        if not memcmp(keywords, PySequence_Fast_ITEMS(<PyObject*>_last_keywords), sizeof(keywords)):
            return _last_options
    return options_by_keywords(options, (
        box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill, allocation_class))
