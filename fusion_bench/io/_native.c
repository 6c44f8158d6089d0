/* Reading regular text: lines cut into columns, plain numbers parsed, ids packed and numbered.
 *
 * Optional: numpy reads the same tables where this file was not compiled, and the slow reader
 * whatever is irregular. Every buffer is checked for its type and its size, and every cell for
 * lying inside its text, before anything follows it; no byte beyond a buffer is looked at.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../data/_buffers.h"

enum {
    WORD = 8,          /* bytes of a packed word */
    WIDEST = 64,       /* bytes of the longest id */
    MOST_WORDS = 8,
    MOST_COLUMNS = 8,
    STEP = 64,         /* bytes looked at together */
    BLOCK = 1 << 14,   /* bytes whose breaks are kept at a time */
    AHEAD = 32,        /* ids that are looked up together */
    MOST_TABLES = 1024,
};

#if defined(__GNUC__)
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define PREFETCH(place) ((void)(place))
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* ---- numbers ---- */

static const uint64_t powers[20] = {1ULL,
                                    10ULL,
                                    100ULL,
                                    1000ULL,
                                    10000ULL,
                                    100000ULL,
                                    1000000ULL,
                                    10000000ULL,
                                    100000000ULL,
                                    1000000000ULL,
                                    10000000000ULL,
                                    100000000000ULL,
                                    1000000000000ULL,
                                    10000000000000ULL,
                                    100000000000000ULL,
                                    1000000000000000ULL,
                                    10000000000000000ULL,
                                    100000000000000000ULL,
                                    1000000000000000000ULL,
                                    10000000000000000000ULL};

/* A cell as -digits.digits; 0 where it is anything else, or does not fit. */
typedef struct {
    uint64_t digits;
    int minus, point, decimals;
} Decimal;

INLINE int read_decimal(const uint8_t *at, const uint8_t *end, Decimal *found)
{
    uint64_t digits = 0;
    int count = 0, seen = 0;
    const uint8_t *point = NULL;
    found->minus = *at == '-';
    for (at += found->minus; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit <= 9) {
            digits = digits * 10 + digit;
            count += digits != 0; /* zeros in front do not count */
            seen = 1;
            if (count > 19)
                return 0;
        } else if (*at == '.' && !point) {
            point = at;
        } else {
            return 0;
        }
    }
    found->digits = digits;
    found->point = point != NULL;
    found->decimals = point ? (int)(end - point - 1) : 0;
    return seen;
}

/* The nearest double, ties to even; 0 where that is left to Python.
 *
 * Up to 2^53 both numbers are exact and dividing them rounds once (Clinger 1990). Beyond, the
 * quotient is made of at least 63 bits, the last of which is set where something is left over, so
 * that turning it into a double rounds once, too. */
INLINE int nearest(const Decimal *number, double *value)
{
#if FLT_EVAL_METHOD == 0
    if (number->decimals > 19)
        return 0;
    if (number->digits <= 1ULL << 53) {
        *value = (double)number->digits / (double)powers[number->decimals];
    } else {
#if defined(__SIZEOF_INT128__)
        int shift = __builtin_clzll(number->digits);
        unsigned __int128 whole = (unsigned __int128)(number->digits << shift) << 64;
        unsigned __int128 quotient = whole / powers[number->decimals];
        uint64_t left = whole % powers[number->decimals] != 0;
        int drop = (uint64_t)(quotient >> 64) ? 64 - __builtin_clzll((uint64_t)(quotient >> 64)) : 0;
        left |= (quotient & (((unsigned __int128)1 << drop) - 1)) != 0;
        *value = ldexp((double)((uint64_t)(quotient >> drop) | left), drop - 64 - shift);
#else
        return 0;
#endif
    }
    if (number->minus)
        *value = -*value;
    return 1;
#else
    (void)number, (void)value;
    return 0;
#endif
}

/* ---- lines ---- */

/* One bit for each of 64 bytes that is a blank or below, the first in the lowest. */
INLINE uint64_t breaks_of(const uint8_t *text, int *wide)
{
#if defined(__SSE2__)
    uint64_t found = 0;
    int high = 0;
    const __m128i blank = _mm_set1_epi8(' ');
    for (int part = 0; part < 4; part++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(text + 16 * part));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes);
        found |= (uint64_t)(unsigned)_mm_movemask_epi8(low) << 16 * part;
        high |= _mm_movemask_epi8(bytes);
    }
#else
    uint64_t found = 0;
    uint8_t high = 0;
    for (int i = 0; i < STEP; i++) {
        found |= (uint64_t)(text[i] <= ' ') << i;
        high |= text[i] & 0x80;
    }
#endif
    *wide |= high;
    return found;
}

INLINE int lowest(uint64_t bits)
{
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int place = 0;
    while (!(bits & 1)) {
        bits >>= 1;
        place++;
    }
    return place;
#endif
}

typedef struct {
    const uint8_t *text;
    Py_ssize_t size;
    int columns, value;
    Py_ssize_t room;        /* rows that there is room for */
    uint32_t *starts;       /* (n,): where each document id starts */
    uint8_t *widths;        /* (n,): its bytes */
    double *scores;         /* (n,) each; one of them */
    int64_t *grades;
    int64_t *heads;         /* (n, 3): a row whose query is another; where that starts, its bytes */
    int64_t *left;          /* (n, 3): a row whose score is not read; where that starts and ends */
    Py_ssize_t rows, changes, unread;
    Py_ssize_t query, query_width; /* of the row before */
    int widest, wide;
} Split;

static void note(int64_t *table, Py_ssize_t row, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c)
{
    table[3 * row] = a;
    table[3 * row + 1] = b;
    table[3 * row + 2] = c;
}

INLINE int take_value(Split *work, Py_ssize_t start, Py_ssize_t end)
{
    Decimal number;
    int plain = read_decimal(work->text + start, work->text + end, &number);
    if (work->grades) {
        if (!plain || number.point || number.digits >= powers[18])
            return 0;
        int64_t whole = (int64_t)number.digits;
        work->grades[work->rows] = number.minus ? -whole : whole;
    } else if (!plain || !nearest(&number, &work->scores[work->rows])) {
        work->scores[work->rows] = 0;
        note(work->left, work->unread++, work->rows, start, end);
    }
    return 1;
}

/* One line, from where it starts and where its cells end; 0 where it is irregular. */
INLINE int take_line(Split *work, Py_ssize_t start, const Py_ssize_t *ends, const int columns,
                     const int value)
{
    Py_ssize_t begins[MOST_COLUMNS];
    const int last = columns - 1;
    begins[0] = start;
    for (int c = 0; c < columns; c++) {
        uint8_t mark = work->text[ends[c]];
        if (ends[c] == begins[c] || (c < last ? mark != ' ' && mark != '\t' : mark != '\n'))
            return 0;
        if (c < last)
            begins[c + 1] = ends[c] + 1;
    }
    Py_ssize_t width = ends[0] - start, document = ends[2] - begins[2];
    if (work->rows == work->room || width > WIDEST || document > WIDEST)
        return 0;
    if (work->rows == 0 || width != work->query_width ||
        memcmp(work->text + start, work->text + work->query, (size_t)width) != 0) {
        note(work->heads, work->changes++, work->rows, start, width);
        work->query_width = width;
        work->query = start;
    }
    work->starts[work->rows] = (uint32_t)begins[2];
    work->widths[work->rows] = (uint8_t)document;
    work->widest = document > work->widest ? (int)document : work->widest;
    if (!take_value(work, begins[value], ends[value]))
        return 0;
    work->rows++;
    return 1;
}

/* All lines; 0 where one is irregular. The text ends with a line's end. */
INLINE int take_lines(Split *work, const int columns, const int value)
{
    Py_ssize_t ends[BLOCK + MOST_COLUMNS];
    Py_ssize_t kept = 0, start = 0;
    for (Py_ssize_t block = 0; block < work->size; block += BLOCK) {
        Py_ssize_t stop = work->size - block < BLOCK ? work->size : block + BLOCK;
        for (Py_ssize_t at = block; at < stop; at += STEP) {
            uint8_t tail[STEP];
            const uint8_t *text = work->text + at;
            if (work->size - at < STEP) { /* letters where nothing is any more */
                memset(tail, 'x', STEP);
                memcpy(tail, text, (size_t)(work->size - at));
                text = tail;
            }
            for (uint64_t bits = breaks_of(text, &work->wide); bits; bits &= bits - 1)
                ends[kept++] = at + lowest(bits);
        }
        Py_ssize_t done = 0;
        for (; kept - done >= columns; done += columns) {
            if (!take_line(work, start, ends + done, columns, value))
                return 0;
            start = ends[done + columns - 1] + 1;
        }
        memmove(ends, ends + done, (size_t)(kept - done) * sizeof *ends);
        kept -= done;
    }
    return kept == 0 && start == work->size;
}

/* A constant number of columns lets the compiler unroll. */
static int take_all(Split *work)
{
    if (work->columns == 6 && work->value == 4 && work->scores)
        return take_lines(work, 6, 4);
    return take_lines(work, work->columns, work->value);
}

/* ---- ids ---- */

typedef struct {
    const uint8_t *text;
    Py_ssize_t size, rows;
    const uint32_t *starts;
    const uint8_t *widths;
    int32_t *codes;
} Table;

static uint64_t big_endian(const uint8_t *at)
{
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 |
           (uint64_t)at[3] << 32 | (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
           (uint64_t)at[6] << 8 | (uint64_t)at[7];
}

/* The words of one id, padded with zeros. */
INLINE void pack_one(const Table *table, Py_ssize_t row, int count, uint64_t *words)
{
    Py_ssize_t start = table->starts[row];
    int width = table->widths[row];
    const uint8_t *at = table->text + start;
    uint8_t tail[WIDEST];
    if (table->size - start < WORD * count) {
        memset(tail, 0, WIDEST);
        memcpy(tail, at, (size_t)width);
        at = tail;
    }
    for (int w = 0; w < count; w++, width -= WORD) {
        uint64_t word = width > 0 ? big_endian(at + WORD * w) : 0;
        words[w] = width >= WORD || width <= 0 ? word : word & ~(~0ULL >> 8 * width);
    }
}

INLINE uint64_t hash_of(const uint64_t *words, int count)
{
    uint64_t hash = 0;
    for (int w = 0; w < count; w++) {
        hash = (hash ^ words[w]) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
    }
    return hash * 0xD6E8FEB86659FD93ULL;
}

/* A table of the distinct ids: each slot holds half a hash and the code + 1; 0 = free. */
typedef struct {
    uint64_t *slots;
    int shift; /* a hash's upper bits say where to look first */
    uint64_t mask;
    uint64_t *ids; /* (room, count): the distinct ids as they appear */
    int count;
    Py_ssize_t room, distinct;
} Known;

INLINE int same_words(const uint64_t *one, const uint64_t *two, int count)
{
    uint64_t other = 0;
    for (int w = 0; w < count; w++)
        other |= one[w] ^ two[w];
    return other == 0;
}

INLINE int32_t code_of(Known *known, uint64_t hash, const uint64_t *words, const int count)
{
    const uint64_t tag = hash << 32;
    for (uint64_t at = hash >> known->shift;; at = (at + 1) & known->mask) {
        uint64_t slot = known->slots[at];
        if (slot == 0) {
            int32_t code = (int32_t)known->distinct++;
            memcpy(known->ids + (Py_ssize_t)code * count, words, (size_t)count * sizeof *words);
            known->slots[at] = tag | (uint32_t)(code + 1);
            return code;
        }
        if ((slot ^ tag) >> 32 == 0) {
            int32_t code = (int32_t)(uint32_t)slot - 1;
            if (same_words(known->ids + (Py_ssize_t)code * count, words, count))
                return code;
        }
    }
}

/* Some ids at a time, so that what they look at is fetched before it is needed. */
INLINE void code_table(Known *known, const Table *table, const int count)
{
    uint64_t words[AHEAD][MOST_WORDS], hashes[AHEAD];
    for (Py_ssize_t row = 0; row < table->rows; row += AHEAD) {
        int some = table->rows - row < AHEAD ? (int)(table->rows - row) : AHEAD;
        for (int i = 0; i < some; i++) {
            pack_one(table, row + i, count, words[i]);
            hashes[i] = hash_of(words[i], count);
            PREFETCH(known->slots + (hashes[i] >> known->shift));
        }
        for (int i = 0; i < some; i++) {
            uint64_t slot = known->slots[hashes[i] >> known->shift];
            if (slot)
                PREFETCH(known->ids + ((Py_ssize_t)(uint32_t)slot - 1) * count);
        }
        for (int i = 0; i < some; i++)
            table->codes[row + i] = code_of(known, hashes[i], words[i], count);
    }
}

/* Every cell lies inside the text, and fits the words. */
static int inside(const Table *table, int count)
{
    for (Py_ssize_t row = 0; row < table->rows; row++)
        if (table->widths[row] > WORD * count ||
            table->starts[row] + (Py_ssize_t)table->widths[row] > table->size)
            return 0;
    return 1;
}

/* ---- order ---- */

/* A word's bits that tell ids apart, moved together: Warren, Hacker's Delight, 7-4. */
typedef struct {
    uint64_t mask, moving[6];
    int bits;
} Squeeze;

static Squeeze squeeze_for(uint64_t mask)
{
    Squeeze made = {.mask = mask};
    uint64_t zeros = ~mask << 1;
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        made.bits++;
    for (int power = 0; power < 6; power++) {
        uint64_t odd = zeros;
        for (int shift = 1; shift < 64; shift *= 2)
            odd ^= odd << shift;
        made.moving[power] = odd & mask;
        mask = (mask ^ made.moving[power]) | made.moving[power] >> (1 << power);
        zeros &= ~odd;
    }
    return made;
}

static uint64_t squeezed(const Squeeze *by, uint64_t word)
{
    word &= by->mask;
    for (int power = 0; power < 6; power++) {
        uint64_t part = word & by->moving[power];
        word = (word ^ part) | part >> (1 << power);
    }
    return word;
}

/* The bits of word w that differ somewhere, without those that a bit above them settles: one or
 * two above, always the same or always the other. */
static uint64_t telling(const uint64_t *ids, Py_ssize_t rows, Py_ssize_t count, Py_ssize_t w)
{
    uint64_t low[3] = {~0ULL, ~0ULL, ~0ULL}, high[3] = {0, 0, 0};
    for (Py_ssize_t row = 0; row < rows; row++) {
        uint64_t word = ids[row * count + w];
        for (int step = 0; step < 3; step++) {
            uint64_t bits = step ? word ^ word >> step : word;
            low[step] &= bits;
            high[step] |= bits;
        }
    }
    uint64_t mask = low[0] ^ high[0];
    for (int step = 1; step < 3; step++)
        mask &= (low[step] ^ high[step]) | ~(~0ULL >> step);
    return mask;
}

static int bits_of(uint64_t value)
{
    int bits = 0;
    for (; value; value >>= 1)
        bits++;
    return bits;
}

/* Keys that sort as the ids do, the row in their low bits; 0 where 64 bits do not hold them. */
static int fill_keys(const uint64_t *ids, Py_ssize_t rows, int count, uint64_t *keys)
{
    Squeeze steps[MOST_WORDS];
    const int low = bits_of((uint64_t)rows - 1);
    int total = low;
    for (int w = 0; w < count; w++) {
        steps[w] = squeeze_for(telling(ids, rows, count, w));
        total += steps[w].bits;
    }
    if (total > 64 || low > 63)
        return 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        uint64_t key = 0;
        for (int w = 0; w < count; w++)
            if (steps[w].bits)
                key = (steps[w].bits < 64 ? key << steps[w].bits : 0) |
                      squeezed(&steps[w], ids[row * count + w]);
        keys[row] = low ? key << low | (uint64_t)row : 0;
    }
    return 1;
}

/* What stands where once the keys are sorted; 0 where one points beyond the ids. */
static int follow(const uint64_t *keys, Py_ssize_t rows, int32_t *places, int32_t *order)
{
    const uint64_t mask = ((uint64_t)1 << bits_of((uint64_t)rows - 1)) - 1;
    for (Py_ssize_t at = 0; at < rows; at++) {
        Py_ssize_t row = (Py_ssize_t)(keys[at] & mask);
        if (row >= rows)
            return 0;
        places[row] = (int32_t)at;
        order[at] = (int32_t)row;
    }
    return 1;
}

static int all_below(const int32_t *index, Py_ssize_t size, Py_ssize_t limit)
{
    uint32_t greatest = 0; /* a negative index is a huge one */
    for (Py_ssize_t i = 0; i < size; i++)
        greatest = (uint32_t)index[i] > greatest ? (uint32_t)index[i] : greatest;
    return size == 0 || (Py_ssize_t)greatest < limit;
}

static Py_ssize_t number_own(const int32_t *codes, Py_ssize_t rows, const int32_t *places,
                             Py_ssize_t size, int32_t *there, int64_t *own, int64_t *present)
{
    Py_ssize_t found = 0;
    memset(there, 0, (size_t)size * sizeof *there);
    for (Py_ssize_t row = 0; row < rows; row++) {
        int32_t place = places[codes[row]];
        own[row] = place;
        there[place] = 1;
    }
    for (Py_ssize_t place = 0; place < size; place++) {
        present[found] = place; /* overwritten unless it is there: no branch to guess */
        int32_t is = there[place];
        there[place] = (int32_t)found;
        found += is;
    }
    for (Py_ssize_t row = 0; row < rows; row++)
        own[row] = there[own[row]];
    return found;
}

/* ---- what Python calls ---- */

PyDoc_STRVAR(lines_doc, "lines(text) -> how many line ends and carriage returns are in it");

static PyObject *lines(PyObject *self, PyObject *text)
{
    (void)self;
    Py_buffer view = {0};
    if (take(text, &view, 'B', 0, "text") < 0)
        return NULL;
    const uint8_t *at = view.buf;
    Py_ssize_t ends = 0, returns = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t start = 0; start < view.len; start += 192) { /* a byte counts to 255 */
        Py_ssize_t stop = view.len - start < 192 ? view.len : start + 192;
        uint8_t some = 0, others = 0;
        for (Py_ssize_t i = start; i < stop; i++) {
            some = (uint8_t)(some + (at[i] == '\n'));
            others = (uint8_t)(others + (at[i] == '\r'));
        }
        ends += some;
        returns += others;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return Py_BuildValue("nn", ends, returns);
}

enum { TEXT, STARTS, WIDTHS, VALUES, HEADS, LEFT, SPLIT };

PyDoc_STRVAR(split_doc,
             "split(text, columns, value, starts, widths, values, heads, left)\n"
             "-> (rows, heads, left, widest, wide), or None where a line is irregular\n\n"
             "Grades where the values are integers, scores where they are floats; see native.py.");

static PyObject *split(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[SPLIT] = {"text", "starts", "widths", "values", "heads", "left"};
    static const char kinds[SPLIT + 1] = "BIBdqq";
    PyObject *given[SPLIT], *result = NULL;
    Py_buffer views[SPLIT] = {{0}};
    Split work = {0};
    if (!PyArg_ParseTuple(args, "OiiOOOOO", &given[TEXT], &work.columns, &work.value,
                          &given[STARTS], &given[WIDTHS], &given[VALUES], &given[HEADS],
                          &given[LEFT]))
        return NULL;
    if (work.columns < 3 || work.columns > MOST_COLUMNS || work.value < 0 ||
        work.value >= work.columns) {
        PyErr_Format(PyExc_ValueError, "%d columns, and the value in %d", work.columns, work.value);
        return NULL;
    }
    int whole = PyObject_CheckBuffer(given[VALUES]) ? -1 : 0;
    if (whole && take(given[VALUES], &views[VALUES], 'q', 1, "values") < 0) {
        PyErr_Clear();
        PyBuffer_Release(&views[VALUES]);
        whole = 0;
    }
    for (int i = 0; i < SPLIT; i++)
        if (!(whole && i == VALUES) && take(given[i], &views[i], kinds[i], i != TEXT, names[i]) < 0)
            goto done;
    work.text = views[TEXT].buf;
    work.size = views[TEXT].len;
    work.room = items(&views[STARTS]);
    if (wrong_size("widths", &views[WIDTHS], work.room) ||
        wrong_size("values", &views[VALUES], work.room) ||
        wrong_size("heads", &views[HEADS], 3 * work.room) ||
        wrong_size("left", &views[LEFT], 3 * work.room))
        goto done;
    if ((uint64_t)work.size > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "text: more than 32 bits can count");
        goto done;
    }
    work.starts = views[STARTS].buf;
    work.widths = views[WIDTHS].buf;
    work.scores = whole ? NULL : views[VALUES].buf;
    work.grades = whole ? views[VALUES].buf : NULL;
    work.heads = views[HEADS].buf;
    work.left = views[LEFT].buf;
    int regular;
    Py_BEGIN_ALLOW_THREADS
    regular = take_all(&work);
    Py_END_ALLOW_THREADS
    result = regular ? Py_BuildValue("nnnii", work.rows, work.changes, work.unread, work.widest,
                                     work.wide != 0)
                     : Py_NewRef(Py_None);
done:
    release(views, SPLIT);
    return result;
}

/* Text, starts and widths of a table, checked. */
static int take_table(PyObject *const *given, Py_buffer *views, Table *table)
{
    if (take(given[0], &views[0], 'B', 0, "text") < 0 ||
        take(given[1], &views[1], 'I', 0, "starts") < 0 ||
        take(given[2], &views[2], 'B', 0, "widths") < 0)
        return -1;
    table->text = views[0].buf;
    table->size = views[0].len;
    table->starts = views[1].buf;
    table->widths = views[2].buf;
    table->rows = items(&views[1]);
    return wrong_size("widths", &views[2], table->rows) ? -1 : 0;
}

/* The same and room for codes; how many rows it has. */
static Py_ssize_t take_coded(PyObject *item, Py_buffer *views, Table *table)
{
    PyObject *given[4];
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "tables: each is a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(item, "OOOO", &given[0], &given[1], &given[2], &given[3]) ||
        take_table(given, views, table) < 0 || take(given[3], &views[3], 'i', 1, "codes") < 0 ||
        wrong_size("codes", &views[3], table->rows))
        return 0;
    table->codes = views[3].buf;
    return table->rows;
}

static PyObject *outside(void)
{
    PyErr_SetString(PyExc_IndexError, "starts or widths: beyond the text or the words");
    return NULL;
}

PyDoc_STRVAR(pack_doc, "pack(text, starts, widths, words)\n\n"
                       "Fills words, shape (n, W): the bytes of each id, padded with zeros.");

static PyObject *pack(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given[4], *result = NULL;
    Py_buffer views[4] = {{0}};
    Table table = {0};
    if (!PyArg_ParseTuple(args, "OOOO", &given[0], &given[1], &given[2], &given[3]) ||
        take_table(given, views, &table) < 0 || take(given[3], &views[3], 'Q', 1, "words") < 0)
        goto done;
    Py_ssize_t count = table.rows ? items(&views[3]) / table.rows : 1;
    if (count < 1 || count > MOST_WORDS || wrong_size("words", &views[3], table.rows * count)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "words: %zd for each id", count);
        goto done;
    }
    uint64_t *words = views[3].buf;
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = inside(&table, (int)count);
    for (Py_ssize_t row = 0; sound && row < table.rows; row++)
        pack_one(&table, row, (int)count, words + row * count);
    Py_END_ALLOW_THREADS
    result = sound ? Py_NewRef(Py_None) : outside();
done:
    release(views, 4);
    return result;
}

/* A constant number of words lets the compiler unroll. */
static void code_all(Known *known, const Table *tables, Py_ssize_t size)
{
    for (Py_ssize_t t = 0; t < size; t++) {
        switch (known->count) {
        case 1: code_table(known, &tables[t], 1); break;
        case 2: code_table(known, &tables[t], 2); break;
        case 3: code_table(known, &tables[t], 3); break;
        case 4: code_table(known, &tables[t], 4); break;
        default: code_table(known, &tables[t], known->count);
        }
    }
}

PyDoc_STRVAR(code_doc,
             "code(tables, ids, slots, count) -> distinct\n\n"
             "Each table is (text, starts, widths, codes). Fills the codes, in order of first\n"
             "appearance in any table, and ids, shape (rows of all tables, count), with the\n"
             "words of the distinct ones in that order. There are more slots than rows, a power\n"
             "of two, to work in.");

static PyObject *code(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *listed, *ids, *slots, *result = NULL;
    Known known = {0};
    if (!PyArg_ParseTuple(args, "O!OOi", &PyTuple_Type, &listed, &ids, &slots, &known.count))
        return NULL;
    const Py_ssize_t size = PyTuple_GET_SIZE(listed);
    if (size < 1 || size > MOST_TABLES || known.count < 1 || known.count > MOST_WORDS) {
        PyErr_Format(PyExc_ValueError, "%zd tables of %d words", size, known.count);
        return NULL;
    }
    const size_t count = 4 * (size_t)size + 2;
    Py_buffer *views = PyMem_Calloc(count, sizeof *views), *last = views + count - 2;
    Table *tables = PyMem_Calloc((size_t)size, sizeof *tables);
    if (!views || !tables) {
        PyErr_NoMemory();
        goto done;
    }
    Py_ssize_t rows = 0;
    for (Py_ssize_t t = 0; t < size; t++) {
        rows += take_coded(PyTuple_GET_ITEM(listed, t), &views[4 * t], &tables[t]);
        if (PyErr_Occurred())
            goto done;
    }
    if (take(ids, last, 'Q', 1, "ids") < 0 || wrong_size("ids", last, rows * known.count) ||
        take(slots, last + 1, 'Q', 1, "slots") < 0)
        goto done;
    const Py_ssize_t room = items(last + 1);
    if (rows >= INT32_MAX || room <= rows || room < 2 || (room & (room - 1))) {
        PyErr_Format(PyExc_ValueError, "%zd rows and %zd slots", rows, room);
        goto done;
    }
    known.ids = last->buf;
    known.slots = last[1].buf;
    known.mask = (uint64_t)room - 1;
    known.shift = 64 - lowest((uint64_t)room);
    int sound = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; sound && t < size; t++)
        sound = inside(&tables[t], known.count);
    if (sound) {
        memset(known.slots, 0, (size_t)room * sizeof *known.slots);
        code_all(&known, tables, size);
    }
    Py_END_ALLOW_THREADS
    result = sound ? PyLong_FromSsize_t(known.distinct) : outside();
done:
    if (views)
        release(views, count);
    PyMem_Free(views);
    PyMem_Free(tables);
    return result;
}

PyDoc_STRVAR(keys_doc,
             "keys(ids, count, keys) -> fit\n\n"
             "Fills keys, shape (n,): integers that sort as the ids, shape (n, count), do, the row\n"
             "in the low bits; false, and nothing is filled, where 64 bits do not hold them.");

static PyObject *keys(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *ids, *made, *result = NULL;
    Py_buffer views[2] = {{0}};
    int count;
    if (!PyArg_ParseTuple(args, "OiO", &ids, &count, &made))
        return NULL;
    if (take(ids, &views[0], 'Q', 0, "ids") < 0 || take(made, &views[1], 'Q', 1, "keys") < 0)
        goto done;
    const Py_ssize_t rows = items(&views[1]);
    if (count < 1 || count > MOST_WORDS || rows < 1 ||
        wrong_size("ids", &views[0], rows * count)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%zd ids of %d words", rows, count);
        goto done;
    }
    int fit;
    Py_BEGIN_ALLOW_THREADS
    fit = fill_keys(views[0].buf, rows, count, views[1].buf);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(fit);
done:
    release(views, 2);
    return result;
}

enum { KEYS, PLACES, ORDER, RANKED };

PyDoc_STRVAR(ranked_doc, "ranked(keys, places, order)\n\n"
                         "From sorted keys, shape (n,): the place of each id, and which one stands\n"
                         "where.");

static PyObject *ranked(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[RANKED] = {"keys", "places", "order"};
    static const char kinds[RANKED + 1] = "Qii";
    PyObject *given[RANKED], *result = NULL;
    Py_buffer views[RANKED] = {{0}};
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2]))
        return NULL;
    for (int i = 0; i < RANKED; i++)
        if (take(given[i], &views[i], kinds[i], i >= PLACES, names[i]) < 0)
            goto done;
    const Py_ssize_t rows = items(&views[KEYS]);
    if (wrong_size("places", &views[PLACES], rows) || wrong_size("order", &views[ORDER], rows))
        goto done;
    if (rows < 1 || rows >= INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd keys", rows);
        goto done;
    }
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = follow(views[KEYS].buf, rows, views[PLACES].buf, views[ORDER].buf);
    Py_END_ALLOW_THREADS
    result = sound ? Py_NewRef(Py_None) : outside();
done:
    release(views, RANKED);
    return result;
}

enum { CODES, RANKS, THERE, OWN, PRESENT, RECODE };

PyDoc_STRVAR(recode_doc,
             "recode(codes, places, there, own, present) -> how many are there\n\n"
             "Codes, shape (n,), stand for ids whose places, shape (d,), are known. Fills own,\n"
             "shape (n,): the number of each row's id among those of these rows, and present,\n"
             "shape (d,): their places. There, shape (d,), is to work in.");

static PyObject *recode(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[RECODE] = {"codes", "places", "there", "own", "present"};
    static const char kinds[RECODE + 1] = "iiiqq";
    PyObject *given[RECODE], *result = NULL;
    Py_buffer views[RECODE] = {{0}};
    if (!PyArg_ParseTuple(args, "OOOOO", &given[0], &given[1], &given[2], &given[3], &given[4]))
        return NULL;
    for (int i = 0; i < RECODE; i++)
        if (take(given[i], &views[i], kinds[i], i >= THERE, names[i]) < 0)
            goto done;
    const Py_ssize_t rows = items(&views[CODES]), size = items(&views[RANKS]);
    if (wrong_size("own", &views[OWN], rows) || wrong_size("there", &views[THERE], size) ||
        wrong_size("present", &views[PRESENT], size))
        goto done;
    Py_ssize_t found = 0;
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = all_below(views[CODES].buf, rows, size) && all_below(views[RANKS].buf, size, size);
    if (sound)
        found = number_own(views[CODES].buf, rows, views[RANKS].buf, size, views[THERE].buf,
                           views[OWN].buf, views[PRESENT].buf);
    Py_END_ALLOW_THREADS
    result = sound ? PyLong_FromSsize_t(found) : outside();
done:
    release(views, RECODE);
    return result;
}

static PyMethodDef methods[] = {
    {"lines", lines, METH_O, lines_doc},
    {"split", split, METH_VARARGS, split_doc},
    {"pack", pack, METH_VARARGS, pack_doc},
    {"code", code, METH_VARARGS, code_doc},
    {"keys", keys, METH_VARARGS, keys_doc},
    {"ranked", ranked, METH_VARARGS, ranked_doc},
    {"recode", recode, METH_VARARGS, recode_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module);
}
