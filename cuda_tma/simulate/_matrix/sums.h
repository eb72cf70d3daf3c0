/* What `_adder.pyx` does to a row of sums, in C: Cython cannot say that a function be compiled for several processors.

   Numbers are floats: they hold every number of the types that tensor cores multiply, and every product, if its exponent
   is theirs. Rows for which that is not certain take `add_far`, in doubles. A term that has been cut has less than 28
   bits, so an int takes eight. The loops over the columns of a row are plain, for the compiler to make vectors of. */

#ifndef CUDA_TMA_SIMULATE_MATRIX_SUMS_H
#define CUDA_TMA_SIMULATE_MATRIX_SUMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* x86-64 has vectors of 16 bytes for certain. Where the processor has longer ones, the loader takes the function made for
   them; that is for gcc and glibc to do (GCC, "Common Function Attributes": target_clones). */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum {
    NONE = -10000,  /* exponent of zero: two of them fit int16 */
    SPECIAL = 128,  /* and of infinities and NaNs */
    NEAR = 48,      /* up to such exponents of A and B, floats hold their products */
    LEAST_UNIT = -125,
    MOST_K = 32,
    MOST_ROWS = 64,
    MOST_COLUMNS = 256,
    WARP = 32,
};

typedef union {
    float value;
    uint32_t bits;
} Single;

typedef union {
    double value;
    uint64_t bits;
} Double;

typedef struct {
    float values[MOST_K * MOST_COLUMNS];  /* of infinities and NaNs, zero */
    int16_t exponents[MOST_K * MOST_COLUMNS];
    int special;  /* there are infinities or NaNs */
    int far;      /* there are exponents beyond NEAR */
} Factor;

typedef struct {
    int least_a, least_b, least_sum;  /* exponents of the least normal numbers */
    int fraction_bits;                /* of a term, below the largest exponent */
    uint64_t kept;                    /* mask of a sum's bits, as a double */
    ptrdiff_t k;                      /* filled up with zeros to a multiple of eight */
    ptrdiff_t columns;
    Factor a;                         /* [row, k] */
    Factor b;                         /* [k, column] */
    float c[8][MOST_COLUMNS];         /* of rows, one after the other; of infinities and NaNs, zero */
    float given[MOST_COLUMNS];        /* C of a row, if there are such */
    int16_t largest[MOST_COLUMNS];    /* exponents of terms */
    Single per_unit[MOST_COLUMNS];    /* of each sum: its terms are multiples of the unit */
    Double unit[MOST_COLUMNS];
    double total[MOST_COLUMNS];
    Double sums[MOST_COLUMNS];        /* D */
} Sums;

/* ---- numbers ---- */

INLINE int16_t larger(int16_t a, int16_t b) { return a > b ? a : b; }

/* That of a subnormal number is its type's least; of infinities and NaNs it is SPECIAL. */
INLINE int16_t exponent_of(float value, int least) {
    Single number = {value};
    int exponent = (int)(number.bits >> 23 & 0xFF) - 127;
    exponent = exponent > least ? exponent : least;
    return (int16_t)(number.bits << 1 ? exponent : NONE);
}

/* Returns the largest. */
INLINE int take_exponents(const float *values, int16_t *exponents, ptrdiff_t size, int least) {
    int16_t most = NONE;
    for (ptrdiff_t i = 0; i < size; ++i) exponents[i] = exponent_of(values[i], least);
    for (ptrdiff_t i = 0; i < size; ++i) most = larger(most, exponents[i]);
    return most;
}

/* Zeros for infinities and NaNs. */
INLINE void clear_special(float *values, int16_t *exponents, ptrdiff_t size) {
    for (ptrdiff_t i = 0; i < size; ++i) {
        if (exponents[i] == SPECIAL) values[i] = 0, exponents[i] = NONE;
    }
}

/* ---- A and B ---- */

INLINE void take_factor(Factor *factor, ptrdiff_t size, int least) {
    int most = take_exponents(factor->values, factor->exponents, size, least);
    factor->special = most == SPECIAL;
    if (factor->special) clear_special(factor->values, factor->exponents, size);
    factor->far = 0;
    for (ptrdiff_t i = 0; i < size; ++i) {
        int exponent = factor->exponents[i];
        factor->far |= exponent > NEAR || (exponent < -NEAR && exponent != NONE);
    }
}

FOR_EACH_PROCESSOR static void take_a(Sums *s, const double *values, ptrdiff_t rows, ptrdiff_t k) {
    for (ptrdiff_t row = 0; row < rows; ++row) {
        for (ptrdiff_t i = 0; i < s->k; ++i) s->a.values[row * s->k + i] = i < k ? (float)values[row * k + i] : 0;
    }
    take_factor(&s->a, rows * s->k, s->least_a);
}

/* Where a row has a column: in fragments, the even ones of each eight before the odd ones, as registers do. */
INLINE ptrdiff_t place_of(ptrdiff_t column, int fragments) {
    return fragments ? column / 8 * 8 + column % 2 * 4 + column % 8 / 2 : column;
}

FOR_EACH_PROCESSOR static void take_b(Sums *s, const double *values, ptrdiff_t k, int fragments) {
    memset(s->b.values, 0, s->k * s->columns * sizeof(float));
    for (ptrdiff_t column = 0; column < s->columns; ++column) {
        float *place = &s->b.values[place_of(column, fragments)];
        for (ptrdiff_t i = 0; i < k; ++i) place[i * s->columns] = (float)values[column * k + i];
    }
    take_factor(&s->b, s->k * s->columns, s->least_b);
}

/* ---- a row of sums ---- */

/* By eight products. */
INLINE void raise_largest(int16_t *restrict largest, const int16_t *a, const int16_t *restrict b, ptrdiff_t n) {
    for (ptrdiff_t column = 0; column < n; ++column) {
        int16_t most = largest[column];
        for (int i = 0; i < 8; ++i) most = larger(most, (int16_t)(a[i] + b[i * n + column]));
        largest[column] = most;
    }
}

/* The unit of each sum. Returns whether a float can be multiplied by all that there are in one. */
INLINE int align(Sums *s) {
    const int n = (int)s->columns, fraction_bits = s->fraction_bits;
    int least = 0;
    for (int column = 0; column < n; ++column) {
        int exponent = (s->largest[column] > NONE / 2 ? s->largest[column] : 0) - fraction_bits;
        least = exponent < least ? exponent : least;
        s->per_unit[column].bits = (uint32_t)(127 - exponent) << 23;
    }
    for (int column = 0; column < n; ++column) {
        int exponent = (s->largest[column] > NONE / 2 ? s->largest[column] : 0) - fraction_bits;
        s->unit[column].bits = (uint64_t)(uint32_t)(exponent + 1023) << 52;
    }
    return least >= LEAST_UNIT;
}

/* Eight products, each cut toward zero as a conversion to int does. */
INLINE void add_terms(Sums *s, const float *a, const float *b) {
    const ptrdiff_t n = s->columns;
    for (ptrdiff_t column = 0; column < n; ++column) {
        float per_unit = s->per_unit[column].value;
        int terms = 0;
        for (int i = 0; i < 8; ++i) terms += (int)(a[i] * b[i * n + column] * per_unit);
        s->total[column] += terms;
    }
}

INLINE void add_near(Sums *s, const float *a, const float *c) {
    const ptrdiff_t n = s->columns;
    for (ptrdiff_t column = 0; column < n; ++column) {
        s->total[column] = (int)(c[column] * s->per_unit[column].value);
    }
    for (ptrdiff_t i = 0; i < s->k; i += 8) add_terms(s, &a[i], &s->b.values[i * n]);
}

static void add_far(Sums *s, const float *a, const float *c) {
    for (ptrdiff_t column = 0; column < s->columns; ++column) {
        double per_unit = 1 / s->unit[column].value, total = trunc(c[column] * per_unit);
        for (ptrdiff_t i = 0; i < s->k; ++i) {
            total += trunc((double)a[i] * s->b.values[i * s->columns + column] * per_unit);
        }
        s->total[column] = total;
    }
}

/* Sums rounded toward zero to a number of bits and, as f32 has no smaller ones, to multiples of 2 ** -149. */
INLINE void finish(Sums *s, int is_near) {
    const ptrdiff_t n = s->columns;
    const uint64_t kept = s->kept;
    for (ptrdiff_t column = 0; column < n; ++column) {
        Double sum = {s->total[column] * s->unit[column].value};
        sum.bits &= kept;
        s->sums[column] = sum;
    }
    if (is_near) return;
    for (ptrdiff_t column = 0; column < n; ++column) {
        double *sum = &s->sums[column].value;
        if (fabs(*sum) < 0x1p-126) *sum = trunc(*sum / 0x1p-149) * 0x1p-149;
    }
}

/* Where there are infinities and NaNs, all is added as ever. */
static void add_special(Sums *s, const double *a, const double *b, ptrdiff_t k, int fragments) {
    for (ptrdiff_t column = 0; column < s->columns; ++column) {
        ptrdiff_t place = place_of(column, fragments);
        double total = s->given[place];
        for (ptrdiff_t i = 0; i < k; ++i) total += a[i] * b[column * k + i];
        if (isnan(total)) s->sums[place].bits = 0x7FFFFFFFE0000000; /* as f32 the GPU's, 0x7fffffff */
        else if (isinf(total)) s->sums[place].value = total;
    }
}

/* D of `c`, to `sums`; `a` and `b` are this row of A, and B. */
INLINE void add_row(Sums *s, ptrdiff_t row, float *c, const double *a, const double *b, ptrdiff_t k, int fragments) {
    const ptrdiff_t n = s->columns;
    int special = take_exponents(c, s->largest, n, s->least_sum) == SPECIAL || s->a.special || s->b.special;
    if (special) {
        memcpy(s->given, c, n * sizeof(float));
        clear_special(c, s->largest, n);
    }
    for (ptrdiff_t i = 0; i < s->k; i += 8) {
        raise_largest(s->largest, &s->a.exponents[row * s->k + i], &s->b.exponents[i * n], n);
    }
    int is_near = align(s) && !s->a.far && !s->b.far;
    if (is_near) add_near(s, &s->a.values[row * s->k], c);
    else add_far(s, &s->a.values[row * s->k], c);
    finish(s, is_near);
    if (special) add_special(s, a, b, k, fragments);
}

/* [rows, columns] of C, of numbers that floats hold, and of D. */
FOR_EACH_PROCESSOR static void add_rows(
    Sums *s, double *c, ptrdiff_t rows, const double *a, const double *b, ptrdiff_t k) {
    const ptrdiff_t n = s->columns;
    for (ptrdiff_t row = 0; row < rows; ++row, c += n) {
        for (ptrdiff_t column = 0; column < n; ++column) s->c[0][column] = (float)c[column];
        add_row(s, row, s->c[0], &a[row * k], b, k, 0);
        memcpy(c, s->sums, n * sizeof(double));
    }
}

/* ---- registers ---- */

/* Where a register has four lanes of each of eight rows side by side: to `c`, from a place on, or back. */
INLINE void load_eight(Sums *s, const float *lanes, ptrdiff_t place) {
    for (int row = 0; row < 8; ++row) memcpy(&s->c[row][place], lanes + 4 * row, 4 * sizeof(float));
}

INLINE void store_eight(const Sums *s, float *lanes, ptrdiff_t place) {
    for (int row = 0; row < 8; ++row) memcpy(lanes + 4 * row, &s->c[row][place], 4 * sizeof(float));
}

/* C and D of a warpgroup: `registers` are those of its first thread. A thread has four sums of each eight columns: two
   side by side of a row, and two of the row eight below. */
FOR_EACH_PROCESSOR static void add_fragments(
    Sums *s, float *const *registers, int with_c, const double *a, const double *b, ptrdiff_t k) {
    const ptrdiff_t n = s->columns;
    for (ptrdiff_t first = 0; first < MOST_ROWS; first += 8) {
        ptrdiff_t lane = first / 16 * WARP, half = first % 16 / 8 * 2;
        for (ptrdiff_t i = 0; with_c && i < n / 4; ++i) {
            load_eight(s, registers[i / 2 * 4 + half + i % 2] + lane, 4 * i);
        }
        if (!with_c) memset(s->c, 0, sizeof s->c);
        for (int row = 0; row < 8; ++row) {
            add_row(s, first + row, s->c[row], &a[(first + row) * k], b, k, 1);
            for (ptrdiff_t place = 0; place < n; ++place) s->c[row][place] = (float)s->sums[place].value;
        }
        for (ptrdiff_t i = 0; i < n / 4; ++i) {
            store_eight(s, registers[i / 2 * 4 + half + i % 2] + lane, 4 * i);
        }
    }
}

#endif
