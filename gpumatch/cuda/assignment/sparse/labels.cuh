// Labels of columns in alternating trees, and how rows offer them.
//
// The label of a column holds its distance by way of a row. It is taken in two atomic operations. The
// distance only falls. The row by which the column is reached follows: it is the one of the last
// label, because a row is not written over one that came since it was decided.
//
// A column whose row has to follow waits, in the next frontier or in the queue, once at most. Whoever
// takes it says that it does not wait any more, and only then reads its distance. A thread that
// lowers the distance later either sees that it does not wait, and lets it wait again, or is in time
// for the one who takes it.
//
// Encodings
//   columns[j]    the dual of column j, and its label: the distance, kNever if it has none; the row
//                 by which it is reached (-1: a spare one), with a number of that entry that grows;
//                 and what is above it in its tree: a column, or the root, which all have in the end.
//                 Distances are kept as 64-bit integers in the same order, because none is negative.
//   col_to_row[j] the row of column j, -1 if it is free, kHeld if a spare row holds it
//   item          a row in a frontier or the queue: the row, and above it 2 + its column, or 1 if it
//                 is a root
//   frontier[t & 1] in turn t; a turn is a collection of rows, or a level
//   sizes[t % 3]  how many rows there are in it
//   queue         the i-th item that is put there has place i % nplaces; kNone: none
//   waiting[j]    1: column j waits in the frontier or the queue; or its row is to be collected,
//                 where a growth has stopped before it could be looked through
//   roots[r & 1]  the free rows in round r, as many as nroots[r & 1]; none if the rows are spare
//   wanted[r & 1] paths that are wanted from round r on
//   nearest[i]    of a root: the least distance of a free column in its tree, kNever: has none
//   leaf[i]       the free column that it gets, or has got, -1: none
//   trace         of each round: looks, and paths found
// Of growth g, at g % 3:
//   taken         items taken from the last frontier, and then from the queue
//   moved         items that were put into the queue, and below that those that are done with
//   over          whether all are to stop, because of the looks or because many rows wait
//   busiest       rows that the busiest warp has looked through
//   beyond        the least distance above the bound that was seen
//   reached       whether a free column was seen within the bound
// A look is one at a row: those of the busiest warp are counted.
#pragma once

#include "assignment/sparse/rows.cuh"

constexpr int kHeld = -2;
constexpr unsigned long long kSpareWay = 0xffffffffull;

using Item = unsigned long long;

enum Part { kCollecting, kGrowing, kBetween, kParts };

// What is above a column in its tree: a column, or the root, which is a row, or a column if rows are
// spare.
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
  unsigned long long way;    // the row, and above it its number
  unsigned long long above;
};

struct State {
  int stage;
  int round;
  int growth;
  int turn;
  int looks;
  int before;  // looks before this round
  int has_spares;  // whether rows that are spare grow the trees
  int nroots[2];
  int wanted[2];
  int satisfied;   // trees that have reached a free column
  int sizes[3];
  int taken[3];
  int over[3];
  int busiest[3];
  int reached[3];
  unsigned long long moved[3];
  long long beyond[3];
  long long bound;
  long long seen_beyond;  // by a growth that has not ended
  long long below;  // the bound of the step before; negative: there was none
  long long step;   // by which it is raised at most
  long long spare_dual;  // a number of the duals
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

  // The root of the tree that a column is in, once roots are found.
  __device__ int root_of(int col) const { return vertex_of(columns[col].above); }

  // The row by which a column is reached, -1: a spare one.
  __device__ int row_to(int col) const { return static_cast<int>(columns[col].way); }

  // The column of that row, -1: it is a root or spare.
  __device__ int col_before(int col) const {
    const int row = row_to(col);
    return row >= 0 ? row_to_col[row] : -1;
  }
};

// -- distances ------------------------------------------------------------------------------------

// Numbers as integers, which are in the same order if they are not negative, and back.
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

// -- what rows offer ------------------------------------------------------------------------------

__device__ inline Item item_of(int row, int col) {
  return static_cast<Item>(col + 2) << 32 | static_cast<unsigned>(row);
}
__device__ inline int row_of(Item item) { return static_cast<int>(item); }
__device__ inline int col_of(Item item) { return static_cast<int>(item >> 32) - 2; }

// A row that is looked through.
template <typename Cost>
struct Look {
  int row;
  int col;  // -1: it is a root
  long long begin;
  long long end;
  Number<Cost> dual;

  __device__ static Look at(int row, int col, const Rows<Cost>& rows,
                            const Number<Cost>* row_dual) {
    return {row, col, rows.indptr[row], rows.indptr[row + 1], row_dual[row]};
  }

  // That of another lane.
  __device__ Look of_lane(int lane) const {
    return {__shfl_sync(kWholeWarp, row, lane), __shfl_sync(kWholeWarp, col, lane),
            __shfl_sync(kWholeWarp, begin, lane), __shfl_sync(kWholeWarp, end, lane),
            __shfl_sync(kWholeWarp, dual, lane)};
  }
};

// An entry of a row.
template <typename Cost>
struct Entry {
  int col;  // -1: there are no more
  Cost cost;

  __device__ static Entry at(const Rows<Cost>& rows, long long k, long long end) {
    if (k >= end) return {-1, 0};
    return {rows.indices[k], rows.weights[k]};
  }
};

// What a row and the column of an entry have before the row offers a label.
template <typename Cost>
struct Sight {
  long long own;  // the distance of the row
  Number<Cost> dual;
  long long distance;
  unsigned long long way;
  int mate;
};

// What a lane offers to a column.
struct Label {
  int col;
  int mate;
  unsigned long long way;  // that the column had before
  long long distance;      // kNever: it is no better than the label that the column has
};

// How rows offer labels, with a bound.
template <typename Cost>
struct Offers {
  using Dual = Number<Cost>;
  const Rows<Cost>& rows;
  const Trees<Dual>& trees;
  long long bound;
  bool is_far;        // columns beyond the bound get labels, too
  long long& beyond;  // the least distance above the bound that this thread has seen
  bool& reached;      // whether it has seen a free column within the bound

  __device__ Look<Cost> look_at(int row, int col) const {
    return Look<Cost>::at(row, col, rows, trees.row_dual);
  }

  // Say that a column is not waiting any more. False: it was not, so others have its row.
  __device__ bool is_taken(int col) const {
    return col < 0 || atomicExch(trees.waiting + col, 0) != 0;
  }

  // Ask for all that a label is made of.
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

  // Whether the row of the column is to be looked through, if it gets the label.
  __device__ bool leads_on(const Label& label) const {
    return label.distance <= bound && label.mate >= 0;
  }

  // Give the column its new distance. False: it has no greater one, or may not get a label.
  __device__ bool improve(const Label& label) const {
    if (label.distance == kNever) return false;
    if (label.distance > bound) beyond = min(beyond, label.distance);
    if (label.distance > bound && !is_far) return false;
    return atomicMin(&trees.columns[label.col].distance, label.distance) > label.distance;
  }

  // Let the row of the column wait. False: it waits already.
  __device__ bool has_to_wait(const Label& label) const {
    return atomicExch(trees.waiting + label.col, 1) == 0;
  }

  // Write down the row by which a column is reached, if it was `way` before. Returns what it was.
  __device__ unsigned long long name(int row, const Label& label, unsigned long long way) const {
    const unsigned long long next = ((way >> 32) + 1) << 32 | static_cast<unsigned>(row);
    return atomicCAS(&trees.columns[label.col].way, way, next);
  }

  // The same, as long as no label is better, if it was `before`.
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
