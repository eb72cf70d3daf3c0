"""Entry points that are handed their arguments as C arrays: no tuple is made for ``*args``, and none is taken apart."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*)
    ctypedef struct PyMethodDef:
        const char* ml_name
        void* ml_meth
        int ml_flags
        const char* ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject** PySequence_Fast_ITEMS(object)
    object PyCFunction_NewEx(PyMethodDef*, PyObject*, object)
    object PyObject_Vectorcall(object, PyObject* const*, size_t, PyObject*)

cdef extern from *:
    """
    /* Let instances be called through the vectorcallfunc at `offset` (PEP 590); where it is NULL, by tp_call. */
    static void accept_vectorcall(void *type, Py_ssize_t offset) {
        ((PyTypeObject *)type)->tp_vectorcall_offset = offset;
        ((PyTypeObject *)type)->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified((PyTypeObject *)type);
    }
    """
    void accept_vectorcall(PyObject* type, Py_ssize_t offset)
