/* Where the values of an array lie in memory, and how each dtype becomes a float or a double. */

#ifndef SLEUTH_READING_H
#define SLEUTH_READING_H

#include "blocks.h"

#define MOST_AXES 32

/* The numbers stand in kernel/__init__.py as well. */
typedef enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT64, INT32, INT16, INT8, UINT8, UINT16, UINT32, UINT64, UNKNOWN } Kind;

typedef struct {
    const char *data;
    int64_t count;
    Kind kind;
    int dense; /* its values lie side by side, in whatever order of axes */
    int axes;
    int64_t shape[MOST_AXES], strides[MOST_AXES]; /* in bytes; not filled for a contiguous tensor */
} View;

INLINE int64_t size_of(Kind kind) {
    static const int8_t sizes[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 2, 4, 8};
    return sizes[kind];
}

static Kind kind_of_format(const char *format, int64_t size) {
    if (format == NULL) return UINT8;
    if (*format == '@' || *format == '=') format++;
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (*format == '<') format++;
#endif
    if (format[0] == '\0' || format[1] != '\0') return UNKNOWN;
    switch (*format) {
    case 'f': return FLOAT32;
    case 'd': return FLOAT64;
    case 'e': return FLOAT16;
    case '?': return UINT8;
    case 'b': case 'h': case 'i': case 'l': case 'q': return size == 8 ? INT64 : size == 4 ? INT32 : size == 2 ? INT16 : INT8;
    case 'B': case 'H': case 'I': case 'L': case 'Q': return size == 8 ? UINT64 : size == 4 ? UINT32 : size == 2 ? UINT16 : UINT8;
    default: return UNKNOWN;
    }
}

/* A transposed tensor holds the same values side by side: then memory order will do. */
static int is_dense(const View *view) {
    int64_t expected = size_of(view->kind);
    uint32_t left = 0;
    for (int i = 0; i < view->axes; i++) {
        if (view->shape[i] == 0) return 1;
        if (view->shape[i] > 1) left |= 1u << i;
    }
    while (left) {
        int found = -1;
        for (int i = 0; i < view->axes; i++)
            if ((left >> i & 1) && view->strides[i] == expected) found = i;
        if (found < 0) return 0;
        expected *= view->shape[found];
        left &= ~(1u << found);
    }
    return 1;
}

typedef struct {
    int64_t index[MOST_AXES];
    int64_t done, offset;
} Walk;

INLINE void next_index(const View *view, Walk *walk) {
    for (int axis = view->axes - 1; axis >= 0; axis--) {
        walk->offset += view->strides[axis];
        if (++walk->index[axis] < view->shape[axis]) return;
        walk->offset -= view->strides[axis] * view->shape[axis];
        walk->index[axis] = 0;
    }
}

/* Copies the next values of a strided array side by side; how many there were. */
static int64_t gather(const View *view, Walk *walk, char *out, int64_t most) {
    int64_t n = view->count - walk->done < most ? view->count - walk->done : most;
    int64_t size = size_of(view->kind);
    for (int64_t i = 0; i < n; i++) {
        memcpy(out + i * size, view->data + walk->offset, (size_t)size);
        next_index(view, walk);
    }
    walk->done += n;
    return n;
}

INLINE float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

INLINE float from_bfloat16(uint16_t half) { return float_of_bits((uint32_t)half << 16); }

/* Shifted into place the exponent is short of 112; NaN and Inf need all ones. No branches: this runs in lanes. */
INLINE float from_float16(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    float scaled = float_of_bits(magnitude) * 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &scaled, 4);
    uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    return float_of_bits(bits | special | (uint32_t)(half & 0x8000u) << 16);
}

INLINE void widen_bfloat16(const uint16_t *x, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = from_bfloat16(x[i]);
}

INLINE void widen_float16(const uint16_t *x, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = from_float16(x[i]);
}

#define WIDEN(TYPE)                                                            \
    do {                                                                       \
        for (int64_t i = 0; i < n; i++) out[i] = (double)((const TYPE *)x)[i]; \
    } while (0)

INLINE void widen_whole(const char *x, int64_t n, Kind kind, double *out) {
    switch (kind) {
    case INT64: WIDEN(int64_t); break;
    case INT32: WIDEN(int32_t); break;
    case INT16: WIDEN(int16_t); break;
    case INT8: WIDEN(int8_t); break;
    case UINT16: WIDEN(uint16_t); break;
    case UINT32: WIDEN(uint32_t); break;
    case UINT64: WIDEN(uint64_t); break;
    default: WIDEN(uint8_t);
    }
}

INLINE double double_at(const char *x, Kind kind) {
    double wide;
    switch (kind) {
    case FLOAT32: return *(const float *)x;
    case FLOAT64: return *(const double *)x;
    case FLOAT16: return from_float16(*(const uint16_t *)x);
    case BFLOAT16: return from_bfloat16(*(const uint16_t *)x);
    default: widen_whole(x, 1, kind, &wide); return wide;
    }
}

/* The value at a position: in memory order where the array is dense, else in the order of its axes. */
INLINE double value_at(const View *view, int64_t position) {
    int64_t offset = 0;
    if (view->dense) return double_at(view->data + position * size_of(view->kind), view->kind);
    for (int axis = view->axes - 1; axis >= 0; axis--) {
        offset += position % view->shape[axis] * view->strides[axis];
        position /= view->shape[axis];
    }
    return double_at(view->data + offset, view->kind);
}

#endif
