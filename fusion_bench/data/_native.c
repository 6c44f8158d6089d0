/* Loops over tables: whether rows are in order, named twice, and which candidates queries have.
 *
 * Optional: numpy finds the same where this file was not compiled. Every buffer is checked for its
 * type and its size, and every index for its range, before anything follows it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_buffers.h"

enum { DIGIT = 8, MOST_BITS = 31, FEW = 24 };

/* Offsets rise from 0 to the rows. */
static int rising(const int64_t *offsets, Py_ssize_t queries, Py_ssize_t rows)
{
    if (offsets[0] != 0 || offsets[queries] != rows)
        return 0;
    for (Py_ssize_t q = 0; q < queries; q++)
        if (offsets[q] > offsets[q + 1])
            return 0;
    return 1;
}

static int within(const int64_t *index, Py_ssize_t size, int64_t limit)
{
    uint64_t greatest = 0; /* a negative index is a huge one */
    for (Py_ssize_t i = 0; i < size; i++)
        greatest = (uint64_t)index[i] > greatest ? (uint64_t)index[i] : greatest;
    return size == 0 || greatest < (uint64_t)limit;
}

/* Whether each query's rows are in order; 0 where two scores are so near, yet not equal, that only
 * their keys tell. */
static int look_through(const double *scores, const int64_t *documents, const int64_t *offsets,
                        Py_ssize_t queries, double spacing, int by_document, uint8_t *good)
{
    for (Py_ssize_t q = 0; q < queries; q++) {
        int sorted = 1;
        for (int64_t row = offsets[q] + 1; row < offsets[q + 1]; row++) {
            double above = scores[row - 1], below = scores[row], apart = above - below;
            double high = fabs(above), other = fabs(below);
            double near = (high > other ? high : other) * spacing;
            if (above == below)
                sorted &= !by_document || documents[row - 1] >= documents[row];
            else if (fabs(apart) <= near || isnan(apart))
                return 0;
            else
                sorted &= apart > near;
        }
        good[q] = (uint8_t)sorted;
    }
    return 1;
}

static int any_twice(const int64_t *documents, const int64_t *offsets, Py_ssize_t queries,
                     int32_t *seen)
{
    for (Py_ssize_t q = 0; q < queries; q++)
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            if (seen[documents[row]] == q + 1)
                return 1;
            seen[documents[row]] = (int32_t)(q + 1);
        }
    return 0;
}

/* One run: its rows of judged query q are begins[q]:begins[q] + counts[q]. */
typedef struct {
    const int64_t *documents, *codes, *begins, *counts;
    int32_t *places;
    Py_ssize_t rows;
} Source;

/* Sorts by the bits above 32, the lowest first; a stable radix sort, or insertion of a few. */
static uint64_t *sort(uint64_t *entries, uint64_t *spare, Py_ssize_t size, int bits)
{
    if (size <= FEW) {
        for (Py_ssize_t i = 1; i < size; i++) {
            uint64_t entry = entries[i];
            Py_ssize_t j = i;
            for (; j > 0 && entries[j - 1] >> 32 > entry >> 32; j--)
                entries[j] = entries[j - 1];
            entries[j] = entry;
        }
        return entries;
    }
    for (int shift = 32; shift < 32 + bits; shift += DIGIT) {
        uint32_t starts[1 << DIGIT] = {0}, before = 0;
        for (Py_ssize_t i = 0; i < size; i++)
            starts[entries[i] >> shift & 0xFF]++;
        for (int digit = 0; digit < 1 << DIGIT; digit++) {
            uint32_t count = starts[digit];
            starts[digit] = before;
            before += count;
        }
        for (Py_ssize_t i = 0; i < size; i++)
            spare[starts[entries[i] >> shift & 0xFF]++] = entries[i];
        uint64_t *swap = entries;
        entries = spare;
        spare = swap;
    }
    return entries;
}

/* The distinct candidates of every query as keys, and where each run's rows stand among them. */
static Py_ssize_t join(const Source *sources, Py_ssize_t size, Py_ssize_t queries, int bits,
                       uint64_t *entries, uint64_t *spare, int64_t *keys, int64_t *offsets)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    Py_ssize_t found = 0;
    offsets[0] = 0;
    for (Py_ssize_t q = 0; q < queries; q++) {
        Py_ssize_t count = 0;
        for (Py_ssize_t s = 0; s < size; s++) {
            const Source *source = &sources[s];
            const int64_t *documents = source->documents + source->begins[q];
            for (int64_t i = 0; i < source->counts[q]; i++, count++) {
                uint64_t code = (uint64_t)source->codes[documents[i]];
                entries[count] = (~code & mask) << 32 | (uint32_t)count;
            }
        }
        uint64_t *sorted = sort(entries, spare, count, bits);
        uint64_t *other = sorted == entries ? spare : entries;
        uint64_t last = UINT64_MAX;
        for (Py_ssize_t i = 0; i < count; i++) {
            uint64_t code = sorted[i] >> 32;
            if (code != last)
                keys[found++] = (int64_t)((uint64_t)q << bits | code);
            last = code;
            other[(uint32_t)sorted[i]] = (uint64_t)found - 1;
        }
        count = 0;
        for (Py_ssize_t s = 0; s < size; s++) {
            int32_t *places = sources[s].places + sources[s].begins[q];
            for (int64_t i = 0; i < sources[s].counts[q]; i++)
                places[i] = (int32_t)other[count++];
        }
        offsets[q + 1] = found;
    }
    return found;
}

/* The most rows that one query has in all runs; -1 where something points beyond its table. */
static Py_ssize_t most_rows(const Source *sources, const Py_ssize_t *known, Py_ssize_t size,
                            Py_ssize_t queries, int bits)
{
    Py_ssize_t most = 0;
    for (Py_ssize_t s = 0; s < size; s++)
        if (!within(sources[s].codes, known[s], (int64_t)1 << bits) ||
            !within(sources[s].documents, sources[s].rows, known[s]))
            return -1;
    for (Py_ssize_t q = 0; q < queries; q++) {
        Py_ssize_t count = 0;
        for (Py_ssize_t s = 0; s < size; s++) {
            int64_t begin = sources[s].begins[q], rows = sources[s].counts[q];
            if (begin < 0 || rows < 0 || begin > sources[s].rows || rows > sources[s].rows - begin)
                return -1;
            count += rows;
        }
        most = count > most ? count : most;
    }
    return most;
}

/* ---- what Python calls ---- */

static PyObject *outside(void)
{
    PyErr_SetString(PyExc_IndexError, "offsets or codes: beyond what they point into");
    return NULL;
}

PyDoc_STRVAR(settled_doc,
             "settled(scores, documents, offsets, good, spacing, by_document) -> known\n\n"
             "Fills good, shape (q,): whether each query's rows stand in order; false where two\n"
             "scores are so near that only their keys tell.");

static PyObject *settled(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[4] = {"scores", "documents", "offsets", "good"};
    static const char kinds[] = "dqqB";
    PyObject *given[4], *result = NULL;
    Py_buffer views[4] = {{0}};
    double spacing;
    int by_document, sound, known = 0;
    if (!PyArg_ParseTuple(args, "OOOOdp", &given[0], &given[1], &given[2], &given[3], &spacing,
                          &by_document))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (take(given[i], &views[i], kinds[i], i == 3, names[i]) < 0)
            goto done;
    const Py_ssize_t rows = items(&views[0]), queries = items(&views[3]);
    if (wrong_size("documents", &views[1], rows) || wrong_size("offsets", &views[2], queries + 1))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    sound = rising(views[2].buf, queries, rows);
    if (sound)
        known = look_through(views[0].buf, views[1].buf, views[2].buf, queries, spacing,
                             by_document, views[3].buf);
    Py_END_ALLOW_THREADS
    result = sound ? PyBool_FromLong(known) : outside();
done:
    release(views, 4);
    return result;
}

PyDoc_STRVAR(twice_doc, "twice(documents, offsets, size) -> whether a query names one twice");

static PyObject *twice(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *documents, *offsets, *result = NULL;
    Py_buffer views[2] = {{0}};
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "OOn", &documents, &offsets, &size))
        return NULL;
    if (take(documents, &views[0], 'q', 0, "documents") < 0 ||
        take(offsets, &views[1], 'q', 0, "offsets") < 0)
        goto done;
    const Py_ssize_t queries = items(&views[1]) - 1;
    if (queries < 0 || queries >= INT32_MAX || size < 0) {
        PyErr_SetString(PyExc_ValueError, "offsets: too few or too many");
        goto done;
    }
    int sound, found = 0;
    int32_t *seen = NULL;
    Py_BEGIN_ALLOW_THREADS
    sound = rising(views[1].buf, queries, items(&views[0])) &&
            within(views[0].buf, items(&views[0]), size);
    if (sound && (seen = PyMem_RawCalloc((size_t)size + 1, sizeof *seen)))
        found = any_twice(views[0].buf, views[1].buf, queries, seen);
    Py_END_ALLOW_THREADS
    result = !sound ? outside() : seen ? PyBool_FromLong(found) : PyErr_NoMemory();
    PyMem_RawFree(seen);
done:
    release(views, 2);
    return result;
}

enum { DOCUMENTS, CODES, BEGINS, COUNTS, PLACES, FIELDS };

static int take_source(PyObject *item, Py_buffer *views, Source *source, Py_ssize_t queries)
{
    static const char *const names[FIELDS] = {"documents", "codes", "begins", "counts", "places"};
    static const char kinds[FIELDS + 1] = "qqqqi";
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != FIELDS) {
        PyErr_SetString(PyExc_TypeError, "sources: each is a tuple of five");
        return -1;
    }
    for (int i = 0; i < FIELDS; i++)
        if (take(PyTuple_GET_ITEM(item, i), &views[i], kinds[i], i == PLACES, names[i]) < 0)
            return -1;
    source->documents = views[DOCUMENTS].buf;
    source->codes = views[CODES].buf;
    source->begins = views[BEGINS].buf;
    source->counts = views[COUNTS].buf;
    source->places = views[PLACES].buf;
    source->rows = items(&views[DOCUMENTS]);
    return wrong_size("begins", &views[BEGINS], queries) ||
                   wrong_size("counts", &views[COUNTS], queries) ||
                   wrong_size("places", &views[PLACES], source->rows)
               ? -1
               : 0;
}

PyDoc_STRVAR(joined_doc,
             "joined(sources, bits, keys, offsets) -> how many candidates\n\n"
             "Each source is (documents, codes, begins, counts, places); see native.py.");

static PyObject *joined(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *listed, *keys, *offsets, *result = NULL;
    int bits;
    if (!PyArg_ParseTuple(args, "O!iOO", &PyTuple_Type, &listed, &bits, &keys, &offsets))
        return NULL;
    const Py_ssize_t size = PyTuple_GET_SIZE(listed);
    const size_t count = FIELDS * (size_t)size + 2;
    Py_buffer *views = PyMem_Calloc(count, sizeof *views), *last = views + count - 2;
    Source *sources = PyMem_Calloc((size_t)size + 1, sizeof *sources);
    Py_ssize_t *known = PyMem_Calloc((size_t)size + 1, sizeof *known);
    uint64_t *entries = NULL;
    if (!views || !sources || !known) {
        PyErr_NoMemory();
        goto done;
    }
    if (take(keys, last, 'q', 1, "keys") < 0 || take(offsets, last + 1, 'q', 1, "offsets") < 0)
        goto done;
    const Py_ssize_t queries = items(last + 1) - 1;
    Py_ssize_t rows = 0;
    for (Py_ssize_t s = 0; s < size; s++) {
        Py_buffer *own = &views[FIELDS * s];
        if (take_source(PyTuple_GET_ITEM(listed, s), own, &sources[s], queries) < 0)
            goto done;
        known[s] = items(&own[CODES]);
        for (Py_ssize_t q = 0; q < queries; q++)
            rows += sources[s].counts[q] > 0 ? sources[s].counts[q] : 0;
    }
    if (queries < 0 || bits < 1 || bits > MOST_BITS || rows >= INT32_MAX || items(last) < rows) {
        PyErr_Format(PyExc_ValueError, "%zd queries, %d bits, %zd rows and %zd keys", queries, bits,
                     rows, items(last));
        goto done;
    }
    Py_ssize_t most, found = 0;
    Py_BEGIN_ALLOW_THREADS
    most = most_rows(sources, known, size, queries, bits);
    if (most >= 0 && (entries = PyMem_RawMalloc(2 * (size_t)most * sizeof *entries)))
        found = join(sources, size, queries, bits, entries, entries + most, last->buf,
                     last[1].buf);
    Py_END_ALLOW_THREADS
    result = most < 0 ? outside() : entries ? PyLong_FromSsize_t(found) : PyErr_NoMemory();
done:
    if (views)
        release(views, count);
    PyMem_RawFree(entries);
    PyMem_Free(views);
    PyMem_Free(sources);
    PyMem_Free(known);
    return result;
}

PyDoc_STRVAR(counted_doc, "counted(offsets, counts)\n\nFills counts, shape (n,): 1, 2, 3 ... in each "
                          "query.");

static PyObject *counted(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *offsets, *counts, *result = NULL;
    Py_buffer views[2] = {{0}};
    if (!PyArg_ParseTuple(args, "OO", &offsets, &counts))
        return NULL;
    if (take(offsets, &views[0], 'q', 0, "offsets") < 0 ||
        take(counts, &views[1], 'q', 1, "counts") < 0)
        goto done;
    const Py_ssize_t queries = items(&views[0]) - 1;
    const int64_t *starts = views[0].buf;
    int64_t *filled = views[1].buf;
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = queries >= 0 && rising(starts, queries, items(&views[1]));
    for (Py_ssize_t q = 0; sound && q < queries; q++)
        for (int64_t row = starts[q]; row < starts[q + 1]; row++)
            filled[row] = row - starts[q] + 1;
    Py_END_ALLOW_THREADS
    result = sound ? Py_NewRef(Py_None) : outside();
done:
    release(views, 2);
    return result;
}

static PyMethodDef methods[] = {
    {"counted", counted, METH_VARARGS, counted_doc},
    {"settled", settled, METH_VARARGS, settled_doc},
    {"twice", twice, METH_VARARGS, twice_doc},
    {"joined", joined, METH_VARARGS, joined_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module);
}
