/* Statistics of one block of values that lies in the cache, and how blocks are joined.
 *
 * A block goes through up to three passes, each for what the one before cannot do:
 *   fast    float sums in 16 lanes, which compilers turn into vector instructions, from zero or from the mean so far;
 *   masked  the same with NaN and Inf left out, for blocks that hold any (a -inf attention mask is healthy and common);
 *   exact   two passes in double, for values so tiny, large or far from zero that float sums lose them. */

#ifndef SLEUTH_BLOCKS_H
#define SLEUTH_BLOCKS_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define INLINE static inline
#define PREFETCH(address)
#endif

/* One machine code for each generation of processors, chosen when the module is loaded. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONED
#endif

#define LANES 16
/* Asked for this many floats ahead: the processor's own prefetching stops at every page of 1,024. */
#define AHEAD 4096
/* A lane adds this many floats before its sum is moved into a double: the error stays below 1e-6 of the sum of |x|. */
#define LANE_ADDS 64
#define STRIP (LANES * LANE_ADDS)
#define BLOCK (8 * STRIP)
/* Squares of smaller values vanish in float. */
#define TINY_SQUARES 1e-26

typedef struct {
    double finite, mean, m2, low, high, abs_sum;
    int64_t count, zeros, nans, infs;
    int dirty;   /* the last block held NaN or Inf: the next one probably does */
    int centred; /* the values lie far from zero: sums are taken from their mean so far */
} Total;

/* Sums of a block: S and Q of (value - pivot) and its square, A of |value|. */
typedef struct {
    double finite, pivot, S, Q, A, low, high;
    int64_t zeros, nans, infs;
} Sums;

/* Sums of huge doubles overflow; Inf is counted and never stored. */
INLINE double saturated(double sum) { return sum <= DBL_MAX ? sum : DBL_MAX; }

INLINE void join(Total *total, const Sums *b) {
    total->zeros += b->zeros;
    total->nans += b->nans;
    total->infs += b->infs;
    if (b->finite == 0) return;
    double shift = b->S / b->finite, mean = b->pivot + shift, m2 = b->Q - b->S * shift;
    m2 = m2 > 0 ? saturated(m2) : 0;
    total->abs_sum = saturated(total->abs_sum + b->A);
    if (total->finite == 0) {
        total->finite = b->finite;
        total->mean = mean;
        total->m2 = m2;
        total->low = b->low;
        total->high = b->high;
        return;
    }
    double sum = total->finite + b->finite, delta = mean - total->mean, share = b->finite / sum;
    total->mean = fabs(delta) <= DBL_MAX ? total->mean + delta * share : total->mean * (1 - share) + mean * share;
    total->m2 = saturated(total->m2 + m2 + delta * delta * total->finite * share);
    total->finite = sum;
    if (b->low < total->low) total->low = b->low;
    if (b->high > total->high) total->high = b->high;
}

INLINE int is_finite_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return (bits & 0x7f800000u) != 0x7f800000u;
}

/* masked and centred are constants in each caller, so that the compiler makes a loop of its own of each. */
INLINE void float_sums(const float *x, int64_t n, float pivot, int centred, int masked, Sums *out) {
    double S[LANES] = {0}, Q[LANES] = {0}, A[LANES] = {0};
    float low[LANES], high[LANES];
    int32_t zeros[LANES] = {0}, nans[LANES] = {0}, infs[LANES] = {0};
    for (int j = 0; j < LANES; j++) {
        low[j] = INFINITY;
        high[j] = -INFINITY;
    }
    int64_t i = 0;
    while (i + LANES <= n) {
        float s[LANES] = {0}, q[LANES] = {0}, a[LANES] = {0};
        int64_t end = i + STRIP <= n ? i + STRIP : n - n % LANES;
        for (; i < end; i += LANES) {
            PREFETCH(x + i + AHEAD);
            for (int j = 0; j < LANES; j++) {
                float v = x[i + j];
                float least = v, largest = v, d, size;
                if (masked) {
                    uint32_t bits;
                    memcpy(&bits, &v, 4);
                    uint32_t m = bits & 0x7fffffffu;
                    int32_t bad = -(int32_t)(m >= 0x7f800000u);
                    int32_t nan = -(int32_t)(m > 0x7f800000u);
                    nans[j] -= nan;
                    infs[j] -= bad - nan;
                    least = bad ? INFINITY : v;
                    largest = bad ? -INFINITY : v;
                    d = bad ? 0.0f : centred ? v - pivot : v;
                    size = bad ? 0.0f : fabsf(v);
                } else {
                    d = centred ? v - pivot : v;
                    size = fabsf(v);
                }
                s[j] += d;
                q[j] += d * d;
                a[j] += size;
                low[j] = least < low[j] ? least : low[j];
                high[j] = largest > high[j] ? largest : high[j];
                zeros[j] += v == 0.0f;
            }
        }
        for (int j = 0; j < LANES; j++) {
            S[j] += s[j];
            Q[j] += q[j];
            A[j] += a[j];
        }
    }
    Sums sums = {0};
    sums.low = INFINITY;
    sums.high = -INFINITY;
    for (int j = 0; j < LANES; j++) {
        sums.S += S[j];
        sums.Q += Q[j];
        sums.A += A[j];
        if (low[j] < sums.low) sums.low = low[j];
        if (high[j] > sums.high) sums.high = high[j];
        sums.zeros += zeros[j];
        sums.nans += nans[j];
        sums.infs += infs[j];
    }
    for (; i < n; i++) {
        float v = x[i];
        if (masked && !is_finite_bits(v)) {
            if (v != v) sums.nans++;
            else sums.infs++;
            continue;
        }
        double d = (double)v - pivot;
        sums.S += d;
        sums.Q += d * d;
        sums.A += fabsf(v);
        if (v < sums.low) sums.low = v;
        if (v > sums.high) sums.high = v;
        sums.zeros += v == 0.0f;
    }
    sums.pivot = pivot;
    sums.finite = (double)(n - sums.nans - sums.infs);
    *out = sums;
}

INLINE int sums_are_finite(const Sums *b) { return b->A <= DBL_MAX && b->Q <= DBL_MAX; }

/* Did the precision suffice? Not when squares vanish, nor when the pivot lies far outside the values. */
INLINE int sums_are_sound(Sums *b) {
    if (b->finite == 0) return 1;
    if (b->low == b->high) { /* all equal: known without rounding */
        b->pivot = b->low;
        b->S = b->Q = 0;
        b->A = fabs(b->low) * b->finite;
        return 1;
    }
    return b->Q >= TINY_SQUARES && b->S * b->S <= 0.5 * b->Q * b->finite;
}

#define ADD_DOUBLE(value, j)                       \
    do {                                           \
        double v = (value), d = v - pivot;         \
        S[j] += d;                                 \
        Q[j] += d * d;                             \
        A[j] += fabs(v);                           \
        low[j] = v < low[j] ? v : low[j];          \
        high[j] = v > high[j] ? v : high[j];       \
        zeros[j] += v == 0;                        \
    } while (0)

/* Sums of doubles that are all finite. The lanes hide how long one addition takes. */
INLINE void double_sums(const double *x, int64_t n, double pivot, Sums *out) {
    double S[LANES] = {0}, Q[LANES] = {0}, A[LANES] = {0}, low[LANES], high[LANES];
    int64_t zeros[LANES] = {0};
    for (int j = 0; j < LANES; j++) {
        low[j] = INFINITY;
        high[j] = -INFINITY;
    }
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++) ADD_DOUBLE(x[i + j], j);
    for (int64_t i = whole; i < n; i++) ADD_DOUBLE(x[i], i - whole);
    Sums sums = {0};
    sums.low = INFINITY;
    sums.high = -INFINITY;
    for (int j = 0; j < LANES; j++) {
        sums.S += S[j];
        sums.Q += Q[j];
        sums.A += A[j];
        if (low[j] < sums.low) sums.low = low[j];
        if (high[j] > sums.high) sums.high = high[j];
        sums.zeros += zeros[j];
    }
    sums.pivot = pivot;
    sums.finite = (double)n;
    *out = sums;
}

/* Twice over the finite ones: first their mean, then the distances from it. */
INLINE void exact_sums(const double *x, int64_t n, Sums *out) {
    double mean = 0;
    if (n > 0) {
        double_sums(x, n, 0.0, out);
        mean = out->S / (double)n;
    }
    if (!(fabs(mean) <= DBL_MAX)) { /* the sum of huge doubles overflowed */
        mean = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    }
    double_sums(x, n, mean, out);
    if (!(fabs(out->S) <= DBL_MAX)) out->S = 0;
}

/* The finite values of a block as doubles; the others are counted. */
#define KEEP_FINITE(NAME, TYPE)                                                    \
    INLINE int64_t NAME(const TYPE *x, int64_t n, double *kept, int64_t *nans) {   \
        int64_t m = 0, bad = 0;                                                    \
        for (int64_t i = 0; i < n; i++) m += fabs((double)x[i]) <= DBL_MAX;        \
        if (m == n) {                                                              \
            for (int64_t i = 0; i < n; i++) kept[i] = (double)x[i];                \
            *nans = 0;                                                             \
            return n;                                                              \
        }                                                                          \
        m = 0;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                          \
            double v = (double)x[i];                                               \
            kept[m] = v;                                                           \
            m += v <= DBL_MAX && v >= -DBL_MAX;                                    \
            bad += v != v;                                                         \
        }                                                                          \
        *nans = bad;                                                               \
        return m;                                                                  \
    }

KEEP_FINITE(keep_finite_floats, float)
KEEP_FINITE(keep_finite_doubles, double)

#define EXACTLY(KEEP, x, n, sums)                  \
    do {                                           \
        double kept[BLOCK];                        \
        int64_t nans, finite = KEEP(x, n, kept, &nans); \
        exact_sums(kept, finite, sums);            \
        (sums)->nans = nans;                       \
        (sums)->infs = (n) - finite - nans;        \
    } while (0)

INLINE void add_floats(Total *total, const float *x, int64_t n) {
    Sums sums;
    float pivot = total->centred ? (float)total->mean : 0.0f;
    total->count += n;
    if (!total->dirty) {
        if (total->centred) float_sums(x, n, pivot, 1, 0, &sums);
        else float_sums(x, n, 0.0f, 0, 0, &sums);
    }
    if (total->dirty || !sums_are_finite(&sums)) float_sums(x, n, pivot, 1, 1, &sums);
    total->dirty = sums.nans + sums.infs > 0;
    if (!sums_are_finite(&sums) || !sums_are_sound(&sums)) {
        EXACTLY(keep_finite_floats, x, n, &sums);
        total->centred = 1;
    }
    join(total, &sums);
}

/* Doubles, and whole numbers that were widened to them. */
INLINE void add_doubles(Total *total, const double *x, int64_t n) {
    Sums sums;
    total->count += n;
    double_sums(x, n, total->mean, &sums);
    if (!sums_are_finite(&sums) || !sums_are_sound(&sums)) EXACTLY(keep_finite_doubles, x, n, &sums);
    join(total, &sums);
}

#endif
