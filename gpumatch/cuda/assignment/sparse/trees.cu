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
// Labels are those of labels.cuh. A wide frontier is grown by levels.cuh, and a narrow one by
// paces.cuh, until too many rows wait; these are collected, and grown level after level again. Between
// the growths there are the steps of rounds.cuh.
#include "assignment/sparse/labels.cuh"
#include "assignment/sparse/levels.cuh"
#include "assignment/sparse/paces.cuh"
#include "assignment/sparse/rounds.cuh"

// Threads of a block. With 1,024 there are too few registers: a million points take 10.5 s in place
// of 7.5 (docs/reproduction/sparse_assignment.md, as for kWide and kCrowd).
constexpr int kBlock = 512;
constexpr int kWide = 1;            // a frontier with more rows than so many a warp is a wide one
constexpr int kShare = 8;           // of paths wanted, one in so many makes a round at least
constexpr int kTraceLength = 4096;  // rounds recorded
constexpr int kTraceWidth = 2;

enum Stage { kCollect, kDone };

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

// The array of an even turn, or an odd one. An index would put all of them into local memory.
template <typename Element>
__device__ Element* of_turn(Element* const (&arrays)[2], int turn) {
  return (turn & 1) == 0 ? arrays[0] : arrays[1];
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
    t.columns[j] = {dual, has_spares ? of_spare : kNever, kSpareWay, 0};
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

// -- the search -----------------------------------------------------------------------------------

// Clear what is counted of a growth.
__device__ inline void clear(State& state, int turn) {
  state.taken[turn] = state.over[turn] = state.busiest[turn] = 0;
  state.moved[turn] = 0;
  state.beyond[turn] = kNever;
  state.reached[turn] = 0;
}

// How a growth has ended.
struct Grown {
  long long beyond;  // the least distance above the bound that was seen
  bool has_reached;  // whether a free column was seen within the bound
  bool is_over;      // it has not ended: rows are waiting
};

// Where a search is, the same in all blocks.
template <typename Cost>
struct Search {
  using Dual = Number<Cost>;
  const Rows<Cost>& rows;
  const Trees<Dual>& trees;
  State& state;
  Clock clock;
  long long least_bound;
  long long longest;  // step
  int stage, round, growth, turn, looks, before;
  int nroots, wanted;
  long long bound, below;
  long long beyond;  // seen by a growth that has not ended
  Dual spare;
  bool has_spares;

  __device__ Search(const Rows<Cost>& rows, const Trees<Dual>& trees, long long least_bound)
      : rows(rows),
        trees(trees),
        state(*trees.state),
        clock{state, nanoseconds()},
        least_bound(least_bound),
        longest(state.step),
        stage(state.stage),
        round(state.round),
        growth(state.growth),
        turn(state.turn),
        looks(state.looks),
        before(state.before),
        nroots(state.nroots[round & 1]),
        wanted(state.wanted[round & 1]),
        bound(state.bound),
        below(state.below),
        beyond(state.seen_beyond),
        spare(as_number<Dual>(state.spare_dual)),
        has_spares(state.has_spares != 0) {
    grid_barrier(trees.barrier);  // all have read the state
  }

  __device__ bool is_far() const { return bound >= longest; }
  __device__ const int* roots() const { return of_turn(trees.roots, round); }

  // Grow the trees up to the bound. The launch ends when some warp has looked through `last` rows.
  __device__ Grown grow(int last) {
    const int of = growth++ % 3;
    if (thread_index() == 0) clear(state, growth % 3);
    bool reached = false;
    int size = collect_rows(reached);
    clock.add_to(kCollecting);
    const Offers<Cost> offers = {rows, trees, bound, is_far(), beyond, reached};
    while (size > kWide * warp_count() && looks < last) {
      size = grow_level(offers, size);
    }
    const bool is_narrow = looks < last;
    if (size != 0 && is_narrow) {
      Pace<Cost>{offers, trees, of_turn(trees.frontier, turn), size, of, last - looks}.run();
    }
    beyond = least_of_group(beyond, kWarp);
    if (lane_index() == 0 && beyond != kNever) atomicMin(state.beyond + of, beyond);
    if (reached) state.reached[of] = 1;
    grid_barrier(trees.barrier);
    clock.add_to(kGrowing);
    looks += now(state.busiest[of]) + 1;  // collecting counts as one
    const bool is_over = now(state.over[of]) != 0 || (size != 0 && !is_narrow);
    const long long next = now(state.beyond[of]);
    beyond = is_over ? next : kNever;
    return {next, now(state.reached[of]) != 0, is_over};
  }

  // The queue of the next frontier.
  __device__ Queue<Item> next_frontier() {
    ++turn;
    if (thread_index() == 0) state.sizes[(turn + 1) % 3] = 0;
    return {of_turn(trees.frontier, turn), state.sizes + turn % 3};
  }

  // How many rows a growth begins from.
  __device__ int collect_rows(bool& reached) {
    collect(trees, next_frontier(), rows.ncols, roots(), nroots, below, bound, beyond, reached);
    grid_barrier(trees.barrier);
    return now(state.sizes[turn % 3]);
  }

  // The size of the next frontier.
  __device__ int grow_level(const Offers<Cost>& offers, int size) {
    const Item* frontier = of_turn(trees.frontier, turn);
    looks += Level<Cost>{offers, next_frontier()}.grow(frontier, size);
    grid_barrier(trees.barrier);
    return now(state.sizes[turn % 3]);
  }

  // How many trees have reached a free column within the bound.
  __device__ int count_satisfied(bool has_reached) {
    if (has_reached) {
      ask_for_roots(trees, rows.ncols);
      grid_barrier(trees.barrier);
      find_roots(trees, rows.ncols);
      grid_barrier(trees.barrier);
      survey(trees, rows.ncols, bound);
      grid_barrier(trees.barrier);
    }
    return now(state.satisfied);
  }

  // How many of them make a round.
  __device__ int enough() const {
    const int share = share_of_round(rows.lanes);
    return is_far() ? 1 : (wanted + share - 1) / share;
  }

  __device__ void raise_bound(long long next) {
    below = is_far() ? bound : -1;
    bound = raised<Dual>(bound, longest, next);
  }

  // Change the duals, and flip the paths.
  __device__ void end_round() {
    accept_leaves(trees, rows.ncols, bound);
    const bool is_first = thread_index() == 0;
    const int following = (round + 1) & 1;
    if (is_first) {
      state.nroots[following] = 0;
      state.wanted[following] = wanted;
    }
    grid_barrier(trees.barrier);
    const long long farthest = now(state.farthest);
    const Dual risen = as_number<Dual>(farthest);
    update_duals(trees, rows.ncols, roots(), nroots, risen, has_spares, spare);
    spare += risen;
    grid_barrier(trees.barrier);
    if (has_spares) augment_spares(trees, rows.ncols, state.wanted + following);
    else augment(trees, roots(), nroots, {of_turn(trees.roots, following), state.nroots + following});
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
  }

  // Leave the state for the next launch.
  __device__ void leave() const {
    if (thread_index() != 0) return;
    state.stage = stage;
    state.round = round;
    state.growth = growth;
    state.turn = turn;
    state.looks = looks;
    state.before = before;
    state.bound = bound;
    state.below = below;
    state.seen_beyond = beyond;
    state.spare_dual = ordered(spare);
  }
};

// Rounds until all rows are matched, or no free column can be reached, or some warp has looked
// through `most` rows.
template <typename Cost>
__global__ void __launch_bounds__(kBlock, 1)
    grow_trees(Rows<Cost> rows, Trees<Number<Cost>> trees, long long least_bound, int most) {
  Search<Cost> search(rows, trees, least_bound);
  const int last = search.looks + most;
  while (search.stage != kDone && search.looks < last) {
    const Grown grown = search.grow(last);
    if (grown.is_over) {
      search.below = search.bound;
      continue;
    }
    const int satisfied = search.count_satisfied(grown.has_reached);
    if (grown.beyond == kNever && satisfied == 0) {
      search.stage = kDone;
    } else if (grown.beyond != kNever && satisfied < search.enough()) {
      search.raise_bound(grown.beyond);
    } else {
      search.end_round();
      if (search.wanted == 0) search.stage = kDone;
    }
    search.clock.add_to(kBetween);
  }
  search.leave();
}
