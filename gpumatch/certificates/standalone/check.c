/* A second checker of gpumatch's proofs, which shares no line with the first.

   cc -O2 -o check check.c -lm
   ./check PROBLEM.mtx PROOF.txt     0: the proof holds, 1: it does not, 2: a file cannot be read

   PROBLEM is a Matrix Market file: coordinate or array, real, integer or pattern, general or
   symmetric, without repeated entries. PROOF is the text form of gpumatch.certificates.save. What
   it must show is stated, with proofs, in docs/algorithms/proof_files.md; the numbers of the checks
   below are those of that page. Part 1 reads the files, part 2 checks.

   Encodings
   number   the sum hi + lo of two doubles, exact for every int64 and every double
   sum      a whole number of units of 2^-1074 in limbs of 32 bits, the last one signed
   problem  CSR: row i has the entries ptr[i] to ptr[i+1] - 1, whose columns ascend
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

static number next_number(void) { /* digits alone are an int64, all else is a double */
    char word[TOKEN], *end;
    if (!next_word(word)) fail(2, "%s ends too early", file_name);
    if (!word[strspn(word, "+-0123456789")]) return of_whole(whole(word, -INT64_MAX, INT64_MAX));
    number made = {strtod(word, &end), 0, 1};
    if (*end || isnan(made.hi)) fail(2, "%s: %s is no number", file_name, word);
    return made;
}

typedef struct { int64_t row, col; number cost; } entry;
static int64_t nrows, ncols, nnz, *ptr;
static entry *entries;
static int is_dense, is_pattern, has_floats;

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
    if (!next_word(word) || !next_word(field) || !next_word(symmetry)) fail(2, "%s: bad head", name);
    is_dense = !strcmp(word, "array");
    is_pattern = !strcmp(field, "pattern");
    has_floats = !strcmp(field, "real") || !strcmp(field, "double");
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
    entries = memory(is_symmetric ? 2 * listed : listed, sizeof(entry));
    for (int64_t k = 0; k < listed; ++k) {
        entry one = {0, 0, {1, 0, 0}};
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
            entry turned = {one.col, one.row, one.cost};
            entries[nnz++] = turned;
        }
    }
    fclose(file);
    qsort(entries, nnz, sizeof(entry), by_place);
    for (int64_t k = 1; k < nnz; ++k)
        if (!by_place(entries + k - 1, entries + k)) fail(2, "%s: a repeated entry", name);
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

static uint32_t turn(uint32_t x, int k) { return x >> k | x << (32 - k); }

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
            w[t] = w[t - 16] + w[t - 7] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) +
                   (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
        }
        uint32_t up = h[7] + (turn(h[4], 6) ^ turn(h[4], 11) ^ turn(h[4], 25)) +
                      ((h[4] & h[5]) ^ (~h[4] & h[6])) + rounds[t] + w[t];
        uint32_t down = (turn(h[0], 2) ^ turn(h[0], 13) ^ turn(h[0], 22)) +
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

static void hash_cost(number cost) {
    uint64_t bits;
    double value = cost.hi + 0.0; /* no -0.0 */
    if (!has_floats) {
        hash_whole((uint64_t)((int64_t)cost.hi + (int64_t)cost.lo));
        return;
    }
    memcpy(&bits, &value, 8);
    hash_whole(bits);
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

static void hash_problem(char *hex, int as_pattern) {
    char head[TOKEN];
    const char *kind = as_pattern ? "pattern" : has_floats ? "float64" : "int64";
    int as_dense = is_dense && !as_pattern;
    snprintf(head, sizeof head, "gpumatch-problem 1 %s %s\n", as_dense ? "dense" : "csr", kind);
    make_rounds();
    hash_bytes(head, strlen(head));
    hash_whole(nrows), hash_whole(ncols);
    if (!as_dense) {
        for (int64_t i = 0; i <= nrows; ++i) hash_whole(ptr[i]);
        for (int64_t k = 0; k < nnz; ++k) hash_whole(entries[k].col);
    }
    if (!as_pattern)
        for (int64_t k = 0; k < nnz; ++k) hash_cost(entries[k].cost);
    uint64_t bits = 8 * hashed;
    hash_byte(0x80);
    while (hashed % 64 != 56) hash_byte(0);
    for (int k = 56; k >= 0; k -= 8) hash_byte((unsigned char)(bits >> k));
    for (int i = 0; i < 8; ++i) sprintf(hex + 8 * i, "%08" PRIx32, hash[i]);
}

static char kind[TOKEN], digest[TOKEN], cardinality[TOKEN], limits[TOKEN];
static int64_t *row_to_col, *col_to_row, *cover_rows, *cover_cols, covered[2];
static number objective, gap, *row_dual, *col_dual, *row_limit;
static int maximize;

static int64_t *next_ids(const char *name, int64_t length, int64_t low, int64_t high) {
    expect(name);
    if (next_whole(0, INT32_MAX) != length) fail(1, "%s has a wrong length", name);
    int64_t *found = memory(length, sizeof *found);
    for (int64_t k = 0; k < length; ++k) found[k] = next_whole(low, high);
    return found;
}

static int64_t *next_cover(const char *name, int64_t size, int64_t *length) {
    int64_t *found = memory(size, sizeof *found), last = -1;
    expect(name);
    *length = next_whole(0, size);
    for (int64_t k = 0; k < *length; ++k) {
        int64_t id = next_whole(0, size - 1);
        if (id <= last) fail(1, "%s does not ascend", name);
        found[last = id] = 1;
    }
    return found;
}

static number *next_numbers(const char *name, int64_t length) {
    expect(name);
    if (next_whole(0, INT32_MAX) != length) fail(1, "%s has a wrong length", name);
    number *found = memory(length, sizeof *found);
    for (int64_t k = 0; k < length; ++k) {
        found[k] = next_number();
        if (isinf(found[k].hi)) fail(1, "%s has an infinite number", name);
    }
    return found;
}

static void read_proof(const char *name) {
    char word[TOKEN];
    open_file(name);
    expect("gpumatch-proof"), expect("1");
    expect("problem");
    if (!next_word(kind) || (strcmp(kind, "matching") && strcmp(kind, "assignment")))
        fail(2, "%s: no matching and no assignment", name);
    expect("sha256");
    next_word(digest);
    expect("shape");
    if (next_whole(0, INT32_MAX) != nrows || next_whole(0, INT32_MAX) != ncols)
        fail(1, "the proof is of another shape");
    if (*kind == 'a') {
        expect("maximize");
        maximize = (int)next_whole(0, 1);
        expect("cardinality");
        next_word(cardinality);
        expect("objective"), objective = next_number();
        expect("gap"), gap = next_number();
        expect("cost_limit");
        next_word(limits);
        if (!strcmp(limits, "all") || !strcmp(limits, "rows")) {
            row_limit = memory(nrows, sizeof *row_limit);
            for (int64_t i = 0; i < nrows; ++i)
                row_limit[i] = *limits == 'a' && i ? row_limit[0] : next_number();
            if (*limits == 'a' && !nrows) next_number();
        } else if (strcmp(limits, "none")) {
            fail(2, "%s: cost_limit must be none, all or rows", name);
        }
        row_dual = next_numbers("row_dual", nrows);
        col_dual = next_numbers("col_dual", ncols);
    }
    row_to_col = next_ids("row_to_col", nrows, -1, ncols - 1);
    col_to_row = next_ids("col_to_row", ncols, -1, nrows - 1);
    cover_rows = next_cover("cover_rows", nrows, covered);
    cover_cols = next_cover("cover_cols", ncols, covered + 1);
    expect("end");
    if (next_word(word)) fail(2, "%s goes on after its end", name);
    fclose(file);
}

/* ---- part 2: the checks ---------------------------------------------------------------------- */

#define LIMBS 70
typedef struct { int64_t limb[LIMBS]; int count; } sum;

static void carry(sum *s) { /* all limbs but the last into [0, 2^32) */
    for (int k = 0; k < LIMBS - 1; ++k) {
        int64_t rest = s->limb[k] & 0xffffffff;
        s->limb[k + 1] += (s->limb[k] - rest) / 4294967296;
        s->limb[k] = rest;
    }
    s->count = 0;
}

static void add(sum *s, double x, int sign) {
    int exponent;
    if (x == 0) return;
    if (x < 0) x = -x, sign = -sign;
    double fraction = frexp(x, &exponent);
    int place = exponent - 53 + 1074; /* of the last of 53 bits */
    uint64_t bits = (uint64_t)ldexp(fraction, 53);
    if (place < 0) bits >>= -place, place = 0; /* those of a subnormal end in zeros */
    int k = place / 32, shift = place % 32;
    uint64_t low = bits << shift, high = shift ? bits >> (64 - shift) : 0;
    s->limb[k] += sign * (int64_t)(low & 0xffffffff);
    s->limb[k + 1] += sign * (int64_t)(low >> 32);
    s->limb[k + 2] += sign * (int64_t)high;
    if (++s->count == 1 << 28) carry(s);
}

static void add_number(sum *s, number x, int sign) { add(s, x.hi, sign), add(s, x.lo, sign); }

static int sign_of(sum *s) {
    carry(s);
    if (s->limb[LIMBS - 1] < 0) return -1;
    for (int k = 0; k < LIMBS; ++k) if (s->limb[k]) return 1;
    return 0;
}

static double rounded_up(sum *s) { /* the least double that is not below, from 0 on */
    if (sign_of(s) <= 0) return 0;
    int k = LIMBS - 1, below = 0;
    while (!s->limb[k]) --k;
    for (int j = 0; j < k - 2; ++j) below |= s->limb[j] != 0;
    double found = 0;
    for (int j = k; j >= 0 && j > k - 3; --j) { /* the sum of three limbs is rounded twice at most */
        double part = ldexp((double)s->limb[j], 32 * j - 1074), more = found + part;
        below |= more - found != part;
        found = more;
    }
    return below ? nextafter(nextafter(found, INFINITY), INFINITY) : found;
}

static number turned(number x) {
    if (maximize) x.hi = -x.hi, x.lo = -x.lo;
    return x;
}

static double nearly(number x) { return x.hi + x.lo; }
static double size_of(number x) { return fabs(nearly(x)); }

static int exceeds(number a, number b) { /* a > b, exactly */
    double nearly_off = nearly(a) - nearly(b);
    if (isinf(a.hi) || isinf(b.hi)) return a.hi > b.hi;
    if (fabs(nearly_off) > 1e-15 * (size_of(a) + size_of(b))) return nearly_off > 0;
    sum off = {{0}, 0};
    add_number(&off, a, 1), add_number(&off, b, -1);
    return sign_of(&off) > 0;
}

static int64_t count_pairs(void) { /* 1: the mates name each other; 2: each pair is an edge */
    int64_t size = 0;
    for (int64_t j = 0; j < ncols; ++j)
        if (col_to_row[j] >= 0 && row_to_col[col_to_row[j]] != j) fail(1, "column %" PRId64, j);
    for (int64_t i = 0; i < nrows; ++i) {
        int64_t j = row_to_col[i], k = ptr[i];
        if (j < 0) continue;
        if (col_to_row[j] != i) fail(1, "row %" PRId64 " is not the mate of its column", i);
        while (k < ptr[i + 1] && entries[k].col != j) ++k;
        if (k == ptr[i + 1]) fail(1, "the pair of row %" PRId64 " is no edge", i);
        ++size;
    }
    return size;
}

static int is_largest, is_free, is_whole, has_float_duals;
static sum paid, bound, magnitude, moved, summed;
static double dual, largest, *short_rows, *short_cols;

static void check_matching(void) {
    int64_t size = count_pairs();
    for (int64_t k = 0; k < nnz; ++k) /* 3 */
        if (!cover_rows[entries[k].row] && !cover_cols[entries[k].col])
            fail(1, "the cover misses entry %" PRId64, k);
    if (size != covered[0] + covered[1]) fail(1, "the cover is not as large as the matching"); /* 4 */
    printf("maximum: %" PRId64 " pairs, and a cover of as many\n", size);
}

/* The prices of the theorem: the duals, of costs to be minimised. Those outside the cover are cut
   off at 0. `bound` adds them up, `moved` what was cut off, and `dual` is the largest in use. */
static void make_prices(number *price, const int64_t *mate, const int64_t *cover, int64_t length) {
    for (int64_t k = 0; k < length; ++k) {
        has_float_duals |= price[k].is_float;
        price[k] = turned(price[k]);
        if (!cover[k] && nearly(price[k]) > 0) {
            add_number(&moved, price[k], 1);
            price[k] = of_whole(0);
        }
        add_number(&bound, price[k], 1);
        add(&summed, size_of(price[k]), 1);
        if (mate[k] >= 0) dual = fmax(dual, size_of(price[k]));
    }
}

/* By how much the prices of a pair exceed its cost, rounded up; 0 if they do not. */
static double excess(number row, number col, number base, number cost) {
    double near = nearly(row) + nearly(col) + nearly(base) - nearly(cost);
    double room = size_of(row) + size_of(col) + size_of(base) + size_of(cost);
    if (near < -1e-15 * room) return 0; /* whatever was rounded */
    sum over = {{0}, 0};
    add_number(&over, row, 1), add_number(&over, col, 1), add_number(&over, base, 1);
    add_number(&over, cost, -1);
    return rounded_up(&over);
}

/* Checks 2 to 5 of one pair. A price too high is to be lowered at the row, if it has a mate. */
static void check_pair(int64_t i, const entry *pair) {
    int64_t j = pair->col;
    number cost = turned(pair->cost), base = is_free && row_limit ? row_limit[i] : of_whole(0);
    if (cost.hi == -INFINITY) fail(1, "an infinite cost asks for row %" PRId64, i);
    int allowed = cost.hi < INFINITY;
    if (is_largest && row_limit) allowed &= !exceeds(cost, row_limit[i]);
    if (row_to_col[i] == j) {
        if (!allowed) fail(1, "the pair of row %" PRId64 " is forbidden", i);
        add_number(&paid, cost, 1);
        add(&magnitude, size_of(cost), 1);
        largest = fmax(largest, size_of(cost));
    }
    if (!allowed) return;
    if (is_largest && !cover_rows[i] && !cover_cols[j])
        fail(1, "the pair of row %" PRId64 " and column %" PRId64 " is not in the cover", i, j);
    if (is_largest && cover_rows[i] && cover_cols[j]) return;
    if (is_free && row_limit && row_to_col[i] < 0 && col_to_row[j] < 0 && !exceeds(cost, base))
        fail(1, "row %" PRId64 " and column %" PRId64 " are left out", i, j);
    double *worst = row_to_col[i] >= 0 ? short_rows + i : short_cols + j;
    *worst = fmax(*worst, excess(row_dual[i], col_dual[j], base, cost));
}

static void lower(const double *shortfalls, int64_t length) {
    for (int64_t k = 0; k < length; ++k) add(&bound, shortfalls[k], -1), add(&moved, shortfalls[k], 1);
}

static double difference(const sum *a, const sum *b) { /* |a - b|, rounded up */
    sum off = *a, turned_off = *b;
    for (int k = 0; k < LIMBS; ++k) {
        off.limb[k] -= b->limb[k];
        turned_off.limb[k] -= a->limb[k];
    }
    return fmax(rounded_up(&off), rounded_up(&turned_off));
}

/* What the result says of itself: the objective is what the pairs cost, and the gap what is left. */
static void check_claims(double left, double allowance) {
    sum claimed = {{0}, 0};
    if (!isfinite(objective.hi) || !isfinite(gap.hi) || nearly(gap) < 0) fail(1, "a bad claim");
    add_number(&claimed, turned(objective), 1);
    double off = difference(&paid, &claimed), all = rounded_up(&magnitude);
    if (off > 0 && (!objective.is_float || (is_whole && all <= 0x1p53) || off > 4 * 0x1p-52 * all))
        fail(1, "the objective is not what the pairs cost");
    for (int k = 0; k < LIMBS; ++k) summed.limb[k] += magnitude.limb[k];
    off = fabs(nearly(gap) - left);
    if (off > allowance && (is_whole || off > 16 * 0x1p-52 * rounded_up(&summed)))
        fail(1, "the gap is claimed to be %g, but is %g", nearly(gap), left);
}

static void check_assignment(void) {
    int64_t size = count_pairs(), needed = covered[0] + covered[1];
    is_largest = !strcmp(cardinality, "maximum");
    is_free = !is_largest && (!strcmp(cardinality, "any") || row_limit);
    if (!is_largest && strcmp(cardinality, "any") && strcmp(cardinality, "full"))
        fail(1, "there is no cardinality %s", cardinality);
    if (!is_largest && needed) fail(1, "only maximum has a cover");
    if (!is_largest && !is_free) { /* the smaller side is the cover */
        needed = nrows < ncols ? nrows : ncols;
        for (int64_t i = 0; i < nrows; ++i) cover_rows[i] = nrows <= ncols;
        for (int64_t j = 0; j < ncols; ++j) cover_cols[j] = nrows > ncols;
    }
    if (!is_free && size != needed) fail(1, "%" PRId64 " pairs, not %" PRId64, size, needed); /* 3 */
    is_whole = !has_floats;
    for (int64_t i = 0; row_limit && i < nrows; ++i) {
        number limit = row_limit[i] = turned(row_limit[i]);
        if (is_free && !isfinite(limit.hi)) fail(1, "a limit is infinite");
        is_whole &= !is_free || !limit.is_float || limit.hi == rint(limit.hi);
    }
    short_rows = memory(nrows, sizeof(double)), short_cols = memory(ncols, sizeof(double));
    make_prices(row_dual, row_to_col, cover_rows, nrows);
    make_prices(col_dual, col_to_row, cover_cols, ncols);
    for (int64_t i = 0; i < nrows; ++i) {
        for (int64_t k = ptr[i]; k < ptr[i + 1]; ++k) check_pair(i, entries + k);
        if (!is_free || !row_limit) continue;
        if (row_to_col[i] >= 0) add_number(&bound, row_limit[i], 1);
        if (row_to_col[i] >= 0) largest = fmax(largest, size_of(row_limit[i]));
        if (row_to_col[i] >= 0 || nearly(row_dual[i]) != 0) add(&summed, size_of(row_limit[i]), 1);
    }
    lower(short_rows, nrows), lower(short_cols, ncols);
    double left = difference(&paid, &bound), scale = 4.0 * (double)(size + 1) * largest;
    double rounding = 16 * 0x1p-52 * (double)size * fmax(largest, fmin(dual, scale));
    if (is_whole && left < 1) left = 0; /* for the best total is an integer */
    if (left > (is_whole ? 0 : rounding)) fail(1, "the duals leave a gap of %g", left); /* 4 */
    if (rounded_up(&moved) > (has_float_duals ? rounding : 0)) fail(1, "the duals are not fair");
    check_claims(left, is_whole ? 0 : rounding);
    printf("optimal: %" PRId64 " pairs of total %.17g; the gap is at most %g\n", size,
           nearly(objective), left);
}

int main(int count, char **names) {
    char hex[TOKEN];
    if (count != 3) fail(2, "check PROBLEM.mtx PROOF.txt");
    read_problem(names[1]);
    find_rows();
    read_proof(names[2]);
    if (*kind == 'a' && is_pattern) fail(2, "a pattern has no costs");
    hash_problem(hex, *kind == 'm');
    if (strcmp(hex, digest)) fail(1, "the proof is of another problem");
    if (*kind == 'm') check_matching(); else check_assignment();
    return 0;
}
