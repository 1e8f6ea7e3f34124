/* A second checker of gpumatch's proofs, which shares no line with the first.

   cc -O2 -o check check.c -lm
   ./check PROBLEM.mtx PROOF.txt [SUPPLY.txt DEMAND.txt]
   ./check --points X.mtx Y.mtx [--offsets R.txt S.txt] PROOF.txt [SUPPLY.txt DEMAND.txt]
   0: the proof holds, 1: it does not, 2: a file cannot be read

   PROBLEM is a Matrix Market file: coordinate or array, real, integer or pattern, general or
   symmetric, without repeated entries. X and Y are arrays with a line for each point; the metric is
   that of the proof, which may be sqeuclidean, euclidean, cityblock or chebyshev. PROOF is the text
   form of gpumatch.certificates.save. What it must show is stated, with proofs, in
   docs/algorithms/proof_files.md; the numbers of the checks below are those of that page. SUPPLY
   and DEMAND have the masses of rows and columns, a number each; without them, a flow is one of the
   masses that its proof names. Integers have 64 bits.
   Proofs of rankings, lexicographic bottlenecks, alternatives, edges, batches and cosines are not
   checked here: they end with 2.
   Part 1 reads the files, part 2 adds exactly, part 3 checks, part 4 has the command line.

   Encodings
   number   the sum hi + lo of two doubles, exact for every int64 and every double
   sum      a whole number of units of 2^-1074 in limbs of 32 bits, the last one signed; of a flow,
            what a unit of mass costs is one, so 2^unit_exponent turns a sum into what is paid
   problem  CSR: row i has the entries ptr[i] to ptr[i+1] - 1, whose columns ascend; `flow` is what
            the result has there, in units; assignments and matchings have 1
   vertices rows first, then columns, which begin with number `base`; of a graph base is 0, each of
            its edges is an entry of both ends, and that of the smaller end has the flow
   mates    -1 is unmatched */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { double hi, lo; int is_float; } number;

static void fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs(code == 1 ? "refused: " : "error: ", stdout);
    vprintf(format, args);
    putchar('\n');
    exit(code);
}

/* ---- part 1: the files ----------------------------------------------------------------------- */

#define TOKEN 128
#define UNITS (INT64_C(1) << 62) /* the most of a side */

static const char *file_name;
static FILE *file;

static int next_word(char *word) { /* the next word, or 0 at the end of the file */
    int c, length = 0;
    do c = getc(file); while (isspace(c));
    for (; c != EOF && !isspace(c); c = getc(file)) {
        if (length == TOKEN - 1) fail(2, "%s: a word is too long", file_name);
        word[length++] = (char)c;
    }
    word[length] = 0;
    return length > 0;
}

static void expect(const char *what) {
    char word[TOKEN];
    if (!next_word(word) || strcmp(word, what)) fail(2, "%s: expected %s", file_name, what);
}

static void *memory(int64_t count, size_t size) {
    void *found = count < 0 || (uint64_t)count > SIZE_MAX / 2 / size ? 0 : calloc(count + 1, size);
    if (!found) fail(2, "%s: no memory for %" PRId64 " numbers", file_name, count);
    return found;
}

static int64_t whole(const char *word, int64_t low, int64_t high) {
    char *end;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (!*word || *end || errno || value < low || value > high)
        fail(2, "%s: %s is no integer from %" PRId64 " to %" PRId64, file_name, word, low, high);
    return value;
}

static int64_t next_whole(int64_t low, int64_t high) {
    char word[TOKEN];
    if (!next_word(word)) fail(2, "%s ends too early", file_name);
    return whole(word, low, high);
}

static number of_whole(int64_t value) {
    int64_t low = value & 0xffffffff;
    number made = {(double)(value - low), (double)low, 0};
    return made;
}

static number to_number(const char *word) { /* digits are an int64, all else is a double */
    char *end;
    if (!word[strspn(word, "+-0123456789")]) return of_whole(whole(word, -INT64_MAX, INT64_MAX));
    number made = {strtod(word, &end), 0, 1};
    if (*end || isnan(made.hi)) fail(2, "%s: %s is no number", file_name, word);
    return made;
}

static number next_number(void) {
    char word[TOKEN];
    if (!next_word(word)) fail(2, "%s ends too early", file_name);
    return to_number(word);
}

static int next_is(const char *what, char *word) { /* reads a word, and whether it is this */
    if (!next_word(word)) fail(2, "%s ends too early", file_name);
    return !strcmp(word, what);
}

enum { MATCHING, ASSIGNMENT, BOTTLENECK, TRANSPORT, GENERAL, WEIGHTS };
static const char *const kinds[] = {"matching",  "assignment",       "bottleneck",
                                    "transport", "general-matching", "general-weights"};
static int kind;

typedef struct { int64_t row, col, flow; number cost; } entry;
static int64_t nrows, ncols, nnz, base, order, *ptr;
static entry *entries;
static int is_dense, is_pattern, has_floats, is_whole;

static const char *metric; /* 0 of stored costs */
static int64_t width;      /* the coordinates of a point, or 0 of stored costs */
static double *points[2], *offsets[2];

static int by_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->col < y->col ? -1 : x->col > y->col;
}

static void open_file(const char *name) {
    file_name = name;
    file = fopen(name, "rb");
    if (!file) fail(2, "%s cannot be opened", name);
}

static void read_problem(const char *name) {
    char word[TOKEN], field[TOKEN], symmetry[TOKEN];
    int c;
    open_file(name);
    expect("%%MatrixMarket");
    expect("matrix");
    if (!next_word(word) || !next_word(field) || !next_word(symmetry)) fail(2, "%s: no head", name);
    is_dense = !strcmp(word, "array");
    is_pattern = !strcmp(field, "pattern");
    has_floats = !strcmp(field, "real") || !strcmp(field, "double");
    is_whole = !has_floats;
    int is_symmetric = !strcmp(symmetry, "symmetric");
    if ((!is_dense && strcmp(word, "coordinate")) || (is_dense && (is_pattern || is_symmetric)) ||
        (!is_pattern && !has_floats && strcmp(field, "integer")) ||
        (!is_symmetric && strcmp(symmetry, "general")))
        fail(2, "%s: %s %s %s is not read here", name, word, field, symmetry);
    for (c = getc(file); isspace(c) || c == '%'; c = getc(file))
        if (c == '%') while ((c = getc(file)) != '\n' && c != EOF) {}
    ungetc(c, file);
    nrows = next_whole(0, INT32_MAX);
    ncols = next_whole(0, INT32_MAX);
    int64_t listed = is_dense ? nrows * ncols : next_whole(0, INT64_MAX / 64);
    /* Room for what symmetry doubles, and for the edges of a graph from both ends. */
    entries = memory((is_symmetric ? 4 : 2) * listed, sizeof(entry));
    for (int64_t k = 0; k < listed; ++k) {
        entry one = {0, 0, 0, {1, 0, 0}};
        if (is_dense) {
            one.row = k % nrows, one.col = k / nrows;
        } else {
            one.row = next_whole(1, nrows) - 1, one.col = next_whole(1, ncols) - 1;
        }
        if (!is_pattern) one.cost = next_number();
        if (!is_pattern && !has_floats && one.cost.is_float) fail(2, "%s: a float", name);
        if (has_floats) one.cost = (number){one.cost.hi + one.cost.lo, 0, 1};
        entries[nnz++] = one;
        if (is_symmetric && one.row != one.col) {
            entry turned = {one.col, one.row, 0, one.cost};
            entries[nnz++] = turned;
        }
    }
    fclose(file);
    qsort(entries, nnz, sizeof(entry), by_place);
    for (int64_t k = 1; k < nnz; ++k)
        if (!by_place(entries + k - 1, entries + k)) fail(2, "%s: a repeated entry", name);
}

static double *read_points(const char *name, int64_t *count) { /* an array of so many lines */
    nnz = 0;
    read_problem(name);
    if (!is_dense || !ncols || (width && ncols != width)) fail(2, "%s: no such points", name);
    double *found = memory(nnz, sizeof *found);
    for (int64_t k = 0; k < nnz; ++k) {
        found[k] = entries[k].cost.hi + entries[k].cost.lo + 0.0; /* no -0.0 */
        if (!isfinite(found[k])) fail(2, "%s: a number is not finite", name);
    }
    *count = nrows, width = ncols;
    free(entries);
    return found;
}

static double *read_offsets(const char *name, int64_t length) {
    char word[TOKEN];
    double *found = memory(length, sizeof *found);
    open_file(name);
    for (int64_t k = 0; k < length; ++k) {
        number one = next_number();
        found[k] = one.hi + one.lo + 0.0;
        if (!isfinite(found[k])) fail(2, "%s: a number is not finite", name);
    }
    if (next_word(word)) fail(2, "%s has more numbers than there are points", name);
    fclose(file);
    return found;
}

/* The sum of the differences, of their squares, or their maximum, each step rounded once. A
   volatile product is not fused with the sum. */
static double accumulated(int64_t i, int64_t j, double factor) {
    double total = 0;
    for (int64_t k = 0; k < width; ++k) {
        double step = (points[0][i * width + k] - points[1][j * width + k]) * factor;
        volatile double square = step * step;
        if (!strcmp(metric, "chebyshev")) total = fmax(total, fabs(step));
        else total += strcmp(metric, "cityblock") ? square : fabs(step);
    }
    return total;
}

static double distance_of(int64_t i, int64_t j) { /* as docs/algorithms/proof_files.md states it */
    double found = accumulated(i, j, 1);
    if (!strcmp(metric, "euclidean")) {
        found = sqrt(found);
        if (found <= 0x1p-450) found = fmin(sqrt(accumulated(i, j, 0x1p600)) / 0x1p600, 0x1p-450);
        if (found >= 0x1p500) found = fmax(sqrt(accumulated(i, j, 0x1p-600)) / 0x1p-600, 0x1p500);
    }
    return offsets[0] ? found + (offsets[0][i] + offsets[1][j]) : found;
}

static void make_distances(void) { /* the costs of all pairs, rounded */
    static const char *const metrics[] = {"sqeuclidean", "euclidean", "cityblock", "chebyshev"};
    int is_known = 0;
    for (int k = 0; k < 4; ++k) is_known |= !strcmp(metric, metrics[k]);
    if (!is_known) fail(2, "costs of metric %s are not checked here", metric);
    nnz = nrows * ncols, is_dense = has_floats = 1, is_whole = is_pattern = 0;
    entries = memory(nnz, sizeof(entry));
    for (int64_t k = 0; k < nnz; ++k) {
        entry one = {k / ncols, k % ncols, 0, {distance_of(k / ncols, k % ncols), 0, 1}};
        if (!isfinite(one.cost.hi)) fail(2, "a distance overflows");
        entries[k] = one;
    }
}

static void drop_zeros(void) { /* of a dense matrix, which are no edges */
    int64_t kept = 0;
    for (int64_t k = 0; k < nnz; ++k)
        if (!is_dense || entries[k].cost.hi + entries[k].cost.lo != 0) entries[kept++] = entries[k];
    nnz = kept;
    is_dense = 0;
}

static void make_simple(const char *name) { /* no diagonal, and each edge from both ends */
    int64_t kept = 0, count = 0;
    if (nrows != ncols) fail(2, "%s: the matrix of a graph must be square", name);
    for (int64_t k = 0; k < nnz; ++k)
        if (entries[k].row != entries[k].col) entries[kept++] = entries[k];
    for (int64_t k = 0; k < kept; ++k) {
        entry turned = {entries[k].col, entries[k].row, 0, entries[k].cost};
        entries[kept + k] = turned;
    }
    qsort(entries, 2 * kept, sizeof(entry), by_place);
    for (int64_t k = 0; k < 2 * kept; ++k) {
        if (!count || by_place(entries + count - 1, entries + k)) entries[count++] = entries[k];
        number one = entries[count - 1].cost, other = entries[k].cost;
        if (kind == WEIGHTS && (one.hi != other.hi || one.lo != other.lo))
            fail(2, "%s: the two entries of an edge differ", name);
    }
    nnz = count;
}

static void find_rows(void) {
    ptr = memory(nrows + 1, sizeof *ptr);
    for (int64_t k = 0; k < nnz; ++k) ++ptr[entries[k].row + 1];
    for (int64_t i = 0; i < nrows; ++i) ptr[i + 1] += ptr[i];
}

/* SHA-256, FIPS 180-4 */
static uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, rounds[64];
static unsigned char block[64];
static uint64_t hashed;

static uint32_t rotated(uint32_t x, int k) { return x >> k | x << (32 - k); }

static void hash_byte(unsigned char byte) {
    block[hashed++ % 64] = byte;
    if (hashed % 64) return;
    uint32_t w[64], h[8];
    memcpy(h, hash, sizeof h);
    for (int t = 0; t < 64; ++t) {
        if (t < 16) {
            const unsigned char *b = block + 4 * t;
            w[t] = (uint32_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
        } else {
            uint32_t x = w[t - 15], y = w[t - 2];
            w[t] = w[t - 16] + w[t - 7] + (rotated(x, 7) ^ rotated(x, 18) ^ x >> 3) +
                   (rotated(y, 17) ^ rotated(y, 19) ^ y >> 10);
        }
        uint32_t up = h[7] + (rotated(h[4], 6) ^ rotated(h[4], 11) ^ rotated(h[4], 25)) +
                      ((h[4] & h[5]) ^ (~h[4] & h[6])) + rounds[t] + w[t];
        uint32_t down = (rotated(h[0], 2) ^ rotated(h[0], 13) ^ rotated(h[0], 22)) +
                        ((h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]));
        memmove(h + 1, h, 28);
        h[4] += up;
        h[0] = up + down;
    }
    for (int i = 0; i < 8; ++i) hash[i] += h[i];
}

static void hash_bytes(const void *bytes, size_t count) {
    for (size_t k = 0; k < count; ++k) hash_byte(((const unsigned char *)bytes)[k]);
}

static void hash_whole(uint64_t value) { /* eight bytes, the least first */
    for (int k = 0; k < 64; k += 8) hash_byte((unsigned char)(value >> k));
}

static void hash_double(double value) {
    uint64_t bits;
    value += 0.0; /* no -0.0 */
    memcpy(&bits, &value, 8);
    hash_whole(bits);
}

static void hash_cost(number cost) {
    if (has_floats) hash_double(cost.hi);
    else hash_whole((uint64_t)((int64_t)cost.hi + (int64_t)cost.lo));
}

static void hash_points(void) {
    int64_t counts[] = {nrows, ncols};
    hash_whole(width);
    for (int side = 0; side < 2; ++side)
        for (int64_t k = 0; k < counts[side] * width; ++k) hash_double(points[side][k]);
    for (int side = 0; offsets[0] && side < 2; ++side)
        for (int64_t k = 0; k < counts[side]; ++k) hash_double(offsets[side][k]);
}

static void make_rounds(void) { /* the first 32 bits of the fractions of cube roots of primes */
    for (int prime = 2, k = 0; k < 64; ++prime) {
        int is_prime = 1;
        for (int d = 2; d * d <= prime; ++d) is_prime &= prime % d > 0;
        if (is_prime) {
            double root = cbrt(prime);
            rounds[k++] = (uint32_t)((root - floor(root)) * 4294967296.0);
        }
    }
}

static void hash_problem(char *hex, const char *form, int as_pattern) {
    char head[TOKEN];
    const char *numbers = as_pattern ? "pattern" : has_floats ? "float64" : "int64";
    int as_dense = !strcmp(form, "dense");
    if (width) form = "points", numbers = metric;
    snprintf(head, sizeof head, "gpumatch-problem 1 %s %s\n", form, numbers);
    make_rounds();
    hash_bytes(head, strlen(head));
    hash_whole(nrows), hash_whole(ncols);
    if (width) hash_points();
    if (!as_dense) {
        for (int64_t i = 0; i <= nrows; ++i) hash_whole(ptr[i]);
        for (int64_t k = 0; k < nnz; ++k) hash_whole(entries[k].col);
    }
    if (!as_pattern && !width)
        for (int64_t k = 0; k < nnz; ++k) hash_cost(entries[k].cost);
    uint64_t bits = 8 * hashed;
    hash_byte(0x80);
    while (hashed % 64 != 56) hash_byte(0);
    for (int k = 56; k >= 0; k -= 8) hash_byte((unsigned char)(bits >> k));
    for (int i = 0; i < 8; ++i) sprintf(hex + 8 * i, "%08" PRIx32, hash[i]);
}

typedef struct {
    number price;           /* the dual */
    int64_t low, high, got; /* bounds of its units, and what it has */
    int64_t place, set;     /* in set_vertices, and the innermost odd set; -1 is none */
    int marks;              /* COVER and THRESHOLD */
    double lack, by_pairs;  /* what its price is too high by, and what its pairs lack in all */
} vertex;
enum { COVER = 1, THRESHOLD = 2 };

typedef struct { int64_t begin, end, parent; number price; } odd_set;

static char digest[TOKEN], cardinality[TOKEN];
static int maximize, has_objective, unit_exponent, has_float_unit;
static number objective, gap, *row_limit;
static vertex *vertices;
static int64_t *row_to_col, *col_to_row, *row_ind, *col_ind, *flow_units, flows;
static int64_t *capacity, capacities, covered[3], scale = 1, set_count;
static odd_set *sets;

static double least_float(void) { return kind == TRANSPORT ? 0x1p-1074 : 0; }

static int is_cardinality(const char *name) { return !strcmp(cardinality, name); }

static int64_t *next_ids(const char *name, int64_t length, int64_t low, int64_t high) {
    expect(name);
    if (next_whole(0, INT64_MAX) != length) fail(1, "%s has a wrong length", name);
    int64_t *found = memory(length, sizeof *found);
    for (int64_t k = 0; k < length; ++k) found[k] = next_whole(low, high);
    return found;
}

static int64_t *next_list(const char *name, int64_t *length, int64_t low, int64_t high) {
    expect(name);
    *length = next_whole(0, INT64_MAX / 64);
    int64_t *found = memory(*length, sizeof *found);
    for (int64_t k = 0; k < *length; ++k) found[k] = next_whole(low, high);
    return found;
}

static void next_marks(const char *name, int mark, int64_t first, int64_t size) {
    int64_t count, *ids = next_list(name, &count, 0, size - 1);
    for (int64_t k = 0; k < count; ++k) {
        if (k && ids[k] <= ids[k - 1]) fail(1, "%s does not ascend", name);
        vertices[first + ids[k]].marks |= mark;
    }
    covered[mark] += count;
}

static void next_cover(const char *rows, const char *cols, int mark) {
    next_marks(rows, mark, 0, nrows);
    next_marks(cols, mark, nrows, ncols);
}

static void next_prices(const char *name, int64_t first, int64_t length) {
    expect(name);
    if (next_whole(0, INT32_MAX) != length) fail(1, "%s has a wrong length", name);
    for (int64_t k = 0; k < length; ++k) {
        vertices[first + k].price = next_number();
        if (isinf(vertices[first + k].price.hi)) fail(1, "%s has an infinite number", name);
    }
}

static void next_duals(void) {
    next_prices("row_dual", 0, nrows);
    next_prices("col_dual", nrows, ncols);
}

static void next_total(void) { /* what the result says of itself */
    char word[TOKEN];
    expect("maximize");
    maximize = (int)next_whole(0, 1);
    expect("cardinality");
    next_word(cardinality);
    int is_known = is_cardinality("maximum") || (kind != BOTTLENECK && is_cardinality("any")) ||
                   is_cardinality(kind == WEIGHTS ? "perfect" : "full");
    if (!is_known) fail(1, "there is no cardinality %s", cardinality);
    expect("objective");
    has_objective = !next_is("none", word);
    if (has_objective) objective = to_number(word);
    if (kind == BOTTLENECK) return;
    if (!has_objective) fail(1, "there is no objective");
    expect("gap"), gap = next_number();
    if (kind == WEIGHTS) return;
    expect("cost_limit");
    if (next_is("none", word)) return;
    int for_all = !strcmp(word, "all");
    if (!for_all && (strcmp(word, "rows") || kind == TRANSPORT))
        fail(2, "%s: a bad limit", file_name);
    row_limit = memory(nrows, sizeof *row_limit);
    for (int64_t i = 0; i < nrows; ++i) {
        row_limit[i] = for_all && i ? row_limit[0] : next_number();
        if (is_cardinality("maximum")) continue;
        if (!isfinite(row_limit[i].hi)) fail(1, "a limit is infinite");
        is_whole &= !row_limit[i].is_float || row_limit[i].hi == rint(row_limit[i].hi);
    }
    if (for_all && !nrows) next_number();
}

static void next_mates(void) {
    row_to_col = next_ids("row_to_col", nrows, -1, ncols - 1);
    col_to_row = next_ids("col_to_row", ncols, -1, nrows - 1);
}

static void next_bounds(const char *lower, const char *upper, int64_t first, int64_t length) {
    int64_t *low = next_ids(lower, length, 0, UNITS), *high = next_ids(upper, length, 0, UNITS);
    int64_t room = UNITS;
    for (int64_t k = 0; k < length; ++k) {
        if (low[k] > high[k] || high[k] > room) fail(1, "%s are no bounds", upper);
        room -= high[k];
        vertices[first + k].low = low[k], vertices[first + k].high = high[k];
    }
}

static void next_flow(void) {
    char word[TOKEN];
    expect("unit");
    number unit = next_number();
    has_float_unit = unit.is_float;
    if (!(unit.hi + unit.lo > 0) || frexp(unit.hi + unit.lo, &unit_exponent) != 0.5 ||
        isinf(unit.hi) || (!has_float_unit && unit_exponent != 1))
        fail(1, "the unit is no power of 2");
    --unit_exponent;
    expect("pair_capacity");
    if (!next_is("none", word)) {
        if (strcmp(word, "all") && strcmp(word, "pairs")) fail(2, "%s: a bad capacity", file_name);
        capacities = *word == 'a' ? 1 : next_whole(0, INT64_MAX / 64);
        if (*word == 'p' && capacities != nnz && capacities != nrows * ncols)
            fail(1, "there are %" PRId64 " capacities", capacities);
        capacity = memory(capacities, sizeof *capacity);
        for (int64_t k = 0; k < capacities; ++k) capacity[k] = next_whole(0, INT64_MAX);
        if (*word == 'a') capacities = 0; /* one for all */
    }
    next_bounds("row_lower", "row_upper", 0, nrows);
    next_bounds("col_lower", "col_upper", nrows, ncols);
    next_duals();
    row_ind = next_list("row_ind", &flows, 0, nrows - 1);
    col_ind = next_ids("col_ind", flows, 0, ncols - 1);
    flow_units = next_ids("flow_units", flows, 1, UNITS);
    for (int64_t k = 1; k < flows; ++k) {
        int64_t step = row_ind[k] - row_ind[k - 1];
        if (step < 0 || (!step && col_ind[k] <= col_ind[k - 1])) fail(1, "pairs are not in order");
    }
}

static int by_begin(const void *a, const void *b) {
    const odd_set *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static void nest_sets(int64_t count) { /* the forest of the odd sets, which are nested or apart */
    int64_t *innermost = memory(count, sizeof *innermost);
    for (int64_t p = 0; p < count; ++p) innermost[p] = -1;
    qsort(sets, set_count, sizeof *sets, by_begin);
    for (int64_t k = 0; k < set_count; ++k) {
        if (sets[k].end < sets[k].begin || (sets[k].end - sets[k].begin) % 2 != 1)
            fail(1, "a set is not odd");
        int64_t around = sets[k].parent = innermost[sets[k].begin];
        if (around >= 0 && sets[k].end > sets[around].end) fail(1, "odd sets overlap");
        for (int64_t p = sets[k].begin; p < sets[k].end; ++p) innermost[p] = k;
    }
    for (int64_t v = 0; v < order; ++v)
        if (vertices[v].place >= 0) vertices[v].set = innermost[vertices[v].place];
}

static void next_sets(void) {
    int64_t count, *members = next_list("set_vertices", &count, 0, order - 1);
    int64_t *begin = next_list("set_begin", &set_count, 0, count);
    int64_t *end = next_ids("set_end", set_count, 0, count);
    sets = memory(set_count, sizeof *sets);
    expect("set_dual");
    if (next_whole(0, INT64_MAX) != set_count) fail(1, "set_dual has a wrong length");
    for (int64_t k = 0; k < set_count; ++k) {
        odd_set one = {begin[k], end[k], -1, next_number()};
        if (isinf(one.price.hi)) fail(1, "set_dual has an infinite number");
        sets[k] = one;
    }
    for (int64_t p = 0; p < count; ++p) {
        if (vertices[members[p]].place >= 0) fail(1, "set_vertices names a vertex twice");
        vertices[members[p]].place = p;
    }
    nest_sets(count);
}

static void read_proof(const char *problem, const char *name) {
    char word[TOKEN];
    open_file(name);
    expect("gpumatch-proof");
    int64_t version = next_whole(1, 3);
    expect("problem");
    next_word(word);
    for (kind = 0; kind <= WEIGHTS && strcmp(word, kinds[kind]); ++kind) {}
    if (kind > WEIGHTS) fail(2, "%s: proofs of problem %s are not checked here", name, word);
    int is_of_points = version == 3 && ASSIGNMENT <= kind && kind <= TRANSPORT;
    if (!is_of_points && version != (kind <= ASSIGNMENT ? 1 : 2))
        fail(2, "%s: version %" PRId64 " has no problem %s", name, version, word);
    if (is_of_points != (width > 0)) fail(2, "%s: --points are for costs of points", name);
    if (is_of_points) {
        static char costs[TOKEN];
        expect("costs");
        next_word(costs);
        metric = costs;
        make_distances();
    }
    if (kind == MATCHING || kind >= GENERAL) drop_zeros();
    if (kind >= GENERAL) make_simple(problem);
    find_rows();
    base = kind >= GENERAL ? 0 : nrows;
    order = base + ncols;
    vertices = memory(order, sizeof *vertices);
    for (int64_t v = 0; v < order; ++v) {
        vertices[v].place = vertices[v].set = -1;
        vertices[v].high = 1;
    }
    expect("sha256");
    next_word(digest);
    expect("shape");
    if (next_whole(0, INT32_MAX) != nrows || next_whole(0, INT32_MAX) != ncols)
        fail(1, "the proof is of another shape");
    if (kind != MATCHING && kind != GENERAL) next_total();
    if (kind == ASSIGNMENT) next_duals();
    if (kind <= BOTTLENECK) next_mates();
    if (kind == TRANSPORT) next_flow();
    if (kind <= TRANSPORT) next_cover("cover_rows", "cover_cols", COVER);
    if (kind == BOTTLENECK) next_cover("threshold_rows", "threshold_cols", THRESHOLD);
    if (kind == WEIGHTS) expect("dual_scale"), scale = next_whole(1, 2);
    if (kind >= GENERAL) row_to_col = col_to_row = next_ids("mate", order, -1, order - 1);
    if (kind == GENERAL) next_marks("tutte_berge", COVER, 0, order);
    if (kind == WEIGHTS) next_prices("vertex_dual", 0, order), next_sets();
    expect("end");
    if (next_word(word)) fail(2, "%s goes on after its end", name);
    fclose(file);
}

static void turn(number *x) { x->hi = -x->hi, x->lo = -x->lo; }

static void turn_signs(void) { /* so that all is minimised */
    turn(&objective);
    for (int64_t k = 0; k < nnz; ++k) turn(&entries[k].cost);
    for (int64_t v = 0; v < order; ++v) turn(&vertices[v].price);
    for (int64_t k = 0; k < set_count; ++k) turn(&sets[k].price);
    for (int64_t i = 0; row_limit && i < nrows; ++i) turn(row_limit + i);
}

static void read_masses(const char *name, int64_t first, int64_t length) {
    open_file(name);
    for (int64_t v = first; v < first + length; ++v) {
        number mass = next_number();
        double off = ldexp(mass.hi, -unit_exponent) - (double)vertices[v].high + mass.lo;
        if (vertices[v].low || !(fabs(off) < 1) || (!has_float_unit && off != 0))
            fail(1, "%s: the proof is of another mass than number %" PRId64, name, v - first);
    }
    char word[TOKEN];
    if (next_word(word)) fail(1, "%s has more masses than the problem", name);
    fclose(file);
}

/* ---- part 2: exact sums, and rounding -------------------------------------------------------- */

#define LIMBS 76
typedef struct { int64_t limb[LIMBS]; int count; } sum;

static void carry(sum *s) { /* all limbs but the last into [0, 2^32) */
    for (int k = 0; k < LIMBS - 1; ++k) {
        int64_t rest = s->limb[k] & 0xffffffff;
        s->limb[k + 1] += (s->limb[k] - rest) / 4294967296;
        s->limb[k] = rest;
    }
    s->count = 0;
}

static void add_scaled(sum *s, double x, int64_t times, int shift) { /* x * times * 2^shift */
    int exponent, sign = (x < 0) != (times < 0) ? -1 : 1;
    if (x == 0 || times == 0) return;
    unsigned __int128 bits = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
    int place = exponent - 53 + 1074 + shift; /* of the last of the 53 bits */
    if (place > 32 * (LIMBS - 5)) fail(1, "a number is too large");
    bits *= times < 0 ? -(uint64_t)times : (uint64_t)times;
    for (; place < 0 && bits; ++place) { /* a subnormal ends in zeros, and so do units of a cost */
        if (bits & 1) fail(1, "a number is too small");
        bits >>= 1;
    }
    for (int k = place / 32; bits; bits >>= 32, ++k) {
        uint64_t part = (uint64_t)(bits & 0xffffffff) << place % 32;
        s->limb[k] += sign * (int64_t)(part & 0xffffffff);
        s->limb[k + 1] += sign * (int64_t)(part >> 32);
    }
    if (++s->count == 1 << 28) carry(s);
}

static void add(sum *s, number x, int64_t times) {
    add_scaled(s, x.hi, times, 0), add_scaled(s, x.lo, times, 0);
}

static int sign_of(sum *s) {
    carry(s);
    if (s->limb[LIMBS - 1] < 0) return -1;
    for (int k = 0; k < LIMBS; ++k)
        if (s->limb[k]) return 1;
    return 0;
}

static double rounded_up(sum *s, int shift) { /* a double not below s * 2^shift, from 0 on */
    if (sign_of(s) <= 0) return 0;
    int k = LIMBS - 1, is_below = 0;
    while (!s->limb[k]) --k;
    for (int j = 0; j < k - 2; ++j) is_below |= s->limb[j] != 0;
    double near = 0;
    for (int j = k; j >= 0 && j > k - 3; --j) { /* the sum of three is rounded twice at most */
        double part = ldexp((double)s->limb[j], 32 * (j - k)), more = near + part;
        is_below |= more - near != part;
        near = more;
    }
    if (is_below) near = nextafter(nextafter(near, INFINITY), INFINITY);
    int place = 32 * k - 1074 + shift;
    double found = ldexp(near, place);
    return ldexp(found, -place) < near ? nextafter(found, INFINITY) : found;
}

static double apart(const sum *a, const sum *b) { /* |a - b| of sums of units, rounded up */
    sum off = *a, turned_off = *b;
    for (int k = 0; k < LIMBS; ++k) {
        off.limb[k] -= b->limb[k];
        turned_off.limb[k] -= a->limb[k];
    }
    return fmax(rounded_up(&off, unit_exponent), rounded_up(&turned_off, unit_exponent));
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static double nearly(number x) { return x.hi + x.lo; }
static double size_of(number x) { return fabs(nearly(x)); }

static number minus(number x) {
    x.hi = -x.hi, x.lo = -x.lo;
    return x;
}

static double high_sum(const number *terms, int64_t count) { /* no less than their sum */
    double near = 0, sizes = 0;
    for (int64_t k = 0; k < count; ++k) near += nearly(terms[k]), sizes += size_of(terms[k]);
    return near + 1e-15 * (double)count * sizes;
}

static double excess(const number *terms, int64_t count) { /* their sum, rounded up, from 0 on */
    sum all = {{0}, 0};
    if (high_sum(terms, count) < 0) return 0;
    for (int64_t k = 0; k < count; ++k) add(&all, terms[k], 1);
    return rounded_up(&all, 0);
}

static int exceeds(number a, number b) { /* a > b, exactly */
    if (isinf(a.hi) || isinf(b.hi)) return a.hi > b.hi;
    return excess((number[]){a, minus(b)}, 2) > 0;
}

/* What the rounding of computed costs may add to a gap, if the pairs cost `paid` in all. */
static double blur_of(double gap, double paid, const number *limits) {
    double heaviest = 1, sides[2] = {0, 0}, added = 0, limit = 0;
    if (!width) return 0;
    for (int64_t v = 0; v < order; ++v) {
        double mass = ldexp((double)vertices[v].high, unit_exponent);
        heaviest = fmax(heaviest, mass);
        sides[v >= nrows] += mass;
        if (limits && v < nrows) limit = fmax(limit, size_of(limits[v]));
        if (offsets[0]) added += fabs(v < nrows ? offsets[0][v] : offsets[1][v - nrows]);
    }
    double n = fmin(sides[0], sides[1]), share = 0x1p-53 * (double)(width + (offsets[0] ? 6 : 3));
    double terms = share * 2 * paid + share * gap + share * 2 * n * limit;
    terms += share * 8 * added * heaviest; /* the share comes first: no product overflows */
    return (terms + 2 * n * ((double)(width + 2) * 0x1p-1074)) * (1 + 0x1p-20);
}

/* ---- part 3: the checks ---------------------------------------------------------------------- */

static int is_largest, is_free, has_float_duals;
static int64_t size, total; /* pairs, and the units that they carry */
static sum paid, bound, magnitude, moved;
static double largest, largest_dual, most_over = -INFINITY;
static number *terms;

static void ship(int64_t i, int64_t j, int64_t units) { /* 1 */
    entry wanted = {i, j, 0, {0, 0, 0}};
    entry *found = bsearch(&wanted, entries, nnz, sizeof(entry), by_place);
    if (!found || found->flow) fail(1, "a pair of row %" PRId64 " is no edge, or twice there", i);
    if (units > UNITS - total) fail(1, "the pairs carry too much");
    found->flow = units, total += units, ++size;
    vertices[i].got += units, vertices[base + j].got += units;
}

static void ship_pairs(void) { /* 1: mates name each other */
    for (int64_t k = 0; k < flows; ++k) ship(row_ind[k], col_ind[k], flow_units[k]);
    for (int64_t j = 0; col_to_row && j < ncols; ++j)
        if (col_to_row[j] >= 0 && row_to_col[col_to_row[j]] != j) fail(1, "mate of %" PRId64, j);
    for (int64_t i = 0; row_to_col && i < nrows; ++i) {
        int64_t j = row_to_col[i];
        if (j >= 0 && col_to_row[j] != i) fail(1, "mate of %" PRId64, i);
        if (j >= 0 && (base || i <= j)) ship(i, j, 1);
    }
}

static int is_allowed(const entry *e) { /* 2 */
    if (kind == MATCHING || kind == GENERAL) return 1;
    if (e->cost.hi == -INFINITY) fail(1, "an infinite cost asks for row %" PRId64, e->row);
    if (is_largest && row_limit && exceeds(e->cost, row_limit[e->row])) return 0;
    return e->cost.hi < INFINITY;
}

static void check_cover(int mark) { /* 3: all pairs touch it; of the threshold, all better ones */
    for (int64_t k = 0; k < nnz; ++k) {
        int marks = vertices[entries[k].row].marks | vertices[base + entries[k].col].marks;
        int is_meant = mark == COVER || !has_objective || exceeds(objective, entries[k].cost);
        if (is_allowed(entries + k) && is_meant && !(marks & mark))
            fail(1, "the cover misses entry %" PRId64, k);
    }
}

static void check_matching(void) {
    check_cover(COVER);
    if (size != covered[COVER]) fail(1, "the cover is not as large as the matching");
    printf("maximum: %" PRId64 " pairs, and a cover of as many\n", size);
}

static void check_bottleneck(void) {
    number worst = {-INFINITY, 0, 0};
    int64_t needed = is_cardinality("maximum") ? covered[COVER] : least(nrows, ncols);
    for (int64_t k = 0; k < nnz; ++k) {
        if (!entries[k].flow) continue;
        if (!is_allowed(entries + k)) fail(1, "entry %" PRId64 " is a forbidden pair", k);
        if (exceeds(entries[k].cost, worst)) worst = entries[k].cost;
    }
    int is_other = exceeds(worst, objective) || exceeds(objective, worst);
    if (has_objective != (size > 0) || (size && is_other)) fail(1, "the objective is another");
    if (size != needed) fail(1, "%" PRId64 " pairs, not %" PRId64, size, needed);
    if (size && covered[THRESHOLD] >= size) fail(1, "better pairs may be as many");
    if (is_cardinality("maximum")) check_cover(COVER);
    check_cover(THRESHOLD);
    printf("optimal: %" PRId64 " pairs, of which none costs more than the objective\n", size);
}

static int64_t root_of(int64_t v) { /* the vertex that stands for a component */
    while (vertices[v].set != v) v = vertices[v].set = vertices[vertices[v].set].set;
    return v;
}

static void check_general(void) { /* 6: components without the Tutte-Berge set; `high` counts */
    int64_t odd = 0;
    for (int64_t v = 0; v < order; ++v) vertices[v].set = v;
    for (int64_t k = 0; k < nnz; ++k) {
        int64_t a = root_of(entries[k].row), b = root_of(entries[k].col);
        if (a == b || vertices[entries[k].row].marks || vertices[entries[k].col].marks) continue;
        vertices[b].set = a, vertices[a].high += vertices[b].high;
    }
    for (int64_t v = 0; v < order; ++v)
        odd += vertices[v].set == v && !vertices[v].marks && vertices[v].high % 2;
    if (order - 2 * size != odd - covered[COVER]) fail(1, "%" PRId64 " odd components", odd);
    printf("maximum: %" PRId64 " pairs, and %" PRId64 " odd components\n", size, odd);
}

static void make_prices(void) { /* 3, and prices of vertices that need nothing are cut off at 0 */
    int64_t sides[2] = {0, 0};
    for (int64_t v = 0; v < order; ++v) sides[v >= nrows] += vertices[v].high;
    covered[COVER] = 0;
    for (int64_t v = 0; v < order; ++v) {
        vertex *a = vertices + v;
        int must_fill = kind == WEIGHTS || (v >= nrows) == (sides[0] > sides[1]);
        if (is_largest && kind != WEIGHTS) must_fill = a->marks;
        if (must_fill && !is_free) a->low = a->high;
        if (a->marks) covered[COVER] += a->high;
        if (a->got > a->high || (a->got < a->low && !(kind == WEIGHTS && is_largest)))
            fail(1, "vertex %" PRId64 " has %" PRId64 " units", v, a->got);
        has_float_duals |= a->price.is_float;
        if (kind != WEIGHTS && !a->low && a->high && nearly(a->price) > 0)
            add(&moved, a->price, a->high), a->price = of_whole(0);
        if (a->got || kind == TRANSPORT) largest_dual = fmax(largest_dual, size_of(a->price));
    }
    for (int64_t k = 0; k < set_count; ++k) {
        if (nearly(sets[k].price) > 0) fail(1, "a dual of an odd set has a wrong sign");
        add(&bound, sets[k].price, (sets[k].end - sets[k].begin) / 2);
    }
}

static int64_t room_of(const entry *e) {
    int64_t room = least(vertices[e->row].high, vertices[base + e->col].high);
    int64_t place = capacities == nnz ? e - entries : capacities ? e->row * ncols + e->col : 0;
    return capacity ? least(capacity[place], room) : room;
}

/* The price of a pair less its cost, in `terms`: of its ends, its limit, and the sets around it. */
static int64_t make_terms(const entry *e, number limit) {
    int64_t count = 3, place = vertices[base + e->col].place, k = vertices[e->row].set;
    terms[0] = vertices[e->row].price, terms[1] = vertices[base + e->col].price, terms[2] = limit;
    while (k >= 0 && !(sets[k].begin <= place && place < sets[k].end)) k = sets[k].parent;
    for (; k >= 0; k = sets[k].parent) terms[count++] = sets[k].price;
    most_over = fmax(most_over, high_sum(terms, count));
    for (k = 0; k < scale; ++k) terms[count++] = minus(e->cost);
    return count;
}

static void check_pair(const entry *e) { /* 2 to 5 */
    vertex *a = vertices + e->row, *b = vertices + base + e->col;
    number limit = is_free && row_limit ? row_limit[e->row] : of_whole(0);
    int allowed = is_allowed(e), ends = a->marks + b->marks;
    int64_t room = room_of(e);
    if (e->flow && (!allowed || e->flow > room)) fail(1, "row %" PRId64 " has too much", e->row);
    if (e->flow) largest = fmax(largest, fmax(size_of(e->cost), size_of(limit)));
    add(&paid, e->cost, e->flow * scale), add(&bound, limit, e->flow);
    add_scaled(&magnitude, size_of(e->cost), e->flow * scale, 0);
    if (!allowed || ends == 2) return;
    int is_across = is_largest && kind != WEIGHTS && !ends;
    if (is_across && !capacity) fail(1, "the cover misses a pair of row %" PRId64, e->row);
    if (is_free && row_limit && a->got < a->high && b->got < b->high && e->flow < room &&
        !exceeds(e->cost, limit))
        fail(1, "row %" PRId64 " and column %" PRId64 " have more", e->row, e->col);
    int64_t count = make_terms(e, limit);
    double over = is_across ? 0 : excess(terms, count);
    double rounding = 0x1p-46 * (size_of(a->price) + size_of(b->price) + over);
    if (is_across) covered[COVER] += room;
    if (is_across || (capacity && over > rounding)) {
        for (int64_t k = 0; k < count; ++k) add(&bound, terms[k], -room); /* its capacity pays */
        return;
    }
    vertex *into = a->got >= a->high ? a : b; /* a price too high is to be lowered at one end */
    into->lack = fmax(into->lack, over);
    into->by_pairs += over * (double)room * (1 + 0x1p-20); /* above what is rounded */
}

static void lower_prices(void) {
    for (int64_t v = 0; v < order; ++v) {
        vertex *a = vertices + v;
        int64_t units = a->high > 1 ? a->high : 1;
        add(&bound, a->price, nearly(a->price) > 0 ? a->low : a->high);
        if (capacity && a->by_pairs < a->lack * (double)units) a->lack = a->by_pairs, units = 1;
        add_scaled(&bound, a->lack, a->high ? -units : 0, 0);
        add_scaled(&moved, a->lack, units, 0);
    }
}

static void check_no_more_edges(void) { /* 6: duals of unmatched vertices do not count */
    number most = order ? vertices[0].price : of_whole(0);
    int64_t missing = order - 2 * size;
    for (int64_t v = 0; v < order; ++v)
        if (exceeds(vertices[v].price, most)) most = vertices[v].price;
    add(&bound, most, -missing);
    sum more = bound;
    add(&more, most, 2);
    if (nnz) add_scaled(&more, most_over, -(size + 1), 0);
    if (missing > 1 && nnz && sign_of(&more) <= 0) fail(1, "there may be more edges");
}

static void check_claims(double left, double allowance) { /* what the result says of itself */
    sum claimed = {{0}, 0};
    double all = rounded_up(&magnitude, unit_exponent), own = nearly(gap) * (double)scale;
    if (!isfinite(objective.hi) || !isfinite(own) || own < 0) fail(1, "a bad claim");
    add_scaled(&claimed, objective.hi, scale, -unit_exponent);
    add_scaled(&claimed, objective.lo, scale, -unit_exponent);
    double off = apart(&paid, &claimed);
    int is_exact = is_whole && !has_float_unit && (kind == TRANSPORT || all <= 0x1p53);
    if (off > 0 && (!objective.is_float || is_exact || off > 4 * 0x1p-52 * all + least_float()))
        fail(1, "the objective is not what the pairs cost");
    if (fabs(own - left) > allowance) fail(1, "the gap is claimed to be %g, but is %g", own, left);
}

static void check_total(void) { /* assignments, flows, and matchings of graphs with weights */
    is_largest = is_cardinality("maximum");
    is_free = is_cardinality("any") || (!is_largest && row_limit);
    if (!is_largest && covered[COVER]) fail(1, "only maximum has a cover");
    terms = memory(set_count + 5, sizeof *terms);
    make_prices();
    for (int64_t k = 0; k < nnz; ++k)
        if (base || entries[k].row < entries[k].col) check_pair(entries + k);
    if (is_largest && kind != WEIGHTS && covered[COVER] != total) /* 3 */
        fail(1, "%" PRId64 " units, but the cover has %" PRId64, total, covered[COVER]);
    lower_prices();
    if (kind == WEIGHTS && is_largest) check_no_more_edges();
    double left = apart(&paid, &bound); /* 4 */
    int64_t pairs = kind == TRANSPORT ? least(nrows, ncols) : size;
    double used = fmax(largest, fmin(largest_dual, 4.0 * (double)(pairs + 1) * largest));
    int exponent; /* of what is multiplied last, so that nothing overflows before */
    double part = 16 * 0x1p-52 * (double)total * (double)scale * frexp(used, &exponent);
    double rounding = ldexp(part, exponent + unit_exponent) + least_float();
    double allowance = is_whole ? 0 : rounding;
    if (is_whole && left < ldexp((double)scale, unit_exponent)) left = 0; /* for totals are whole */
    if (left > allowance || isinf(left)) fail(1, "the duals leave a gap of %g", left);
    double blur = blur_of(left, rounded_up(&magnitude, unit_exponent), is_free ? row_limit : 0);
    left += blur, allowance += blur;
    double most_moved = !has_float_duals ? 0 : kind == WEIGHTS ? allowance : rounding;
    if (rounded_up(&moved, unit_exponent) > most_moved) fail(1, "the duals are not fair");
    check_claims(left, allowance);
    printf("optimal: %" PRId64 " pairs of total %.17g, and a gap of %g\n", size,
           nearly(maximize ? minus(objective) : objective), left / (double)scale);
}

/* ---- part 4: the command line ---------------------------------------------------------------- */

static void usage(void) {
    fail(2, "check PROBLEM.mtx PROOF.txt [SUPPLY.txt DEMAND.txt], or\n"
            "check --points X.mtx Y.mtx [--offsets R.txt S.txt] PROOF.txt [SUPPLY.txt DEMAND.txt]");
}

static char **read_costs(char **names) { /* what of the command line is left */
    if (!names[0] || strcmp(names[0], "--points")) {
        if (names[0]) read_problem(names[0]);
        return names + (names[0] != 0);
    }
    if (!names[1] || !names[2]) usage();
    int64_t lengths[2];
    for (int side = 0; side < 2; ++side)
        points[side] = read_points(names[1 + side], lengths + side);
    names += 3;
    if (names[0] && !strcmp(names[0], "--offsets")) {
        if (!names[1] || !names[2]) usage();
        for (int side = 0; side < 2; ++side)
            offsets[side] = read_offsets(names[1 + side], lengths[side]);
        names += 3;
    }
    nrows = lengths[0], ncols = lengths[1];
    return names;
}

int main(int count, char **names) {
    char hex[TOKEN], **rest = read_costs(names + 1), *problem = count > 1 ? names[1] : 0;
    int is_flow = rest[0] && rest[1] && rest[2];
    if (!problem || !rest[0] || (is_flow ? rest[3] != 0 : rest[1] != 0)) usage();
    read_proof(problem, rest[0]);
    int has_numbers = kind != MATCHING && kind != GENERAL;
    if (has_numbers && is_pattern) fail(2, "a pattern has no costs");
    if (is_flow && kind != TRANSPORT) fail(2, "masses are for flows");
    if (is_flow) read_masses(rest[1], 0, nrows), read_masses(rest[2], nrows, ncols);
    hash_problem(hex, is_dense ? "dense" : kind >= GENERAL ? "graph" : "csr", !has_numbers);
    if (strcmp(hex, digest)) fail(1, "the proof is of another problem");
    if (maximize) turn_signs();
    ship_pairs();
    if (kind == MATCHING) check_matching();
    else if (kind == BOTTLENECK) check_bottleneck();
    else if (kind == GENERAL) check_general();
    else check_total();
    return 0;
}
