// The exact end of an assignment of sparse costs: alternating trees grown from all free rows at
// once, in the order of distance.
//
// The distance of a column is the least sum of reduced costs on an alternating path from any free
// row. A round grows the trees, and ends with augmenting paths:
//
//   collect   rows in the trees go into the frontier whose distances are up to the bound, but not
//             those that have been there with a lower one, once labels beyond it are kept.
//   grow      rows offer labels to their columns. A label holds the distance by way of this row. The
//             row of a column with a new label follows, if its distance is up to the bound. Columns
//             beyond it get labels only if it is far, which means a step or more. This ends when no
//             label up to it is better.
//   survey    counts the trees that have reached a free column within the bound. If they are too few
//             of the paths that are wanted, the bound is raised, and rows are collected again. It
//             doubles until it is far, and then is raised by a step a time, so that few rows are
//             looked through often (Meyer, Sanders, Delta-stepping, Journal of Algorithms 49,
//             2003). So far away, one tree is enough.
//   accept    each such tree takes its nearest free column. The greatest distance of these is D.
//   update    A column at distance d < D gets the dual v - (D - d), and its row u + (D - d). Then
//             all paths to accepted columns are tight, no reduced cost is negative, and distances
//             are D less. Trees that have found a column are taken apart, the others are kept. So
//             the next round continues them, and need not grow them again.
//   augment   Each tree that has found a column flips its path. Trees share no vertices.
//
// This is Hungarian search from many rows, as in the alternating trees of Date and Nagi, but by
// distances in place of slacks: the label of a column is the distance at which it would become
// tight.
//
// If there are more columns than rows, those that stay free must not be cheaper than any other. So
// once all rows are matched, trees grow a second time: from spare rows, as many as columns are free.
// A spare row may take any column at no cost. So it is not stored: its label is on each column from
// the first, the dual of all of them is one number, and a column that it holds is where paths end
// that need not be followed. A root is then the column that a spare row takes.
//
// A growth has no levels. Paths are long, and few rows are at their ends at any time, so a barrier a
// level would take most of the time. Each warp takes a row and offers labels to its columns. It goes
// on with the row of one column that has taken its label, and puts the others into a queue, where
// idle warps wait for them. A label is taken in two atomic operations. The distance only falls. The
// row by which a column is reached follows: it is the one of the last label, because a row is not
// written over one that came since it was decided. The root may be that of another label. It is set
// right before it is used.
//
// A column is in the queue once at most, and says so (`waiting`). Whoever takes it says that it is
// not, and only then reads its distance. A warp that lowers the distance later either sees that it is
// not in the queue, and puts it there, or is in time for the one who takes it.
//
// Encodings
//   columns[j]    the dual of column j, and its label: the distance, kNever if it has none; the row
//                 by which it is reached (-1: a spare one), with a number of that entry that grows;
//                 the root of the tree. Distances are kept as 64-bit integers in the same order,
//                 because none is negative.
//   col_to_row[j] the row of column j, -1 if it is free, kHeld if a spare row holds it
//   item          a row in the frontier or the queue: the row, and above it 2 + its column, or 1 if
//                 it is a root
//   frontier      rows that a growth begins from
//   queue         the i-th item that is put there has place i % nplaces; 0: none
//   waiting[j]    1: column j is in the queue; or its row is to be collected, where a launch has
//                 ended before it could be looked through
//   roots[r & 1]  the free rows in round r, as many as nroots[r & 1]; none if the rows are spare
//   wanted[r & 1] paths that are wanted from round r on
//   nearest[i]    of a root: the least distance of a free column in its tree, kNever: has none
//   leaf[i]       the free column that it gets, or has got, -1: none
//   trace         of each round: looks, and paths found
// Of a growth, by turns of three:
//   sizes         rows in the frontier
//   taken         items taken from the frontier, and then from the queue
//   moved         items that were put into the queue, and below that those that are done with
//   over          whether the launch is to end
//   looks         rows that the busiest warp has looked through
//   beyond        the least distance above the bound that was seen
//   reached       whether a free column was seen within the bound
#include "assignment/sparse/rows.cuh"

constexpr int kBlock = 1024;
constexpr unsigned long long kNone = 0;  // in place of an item
constexpr unsigned long long kStop = 1;  // the same, where all are to stop
constexpr unsigned long long kSpareWay = 0xffffffffull;
constexpr int kPatience = 16;       // looks after which a warp asks whether the launch is to end
constexpr int kBatch = 2;           // entries that a lane looks at together
constexpr int kShare = 8;           // of paths wanted, one in so many makes a round at least
constexpr int kHeld = -2;
constexpr int kTraceLength = 4096;  // rounds recorded
constexpr int kTraceWidth = 2;

enum Stage { kCollect, kDone };
enum Part { kCollecting, kGrowing, kBetween, kParts };

template <typename Number>
struct __align__(32) Column {
  Number dual;
  long long distance;
  unsigned long long way;  // the row, and above it its number
  int root;
  int unused;
};

struct State {
  int stage;
  int round;
  int growth;
  int looks;
  int before;  // looks before this round
  int check;
  int has_spares;  // whether rows that are spare grow the trees
  int nroots[2];
  int wanted[2];
  int changed[3];  // roots of labels that were set right
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

// Adds the time that has passed to parts of the search.
struct Clock {
  State& state;
  long long since;

  __device__ void add_to(Part part) {
    if (thread_index() != 0) return;
    const long long time = nanoseconds();
    state.nanoseconds[part] += time - since;
    since = time;
  }
};

template <typename Number>
struct Trees {
  Number* row_dual;
  int* row_to_col;
  int* col_to_row;
  Column<Number>* columns;
  int* waiting;
  unsigned long long* frontier;
  unsigned long long* queue;
  int nplaces;
  int* roots[2];
  long long* nearest;
  int* leaf;
  State* state;
  int* trace;
  unsigned* barrier;

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

// Of the paths wanted, one in so many makes a round: where rows are long, trees are not grown far for
// those that are hard to find, because a round looks through each row several times.
__device__ inline int share_of_round(int lanes) { return min(max(lanes / 2, 2), kShare); }

// The bound, raised at least to the least distance beyond. It doubles, as long as that is no more
// than a step.
template <typename Number>
__device__ long long raised(long long bound, long long step, long long beyond) {
  const Number last = as_number<Number>(bound);
  return max(beyond, ordered(last + min(last, as_number<Number>(step))));
}

// -- before the first round -----------------------------------------------------------------------

// Trees without a label. The free rows are the roots, and counted; or rows are spare, with this dual,
// and each column has a label of theirs.
template <typename Cost>
__global__ void plant(Trees<Number<Cost>> t, const Number<Cost>* col_dual, int nrows, int ncols,
                      int has_spares, Number<Cost> spare) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const Number<Cost> dual = col_dual[j], slack = -dual - spare;
    const long long of_spare = slack > 0 ? ordered(slack) : 0;
    t.columns[j] = {dual, has_spares ? of_spare : kNever, kSpareWay, has_spares ? j : -1, 0};
    t.waiting[j] = 0;
    t.nearest[j] = kNever;
    t.leaf[j] = -1;
  }
  for (int k = thread_index(); k < t.nplaces; k += thread_count()) t.queue[k] = 0;
  if (has_spares) return;
  const Queue<int> roots = {t.roots[0], t.state->nroots};
  for (int i = thread_index(); i < nrows; i += thread_count()) {
    if (t.row_to_col[i] < 0) push(roots, i);
  }
}

// -- growing --------------------------------------------------------------------------------------

__device__ inline unsigned long long item_of(int row, int col) {
  return static_cast<unsigned long long>(col + 2) << 32 | static_cast<unsigned>(row);
}
__device__ inline int row_of(unsigned long long item) { return static_cast<int>(item); }
__device__ inline int col_of(unsigned long long item) { return static_cast<int>(item >> 32) - 2; }

// A row that a warp looks through.
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
};

// What a lane offers to a column.
template <typename Cost>
struct Label {
  int col;
  int mate;
  int root;
  unsigned long long way;  // that the column had before
  long long distance;
};

// All warps grow the trees, each at its own pace, until no label up to the bound is better.
//
// Memory answers late. So what does not depend on each other is asked for at once: a row's entries
// before its own label, the labels of several entries, and who knows of a column together with the
// row by which it is reached.
template <typename Cost>
struct Growth {
  using Dual = Number<Cost>;
  const Rows<Cost>& rows;
  const Trees<Dual>& trees;
  int turn;
  int size;  // of the frontier
  int most;  // rows that a warp may look through
  long long bound;
  bool is_far;        // columns beyond the bound get labels, too
  long long& beyond;  // the least distance above the bound that this thread has seen
  bool& reached;      // whether it has seen a free column within the bound

  __device__ void run() const {
    int looks = 0;
    for (int ticket = draw();; ticket = finish()) {
      const unsigned long long item = take(ticket);
      if (item == kStop) break;
      Look<Cost> look = Look<Cost>::at(row_of(item), col_of(item), rows, trees.row_dual);
      bool goes_on = is_taken(look.col);
      while (goes_on) {
        if (look.col >= 0 && has_to_end(looks)) {
          put_off(look.col);
          break;
        }
        goes_on = offer_labels(look);
        if (++looks == most && lane_index() == 0) set_now(trees.state->over[turn], 1);
      }
    }
    if (lane_index() == 0) atomicMax(trees.state->busiest + turn, looks);
  }

  // Which item the warp gets: the first lane knows.
  __device__ int draw() const {
    return lane_index() == 0 ? atomicAdd(trees.state->taken + turn, 1) : 0;
  }

  // That item, as soon as it is there.
  __device__ unsigned long long take(int ticket) const {
    unsigned long long item = kNone;
    if (lane_index() == 0) {
      if (ticket < size) {
        item = trees.frontier[ticket];
      } else {
        unsigned long long& place = place_of(ticket - size);
        while ((item = now(place)) == kNone) __nanosleep(20);
        set_now(place, kNone);
      }
    }
    return __shfl_sync(kWholeWarp, item, 0);
  }

  __device__ unsigned long long& place_of(unsigned number) const {
    return trees.queue[number % static_cast<unsigned>(trees.nplaces)];
  }

  // Say that a column is not waiting any more. False: it was not, so another warp has its row.
  __device__ bool is_taken(int col) const {
    int was_waiting = 1;
    if (lane_index() == 0 && col >= 0) was_waiting = atomicExch(trees.waiting + col, 0);
    return __shfl_sync(kWholeWarp, was_waiting, 0) != 0;
  }

  // Whether the launch is to end. It is looked up now and then.
  __device__ bool has_to_end(int looks) const {
    return looks % kPatience == 0 && __shfl_sync(kWholeWarp, now(trees.state->over[turn]), 0) != 0;
  }

  // Let a row be collected by the next launch.
  __device__ void put_off(int col) const {
    if (lane_index() == 0) set_now(trees.waiting[col], 1);
  }

  // Offer labels to all columns of a row. True: it goes on with the row of one of them.
  __device__ bool offer_labels(Look<Cost>& look) const {
    const Look<Cost> from = look;
    bool goes_on = false;
    for (long long base = from.begin; base < from.end; base += kBatch * kWarp) {
      const long long first = base + lane_index();
      Label<Cost> labels[kBatch];
      Dual slacks[kBatch];
      long long distances[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        labels[i].col = from.col;
        if (first + i * kWarp >= from.end) continue;
        labels[i].col = rows.indices[first + i * kWarp];
        slacks[i] = counted(rows.weights[first + i * kWarp], 0) - from.dual;
      }
      const long long own = from.col >= 0 ? now(trees.columns[from.col].distance) : 0;
      const int root = from.col >= 0 ? now(trees.columns[from.col].root) : from.row;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (labels[i].col == from.col) continue;
        const Column<Dual>& column = trees.columns[labels[i].col];
        distances[i] = now(column.distance);
        labels[i].way = now(column.way);
        labels[i].mate = trees.col_to_row[labels[i].col];
        slacks[i] -= column.dual;
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (base + i * kWarp >= from.end) continue;
        Label<Cost>& label = labels[i];
        label.root = root;
        bool is_better = false;
        if (label.col != from.col) {
          const Dual slack = slacks[i] > 0 ? slacks[i] : 0;  // by rounding
          label.distance = ordered(as_number<Dual>(own) + slack);
          is_better = label.distance < distances[i] && improve(label);
        }
        goes_on = pass_on(from.row, label, is_better, look, goes_on);
      }
    }
    return goes_on;
  }

  // Give a column its new distance. False: it has no greater one, or may not get a label.
  __device__ bool improve(const Label<Cost>& label) const {
    if (label.distance > bound) beyond = min(beyond, label.distance);
    if (label.distance > bound && !is_far) return false;
    return atomicMin(&trees.columns[label.col].distance, label.distance) > label.distance;
  }

  // Complete the labels of the lanes that have a better one. It is the turn of the rows of their
  // columns: the first decides where the warp goes on, if it does not know yet. The others are put
  // into the queue, unless they are waiting already.
  __device__ bool pass_on(int row, const Label<Cost>& label, bool is_better, Look<Cost>& look,
                          bool goes_on) const {
    if (!__any_sync(kWholeWarp, is_better)) return goes_on;
    bool is_next = is_better && label.distance <= bound && label.mate >= 0;
    const unsigned next = __ballot_sync(kWholeWarp, is_next);
    if (next != 0 && !goes_on) {
      const int chosen = __ffs(next) - 1;
      look = Look<Cost>::at(__shfl_sync(kWholeWarp, label.mate, chosen),
                            __shfl_sync(kWholeWarp, label.col, chosen), rows, trees.row_dual);
      goes_on = true;
      is_next = is_next && lane_index() != chosen;
    }
    unsigned long long before = 0;
    if (is_better) before = name(row, label, label.way);
    const bool is_put = is_next && atomicExch(trees.waiting + label.col, 1) == 0;
    if (is_better) {
      complete(row, label, before);
      reached |= label.mate == -1 && label.distance <= bound;
    }
    put(is_put, item_of(label.mate, label.col));
    return goes_on;
  }

  // Write down the row by which a column is reached, if it was `way` before. Returns what it was.
  __device__ unsigned long long name(int row, const Label<Cost>& label,
                                     unsigned long long way) const {
    const unsigned long long next = ((way >> 32) + 1) << 32 | static_cast<unsigned>(row);
    return atomicCAS(&trees.columns[label.col].way, way, next);
  }

  // The same, as long as no label is better, if it was `before`; and the root.
  __device__ void complete(int row, const Label<Cost>& label, unsigned long long before) const {
    Column<Dual>& column = trees.columns[label.col];
    unsigned long long way = label.way;
    while (before != way && now(column.distance) == label.distance) {
      way = before;
      before = name(row, label, way);
    }
    set_now(column.root, label.root);
  }

  // Put an item of each lane that has one into the queue.
  __device__ void put(bool has_item, unsigned long long item) const {
    const unsigned lanes = __ballot_sync(kWholeWarp, has_item);
    if (lanes == 0) return;
    unsigned long long moved = 0;
    if (lane_index() == 0) {
      const unsigned long long many = __popc(lanes);
      moved = atomicAdd(trees.state->moved + turn, many << 32);
    }
    const unsigned number = __shfl_sync(kWholeWarp, moved, 0) >> 32;
    if (has_item) put_at(number + __popc(lanes & ((1u << lane_index()) - 1)), item);
  }

  // The place is empty, unless the warp that has the item there is slow.
  __device__ void put_at(unsigned number, unsigned long long item) const {
    while (atomicCAS(&place_of(number), kNone, item) != kNone) {
    }
  }

  // Count an item that is done with, and draw the next. After the last, all places are empty, and all
  // warps are told to stop.
  __device__ int finish() const {
    unsigned long long moved = 0;
    if (lane_index() == 0) {
      __threadfence();  // the place that it was taken from is empty
      moved = atomicAdd(trees.state->moved + turn, 1ull);
    }
    const int ticket = draw();
    moved = __shfl_sync(kWholeWarp, moved, 0);
    const unsigned number = moved >> 32, finished = static_cast<unsigned>(moved) + 1;
    if (finished == number + size) {
      const unsigned warps = thread_count() / kWarp;
      for (unsigned k = lane_index(); k < warps; k += kWarp) set_now(place_of(number + k), kStop);
    }
    return ticket;
  }
};

// Put the rows of the trees into the frontier whose distances are above `below`, up to the bound, or
// that are waiting.
template <typename Number>
__device__ void collect(const Trees<Number>& t, Queue<unsigned long long> out, int ncols,
                        const int* roots, int nroots, long long below, long long bound,
                        long long& beyond, bool& reached) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const long long distance = t.columns[j].distance;
    if (distance == kNever) continue;
    const int mate = t.col_to_row[j];
    if (mate == kHeld) continue;
    if (distance > bound) {
      beyond = min(beyond, distance);
    } else if (mate == -1) {
      reached = true;
    } else if (distance > below || t.waiting[j] != 0) {
      t.waiting[j] = 1;
      push(out, item_of(mate, j));
    }
  }
  if (below >= 0) return;
  for (int k = thread_index(); k < nroots; k += thread_count()) push(out, item_of(roots[k], -1));
}

// -- between the growths --------------------------------------------------------------------------

// Give each label the root of the column before it, or that row if it is a root. True: some had
// another. It may be that of a label that came at the same time. And sums that are rounded may leave
// a distance as it is although the path before it has become shorter, and has another root.
template <typename Number>
__device__ bool set_roots_right(const Trees<Number>& t, int ncols) {
  bool has_changed = false;
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.columns[j].distance == kNever) continue;
    const int row = t.row_to(j), before = t.col_before(j);
    if (row < 0) continue;
    const int root = before >= 0 ? now(t.columns[before].root) : row;
    if (root == t.columns[j].root) continue;
    t.columns[j].root = root;
    has_changed = true;
  }
  return has_changed;
}

// Count the trees that have reached a free column for the first time.
template <typename Number>
__device__ void survey(const Trees<Number>& t, int ncols, long long bound) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.col_to_row[j] != -1) continue;
    const long long distance = t.columns[j].distance;
    if (distance > bound) continue;
    const long long before = atomicMin(t.nearest + t.columns[j].root, distance);
    if (before == kNever) atomicAdd(&t.state->satisfied, 1);
  }
}

// Give each tree its nearest free column.
template <typename Number>
__device__ void accept_leaves(const Trees<Number>& t, int ncols, long long bound) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.col_to_row[j] != -1) continue;
    const long long distance = t.columns[j].distance;
    if (distance > bound) continue;
    const int root = t.columns[j].root;
    if (distance != t.nearest[root]) continue;
    if (atomicCAS(t.leaf + root, -1, j) == -1) atomicMax(&t.state->farthest, distance);
  }
}

// Change the duals by distances up to `farthest`, and take the trees apart that have a leaf. Their
// columns get the distance of spare rows, whose dual was `spare`, if these grow the trees.
template <typename Number>
__device__ void update_duals(const Trees<Number>& t, int ncols, const int* roots, int nroots,
                             Number farthest, bool has_spares, Number spare) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    Column<Number> column = t.columns[j];
    if (column.distance == kNever) continue;
    const Number distance = as_number<Number>(column.distance);
    column.distance = 0;
    if (distance < farthest) {
      column.dual -= farthest - distance;
      const int mate = t.col_to_row[j];
      if (mate >= 0) t.row_dual[mate] += farthest - distance;
    } else {
      column.distance = ordered(distance - farthest);
    }
    if (t.leaf[column.root] >= 0) {
      column.distance = kNever;
      if (has_spares) {
        const Number slack = -column.dual - (spare + farthest);
        column.distance = slack > 0 ? ordered(slack) : 0;
      }
    }
    t.columns[j] = column;
  }
  for (int k = thread_index(); k < nroots; k += thread_count()) t.row_dual[roots[k]] += farthest;
}

// Flip the path of a tree that ends at a column.
template <typename Number>
__device__ void flip(const Trees<Number>& t, int leaf) {
  for (int j = leaf; j >= 0;) {
    const int row = t.row_to(j), before = t.col_before(j);
    if (row >= 0) t.row_to_col[row] = j;
    t.col_to_row[j] = row >= 0 ? row : kHeld;
    j = before;
  }
}

// Flip the path of each tree that has a leaf, and keep the other roots.
template <typename Number>
__device__ void augment(const Trees<Number>& t, const int* roots, int nroots, Queue<int> left) {
  for (int k = thread_index(); k < nroots; k += thread_count()) {
    const int leaf = t.leaf[roots[k]];
    if (leaf < 0) push(left, roots[k]);
    else flip(t, leaf);
  }
}

// The same for spare rows: their trees are known by the columns that they take.
template <typename Number>
__device__ void augment_spares(const Trees<Number>& t, int ncols, int* wanted) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.leaf[j] < 0 || t.col_to_row[j] == kHeld) continue;
    flip(t, t.leaf[j]);
    atomicAdd(wanted, -1);
  }
}

// Let the columns of trees that were taken apart be reached by spare rows.
template <typename Number>
__device__ void plant_again(const Trees<Number>& t, int ncols) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    Column<Number>& column = t.columns[j];
    if (t.leaf[column.root] < 0) continue;
    column.way = kSpareWay;
    column.root = j;
  }
}

// -- the search -----------------------------------------------------------------------------------

// Clear what is counted of a growth.
__device__ inline void clear(State& state, int turn) {
  state.sizes[turn] = state.taken[turn] = state.over[turn] = state.busiest[turn] = 0;
  state.moved[turn] = 0;
  state.beyond[turn] = kNever;
  state.reached[turn] = 0;
}

// Rounds until all rows are matched, or no free column can be reached, or some warp has looked
// through `most` rows.
template <typename Cost>
__global__ void __launch_bounds__(kBlock, 1)
    grow_trees(Rows<Cost> rows, Trees<Number<Cost>> trees, long long least_bound, int most) {
  using Number = typename NumberOf<Cost>::type;
  State& state = *trees.state;
  const bool is_first = thread_index() == 0;
  // The same in all blocks:
  int stage = state.stage, round = state.round, growth = state.growth, check = state.check;
  int looks = state.looks, before = state.before;
  int nroots = state.nroots[round & 1], wanted = state.wanted[round & 1];
  long long bound = state.bound, below = state.below;
  const long long longest = state.step;
  const int share = share_of_round(rows.lanes);
  Number spare = as_number<Number>(state.spare_dual);
  const bool has_spares = state.has_spares != 0;
  const int last = looks + most;
  long long beyond = state.seen_beyond;
  bool reached = false;
  grid_barrier(trees.barrier);  // all have read the state
  Clock clock = {state, nanoseconds()};
  while (stage != kDone && looks < last) {
    const bool is_far = bound >= longest;
    const int* roots = trees.roots[round & 1];
    const int turn = growth++ % 3;
    if (is_first) clear(state, growth % 3);
    const Queue<unsigned long long> frontier = {trees.frontier, state.sizes + turn};
    collect(trees, frontier, rows.ncols, roots, nroots, below, bound, beyond, reached);
    grid_barrier(trees.barrier);
    const int size = now(state.sizes[turn]);
    clock.add_to(kCollecting);
    if (size != 0) {
      Growth<Cost>{rows, trees, turn, size, last - looks, bound, is_far, beyond, reached}.run();
    }
    beyond = least_of_group(beyond, kWarp);
    if (lane_index() == 0 && beyond != kNever) atomicMin(state.beyond + turn, beyond);
    if (reached) state.reached[turn] = 1;
    grid_barrier(trees.barrier);
    clock.add_to(kGrowing);
    const long long next = now(state.beyond[turn]);
    const bool has_reached = now(state.reached[turn]) != 0, is_over = now(state.over[turn]) != 0;
    looks += max(now(state.busiest[turn]), 1);
    beyond = is_over ? next : kNever;
    reached = false;
    if (is_over) {
      below = bound;
      continue;
    }
    bool has_changed = has_reached;
    while (has_changed) {
      if (is_first) state.changed[(check + 1) % 3] = 0;
      if (set_roots_right(trees, rows.ncols)) state.changed[check % 3] = 1;
      grid_barrier(trees.barrier);
      has_changed = now(state.changed[check++ % 3]) != 0;
    }
    if (has_reached) {
      survey(trees, rows.ncols, bound);
      grid_barrier(trees.barrier);
    }
    const int satisfied = now(state.satisfied);
    if (next == kNever && satisfied == 0) {
      stage = kDone;
      break;
    }
    const int enough = is_far ? 1 : (wanted + share - 1) / share;
    if (next != kNever && satisfied < enough) {
      below = is_far ? bound : -1;
      bound = raised<Number>(bound, longest, next);
      clock.add_to(kBetween);
      continue;
    }

    accept_leaves(trees, rows.ncols, bound);
    const int following = (round + 1) & 1;
    if (is_first) {
      state.nroots[following] = 0;
      state.wanted[following] = wanted;
    }
    grid_barrier(trees.barrier);
    const long long farthest = now(state.farthest);
    const Number risen = as_number<Number>(farthest);
    update_duals(trees, rows.ncols, roots, nroots, risen, has_spares, spare);
    spare += risen;
    grid_barrier(trees.barrier);
    if (has_spares) augment_spares(trees, rows.ncols, state.wanted + following);
    else augment(trees, roots, nroots, {trees.roots[following], state.nroots + following});
    grid_barrier(trees.barrier);
    if (has_spares) plant_again(trees, rows.ncols);
    nroots = now(state.nroots[following]);
    const int left = has_spares ? now(state.wanted[following]) : nroots;
    if (is_first) {
      state.wanted[following] = left;
      state.satisfied = 0;
      state.farthest = 0;
      if (round < kTraceLength) {
        trees.trace[kTraceWidth * round] = looks - before;
        trees.trace[kTraceWidth * round + 1] = wanted - left;
      }
    }
    ++round;
    wanted = left;
    before = looks;
    bound = max(min(farthest, longest), least_bound);
    below = -1;
    if (wanted == 0) stage = kDone;
    clock.add_to(kBetween);
  }
  if (!is_first) return;
  state.stage = stage;
  state.round = round;
  state.growth = growth;
  state.check = check;
  state.looks = looks;
  state.before = before;
  state.bound = bound;
  state.below = below;
  state.seen_beyond = beyond;
  state.spare_dual = ordered(spare);
}
