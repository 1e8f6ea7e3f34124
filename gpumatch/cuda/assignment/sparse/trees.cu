// The exact end of an assignment of sparse costs: alternating trees grown from all free rows at
// once, in the order of distance.
//
// The distance of a column is the least sum of reduced costs on an alternating path from any free
// row. A round grows the trees, and ends with augmenting paths:
//
//   collect   rows in the trees go into the frontier whose distances are up to the bound, but not
//             those that have been there with a lower one, once labels beyond it are kept.
//   grow      level after level, each row of the frontier offers labels to its columns. A label
//             holds the distance by way of this row. The row of a column with a new label is in the
//             next frontier, if its distance is up to the bound. Columns beyond it get labels only
//             if it is far, which means a step or more. This ends when no label up to it is better.
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
// In one level at most one row may offer a label to a column, so nothing of a label is ever written
// by two. Another row with a better one for the column comes again in the next level. Offers travel
// in the queue, and the group that takes an offer from it writes the label. A row may see an older
// distance of a column, and offer a label that is no better. Then the column keeps its own.
//
// While the frontier is small, one block grows the trees alone.
//
// Encodings
//   columns[j]    the dual of column j, and its distance; kNever: it has no label. Distances are
//                 kept as 64-bit integers in the same order, because none is negative.
//   col_to_row[j] the row of column j, -1 if it is free, kHeld if a spare row holds it
//   ways[j]       the rest of the label: the row by which the column is reached (-1: a spare one),
//                 the column of that row (-1: it is a root), and the root of the tree
//   claimed[j]    the last level in which column j was offered a label, or its row sent again
//   queue[l & 1]  the frontier of level l
//   sizes[t % 3]  lengths of the queues that all blocks fill, as in frontier.cuh, by turns: a turn
//                 is a collection, or a level that all blocks grow
//   roots[r & 1]  the free rows in round r, as many as nroots[r & 1]; none if the rows are spare
//   wanted[r & 1] paths that are wanted from round r on
//   nearest[i]    of a root: the least distance of a free column in its tree, kNever: has none
//   leaf[i]       the free column that it gets, or has got, -1: none
//   beyond[c & 1] the least distance above the bound that was seen since collection c
//   reached[c & 1] whether a free column was seen within the bound since then
//   trace         of each round: levels, and paths found
#include "assignment/sparse/rows.cuh"
#include "frontier.cuh"

constexpr int kBlock = 512;
constexpr int kAlone = 512;         // a frontier with up to so many lanes is for one block
constexpr int kAloneMost = 1024;    // until it has more than this
constexpr int kBatch = 4;           // entries that a lane looks at together
constexpr int kShare = 8;           // of paths wanted, one in so many makes a round at least
constexpr int kHeld = -2;
constexpr int kLongRow = 64;        // entries of each lane from which on a warp takes the row
constexpr int kHugeRow = 1024;      // entries from which on a block takes it
constexpr int kHugeRows = 32;       // that a block keeps; warps take what is more
constexpr int kTraceLength = 4096;  // rounds recorded
constexpr int kTraceWidth = 2;

enum Stage { kCollect, kGrow, kDone };
enum Part { kCollecting, kByOneBlock, kByAll, kBetween, kParts };

struct __align__(16) Way {
  int row;
  int col;
  int root;
  int unused;
};

template <typename Number>
struct __align__(16) Column {
  Number dual;
  long long distance;
};

// What travels in the queue: a row for the frontier, with the label that its column gets.
struct __align__(16) Offer {
  long long distance;
  int to_row;  // negative if the column is free or held
  int to_col;  // -1 if the row is a root
  Way way;     // its row is -1 if the column has the label already
};

struct State {
  int stage;
  int level;
  int turn;
  int size;  // of the frontier
  int round;
  int collection;
  int check;
  int levels;    // before this round
  int alone_level;
  int alone_size;
  int has_spares;  // whether rows that are spare grow the trees
  int sizes[3];
  int nroots[2];
  int wanted[2];
  int changed[3];  // roots of labels that were set right
  int satisfied;  // trees that have reached a free column
  int reached[2];
  long long bound;
  long long below;  // the bound of the step before; negative: there was none
  long long step;   // by which it is raised at most
  long long spare_dual;  // a number of the duals
  long long farthest;
  long long beyond[2];
  long long nanoseconds[kParts];
  long long steps[kParts];
};

// Adds the time that has passed to parts of the search.
struct Clock {
  State& state;
  long long since;

  __device__ void add_to(Part part, long long steps) {
    if (thread_index() != 0) return;
    const long long time = nanoseconds();
    state.nanoseconds[part] += time - since;
    state.steps[part] += steps;
    since = time;
  }
};

template <typename Number>
struct Trees {
  Number* row_dual;
  int* row_to_col;
  int* col_to_row;
  Column<Number>* columns;
  Way* ways;
  int* claimed;
  Offer* queue[2];
  int* roots[2];
  long long* nearest;
  int* leaf;
  State* state;
  int* trace;
  unsigned* barrier;
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
    t.columns[j] = {dual, has_spares ? of_spare : kNever};
    t.ways[j] = {-1, -1, has_spares ? j : -1, 0};
    t.claimed[j] = 0;
    t.nearest[j] = kNever;
    t.leaf[j] = -1;
  }
  if (has_spares) return;
  const Queue<int> roots = {t.roots[0], t.state->nroots};
  for (int i = thread_index(); i < nrows; i += thread_count()) {
    if (t.row_to_col[i] < 0) push(roots, i);
  }
}

// -- one level ------------------------------------------------------------------------------------

// A row of the frontier that a block has put off until all its threads can take it.
template <typename Number>
struct HugeRow {
  Offer it;
  Number row_dual;
  long long begin;
  long long end;
};

// What a row of the frontier offers to its columns, and what the level has in common.
template <typename Cost>
struct Level {
  const Rows<Cost>& rows;
  const Trees<Number<Cost>>& trees;
  int level;
  long long bound;
  bool is_far;  // columns beyond the bound get labels, too
  Queue<Offer> out;
  long long& beyond;  // the least distance above the bound that this thread has seen
  bool& reached;      // whether it has seen a free column within the bound

  // Offer labels to the columns of the entries begin, begin + step, ... Several are looked at before
  // the first is offered a label, so that their loads wait together. False: another row has been
  // quicker with one of them in this level.
  __device__ bool offer_all(const Offer& from, Number<Cost> row_dual, long long begin,
                            long long end, int step) const {
    bool has_all = true;
    for (long long first = begin; first < end; first += kBatch * step) {
      int cols[kBatch], mates[kBatch];
      Number<Cost> costs[kBatch];
      Column<Number<Cost>> columns[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i * step >= end) continue;
        cols[i] = rows.indices[first + i * step];
        costs[i] = counted(rows.weights[first + i * step], 0);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i * step >= end) continue;
        columns[i] = trees.columns[cols[i]];
        mates[i] = trees.col_to_row[cols[i]];
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i * step >= end) continue;
        Number<Cost> slack = costs[i] - columns[i].dual - row_dual;
        if (slack < 0) slack = 0;  // by rounding
        const long long distance = ordered(as_number<Number<Cost>>(from.distance) + slack);
        if (distance >= columns[i].distance || cols[i] == from.to_col) continue;
        has_all &= offer(from, distance, cols[i], mates[i]);
      }
    }
    return has_all;
  }

  // Offer a label to a column. False: another row has been quicker in this level.
  __device__ bool offer(const Offer& from, long long distance, int col, int mate) const {
    if (distance > bound && !is_far) {
      beyond = min(beyond, distance);
      return true;
    }
    if (atomicExch(trees.claimed + col, level) == level) return false;
    push(out, Offer{distance, mate, col, {from.to_row, from.to_col, from.way.root, 0}});
    return true;
  }

  // Put the label of an offer onto its column, or take the label that the column has, if that is no
  // worse. The row goes on with the old label, too: it may have wanted to come again, and found its
  // column claimed by this offer.
  __device__ void accept(Offer& it) const {
    if (it.to_col < 0) return;
    long long& distance = trees.columns[it.to_col].distance;
    const long long before = distance;
    if (it.distance >= before) {
      it.distance = before;
      it.way.root = trees.ways[it.to_col].root;
    } else {
      distance = it.distance;
      trees.ways[it.to_col] = it.way;
    }
    if (it.distance > bound) beyond = min(beyond, it.distance);
    else reached |= it.to_row == -1;
  }

  // Let a row come again in the next level.
  __device__ void repeat(const Offer& it) const {
    if (it.to_col >= 0 && atomicExch(trees.claimed + it.to_col, level) == level) return;
    push(out, Offer{it.distance, it.to_row, it.to_col, {-1, -1, it.way.root, 0}});
  }

  // Keep a row for the block. False: there is no room.
  __device__ static bool keep(HugeRow<Number<Cost>>* kept, int* count,
                              const HugeRow<Number<Cost>>& row) {
    const int place = atomicAdd(count, 1);
    if (place < kHugeRows) kept[place] = row;
    return place < kHugeRows;
  }

  // Offers of the rows that the block has kept.
  __device__ void relax_kept(const HugeRow<Number<Cost>>* kept, int count) const {
    for (int k = 0; k < count; ++k) {
      const HugeRow<Number<Cost>> row = kept[k];
      const bool lost =
          !offer_all(row.it, row.row_dual, row.begin + threadIdx.x, row.end, blockDim.x);
      if (__syncthreads_count(lost) > 0 && threadIdx.x == 0) repeat(row.it);
    }
  }

  // All offers of a frontier, by the threads of a team.
  __device__ void relax(Team team, const Offer* frontier, int size) const {
    const int lanes = lanes_for(size, team.count, min(2 * rows.lanes, static_cast<int>(kWarp)));
    const int slot = lane_index() / lanes, member = lane_index() % lanes;
    const int leader = lane_index() - member;
    const int first = (team.index - lane_index()) / lanes, stride = team.count / lanes;
    __shared__ HugeRow<Number<Cost>> kept[kHugeRows];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (int base = first; base < size; base += stride) {
      const int at = base + slot;
      Offer it = {kNever, -1, -1, {-1, -1, -1, 0}};
      if (at < size) it = frontier[at];
      long long begin = 0, end = 0;
      Number<Cost> row_dual = 0;
      if (it.to_row >= 0) {
        begin = rows.indptr[it.to_row];
        end = rows.indptr[it.to_row + 1];
        row_dual = trees.row_dual[it.to_row];
      }
      if (at < size && member == 0) accept(it);
      it.distance = __shfl_sync(kWholeWarp, it.distance, leader);
      it.way.root = __shfl_sync(kWholeWarp, it.way.root, leader);
      if (it.distance > bound) end = begin;
      int is_kept = end - begin >= kHugeRow && member == 0 &&
                    keep(kept, &count, {it, row_dual, begin, end});
      is_kept = __shfl_sync(kWholeWarp, is_kept, leader);
      if (is_kept) end = begin;
      const bool is_long = end - begin >= kLongRow * lanes;
      bool has_lost = false;
      for (unsigned todo = __ballot_sync(kWholeWarp, is_long && member == 0); todo != 0;
           todo &= todo - 1) {
        const int owner = __ffs(todo) - 1;
        const Offer its = offer_of_lane(it, owner);
        const Number<Cost> dual = __shfl_sync(kWholeWarp, row_dual, owner);
        const long long its_begin = __shfl_sync(kWholeWarp, begin, owner);
        const long long its_end = __shfl_sync(kWholeWarp, end, owner);
        const bool lost = !offer_all(its, dual, its_begin + lane_index(), its_end, kWarp);
        const bool any = __any_sync(kWholeWarp, lost);
        if (lane_index() == owner) has_lost = any;
      }
      if (!is_long) has_lost = !offer_all(it, row_dual, begin + member, end, lanes);
      const unsigned lost = __ballot_sync(kWholeWarp, has_lost) >> leader;
      const unsigned own = lanes < static_cast<int>(kWarp) ? (1u << lanes) - 1 : kWholeWarp;
      if (member == 0 && (lost & own) != 0) repeat(it);
    }
    __syncthreads();
    relax_kept(kept, min(count, kHugeRows));
  }

  __device__ static Offer offer_of_lane(const Offer& own, int lane) {
    return {__shfl_sync(kWholeWarp, own.distance, lane),
            __shfl_sync(kWholeWarp, own.to_row, lane),
            __shfl_sync(kWholeWarp, own.to_col, lane),
            {-1, -1, __shfl_sync(kWholeWarp, own.way.root, lane), 0}};
  }
};

// Level after level by one block, as long as the frontier is small. Leaves on the board the level
// that comes next and the size of its frontier.
template <typename Cost>
__device__ void grow_alone(const Rows<Cost>& rows, const Trees<Number<Cost>>& trees, int level,
                           int size, int last, long long bound, bool is_far, long long& beyond,
                           bool& reached) {
  __shared__ int sizes[2];
  do {
    int* next = sizes + ((level + 1) & 1);
    if (threadIdx.x == 0) *next = 0;
    __syncthreads();
    const Queue<Offer> out = {trees.queue[(level + 1) & 1], next};
    const Level<Cost> step = {rows, trees, level, bound, is_far, out, beyond, reached};
    step.relax(own_block(), trees.queue[level & 1], size);
    __syncthreads();
    size = *next;
    ++level;
  } while (size != 0 && size * rows.lanes <= kAloneMost && level < last);
  if (threadIdx.x == 0) {
    trees.state->alone_level = level;
    trees.state->alone_size = size;
  }
}

// -- between the levels ---------------------------------------------------------------------------

// Put the rows of the trees into the frontier whose distances are above `below`, up to the bound.
template <typename Number>
__device__ void collect(const Trees<Number>& t, Queue<Offer> out, int ncols, const int* roots,
                        int nroots, long long below, long long bound, long long& beyond,
                        bool& reached) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const long long distance = t.columns[j].distance;
    if (distance == kNever) continue;
    const int mate = t.col_to_row[j];
    if (mate == kHeld) continue;
    if (distance > bound) {
      beyond = min(beyond, distance);
    } else if (distance > below) {
      if (mate >= 0) push(out, Offer{distance, mate, j, {-1, -1, t.ways[j].root, 0}});
      else reached = true;
    }
  }
  if (below >= 0) return;
  for (int k = thread_index(); k < nroots; k += thread_count()) {
    push(out, Offer{0, roots[k], -1, {-1, -1, roots[k], 0}});
  }
}

// Give each label the root of the column before it. True: some had another. Sums that are rounded
// may leave a distance as it is although the path before it has become shorter, and has another
// root.
template <typename Number>
__device__ bool set_roots_right(const Trees<Number>& t, int ncols) {
  bool has_changed = false;
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.columns[j].distance == kNever) continue;
    const Way way = t.ways[j];
    if (way.col < 0) continue;
    const int root = now(t.ways[way.col].root);
    if (root == way.root) continue;
    t.ways[j].root = root;
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
    const long long before = atomicMin(t.nearest + t.ways[j].root, distance);
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
    const int root = t.ways[j].root;
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
    if (t.leaf[t.ways[j].root] >= 0) {
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
    const Way way = t.ways[j];
    if (way.row >= 0) t.row_to_col[way.row] = j;
    t.col_to_row[j] = way.row >= 0 ? way.row : kHeld;
    j = way.col;
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
    if (t.leaf[t.ways[j].root] >= 0) t.ways[j] = {-1, -1, j, 0};
  }
}

// -- the search -----------------------------------------------------------------------------------

// Rounds until all rows are matched, or no free column can be reached, or `max_levels` have passed,
// or `budget` rows have been in the frontier.
template <typename Cost>
__global__ void __launch_bounds__(kBlock, 1)
    grow_trees(Rows<Cost> rows, Trees<Number<Cost>> trees, long long least_bound, int max_levels,
               long long budget) {
  using Number = typename NumberOf<Cost>::type;
  State& state = *trees.state;
  const bool is_first = thread_index() == 0;
  // The same in all blocks:
  int stage = state.stage, level = state.level, turn = state.turn, size = state.size;
  int round = state.round, collection = state.collection, check = state.check;
  int levels = state.levels, nroots = state.nroots[round & 1], wanted = state.wanted[round & 1];
  long long bound = state.bound, below = state.below;
  const long long longest = state.step;
  const int share = share_of_round(rows.lanes);
  Number spare = as_number<Number>(state.spare_dual);
  const bool has_spares = state.has_spares != 0;
  const int last = level + max_levels;
  long long beyond = kNever;
  bool reached = false;
  grid_barrier(trees.barrier);  // all have read the state
  Clock clock = {state, nanoseconds()};
  while (stage != kDone) {
    const bool is_far = bound >= longest;
    const int* roots = trees.roots[round & 1];
    if (stage == kCollect) {
      if (is_first) state.sizes[(turn + 2) % 3] = 0;
      const Queue<Offer> out = {trees.queue[level & 1], state.sizes + (turn + 1) % 3};
      collect(trees, out, rows.ncols, roots, nroots, below, bound, beyond, reached);
      grid_barrier(trees.barrier);
      size = now(state.sizes[++turn % 3]);
      if (is_first) {
        state.beyond[(collection + 1) & 1] = kNever;
        state.reached[(collection + 1) & 1] = 0;
      }
      budget -= rows.ncols / 4;
      stage = kGrow;
      clock.add_to(kCollecting, 1);
    }
    while (size != 0 && level < last && budget > 0) {
      budget -= size;
      if (size * rows.lanes <= kAlone) {
        if (blockIdx.x == 0) {
          grow_alone(rows, trees, level, size, last, bound, is_far, beyond, reached);
        }
        grid_barrier(trees.barrier);
        clock.add_to(kByOneBlock, now(state.alone_level) - level);
        level = now(state.alone_level);
        size = now(state.alone_size);
      } else {
        if (is_first) state.sizes[(turn + 2) % 3] = 0;
        const Queue<Offer> out = {trees.queue[(level + 1) & 1], state.sizes + (turn + 1) % 3};
        const Level<Cost> step = {rows, trees, level, bound, is_far, out, beyond, reached};
        step.relax(whole_grid(), trees.queue[level & 1], size);
        grid_barrier(trees.barrier);
        clock.add_to(kByAll, 1);
        size = now(state.sizes[++turn % 3]);
        ++level;
      }
    }
    beyond = least_of_group(beyond, kWarp);
    if (lane_index() == 0 && beyond != kNever) atomicMin(state.beyond + (collection & 1), beyond);
    if (reached) state.reached[collection & 1] = 1;
    beyond = kNever;
    reached = false;
    if (size != 0) break;
    grid_barrier(trees.barrier);
    const long long next = now(state.beyond[collection & 1]);
    const bool has_reached = now(state.reached[collection & 1]) != 0;
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
    stage = kCollect;
    ++collection;
    const int enough = is_far ? 1 : (wanted + share - 1) / share;
    if (next != kNever && satisfied < enough) {
      below = is_far ? bound : -1;
      bound = raised<Number>(bound, longest, next);
      clock.add_to(kBetween, 1);
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
        trees.trace[kTraceWidth * round] = level - levels;
        trees.trace[kTraceWidth * round + 1] = wanted - left;
      }
    }
    ++round;
    wanted = left;
    levels = level;
    bound = max(min(farthest, longest), least_bound);
    below = -1;
    if (wanted == 0) stage = kDone;
    clock.add_to(kBetween, 1);
  }
  if (!is_first) return;
  state.stage = stage;
  state.level = level;
  state.turn = turn;
  state.size = size;
  state.round = round;
  state.collection = collection;
  state.check = check;
  state.levels = levels;
  state.bound = bound;
  state.below = below;
  state.spare_dual = ordered(spare);
}
