/* The sums of one row of a product of matrices, in C, for `_adder.pyx`. Cython cannot compile a function for several
   processors.

   A float can represent every number of the types that tensor cores multiply. It can also represent each product whose
   exponent is in the range of f32. `add_far` adds the terms of other rows in doubles. A truncated term has less than 28
   bits, so an int can contain the sum of eight terms. The loops over the columns of a row are simple, so that the
   compiler can vectorize them. */

#ifndef CUDA_TMA_SIMULATE_MATRIX_SUMS_H
#define CUDA_TMA_SIMULATE_MATRIX_SUMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Every x86-64 processor has vectors of 16 bytes. For a processor with longer vectors, gcc compiles a second version of
   the function, and glibc selects it at load time (GCC, "Common Function Attributes": target_clones). */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum {
    NONE = -10000,  /* The number zero has the exponent -10000; the sum of two such exponents fits in int16. */
    SPECIAL = 128,  /* Infinities and NaNs have the exponent 128. */
    NEAR = 48,      /* If two factors have exponents of at most 48, a float can represent their product. */
    LEAST_UNIT = -125,
    MOST_K = 64,
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
    float values[MOST_K * MOST_COLUMNS];  /* A zero replaces each infinity and each NaN. */
    int16_t exponents[MOST_K * MOST_COLUMNS];
    int special;  /* The flag is true if the matrix contains an infinity or a NaN. */
    int far;      /* The flag is true if the matrix contains an exponent beyond NEAR. */
} Factor;

typedef struct {
    int least_a, least_b, least_sum;  /* The three numbers are the exponents of the smallest normal numbers of A, B and C. */
    int fraction_bits;                /* A term has this number of bits below the largest exponent. */
    uint64_t kept;                    /* The mask selects the bits of a rounded sum, as a double. */
    ptrdiff_t k;                      /* The number is a multiple of eight, because zeros extend each row of A. */
    ptrdiff_t columns;
    Factor a;                         /* The order of the elements is [row, k]. */
    Factor b;                         /* The order of the elements is [k, column]. */
    float c[8][MOST_COLUMNS];         /* Each row is a row of C; a zero replaces each infinity and each NaN. */
    float given[MOST_COLUMNS];        /* The row of C with its infinities and NaNs, if C, A or B contains any. */
    int16_t largest[MOST_COLUMNS];    /* Each number is the largest exponent of the terms of a sum. */
    Single per_unit[MOST_COLUMNS];    /* Each number is 1 divided by the unit of a sum. */
    Double unit[MOST_COLUMNS];        /* The terms of a sum are multiples of its unit. */
    double total[MOST_COLUMNS];
    Double sums[MOST_COLUMNS];        /* Each number is an element of D. */
} Sums;

/* ---- numbers ---- */

INLINE int16_t larger(int16_t a, int16_t b) { return a > b ? a : b; }

/* Return the exponent of a number. A subnormal number has the least exponent of its type, and an infinity or NaN has
   SPECIAL. */
INLINE int16_t exponent_of(float value, int least) {
    Single number = {value};
    int exponent = (int)(number.bits >> 23 & 0xFF) - 127;
    exponent = exponent > least ? exponent : least;
    return (int16_t)(number.bits << 1 ? exponent : NONE);
}

/* Store the exponents of some numbers, and return the largest exponent. */
INLINE int take_exponents(const float *values, int16_t *exponents, ptrdiff_t size, int least) {
    int16_t most = NONE;
    for (ptrdiff_t i = 0; i < size; ++i) exponents[i] = exponent_of(values[i], least);
    for (ptrdiff_t i = 0; i < size; ++i) most = larger(most, exponents[i]);
    return most;
}

/* Replace infinities and NaNs by zeros. */
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

/* Return the place of a column in a row. In fragments, the even columns of each eight columns precede the odd columns,
   as in registers. */
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

/* Raise the largest exponent of each sum to the largest exponent of its next eight products. */
INLINE void raise_largest(int16_t *restrict largest, const int16_t *a, const int16_t *restrict b, ptrdiff_t n) {
    for (ptrdiff_t column = 0; column < n; ++column) {
        int16_t most = largest[column];
        for (int i = 0; i < 8; ++i) most = larger(most, (int16_t)(a[i] + b[i * n + column]));
        largest[column] = most;
    }
}

/* Compute the unit of each sum, and return whether a float can represent 1 divided by each unit. */
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

/* Add eight products to each sum; the conversion to int truncates each product toward zero. */
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

/* Round the sums toward zero to the kept bits, and to multiples of 2 ** -149, the smallest positive number of f32. */
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

/* Compute the sums that contain infinities or NaNs by ordinary additions of doubles. */
static void add_special(Sums *s, const double *a, const double *b, ptrdiff_t k, int fragments) {
    for (ptrdiff_t column = 0; column < s->columns; ++column) {
        ptrdiff_t place = place_of(column, fragments);
        double total = s->given[place];
        for (ptrdiff_t i = 0; i < k; ++i) total += a[i] * b[column * k + i];
        if (isnan(total)) s->sums[place].bits = 0x7FFFFFFFE0000000; /* As an f32, this is the NaN of the GPU. */
        else if (isinf(total)) s->sums[place].value = total;
    }
}

/* Compute one row of D from a row `c` of C, a row `a` of A, and the matrix B, and store the row in `sums`. */
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

/* Replace the rows of C by those of D; a float can represent each number of C. */
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

/* Copy one register of a warp to `c`, from column `place` on. Four adjacent lanes hold each of eight rows. */
INLINE void load_eight(Sums *s, const float *lanes, ptrdiff_t place) {
    for (int row = 0; row < 8; ++row) memcpy(&s->c[row][place], lanes + 4 * row, 4 * sizeof(float));
}

INLINE void store_eight(const Sums *s, float *lanes, ptrdiff_t place) {
    for (int row = 0; row < 8; ++row) memcpy(lanes + 4 * row, &s->c[row][place], 4 * sizeof(float));
}

/* Replace C by D in the registers of a warpgroup, of which `registers` are those of its first thread. A thread has four
   sums of each eight columns: two adjacent sums of a row, and two sums of the row eight rows below. */
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
