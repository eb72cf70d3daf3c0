# cython: boundscheck=False, wraparound=False, cdivision=True
"""What `adder.py` says, in C: each sum looks for the largest exponent of its own terms, then cuts and adds them.

Doubles hold every number and product exactly. A term that has been cut has less than 28 bits, so an int takes eight.
The loops over the columns of a row are plain, for the compiler to make vectors of (setup.py: -O3).
"""

from libc.math cimport fabs, isfinite, trunc
from libc.stdint cimport int16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cdef enum:
    NONE = -10_000  # exponent of zero: two of them fit int16
    SPECIAL = 1024  # and of infinities and NaNs
    MOST_K = 32
    MOST_ROWS = 64
    MOST_COLUMNS = 256
    WARP = 32

cdef double LEAST_NORMAL = 2.0 ** -126  # of f32
cdef double LEAST = 2.0 ** -149
cdef uint64_t NAN = 0x7FFFFFFFE0000000  # as f32 the GPU's, 0x7fffffff


cdef union Bits:
    double value
    uint64_t whole


cdef struct Precision:
    int least_a  # exponents of the least normal numbers
    int least_b
    int least_sum
    int fraction_bits  # of a term, below the largest exponent
    uint64_t kept  # mask of a sum's bits


cdef struct Factor:
    double[MOST_K * MOST_COLUMNS] values  # of infinities and NaNs, zero
    int16_t[MOST_K * MOST_COLUMNS] exponents
    bint special  # there are infinities or NaNs


cdef struct Scratch:
    Precision precision
    Py_ssize_t k  # filled up with zeros to a multiple of eight
    Py_ssize_t columns
    Factor a  # [row, k]
    Factor b  # [k, column]
    float[MOST_COLUMNS] fragment  # C, then D, as registers have them
    double[MOST_COLUMNS] given  # C of a row, where there are infinities or NaNs
    double[MOST_COLUMNS] sums  # C, then D
    double[MOST_COLUMNS] unit  # of each sum: its terms are multiples
    double[MOST_COLUMNS] per_unit
    double[MOST_COLUMNS] total
    int16_t[MOST_COLUMNS] largest  # exponents of terms
    int least  # of the units' exponents


def add_to_rows(
    const double[:, :, ::1] a not None, const double[:, :, ::1] b not None, double[:, :, ::1] c not None,
    tuple least, int fraction_bits, int kept_bits
):
    """C = A * B + C: [groups, m, n] from [groups, m, k] and [groups, n, k]; `least` exponents of A, B and C."""
    cdef Scratch* scratch = scratch_for(a.shape[1], a.shape[2], b.shape[1], least, fraction_bits, kept_bits)
    cdef Py_ssize_t group, row, size = b.shape[1] * sizeof(double)
    with nogil:
        for group in range(c.shape[0]):
            take_a(scratch, &a[group, 0, 0], a.shape[1], a.shape[2])
            take_b(scratch, &b[group, 0, 0], a.shape[2], False)
            for row in range(c.shape[1]):
                memcpy(scratch.sums, &c[group, row, 0], size)
                add_row(scratch, row, &a[group, row, 0], &b[group, 0, 0], a.shape[2], False)
                memcpy(&c[group, row, 0], scratch.sums, size)
    free(scratch)


def add_to_fragments(
    const double[:, :, ::1] a not None, const double[:, :, ::1] b not None, const Py_ssize_t[::1] b_of not None,
    float[:, ::1] registers not None, const Py_ssize_t[::1] rows not None, const Py_ssize_t[::1] lanes not None,
    bint with_c, tuple least, int fraction_bits, int kept_bits
):
    """As `add_to_rows`, or D = A * B, where the registers of warpgroups hold C and D as f32, see `fragments.py`.

    Parameters
    ----------
    b_of
        Which B each group takes.
    registers
        [register, lane], of which D are `rows`; each group's first lane is in `lanes`.
    """
    cdef Scratch* scratch = scratch_for(a.shape[1], a.shape[2], b.shape[1], least, fraction_bits, kept_bits)
    cdef Py_ssize_t group, row, taken = -1
    cdef const double* right
    with nogil:
        for group in range(a.shape[0]):
            take_a(scratch, &a[group, 0, 0], a.shape[1], a.shape[2])
            right = &b[b_of[group], 0, 0]
            if b_of[group] != taken:
                take_b(scratch, right, a.shape[2], True)
            taken = b_of[group]
            for row in range(MOST_ROWS):
                if with_c:
                    load_row(scratch, registers, &rows[0], lanes[group], row)
                else:
                    memset(scratch.sums, 0, sizeof(scratch.sums))
                add_row(scratch, row, &a[group, row, 0], right, a.shape[2], True)
                store_row(scratch, registers, &rows[0], lanes[group], row)
    free(scratch)


cdef Scratch* scratch_for(
    Py_ssize_t rows, Py_ssize_t k, Py_ssize_t columns, tuple least, int fraction_bits, int kept_bits
) except NULL:
    if rows > MOST_ROWS or k > MOST_K or columns > MOST_COLUMNS:
        raise ValueError(f"{rows} x {columns} sums of {k} products are more than an instruction has")
    cdef Scratch* scratch = <Scratch*>malloc(sizeof(Scratch))
    if scratch == NULL:
        raise MemoryError
    scratch.precision.least_a, scratch.precision.least_b, scratch.precision.least_sum = least
    scratch.precision.fraction_bits = fraction_bits
    scratch.precision.kept = ~<uint64_t>0 << (52 - kept_bits)
    scratch.k = (k + 7) // 8 * 8
    scratch.columns = columns
    return scratch


# ---- numbers ----

cdef inline int16_t exponent_of(double value, int least) noexcept nogil:
    """That of a subnormal number is its type's least; of infinities and NaNs it is SPECIAL."""
    cdef Bits bits
    bits.value = value
    cdef int field = <int>(bits.whole >> 52 & 0x7FF)
    cdef int exponent = field - 1023 if field - 1023 > least else least
    return <int16_t>(exponent if field else NONE)


cdef inline double power_of_2(int exponent) noexcept nogil:
    cdef Bits bits
    bits.whole = <uint64_t>(exponent + 1023) << 52
    return bits.value


cdef bint take_exponents(const double* values, int16_t* exponents, Py_ssize_t size, int least) noexcept nogil:
    """Whether there are infinities or NaNs."""
    cdef Py_ssize_t i
    cdef int16_t most = NONE
    for i in range(size):
        exponents[i] = exponent_of(values[i], least)
        most = exponents[i] if exponents[i] > most else most
    return most == SPECIAL


cdef void clear_special(double* values, int16_t* exponents, Py_ssize_t size) noexcept nogil:
    """Zeros for infinities and NaNs."""
    cdef Py_ssize_t i
    for i in range(size):
        if exponents[i] == SPECIAL:
            values[i], exponents[i] = 0, NONE


# ---- A and B ----

cdef void take(Factor* factor, Py_ssize_t size, int least) noexcept nogil:
    factor.special = take_exponents(factor.values, factor.exponents, size, least)
    if factor.special:
        clear_special(factor.values, factor.exponents, size)


cdef void take_a(Scratch* scratch, const double* values, Py_ssize_t rows, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t row, i
    for row in range(rows):
        for i in range(scratch.k):
            scratch.a.values[row * scratch.k + i] = values[row * k + i] if i < k else 0
    take(&scratch.a, rows * scratch.k, scratch.precision.least_a)


cdef inline Py_ssize_t place_of(Py_ssize_t column, bint fragments) noexcept nogil:
    """Where a row has a column: in fragments, the even ones of each eight before the odd ones, as registers do."""
    return column // 8 * 8 + column % 2 * 4 + column % 8 // 2 if fragments else column


cdef void take_b(Scratch* scratch, const double* values, Py_ssize_t k, bint fragments) noexcept nogil:
    cdef Py_ssize_t column, i, place
    memset(scratch.b.values, 0, scratch.k * scratch.columns * sizeof(double))
    for column in range(scratch.columns):
        place = place_of(column, fragments)
        for i in range(k):
            scratch.b.values[i * scratch.columns + place] = values[column * k + i]
    take(&scratch.b, scratch.k * scratch.columns, scratch.precision.least_b)


# ---- a row of sums ----

cdef void add_row(
    Scratch* scratch, Py_ssize_t row, const double* a, const double* b, Py_ssize_t k, bint fragments
) noexcept nogil:
    """The sums of a row, in place. Where there are infinities and NaNs, they are added as ever."""
    cdef Py_ssize_t i, n = scratch.columns
    cdef bint special = take_exponents(scratch.sums, scratch.largest, n, scratch.precision.least_sum)
    if special or scratch.a.special or scratch.b.special:
        memcpy(scratch.given, scratch.sums, n * sizeof(double))
        clear_special(scratch.sums, scratch.largest, n)
        special = True
    for i in range(0, scratch.k, 8):
        raise_largest(scratch, &scratch.a.exponents[row * scratch.k + i], &scratch.b.exponents[i * n])
    align(scratch)
    for i in range(0, scratch.k, 8):
        add_terms(scratch, &scratch.a.values[row * scratch.k + i], &scratch.b.values[i * n])
    finish(scratch)
    if special:
        add_special(scratch, a, b, k, fragments)


cdef inline int16_t larger(int16_t largest, int16_t a, int16_t b) noexcept nogil:
    cdef int16_t exponent = <int16_t>(a + b)
    return exponent if exponent > largest else largest


cdef void raise_largest(Scratch* scratch, const int16_t* a, const int16_t* b) noexcept nogil:
    """By eight products."""
    cdef Py_ssize_t column, n = scratch.columns
    cdef int16_t most
    for column in range(n):
        most = larger(scratch.largest[column], a[0], b[column])
        most = larger(most, a[1], b[n + column])
        most = larger(most, a[2], b[2 * n + column])
        most = larger(most, a[3], b[3 * n + column])
        most = larger(most, a[4], b[4 * n + column])
        most = larger(most, a[5], b[5 * n + column])
        most = larger(most, a[6], b[6 * n + column])
        scratch.largest[column] = larger(most, a[7], b[7 * n + column])


cdef void align(Scratch* scratch) noexcept nogil:
    """The unit of each sum; C cut."""
    cdef Py_ssize_t column
    cdef int exponent, least = 0
    for column in range(scratch.columns):
        exponent = scratch.largest[column] if scratch.largest[column] > NONE // 2 else 0
        exponent -= scratch.precision.fraction_bits
        least = exponent if exponent < least else least
        scratch.unit[column] = power_of_2(exponent)
        scratch.per_unit[column] = power_of_2(-exponent)
        scratch.total[column] = <int>(scratch.sums[column] * scratch.per_unit[column])
    scratch.least = least


cdef void add_terms(Scratch* scratch, const double* a, const double* b) noexcept nogil:
    """Eight products, each cut toward zero as a conversion to int does."""
    cdef Py_ssize_t column, n = scratch.columns
    cdef double per_unit
    for column in range(n):
        per_unit = scratch.per_unit[column]
        scratch.total[column] += (
            <int>(a[0] * b[column] * per_unit) + <int>(a[1] * b[n + column] * per_unit)
            + <int>(a[2] * b[2 * n + column] * per_unit) + <int>(a[3] * b[3 * n + column] * per_unit)
            + <int>(a[4] * b[4 * n + column] * per_unit) + <int>(a[5] * b[5 * n + column] * per_unit)
            + <int>(a[6] * b[6 * n + column] * per_unit) + <int>(a[7] * b[7 * n + column] * per_unit)
        )


cdef void finish(Scratch* scratch) noexcept nogil:
    """Sums rounded toward zero to so many bits and, as f32 has no smaller ones, to multiples of 2 ** -149."""
    cdef Py_ssize_t column
    cdef Bits bits
    for column in range(scratch.columns):
        bits.value = scratch.total[column] * scratch.unit[column]
        bits.whole &= scratch.precision.kept
        scratch.sums[column] = bits.value
    if scratch.least < -149:
        for column in range(scratch.columns):
            if fabs(scratch.sums[column]) < LEAST_NORMAL:
                scratch.sums[column] = trunc(scratch.sums[column] / LEAST) * LEAST


cdef void add_special(
    Scratch* scratch, const double* a, const double* b, Py_ssize_t k, bint fragments
) noexcept nogil:
    cdef Py_ssize_t i, column, place
    cdef double total
    cdef Bits nan
    nan.whole = NAN
    for column in range(scratch.columns):
        place = place_of(column, fragments)
        total = scratch.given[place]
        for i in range(k):
            total += a[i] * b[column * k + i]
        if not isfinite(total):
            scratch.sums[place] = nan.value if total != total else total


# ---- registers ----

cdef inline float* four_sums(
    float[:, ::1] registers, const Py_ssize_t* rows, Py_ssize_t lane, Py_ssize_t row, Py_ssize_t place
) noexcept nogil:
    """What four lanes of a warpgroup have of a row in one register, from a `place_of` on."""
    cdef Py_ssize_t register = place // 8 * 4 + row % 16 // 8 * 2 + place % 8 // 4
    return &registers[rows[register], lane + row // 16 * WARP + row % 8 * 4]


cdef void load_row(
    Scratch* scratch, float[:, ::1] registers, const Py_ssize_t* rows, Py_ssize_t lane, Py_ssize_t row
) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(0, scratch.columns, 4):
        memcpy(&scratch.fragment[place], four_sums(registers, rows, lane, row, place), 4 * sizeof(float))
    for place in range(scratch.columns):
        scratch.sums[place] = scratch.fragment[place]


cdef void store_row(
    Scratch* scratch, float[:, ::1] registers, const Py_ssize_t* rows, Py_ssize_t lane, Py_ssize_t row
) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(scratch.columns):
        scratch.fragment[place] = <float>scratch.sums[place]
    for place in range(0, scratch.columns, 4):
        memcpy(four_sums(registers, rows, lane, row, place), &scratch.fragment[place], 4 * sizeof(float))
