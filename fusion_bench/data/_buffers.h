/* What every _native.c asks of a buffer before a loop touches it. */
#ifndef FUSION_BENCH_BUFFERS_H
#define FUSION_BENCH_BUFFERS_H

#include <Python.h>

/* A contiguous buffer of one type: 'd' float64, 'f' float32, 'q' int64, 'Q' uint64, 'i' int32,
 * 'I' uint32, 'B' bytes. */
static inline int take(PyObject *object, Py_buffer *view, char kind, int writable,
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

#endif
