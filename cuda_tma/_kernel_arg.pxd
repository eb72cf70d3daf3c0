"""The functions that pack kernel arguments into the driver's parameter block."""

from ._cuda.driver cimport CUcontext
from ._launch.signature cimport Parameter, Signature

cdef int pack(Parameter* parameter, object value, unsigned char* slot) except -1
cdef int pack_all(
    Signature signature, tuple args, CUcontext context, unsigned char* block, CUcontext* made) except -1
cdef int pack_map(Parameter* parameter, const void* map, unsigned char* slot) except -1
cdef int refuse_count(Signature signature, Py_ssize_t count) except -1
cdef int require_map_type(Parameter* parameter, const void* map, bint is_wide) except -1
cdef bint takes_tensor(Parameter* parameter, object value) except -1
