"""DLPack capsules with arbitrary content, including old forms and forms that no library exports (source: dlpack.h)."""

import ctypes

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Unversioned(ctypes.Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("dl_tensor", DLTensor),
    )  # fmt: skip


class Exporter:
    """A float32 tensor of CUDA device 0 that exports one managed tensor, whose fields can change.

    `managed` is that managed tensor, `deleted` counts the calls of its deleter, and `asked` contains the keywords of
    __dlpack__.
    """

    def __init__(self, shape=(64, 128), strides=None, *, versioned=True, device_type=2, address=1 << 32):
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.values = (ctypes.c_int64 * len(shape))(*shape), strides and (ctypes.c_int64 * len(shape))(*strides)
        kind = Versioned if versioned else Unversioned
        self.memory = bytearray(ctypes.sizeof(kind))  # A deleter would free the memory of the managed tensor.
        self.managed = kind.from_buffer(self.memory)
        if versioned:
            self.managed.major = 1
        self.layout = self.managed.dl_tensor
        self.layout.data, self.layout.device_type, self.layout.ndim = address, device_type, len(shape)
        self.layout.code, self.layout.bits, self.layout.lanes = 2, 32, 1
        self.layout.shape = ctypes.cast(self.values[0], ctypes.POINTER(ctypes.c_int64))
        if strides:
            self.layout.strides = ctypes.cast(self.values[1], ctypes.POINTER(ctypes.c_int64))
        self.deleted, self.asked, self.capsule = 0, [], None
        self._deleter = DELETER(self._delete)
        self.managed.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)

    def _delete(self, managed):
        assert managed == ctypes.addressof(self.managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return self.layout.device_type, self.layout.device_id

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        self.capsule = _new_capsule(ctypes.addressof(self.managed), self.name, None)
        return self.capsule


class OldExporter(Exporter):
    """An exporter whose method __dlpack__ does not accept max_version, as before DLPack 1.0."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, versioned=False, **keywords)

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)


def name_of(capsule):
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    return get_name(capsule)


class ExchangeAPI(ctypes.Structure):
    """The C structure DLPackExchangeAPI; the package calls one of its functions."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p), ("managed_tensor_from_py_object", ctypes.c_void_p),
        ("managed_tensor_to_py_object", ctypes.c_void_p), ("dltensor_from_py_object", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )  # fmt: skip


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))


def exchanging(versions, export, name=b"dlpack_exchange_api"):
    """Return a type with DLPack's C exchange API in the given versions, newest first. Each version calls
    `export(tensor, out)`."""
    function = FROM_OBJECT(export)
    apis = [ExchangeAPI(major=major, minor=minor) for major, minor in versions]
    for api, previous in zip(apis, [*apis[1:], None], strict=True):
        api.managed_tensor_from_py_object = ctypes.cast(function, ctypes.c_void_p)
        api.previous = previous and ctypes.addressof(previous)
    capsule = _new_capsule(ctypes.addressof(apis[0]), name, None)
    return type("Exchanging", (Exporter,), {"__dlpack_c_exchange_api__": capsule, "kept": (function, apis, name)})
