# cython: boundscheck=False, wraparound=False, cdivision=True
"""The sums of `adder.py`, which `sums.h` computes: each sum truncates its terms by their largest exponent."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc


cdef extern from "sums.h" nogil:
    enum:
        MOST_K
        MOST_ROWS
        MOST_COLUMNS

    ctypedef struct Sums:
        int least_a
        int least_b
        int least_sum
        int fraction_bits
        uint64_t kept
        Py_ssize_t k
        Py_ssize_t columns

    void take_a(Sums* sums, const double* values, Py_ssize_t rows, Py_ssize_t k)
    void take_b(Sums* sums, const double* values, Py_ssize_t k, bint fragments)
    void add_rows(Sums* sums, double* c, Py_ssize_t rows, const double* a, const double* b, Py_ssize_t k)
    void add_fragments(
        Sums* sums, float** registers, bint with_c, const double* a, const double* b, Py_ssize_t k
    )


def add_to_rows(
    const double[:, :, ::1] a not None, const double[:, :, ::1] b not None, double[:, :, ::1] c not None,
    tuple least, int fraction_bits, int kept_bits
):
    """Compute C = A * B + C in place; C is [groups, m, n], A is [groups, m, k], and B is [groups, n, k].

    `least` contains the exponents of the smallest normal numbers of A, B and C.
    """
    cdef Sums* sums = sums_for(a.shape[1], a.shape[2], b.shape[1], least, fraction_bits, kept_bits)
    cdef Py_ssize_t group
    with nogil:
        for group in range(c.shape[0]):
            take_a(sums, &a[group, 0, 0], a.shape[1], a.shape[2])
            take_b(sums, &b[group, 0, 0], a.shape[2], False)
            add_rows(sums, &c[group, 0, 0], c.shape[1], &a[group, 0, 0], &b[group, 0, 0], a.shape[2])
    free(sums)


def add_to_fragments(
    const double[:, :, ::1] a not None, const double[:, :, ::1] b not None, const Py_ssize_t[::1] b_of not None,
    float[:, ::1] registers not None, const Py_ssize_t[::1] rows not None, const Py_ssize_t[::1] lanes not None,
    bint with_c, tuple least, int fraction_bits, int kept_bits
):
    """Compute C = A * B + C, or D = A * B, where registers of warpgroups contain C and D as f32 (`fragments.py`).

    Parameters
    ----------
    b_of
        The index of the matrix B of each group.
    registers
        All registers, [register, lane]. `rows` are the registers of D, and `lanes` are the first lanes of the groups.
    """
    cdef Sums* sums = sums_for(a.shape[1], a.shape[2], b.shape[1], least, fraction_bits, kept_bits)
    cdef Py_ssize_t group, i, taken = -1
    cdef const double* right
    cdef (float*)[MOST_COLUMNS] mine
    with nogil:
        for group in range(a.shape[0]):
            take_a(sums, &a[group, 0, 0], a.shape[1], a.shape[2])
            right = &b[b_of[group], 0, 0]
            if b_of[group] != taken:
                take_b(sums, right, a.shape[2], True)
            taken = b_of[group]
            for i in range(rows.shape[0]):
                mine[i] = &registers[rows[i], lanes[group]]
            add_fragments(sums, mine, with_c, &a[group, 0, 0], right, a.shape[2])
    free(sums)


cdef Sums* sums_for(
    Py_ssize_t rows, Py_ssize_t k, Py_ssize_t columns, tuple least, int fraction_bits, int kept_bits
) except NULL:
    if rows > MOST_ROWS or k > MOST_K or columns > MOST_COLUMNS:
        raise ValueError(f"{rows} x {columns} sums of {k} products are more than an instruction has")
    cdef Sums* sums = <Sums*>malloc(sizeof(Sums))
    if sums == NULL:
        raise MemoryError
    sums.least_a, sums.least_b, sums.least_sum = least
    sums.fraction_bits = fraction_bits
    sums.kept = ~<uint64_t>0 << (52 - kept_bits)
    sums.k = (k + 7) // 8 * 8
    sums.columns = columns
    return sums
