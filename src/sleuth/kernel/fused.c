/* Statistics of many arrays in one call: one pass over memory, the interpreter's lock released, nothing allocated. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "blocks.h"
#include "reading.h"

#define COLUMNS 9
#define BINS 32
/* The histogram looks at this many values of a tensor, evenly spaced. */
#define SAMPLED 1024
/* Tensors whose references and shapes are held on the stack while the lock is released. */
#define GROUP 64

static void write_row(const Total *total, double *row) {
    row[0] = (double)total->count;
    row[1] = total->mean;
    row[2] = total->m2;
    row[3] = total->low;
    row[4] = total->high;
    row[5] = total->abs_sum;
    row[6] = (double)total->zeros;
    row[7] = (double)total->nans;
    row[8] = (double)total->infs;
}

CLONED static void measure_floats(const float *x, int64_t n, Total *total) {
    for (int64_t i = 0; i < n; i += BLOCK) add_floats(total, x + i, n - i < BLOCK ? n - i : BLOCK);
}

CLONED static void measure_doubles(const double *x, int64_t n, Total *total) {
    for (int64_t i = 0; i < n; i += BLOCK) add_doubles(total, x + i, n - i < BLOCK ? n - i : BLOCK);
}

CLONED static void measure_halves(const uint16_t *x, int64_t n, int brain, Total *total) {
    float wide[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        if (brain) widen_bfloat16(x + i, m, wide);
        else widen_float16(x + i, m, wide);
        add_floats(total, wide, m);
    }
}

CLONED static void measure_whole(const char *x, int64_t n, Kind kind, Total *total) {
    double wide[BLOCK];
    int64_t size = size_of(kind);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        widen_whole(x + i * size, m, kind, wide);
        add_doubles(total, wide, m);
    }
}

static void measure_dense(const char *x, int64_t n, Kind kind, Total *total) {
    switch (kind) {
    case FLOAT32: measure_floats((const float *)x, n, total); break;
    case FLOAT64: measure_doubles((const double *)x, n, total); break;
    case FLOAT16: measure_halves((const uint16_t *)x, n, 0, total); break;
    case BFLOAT16: measure_halves((const uint16_t *)x, n, 1, total); break;
    default: measure_whole(x, n, kind, total);
    }
}

static void measure_view(const View *view, double *row) {
    Total total = {0};
    if (view->dense) {
        measure_dense(view->data, view->count, view->kind, &total);
    } else {
        char block[BLOCK * 8];
        Walk walk = {0};
        int64_t n;
        while ((n = gather(view, &walk, block, BLOCK)) > 0) measure_dense(block, n, view->kind, &total);
    }
    write_row(&total, row);
}

/* Evenly spaced runs of values stand for all: side by side they come with one look into memory. Each lies at a changing place
   of its stretch, so that a row's length cannot resonate. */
#define RUN 4

/* How many runs one stands for; 0: every value is taken. */
INLINE int64_t spacing(int64_t count, int64_t most) {
    int64_t runs = (count + RUN - 1) / RUN, kept = most / RUN > 1 ? most / RUN : 1;
    return count <= most || count <= RUN ? 0 : (runs + kept - 1) / kept;
}

INLINE int64_t sampled_at(int64_t i, int64_t every, int64_t count) {
    if (every == 0) return i;
    int64_t run = i / RUN, start = (run * every + run * 7919 % every) * RUN;
    return (start < count - RUN ? start : count - RUN) + i % RUN;
}

INLINE int64_t sample_size(int64_t count, int64_t most) {
    int64_t every = spacing(count, most);
    return every == 0 ? count : ((count + RUN - 1) / RUN + every - 1) / every * RUN;
}

/* Binary exponents of the values that are neither zero nor NaN nor Inf, eight to a bin. */
static void count_exponents(const View *view, int32_t *bins) {
    memset(bins, 0, BINS * sizeof(int32_t));
    int64_t every = spacing(view->count, SAMPLED), n = sample_size(view->count, SAMPLED);
    for (int64_t i = 0; i < n; i++) {
        double v = value_at(view, sampled_at(i, every, view->count));
        uint64_t bits;
        memcpy(&bits, &v, 8);
        int exponent = (int)(bits >> 52 & 0x7ff);
        if (v == 0 || exponent == 0x7ff) continue;
        exponent -= 1023 - 128;
        bins[exponent < 0 ? 0 : exponent > 255 ? BINS - 1 : exponent >> 3]++;
    }
}

/* Sampled values from the `start`-th on. */
static void read_sample(const View *view, int64_t every, int64_t start, int64_t n, double *out) {
    if (view->dense && view->kind == FLOAT32 && start % RUN == 0) {
        for (int64_t i = 0; i < n; i += RUN) {
            const float *run = (const float *)view->data + sampled_at(start + i, every, view->count);
            for (int64_t k = 0; k < RUN && i + k < n; k++) out[i + k] = run[k];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = value_at(view, sampled_at(start + i, every, view->count));
}

static void keep_sample(const View *view, int64_t most, double *kept) {
    read_sample(view, spacing(view->count, most), 0, sample_size(view->count, most), kept);
}

static void measure_change(const View *view, int64_t most, const double *kept, double *row) {
    int64_t every = spacing(view->count, most), n = sample_size(view->count, most);
    double change[256];
    Total total = {0};
    for (int64_t start = 0; start < n; start += 256) {
        int64_t m = n - start < 256 ? n - start : 256;
        read_sample(view, every, start, m, change);
        for (int64_t i = 0; i < m; i++) change[i] -= kept[start + i];
        measure_doubles(change, m, &total);
    }
    write_row(&total, row);
}

enum { IS_CPU, DTYPE, NUMEL, DATA_PTR, IS_CONTIGUOUS, STRIDE, SHAPE, NAMES };
static PyObject *names[NAMES];

static int as_int64(PyObject *result, int64_t *value) {
    if (result == NULL) return -1;
    *value = PyLong_AsLongLong(result);
    Py_DECREF(result);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

static int read_tuple(PyObject *tuple, int64_t *values, int *length) {
    if (tuple == NULL) return -1;
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
    if (n < 0 || n > MOST_AXES) {
        Py_DECREF(tuple);
        PyErr_SetString(PyExc_ValueError, "a tensor has more axes than the kernel reads");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    Py_DECREF(tuple);
    *length = (int)n;
    return PyErr_Occurred() ? -1 : 0;
}

/* A tensor that lends its memory by data_ptr(). `kinds` maps its dtype to ours. */
static int view_tensor(PyObject *tensor, PyObject *kinds, View *view) {
    PyObject *here = PyObject_GetAttr(tensor, names[IS_CPU]);
    if (here == NULL) return -1;
    Py_DECREF(here);
    if (here != Py_True) { /* its address means nothing on this side */
        PyErr_SetString(PyExc_TypeError, "a tensor does not lie in host memory");
        return -1;
    }
    PyObject *dtype = PyObject_GetAttr(tensor, names[DTYPE]);
    if (dtype == NULL) return -1;
    PyObject *kind = PyDict_GetItemWithError(kinds, dtype);
    Py_DECREF(dtype);
    if (kind == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a tensor has a dtype that the kernel does not read");
        return -1;
    }
    view->kind = (Kind)PyLong_AsLong(kind);
    int64_t address;
    if (as_int64(PyObject_CallMethodNoArgs(tensor, names[DATA_PTR]), &address) < 0) return -1;
    if (as_int64(PyObject_CallMethodNoArgs(tensor, names[NUMEL]), &view->count) < 0) return -1;
    view->data = (const char *)(intptr_t)address;
    PyObject *contiguous = PyObject_CallMethodNoArgs(tensor, names[IS_CONTIGUOUS]);
    if (contiguous == NULL) return -1;
    view->dense = contiguous == Py_True;
    Py_DECREF(contiguous);
    if (view->dense) return 0;
    int axes;
    if (read_tuple(PyObject_CallMethodNoArgs(tensor, names[STRIDE]), view->strides, &axes) < 0) return -1;
    PyObject *shape = PyObject_GetAttr(tensor, names[SHAPE]);
    if (read_tuple(shape, view->shape, &view->axes) < 0) return -1;
    if (axes != view->axes) {
        PyErr_SetString(PyExc_ValueError, "a tensor's strides do not fit its shape");
        return -1;
    }
    for (int i = 0; i < axes; i++) view->strides[i] *= size_of(view->kind);
    view->dense = is_dense(view);
    return 0;
}

/* An array that has the buffer protocol; the caller releases `buffer`. */
static int view_buffer(PyObject *array, View *view, Py_buffer *buffer) {
    if (PyObject_GetBuffer(array, buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) return -1;
    view->kind = kind_of_format(buffer->format, buffer->itemsize);
    if (view->kind == UNKNOWN || buffer->ndim > MOST_AXES) {
        PyBuffer_Release(buffer);
        PyErr_SetString(PyExc_TypeError, "an array has a dtype or more axes than the kernel reads");
        return -1;
    }
    view->data = buffer->buf;
    view->count = buffer->itemsize ? buffer->len / buffer->itemsize : 0;
    view->axes = buffer->ndim;
    for (int i = 0; i < buffer->ndim; i++) {
        view->shape[i] = buffer->shape[i];
        view->strides[i] = buffer->strides[i];
    }
    view->dense = is_dense(view);
    return 0;
}

typedef struct {
    PyObject *items[GROUP];
    Py_buffer buffers[GROUP];
    View views[GROUP];
    int held, buffered;
} Group;

static void release(Group *group) {
    for (int i = 0; i < group->held; i++) {
        if (group->buffered) PyBuffer_Release(&group->buffers[i]);
        Py_DECREF(group->items[i]);
    }
    group->held = 0;
}

/* Takes hold of the next items of a list; the list may change while the lock is released, these stay. */
static int hold(PyObject *list, Py_ssize_t start, PyObject *kinds, Group *group) {
    group->held = 0;
    group->buffered = kinds == Py_None;
    while (group->held < GROUP && start + group->held < PyList_GET_SIZE(list)) {
        int i = group->held;
        PyObject *item = PyList_GET_ITEM(list, start + i);
        Py_INCREF(item);
        View *view = &group->views[i];
        int failed = group->buffered ? view_buffer(item, view, &group->buffers[i]) : view_tensor(item, kinds, view);
        if (failed) {
            Py_DECREF(item);
            release(group);
            return -1;
        }
        group->items[i] = item;
        group->held++;
    }
    return 0;
}

/* Getting the lock back may take longer than a small group's statistics: it is released for large ones. */
#define WORTH_RELEASING (1 << 15)

static PyThreadState *unlock(const Group *group) {
    int64_t sum = 0;
    for (int i = 0; i < group->held; i++) sum += group->views[i].count;
    return sum >= WORTH_RELEASING ? PyEval_SaveThread() : NULL;
}

static void lock(PyThreadState *state) {
    if (state != NULL) PyEval_RestoreThread(state);
}

static PyObject *refuse(const char *why) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static int writable(PyObject *out, Py_ssize_t bytes, Py_buffer *buffer) {
    if (PyObject_GetBuffer(out, buffer, PyBUF_CONTIG) < 0) return -1;
    if (buffer->len >= bytes) return 0;
    PyBuffer_Release(buffer);
    refuse("the table has too few rows");
    return -1;
}

static int expect(PyObject *const *args, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted && PyList_Check(args[0]) && (args[1] == Py_None || PyDict_Check(args[1]))) return 0;
    PyErr_SetString(PyExc_TypeError, "expected a list of arrays, a dict of dtypes or None, and the tables to fill");
    return -1;
}

/* measure(items, kinds, table, exponents): fills float64 rows and, unless None, int32 rows of 32 bins. */
static PyObject *measure(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    if (expect(args, given, 4) < 0) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    Py_buffer table, exponents;
    int wants_exponents = args[3] != Py_None, failed = 0;
    if (writable(args[2], n * COLUMNS * (Py_ssize_t)sizeof(double), &table) < 0) return NULL;
    if (wants_exponents && writable(args[3], n * BINS * (Py_ssize_t)sizeof(int32_t), &exponents) < 0) {
        PyBuffer_Release(&table);
        return NULL;
    }
    Group group;
    for (Py_ssize_t start = 0; start < n && !failed; start += GROUP) {
        if (hold(args[0], start, args[1], &group) < 0) {
            failed = 1;
            break;
        }
        PyThreadState *state = unlock(&group);
        for (int i = 0; i < group.held; i++) {
            measure_view(&group.views[i], (double *)table.buf + (start + i) * COLUMNS);
            if (wants_exponents) count_exponents(&group.views[i], (int32_t *)exponents.buf + (start + i) * BINS);
        }
        lock(state);
        release(&group);
    }
    PyBuffer_Release(&table);
    if (wants_exponents) PyBuffer_Release(&exponents);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* all_finite(items, kinds): is there neither NaN nor Inf in any of them? */
static PyObject *all_finite(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    if (expect(args, given, 2) < 0) return NULL;
    Group group;
    int bad = 0;
    for (Py_ssize_t start = 0; start < PyList_GET_SIZE(args[0]) && !bad; start += GROUP) {
        if (hold(args[0], start, args[1], &group) < 0) return NULL;
        PyThreadState *state = unlock(&group);
        for (int i = 0; i < group.held && !bad; i++) {
            double row[COLUMNS];
            measure_view(&group.views[i], row);
            bad = row[7] > 0 || row[8] > 0;
        }
        lock(state);
        release(&group);
    }
    return PyBool_FromLong(!bad);
}

static int64_t needed(const Group *group, int64_t most) {
    int64_t sum = 0;
    for (int i = 0; i < group->held; i++) sum += sample_size(group->views[i].count, most);
    return sum;
}

/* keep(items, kinds, kept, most[, table]): copies at most `most` values of each into a float64 buffer, one tensor after the
   other; the statistics of all their values go into the table. */
static PyObject *keep(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    Py_buffer kept, table;
    Group group;
    int with_table = given == 5, failed = 0;
    if (expect(args, with_table ? 4 : given, 4) < 0) return NULL;
    int64_t most = PyLong_AsLongLong(args[3]), used = 0;
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    if (most < 1 || writable(args[2], 0, &kept) < 0) return most < 1 ? refuse("`most` must be at least 1") : NULL;
    if (with_table && writable(args[4], n * COLUMNS * (Py_ssize_t)sizeof(double), &table) < 0) {
        PyBuffer_Release(&kept);
        return NULL;
    }
    for (Py_ssize_t start = 0; start < n && !failed; start += GROUP) {
        if (hold(args[0], start, args[1], &group) < 0) {
            failed = 1;
            break;
        }
        if ((used + needed(&group, most)) * (int64_t)sizeof(double) > kept.len) {
            release(&group);
            refuse("the buffer is too small for the sample");
            failed = 1;
            break;
        }
        PyThreadState *state = unlock(&group);
        for (int i = 0; i < group.held; i++) {
            if (with_table) measure_view(&group.views[i], (double *)table.buf + (start + i) * COLUMNS);
            keep_sample(&group.views[i], most, (double *)kept.buf + used);
            used += sample_size(group.views[i].count, most);
        }
        lock(state);
        release(&group);
    }
    PyBuffer_Release(&kept);
    if (with_table) PyBuffer_Release(&table);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* changes(items, kinds, kept, most, table): statistics of what each sampled value changed by since `keep`. */
static PyObject *changes(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    Py_buffer kept, table;
    Group group;
    if (expect(args, given, 5) < 0) return NULL;
    int64_t most = PyLong_AsLongLong(args[3]), used = 0;
    Py_ssize_t n = PyList_GET_SIZE(args[0]);
    if (most < 1 || writable(args[2], 0, &kept) < 0) return most < 1 ? refuse("`most` must be at least 1") : NULL;
    if (writable(args[4], n * COLUMNS * (Py_ssize_t)sizeof(double), &table) < 0) {
        PyBuffer_Release(&kept);
        return NULL;
    }
    int failed = 0;
    for (Py_ssize_t start = 0; start < n && !failed; start += GROUP) {
        if (hold(args[0], start, args[1], &group) < 0) {
            failed = 1;
            break;
        }
        if ((used + needed(&group, most)) * (int64_t)sizeof(double) > kept.len) {
            release(&group);
            refuse("the sample that was kept belongs to other tensors");
            failed = 1;
            break;
        }
        PyThreadState *state = unlock(&group);
        for (int i = 0; i < group.held; i++) {
            measure_change(&group.views[i], most, (const double *)kept.buf + used, (double *)table.buf + (start + i) * COLUMNS);
            used += sample_size(group.views[i].count, most);
        }
        lock(state);
        release(&group);
    }
    PyBuffer_Release(&kept);
    PyBuffer_Release(&table);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

#define METHOD(NAME, TEXT) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL, TEXT}

static PyMethodDef methods[] = {
    METHOD(measure, "measure(items, kinds, table, exponents) -> None"),
    METHOD(all_finite, "all_finite(items, kinds) -> bool"),
    METHOD(keep, "keep(items, kinds, kept, most[, table]) -> None"),
    METHOD(changes, "changes(items, kinds, kept, most, table) -> None"),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fused", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_fused(void) {
    static const char *const words[NAMES] = {"is_cpu", "dtype", "numel", "data_ptr", "is_contiguous", "stride", "shape"};
    for (int i = 0; i < NAMES; i++) {
        names[i] = PyUnicode_InternFromString(words[i]);
        if (names[i] == NULL) return NULL;
    }
    return PyModule_Create(&module);
}
