// Labels of columns in alternating trees, and the offers of labels by rows.
//
// The label of a column is its distance by way of a row, and that row. Two atomic operations write
// it. The first lowers the distance, which only falls. The second writes the row, unless another
// row was written in between. So the row is that of the least distance.
//
// A column whose row must be scanned waits, at most once, in the next frontier or in the queue. A
// thread lowers the distance before it marks the column as waiting. The warp that takes the column
// removes the mark before it reads the distance. So if a thread finds the mark set, that warp will
// read its distance. If it finds no mark, the thread puts the column there again.
//
// Encodings
//   columns[j]    the dual of column j, and its label: the distance, kNever without a label; the
//                 row by which it is reached (-1: a spare row), with a counter of its changes; and
//                 its ancestor in its tree: a column, or the root, which is the last ancestor of
//                 all. Distances are kept as 64-bit integers of equal order, because none is
//                 negative.
//   col_to_row[j] the row of column j, -1 if it is unmatched, kHeld if a spare row holds it
//   item          a row in a frontier or the queue: the row, and above it 2 + its column, or 1 for
//                 a root
//   frontier[t & 1] the frontier of turn t; a turn is a collection of rows, or a level
//   sizes[t % 3]  the number of rows in it
//   queue         the i-th item is put at place i % nplaces; kNone: the place is empty
//   waiting[j]    1: column j waits in the frontier or the queue; or its row must be collected,
//                 because a growth has stopped before it was scanned
//   roots[r & 1]  the unmatched rows in round r, nroots[r & 1] of them; none with spare rows
//   wanted[r & 1] the number of paths to find from round r on
//   nearest[i]    for a root: the least distance of an unmatched column in its tree; kNever: none
//   leaf[i]       the unmatched column that it gets, or has got; -1: none
//   trace         for each round: looks, and paths found
// For growth g, at g % 3:
//   taken         the number of items taken from the last frontier, and then from the queue
//   moved         the number of items put into the queue, and below it the number of finished items
//   over          1 if all warps must stop, because of the looks or because many rows wait
//   busiest       the most rows that a warp has scanned
//   beyond        the least distance above the bound that was computed
//   reached       1 if an unmatched column was reached within the bound
// A look is the scan of one row. The looks of the busiest warp are counted.
#pragma once

#include "assignment/sparse/rows.cuh"

constexpr int kHeld = -2;
constexpr unsigned long long kSpareWay = 0xffffffffull;

using Item = unsigned long long;

enum Part { kCollecting, kGrowing, kBetween, kParts };

// The ancestor of a column in its tree: a column, or the root. A root is a row, or a column if it
// is a spare row's.
__device__ inline unsigned long long column_above(int col) { return static_cast<unsigned>(col); }
__device__ inline unsigned long long root_above(int root) {
  return 1ull << 32 | static_cast<unsigned>(root);
}
__device__ inline bool is_root(unsigned long long above) { return above >> 32 != 0; }
__device__ inline int vertex_of(unsigned long long above) { return static_cast<int>(above); }

template <typename Number>
struct __align__(32) Column {
  Number dual;
  long long distance;
  unsigned long long way;    // the row, and above it the counter of its changes
  unsigned long long above;
};

struct State {
  int stage;
  int round;
  int growth;
  int turn;
  int looks;
  int before;  // looks before this round
  int has_spares;  // 1 if the trees are those of spare rows
  int nroots[2];
  int wanted[2];
  int satisfied;   // trees that have reached an unmatched column
  int sizes[3];
  int taken[3];
  int over[3];
  int busiest[3];
  int reached[3];
  unsigned long long moved[3];
  long long beyond[3];
  long long bound;
  long long seen_beyond;  // `beyond` of a growth that has not ended
  long long below;  // the bound before the last step; negative: none
  long long step;   // the most by which the bound is raised
  long long spare_dual;  // the dual of spare rows
  long long farthest;
  long long nanoseconds[kParts];
};

template <typename Number>
struct Trees {
  Number* row_dual;
  int* row_to_col;
  int* col_to_row;
  Column<Number>* columns;
  int* waiting;
  Item* frontier[2];
  Item* queue;
  int nplaces;
  int* roots[2];
  long long* nearest;
  int* leaf;
  State* state;
  int* trace;
  unsigned* barrier;

  // The root of a column's tree, once roots are found.
  __device__ int root_of(int col) const { return vertex_of(columns[col].above); }

  // The row by which a column is reached; -1: a spare row.
  __device__ int row_to(int col) const { return static_cast<int>(columns[col].way); }

  // The column of that row; -1: the row is a root or a spare row.
  __device__ int col_before(int col) const {
    const int row = row_to(col);
    return row >= 0 ? row_to_col[row] : -1;
  }
};

// -- distances ------------------------------------------------------------------------------------

// Numbers as integers, of equal order for numbers that are not negative, and back.
__device__ inline long long ordered(long long number) { return number; }
__device__ inline long long ordered(double number) { return __double_as_longlong(number); }
__device__ inline long long number_of(long long distance, const long long*) { return distance; }
__device__ inline double number_of(long long distance, const double*) {
  return __longlong_as_double(distance);
}

template <typename Number>
__device__ Number as_number(long long distance) {
  return number_of(distance, static_cast<const Number*>(nullptr));
}

// -- offers of labels -----------------------------------------------------------------------------

__device__ inline Item item_of(int row, int col) {
  return static_cast<Item>(col + 2) << 32 | static_cast<unsigned>(row);
}
__device__ inline int row_of(Item item) { return static_cast<int>(item); }
__device__ inline int col_of(Item item) { return static_cast<int>(item >> 32) - 2; }

// A row that is scanned.
template <typename Cost>
struct Look {
  int row;
  int col;  // its column; -1: the row is a root
  long long begin;
  long long end;
  Number<Cost> dual;

  __device__ static Look at(int row, int col, const Rows<Cost>& rows,
                            const Number<Cost>* row_dual) {
    return {row, col, rows.indptr[row], rows.indptr[row + 1], row_dual[row]};
  }

  // The row of another lane.
  __device__ Look of_lane(int lane) const {
    return {__shfl_sync(kWholeWarp, row, lane), __shfl_sync(kWholeWarp, col, lane),
            __shfl_sync(kWholeWarp, begin, lane), __shfl_sync(kWholeWarp, end, lane),
            __shfl_sync(kWholeWarp, dual, lane)};
  }
};

// An entry of a row.
template <typename Cost>
struct Entry {
  int col;  // -1: the row has no more entries
  Cost cost;

  __device__ static Entry at(const Rows<Cost>& rows, long long k, long long end) {
    if (k >= end) return {-1, 0};
    return {rows.indices[k], rows.weights[k]};
  }
};

// The data of a row and of an entry's column before the row offers a label.
template <typename Cost>
struct Sight {
  long long own;  // the distance of the row
  Number<Cost> dual;
  long long distance;
  unsigned long long way;
  int mate;
};

// The label that a lane offers to a column.
struct Label {
  int col;
  int mate;
  unsigned long long way;  // the column's `way` before
  long long distance;      // kNever: the label is no better than that of the column
};

// The offers of labels up to a bound.
template <typename Cost>
struct Offers {
  using Dual = Number<Cost>;
  const Rows<Cost>& rows;
  const Trees<Dual>& trees;
  long long bound;
  bool is_far;        // true if columns beyond the bound get labels too
  long long& beyond;  // the least distance above the bound that this thread has computed
  bool& reached;      // true if it has reached an unmatched column within the bound

  __device__ Look<Cost> look_at(int row, int col) const {
    return Look<Cost>::at(row, col, rows, trees.row_dual);
  }

  // Mark a column as not waiting. False: it was not waiting, so another warp has its row.
  __device__ bool is_taken(int col) const {
    return col < 0 || atomicExch(trees.waiting + col, 0) != 0;
  }

  // Load the data of a label.
  __device__ Sight<Cost> see(const Look<Cost>& from, const Entry<Cost>& entry) const {
    Sight<Cost> sight = {0, 0, kNever, 0, -1};
    if (from.col >= 0) sight.own = now(trees.columns[from.col].distance);
    if (entry.col < 0) return sight;
    const Column<Dual>& column = trees.columns[entry.col];
    sight.dual = column.dual;
    sight.distance = now(column.distance);
    sight.way = now(column.way);
    sight.mate = trees.col_to_row[entry.col];
    return sight;
  }

  __device__ Label label(const Look<Cost>& from, const Entry<Cost>& entry,
                         const Sight<Cost>& sight) const {
    Label made = {entry.col, sight.mate, sight.way, kNever};
    if (entry.col < 0 || entry.col == from.col) return made;
    const Dual slack = counted(entry.cost, 0) - sight.dual - from.dual;
    const Dual distance = as_number<Dual>(sight.own) + (slack > 0 ? slack : 0);  // by rounding
    if (ordered(distance) < sight.distance) made.distance = ordered(distance);
    return made;
  }

  // True if the column's row must be scanned when the column gets the label.
  __device__ bool leads_on(const Label& label) const {
    return label.distance <= bound && label.mate >= 0;
  }

  // Lower the column's distance. False: it is not greater, or the column may not get a label.
  __device__ bool improve(const Label& label) const {
    if (label.distance == kNever) return false;
    if (label.distance > bound) beyond = min(beyond, label.distance);
    if (label.distance > bound && !is_far) return false;
    return atomicMin(&trees.columns[label.col].distance, label.distance) > label.distance;
  }

  // Mark the column as waiting. False: it waits already.
  __device__ bool has_to_wait(const Label& label) const {
    return atomicExch(trees.waiting + label.col, 1) == 0;
  }

  // Write the row by which a column is reached, if its `way` is unchanged. Returns the old `way`.
  __device__ unsigned long long name(int row, const Label& label, unsigned long long way) const {
    const unsigned long long next = ((way >> 32) + 1) << 32 | static_cast<unsigned>(row);
    return atomicCAS(&trees.columns[label.col].way, way, next);
  }

  // Write the row of a label until that succeeds or a better label exists. `before` is the result
  // of the first try, name().
  __device__ void complete(int row, const Label& label, unsigned long long before) const {
    Column<Dual>& column = trees.columns[label.col];
    unsigned long long way = label.way;
    while (before != way && now(column.distance) == label.distance) {
      way = before;
      before = name(row, label, way);
    }
    reached |= label.mate == -1 && label.distance <= bound;
  }
};
