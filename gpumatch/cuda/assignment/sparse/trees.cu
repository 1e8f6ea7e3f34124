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
// A wide frontier is grown level after level: each row of it is looked through by a group of lanes,
// and those that follow are the next frontier. But paths are long, and mostly few rows are at their
// ends. Then a barrier a level would take most of the time. So a narrow frontier is grown without
// levels: each warp takes a row and offers labels to its columns. It goes on with the row of one
// column that has taken its label, and puts the others into a queue, where idle warps wait for them.
// If too many rows wait there, they are collected, and grown level after level again.
//
// A label is taken in two atomic operations. The distance only falls. The row by which the column is
// reached follows: it is the one of the last label, because a row is not written over one that came
// since it was decided.
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
#include "assignment/sparse/rows.cuh"
#include "frontier.cuh"

// Threads of a block. With 1,024 there are too few registers: a million points take 10.5 s in place
// of 7.5 (docs/reproduction/sparse_assignment.md, as for kWide and kCrowd).
constexpr int kBlock = 512;
constexpr int kWide = 1;            // a frontier with more rows than so many a warp is a wide one
constexpr int kCrowd = 4;           // and if so many a warp wait in the queue, they are too many
constexpr int kPatience = 16;       // looks after which a warp asks whether all are to stop
constexpr int kLongRow = 64;        // entries of each lane from which on a warp takes the row
constexpr int kShare = 8;           // of paths wanted, one in so many makes a round at least
constexpr int kHeld = -2;
constexpr int kTraceLength = 4096;  // rounds recorded
constexpr int kTraceWidth = 2;

using Item = unsigned long long;
constexpr Item kNone = 0;  // in place of an item
constexpr Item kStop = 1;  // the same, where all are to stop
constexpr unsigned long long kSpareWay = 0xffffffffull;

enum Stage { kCollect, kDone };
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

// The array of an even turn, or an odd one. An index would put all of them into local memory.
template <typename Element>
__device__ Element* of_turn(Element* const (&arrays)[2], int turn) {
  return (turn & 1) == 0 ? arrays[0] : arrays[1];
}

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

__device__ inline int warp_count() { return thread_count() / static_cast<int>(kWarp); }

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

// -- wide frontiers: level after level ------------------------------------------------------------

template <typename Cost>
struct Level {
  const Offers<Cost>& offers;
  Queue<Item> out;

  // Let groups of lanes look through the rows of a frontier. Returns how many each has had at most.
  __device__ int grow(const Item* frontier, int size) const {
    const Rows<Cost>& rows = offers.rows;
    const Group group = Group::of(lanes_for(size, thread_count(), min(2 * rows.lanes, 32)));
    const int slot = lane_index() / group.lanes, leader = lane_index() - group.member;
    for (long long base = group.index - slot; base < size; base += group.count) {
      const long long at = base + slot;
      Look<Cost> look = {-1, -1, 0, 0, 0};
      bool has_row = at < size;
      if (has_row) {
        const Item item = frontier[at];
        look = offers.look_at(row_of(item), col_of(item));
        if (group.member == 0) has_row = offers.is_taken(look.col);
      }
      if (!__shfl_sync(kWholeWarp, has_row, leader)) look.end = look.begin;
      const bool is_long = look.end - look.begin >= kLongRow * group.lanes;
      for (unsigned todo = __ballot_sync(kWholeWarp, is_long && group.member == 0); todo != 0;
           todo &= todo - 1) {
        offer_labels(look.of_lane(__ffs(todo) - 1), lane_index(), kWarp);
      }
      if (!is_long) offer_labels(look, group.member, group.lanes);
    }
    return static_cast<int>((size - 1) / group.count + 1);
  }

  // Offer labels to the columns of a row, as one of several lanes.
  __device__ void offer_labels(const Look<Cost>& from, int member, int lanes) const {
    for (long long k = from.begin + member; k < from.end; k += lanes) {
      const Entry<Cost> entry = Entry<Cost>::at(offers.rows, k, from.end);
      const Label label = offers.label(from, entry, offers.see(from, entry));
      if (!offers.improve(label)) continue;
      const unsigned long long before = offers.name(from.row, label, label.way);
      if (offers.leads_on(label) && offers.has_to_wait(label)) {
        push(out, item_of(label.mate, label.col));
      }
      offers.complete(from.row, label, before);
    }
  }
};

// -- narrow frontiers: each warp at its own pace --------------------------------------------------

// All warps grow the trees, until no label up to the bound is better, or too many rows wait.
//
// Memory answers late, so what does not depend on each other is asked for at once. While labels are
// offered, the row is asked for with which the warp will go on. While the labels are completed, its
// entries are on the way. What is to be put into the queue is held until the columns of these are
// asked for.
template <typename Cost>
struct Pace {
  const Offers<Cost>& offers;
  const Trees<Number<Cost>>& trees;
  const Item* frontier;
  int size;  // of the frontier
  int turn;
  int most;  // rows that a warp may look through

  __device__ void run() const {
    int looks = 0;
    for (int ticket = draw();; ticket = finish()) {
      const Item item = take(ticket);
      if (item == kStop) break;
      Item held = kNone;
      Look<Cost> look = offers.look_at(row_of(item), col_of(item));
      Entry<Cost> entry = entry_at(look, look.begin);
      bool goes_on = is_taken(look.col);
      while (goes_on) {
        if (look.col >= 0 && has_to_stop(looks)) {
          put_off(look.col);
          break;
        }
        goes_on = offer_labels(look, entry, held);
        if (++looks == most) stop_all();
      }
      put(held);
    }
    if (lane_index() == 0) atomicMax(trees.state->busiest + turn, looks);
  }

  // Which item the warp gets: the first lane knows.
  __device__ int draw() const {
    return lane_index() == 0 ? atomicAdd(trees.state->taken + turn, 1) : 0;
  }

  // That item, as soon as it is there.
  __device__ Item take(int ticket) const {
    Item item = kNone;
    if (lane_index() == 0) {
      if (ticket < size) {
        item = frontier[ticket];
      } else {
        Item& place = place_of(ticket - size);
        while ((item = now(place)) == kNone) __nanosleep(20);
        set_now(place, kNone);
      }
    }
    return __shfl_sync(kWholeWarp, item, 0);
  }

  __device__ Item& place_of(unsigned number) const {
    return trees.queue[number % static_cast<unsigned>(trees.nplaces)];
  }

  __device__ bool is_taken(int col) const {
    const bool taken = lane_index() == 0 && offers.is_taken(col);
    return __shfl_sync(kWholeWarp, taken, 0);
  }

  // The entry of this lane among those from `first` on.
  __device__ Entry<Cost> entry_at(const Look<Cost>& look, long long first) const {
    return Entry<Cost>::at(offers.rows, first + lane_index(), look.end);
  }

  // Whether all are to stop. It is looked up now and then.
  __device__ bool has_to_stop(int looks) const {
    return looks % kPatience == 0 && __shfl_sync(kWholeWarp, now(trees.state->over[turn]), 0) != 0;
  }

  __device__ void stop_all() const {
    if (lane_index() == 0) set_now(trees.state->over[turn], 1);
  }

  // Let a row be collected again.
  __device__ void put_off(int col) const {
    if (lane_index() == 0) set_now(trees.waiting[col], 1);
  }

  // Offer labels to all columns of a row, whose first entries are here. True: it goes on with the row
  // of one of them.
  __device__ bool offer_labels(Look<Cost>& look, Entry<Cost>& entry, Item& held) const {
    const Look<Cost> from = look;
    Entry<Cost> here = entry;
    bool goes_on = false;
    for (long long first = from.begin; first < from.end; first += kWarp) {
      const Sight<Cost> sight = offers.see(from, here);
      put(held);
      const Label label = offers.label(from, here, sight);
      bool leads_on = offers.leads_on(label);
      const bool is_open = !goes_on;
      if (is_open) goes_on = choose(label, leads_on, look);
      const bool is_better = offers.improve(label);
      leads_on = leads_on && is_better;
      if (is_open && goes_on) {
        // Another row may have been quicker.
        const bool holds = __any_sync(kWholeWarp, leads_on && label.col == look.col);
        if (!holds) goes_on = choose(label, leads_on, look);
        if (goes_on) entry = entry_at(look, look.begin);
      }
      here = entry_at(from, first + kWarp);
      const bool has_to_follow = leads_on && !(goes_on && label.col == look.col);
      held = complete(from.row, label, is_better, has_to_follow);
    }
    return goes_on;
  }

  // Ask for the row of the first column whose label leads on. False: none does.
  __device__ bool choose(const Label& label, bool leads_on, Look<Cost>& look) const {
    const unsigned lanes = __ballot_sync(kWholeWarp, leads_on);
    if (lanes == 0) return false;
    const int lane = __ffs(lanes) - 1;
    look = offers.look_at(__shfl_sync(kWholeWarp, label.mate, lane),
                          __shfl_sync(kWholeWarp, label.col, lane));
    return true;
  }

  // Complete a label, if it is better. The row that it leads to is held for the queue, unless it
  // waits already.
  __device__ Item complete(int row, const Label& label, bool is_better, bool has_to_follow) const {
    if (!is_better) return kNone;
    const unsigned long long before = offers.name(row, label, label.way);
    const bool is_held = has_to_follow && offers.has_to_wait(label);
    offers.complete(row, label, before);
    return is_held ? item_of(label.mate, label.col) : kNone;
  }

  // Put what the lanes hold into the queue.
  __device__ void put(Item& held) const {
    const unsigned lanes = __ballot_sync(kWholeWarp, held != kNone);
    if (lanes == 0) return;
    unsigned long long moved = 0;
    if (lane_index() == 0) {
      const unsigned long long many = __popc(lanes);
      moved = atomicAdd(trees.state->moved + turn, many << 32);
    }
    moved = __shfl_sync(kWholeWarp, moved, 0);
    const unsigned number = moved >> 32, finished = static_cast<unsigned>(moved);
    if (static_cast<int>(number + size - finished) > kCrowd * warp_count()) stop_all();
    if (held != kNone) put_at(number + __popc(lanes & ((1u << lane_index()) - 1)), held);
    held = kNone;
  }

  // The place is empty, unless the warp that has the item there is slow.
  __device__ void put_at(unsigned number, Item item) const {
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
      for (int k = lane_index(); k < warp_count(); k += kWarp) {
        set_now(place_of(number + k), kStop);
      }
    }
    return ticket;
  }
};

// -- between the growths --------------------------------------------------------------------------

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

// Let each column that has a label know the column before it, or the root.
template <typename Number>
__device__ void ask_for_roots(const Trees<Number>& t, int ncols) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.columns[j].distance == kNever) continue;
    const int row = t.row_to(j), before = t.col_before(j);
    t.columns[j].above = before >= 0 ? column_above(before) : root_above(row >= 0 ? row : j);
  }
}

// Let each column know its root. All go up from ancestor to ancestor, and write down how far they
// have come. So the ways of all become shorter, and no barrier is needed.
template <typename Number>
__device__ void find_roots(const Trees<Number>& t, int ncols) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.columns[j].distance == kNever) continue;
    for (unsigned long long above = now(t.columns[j].above); !is_root(above);) {
      above = now(t.columns[vertex_of(above)].above);
      set_now(t.columns[j].above, above);
    }
  }
}

// Count the trees that have reached a free column for the first time.
template <typename Number>
__device__ void survey(const Trees<Number>& t, int ncols, long long bound) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.col_to_row[j] != -1) continue;
    const long long distance = t.columns[j].distance;
    if (distance > bound) continue;
    const long long before = atomicMin(t.nearest + t.root_of(j), distance);
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
    const int root = t.root_of(j);
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
    if (t.leaf[vertex_of(column.above)] >= 0) {
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
    if (t.leaf[t.root_of(j)] >= 0) t.columns[j].way = kSpareWay;
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
