/* The inner loop of the engine for a few trials ("lanes") side by side.
 *
 * Optional: the engine counts in numpy where this file was not compiled, and finds the same places.
 * Every buffer is checked for its type and its size, and every index for its range, before the
 * loop follows it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
/* One file for every processor: the best of these is chosen when the module is loaded. */
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* A contiguous buffer of one type: 'd' float64, 'f' float32, 'q' int64, 'Q' uint64, 'i' int32,
 * 'I' uint32, 'B' bytes. */
static int take(PyObject *object, Py_buffer *view, char kind, int writable,
                       const char *name)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return -1;
    const char *format = view->format ? view->format : "B";
    Py_ssize_t size = kind == 'B' ? 1 : kind == 'f' || kind == 'i' || kind == 'I' ? 4 : 8;
    char given = format[0];
    if (view->itemsize == 8)
        given = given == 'l' ? 'q' : given == 'L' ? 'Q' : given;
    if (view->itemsize == 4)
        given = given == 'l' ? 'i' : given == 'L' ? 'I' : given;
    if (given == kind && format[1] == '\0' && view->itemsize == size)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: items of format '%s', and '%c' is needed", name, format,
                 kind);
    return -1;
}

static inline Py_ssize_t items(const Py_buffer *view)
{
    return view->len / view->itemsize;
}

static inline int wrong_size(const char *name, const Py_buffer *view, Py_ssize_t wanted)
{
    if (items(view) == wanted)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %zd items, and %zd are needed", name, items(view), wanted);
    return 1;
}

static inline void release(Py_buffer *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&views[i]); /* does nothing for one that was never taken */
}

enum { LANES = 8, MOST_COLUMNS = 16 };

typedef struct {
    Py_ssize_t columns, members;
    const float *tables[MOST_COLUMNS];   /* (D, L) each */
    const int32_t *codes[MOST_COLUMNS];  /* (P,) each: a row of its table */
    const int64_t *starts;               /* (n+1,): pairs of member m are starts[m]:starts[m+1] */
    const float *lower, *upper;          /* (n, L) */
    int64_t *above;                      /* (n, L) */
    int64_t *pairs;                      /* (room,): those in doubt in any lane */
    uint8_t *between;                    /* (room,): in which, a bit a lane */
    Py_ssize_t room, doubts;             /* more doubts than room: only counted */
} Work;

CLONES
static int all_below(const int32_t *index, Py_ssize_t size, Py_ssize_t limit)
{
    uint32_t greatest = 0; /* a negative index is a huge one */
    for (Py_ssize_t i = 0; i < size; i++)
        greatest = (uint32_t)index[i] > greatest ? (uint32_t)index[i] : greatest;
    return size == 0 || (Py_ssize_t)greatest < limit;
}

INLINE void doubt(Work *work, int64_t pair, unsigned lanes)
{
    if (work->doubts < work->room) {
        work->pairs[work->doubts] = pair;
        work->between[work->doubts] = (uint8_t)lanes;
    }
    work->doubts++;
}

INLINE void count_one(Work *work, const Py_ssize_t columns)
{
    for (Py_ssize_t m = 0; m < work->members; m++) {
        const float low = work->lower[m], high = work->upper[m];
        int64_t above = 0;
        for (int64_t p = work->starts[m]; p < work->starts[m + 1]; p++) {
            float score = work->tables[0][work->codes[0][p]];
            for (Py_ssize_t c = 1; c < columns; c++)
                score += work->tables[c][work->codes[c][p]];
            int over = score > high;
            above += over;
            if (over != (score >= low))
                doubt(work, p, 1);
        }
        work->above[m] = above;
    }
}

#if defined(__GNUC__)
/* Eight lanes are one vector. A comparison gives -1 where it holds. */
typedef float Floats __attribute__((vector_size(32), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(32), aligned(4)));

INLINE void count_eight(Work *work, const Py_ssize_t columns)
{
    static const Ints bits = {1, 2, 4, 8, 16, 32, 64, 128};
    for (Py_ssize_t m = 0; m < work->members; m++) {
        const Floats low = *(const Floats *)(work->lower + m * LANES);
        const Floats high = *(const Floats *)(work->upper + m * LANES);
        Ints above = {0};
        for (int64_t p = work->starts[m]; p < work->starts[m + 1]; p++) {
            Floats score =
                *(const Floats *)(work->tables[0] + (Py_ssize_t)work->codes[0][p] * LANES);
            for (Py_ssize_t c = 1; c < columns; c++)
                score += *(const Floats *)(work->tables[c] + (Py_ssize_t)work->codes[c][p] * LANES);
            Ints over = score > high;
            above -= over;
            Ints between = (over ^ (score >= low)) & bits;
            uint64_t part[4];
            memcpy(part, &between, sizeof part);
            uint64_t all = part[0] | part[1] | part[2] | part[3];
            if (all)
                doubt(work, p, (unsigned)(all | all >> 32));
        }
        for (int lane = 0; lane < LANES; lane++)
            work->above[m * LANES + lane] = above[lane];
    }
}
#else
INLINE void count_eight(Work *work, const Py_ssize_t columns)
{
    for (Py_ssize_t m = 0; m < work->members; m++) {
        memset(work->above + m * LANES, 0, LANES * sizeof *work->above);
        for (int64_t p = work->starts[m]; p < work->starts[m + 1]; p++) {
            unsigned between = 0;
            for (Py_ssize_t lane = 0; lane < LANES; lane++) {
                float score = 0;
                for (Py_ssize_t c = 0; c < columns; c++)
                    score += work->tables[c][(Py_ssize_t)work->codes[c][p] * LANES + lane];
                unsigned over = score > work->upper[m * LANES + lane];
                work->above[m * LANES + lane] += over;
                between |= (over ^ (unsigned)(score >= work->lower[m * LANES + lane])) << lane;
            }
            if (between)
                doubt(work, p, between);
        }
    }
}
#endif

/* A constant number of columns lets the compiler unroll the sum. */
CLONES
static void count_all(Work *work, Py_ssize_t lanes)
{
    if (lanes == 1) {
        switch (work->columns) {
        case 1: count_one(work, 1); break;
        case 2: count_one(work, 2); break;
        case 3: count_one(work, 3); break;
        default: count_one(work, work->columns);
        }
    } else {
        switch (work->columns) {
        case 1: count_eight(work, 1); break;
        case 2: count_eight(work, 2); break;
        case 3: count_eight(work, 3); break;
        default: count_eight(work, work->columns);
        }
    }
}

/* The starts rise from 0. */
static int rising(const int64_t *starts, Py_ssize_t members)
{
    if (starts[0] != 0)
        return 0;
    for (Py_ssize_t m = 0; m < members; m++)
        if (starts[m] > starts[m + 1])
            return 0;
    return 1;
}

enum { STARTS, LOWER, UPPER, ABOVE, PAIRS, BETWEEN, FIXED };

PyDoc_STRVAR(count_doc,
             "count(tables, codes, starts, lower, upper, above, pairs, between, lanes) -> doubts\n\n"
             "Fills above, and pairs and between as far as they reach; see native.py.");

static PyObject *count(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[FIXED] = {"starts", "lower",  "upper",
                                              "above",  "pairs", "between"};
    static const char kinds[FIXED + 1] = "qffqqB";
    PyObject *tables, *codes, *given[FIXED], *result = NULL;
    Py_buffer views[FIXED + 2 * MOST_COLUMNS] = {{0}};
    Py_ssize_t lanes;
    Work work = {0};
    if (!PyArg_ParseTuple(args, "O!O!OOOOOOn", &PyTuple_Type, &tables, &PyTuple_Type, &codes,
                          &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
                          &lanes))
        return NULL;
    work.columns = PyTuple_GET_SIZE(tables);
    if ((lanes != 1 && lanes != LANES) || work.columns < 1 || work.columns > MOST_COLUMNS ||
        PyTuple_GET_SIZE(codes) != work.columns) {
        PyErr_Format(PyExc_ValueError, "%zd lanes, %zd tables and %zd codes", lanes, work.columns,
                     PyTuple_GET_SIZE(codes));
        return NULL;
    }
    for (int i = 0; i < FIXED; i++)
        if (take(given[i], &views[i], kinds[i], i >= ABOVE, names[i]) < 0)
            goto done;
    work.members = items(&views[LOWER]) / lanes;
    if (wrong_size("lower", &views[LOWER], work.members * lanes) ||
        wrong_size("upper", &views[UPPER], work.members * lanes) ||
        wrong_size("above", &views[ABOVE], work.members * lanes) ||
        wrong_size("starts", &views[STARTS], work.members + 1) ||
        wrong_size("between", &views[BETWEEN], items(&views[PAIRS])))
        goto done;
    work.starts = views[STARTS].buf;
    const Py_ssize_t pairs = (Py_ssize_t)work.starts[work.members];
    Py_ssize_t depths[MOST_COLUMNS];
    for (Py_ssize_t c = 0; c < work.columns; c++) {
        Py_buffer *table = &views[FIXED + 2 * c], *code = table + 1;
        if (take(PyTuple_GET_ITEM(tables, c), table, 'f', 0, "tables") < 0 ||
            take(PyTuple_GET_ITEM(codes, c), code, 'i', 0, "codes") < 0)
            goto done;
        depths[c] = items(table) / lanes;
        if (wrong_size("tables", table, depths[c] * lanes) || wrong_size("codes", code, pairs))
            goto done;
        work.tables[c] = table->buf;
        work.codes[c] = code->buf;
    }
    work.lower = views[LOWER].buf;
    work.upper = views[UPPER].buf;
    work.above = views[ABOVE].buf;
    work.pairs = views[PAIRS].buf;
    work.between = views[BETWEEN].buf;
    work.room = items(&views[PAIRS]);
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = rising(work.starts, work.members);
    for (Py_ssize_t c = 0; sound && c < work.columns; c++)
        sound = all_below(work.codes[c], pairs, depths[c]);
    if (sound)
        count_all(&work, lanes);
    Py_END_ALLOW_THREADS
    if (sound)
        result = PyLong_FromSsize_t(work.doubts);
    else
        PyErr_SetString(PyExc_IndexError, "starts or codes: beyond what they point into");
done:
    release(views, sizeof views / sizeof *views);
    return result;
}

static PyMethodDef methods[] = {
    {"count", count, METH_VARARGS, count_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module);
}
