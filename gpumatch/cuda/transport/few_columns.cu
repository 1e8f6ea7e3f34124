// An exact flow of few columns, from prices that are nearly right.
//
// At any prices, each row ships all to its cheapest column. What all columns could take beyond all
// supply is spare. It fills columns of the price of one more node, the source of what is spare; columns
// of a lower price get nothing of it, and those of a higher one all that they may. Some nodes then have
// too much, others too little. Shortest augmenting paths between nodes move it. An arc from column a to
// column b is a row that ships to a, and its length is what the row pays more for b: c_ib - c_ia. So a
// table with the cheapest such row of each two columns is all that a path needs to know. Arcs to and
// from the source of what is spare have length 0. With the prices v as potentials, the reduced length
// length + v_a - v_b is never below 0. A path moves what all rows carry that tie for its arcs, so many
// ties are no more work than a few.
//
// Only rows whose second best column costs little more are in lists, and make arcs: the marginal rows.
// `room[a]` is what the price of column a may fall before another row of it has to be marginal. A path
// that would lower it further waits until there are more marginal rows. So the flow is optimal for all
// rows at every time, but for the columns that have too much or too little.
//
// Encodings
//   node `count`      the source of what is spare; the nodes before it are the columns
//   spare[j]          units of what is spare that column j has, up to most_spare[j]
//   price[j]          of each node, at most what it was before: paths lower prices only
//   excess[j]         units that node j has too much; below 0 if it has too little
//   begin[j], size[j] the list of column j is rows[begin[j] .. begin[j] + size[j]) and the same of units
//                     and own; it has room up to begin[j + 1]. A row may be there more than once
//   units[e], own[e]  what entry e ships, > 0, and its row's cost in this column
//   table[a * nodes + b], by[a * nodes + b]  the length of the arc from node a to node b, and its row;
//                     the greatest number, or infinity, if there is none
//   gap[i]            what the second best column of row i costs more than the one in which it is
//   place[i]          the column of row i, -1 if all its pairs are forbidden; where is_marginal[i],
//                     its entries count instead
#include "transport/few_columns.cuh"

constexpr int kClasses = 256;  // of gaps, for the choice of marginal rows
constexpr int kAClass = 4;     // classes from a gap to the double of it
constexpr int kMiddle = 128;   // the class of the typical gap

constexpr int kEntriesALook = 32;  // entries of lists that take as long as a look at a column

enum Status { kGoing, kShipped, kNarrow, kFull, kCut };

// Where a launch has ended.
struct Progress {
  int status;
  int column;  // the one whose list is full
  int needed;  // the entries that it must have room for
  int paths;
  int looks;   // columns that were taken from the queue of a search
};

template <typename Cost>
struct Flow {
  Matrix<Cost> matrix;
  Cost* price;
  Cost* room;
  long long* excess;
  long long* spare;
  const long long* most_spare;
  const int* begin;
  int* size;
  int* rows;
  long long* units;
  Cost* own;
  Cost* table;
  int* by;
  bool* is_reached;  // the nodes that the last search has reached; what kCut shows

  __device__ int nodes() const { return matrix.count + 1; }
  __device__ long long arc(int a, int b) const { return static_cast<long long>(a) * nodes() + b; }
};

// -- all rows -------------------------------------------------------------------------------------

template <typename Cost>
struct Rows {
  Matrix<Cost> matrix;
  const Cost* price;
  const long long* supply;
  int* place;
  Cost* gap;
  Cost* least;
  const bool* is_marginal;
  int width;       // lanes that read a row together
  bool is_first;   // whether rows have no column yet
};

// Find the least reduced cost of each row, its column if it has none yet, and the gap.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) settle(Rows<Cost> r, unsigned long long* load) {
  __shared__ Cost price[kMost];
  __shared__ unsigned long long own_load[kMost];
  for (int col = threadIdx.x; col < r.matrix.count; col += kBlock) {
    price[col] = r.price[col];
    own_load[col] = 0;
  }
  __syncthreads();
  const Cost never = far<Cost>();
  const int groups = thread_count() / r.width, first = thread_index() / r.width;
  const int turns = (r.matrix.nrows + groups - 1) / groups;
  for (int turn = 0; turn < turns; ++turn) {
    const int at = first + turn * groups, row = at < r.matrix.nrows ? at : -1;
    const Cheapest<Cost> found = cheapest(r.matrix, price, row, r.width);
    if (row < 0 || lane_index() % r.width != 0) continue;
    r.least[row] = found.least;
    if (r.is_first) r.place[row] = found.col;
    const int col = r.place[row];
    if (col < 0) continue;
    const Cost other = found.col == col ? found.second : found.least;
    r.gap[row] = other < never ? other - (r.matrix.cost(row, col) - price[col]) : never;
    if (r.is_first && r.supply[row] != 0) {
      atomicAdd(own_load + col, static_cast<unsigned long long>(r.supply[row]));
    }
  }
  __syncthreads();
  for (int col = threadIdx.x; col < r.matrix.count; col += kBlock) {
    if (own_load[col] != 0) atomicAdd(load + col, own_load[col]);
  }
}

// The class of a gap: logarithms about a typical one. Class 0 has what is 0.
__device__ inline int class_of(double gap, double typical) {
  if (!(gap > 0)) return 0;
  if (!(gap < far<double>())) return kClasses - 1;
  const double place = kMiddle + kAClass * log2(gap / typical);
  return static_cast<int>(fmin(fmax(place, 1.0), kClasses - 1.0));
}

template <typename Cost>
struct Classes {
  int* rows;                   // of each column and class that are not marginal
  unsigned long long* units;   // that these ship
  int* last;                   // the last class of each column that becomes marginal
  Cost* room;
  bool* is_new;                // the rows that become marginal
  double typical;
};

// Count the rows of each class.
template <typename Cost>
__global__ void classify(Rows<Cost> r, Classes<Cost> c) {
  for (int row = thread_index(); row < r.matrix.nrows; row += thread_count()) {
    c.is_new[row] = false;
    const int col = r.place[row];
    if (col < 0 || r.is_marginal[row] || r.supply[row] == 0) continue;
    const int at = col * kClasses + class_of(static_cast<double>(r.gap[row]), c.typical);
    atomicAdd(c.rows + at, 1);
    atomicAdd(c.units + at, static_cast<unsigned long long>(r.supply[row]));
  }
}

// Choose classes with at least `least` rows, and units for twice what a column has too much. A thread
// a column.
template <typename Cost>
__global__ void choose(Rows<Cost> r, Classes<Cost> c, const long long* excess, int least) {
  for (int col = thread_index(); col < r.matrix.count; col += thread_count()) {
    const double needed = 2.0 * fmax(0.0, static_cast<double>(excess[col]));
    double units = 0;
    int rows = 0, last = 0;
    for (; last < kClasses - 1; ++last) {
      rows += c.rows[col * kClasses + last];
      units += static_cast<double>(c.units[col * kClasses + last]);
      if (rows >= least && units >= needed) break;
    }
    c.last[col] = last;
    c.room[col] = far<Cost>();
  }
}

// Lower *least to a number that is at least 0.
__device__ inline void lower_to(long long* least, long long number) { atomicMin(least, number); }
__device__ inline void lower_to(double* least, double number) {
  atomicMin(reinterpret_cast<unsigned long long*>(least), bits_of(number));
}

// Mark the rows that become marginal. `room` becomes the least gap of the others.
template <typename Cost>
__global__ void mark(Rows<Cost> r, Classes<Cost> c) {
  for (int row = thread_index(); row < r.matrix.nrows; row += thread_count()) {
    const int col = r.place[row];
    if (col < 0 || r.is_marginal[row] || r.supply[row] == 0) continue;
    const Cost gap = r.gap[row];
    c.is_new[row] = class_of(static_cast<double>(gap), c.typical) <= c.last[col];
    if (!c.is_new[row] && gap < now(c.room[col])) lower_to(c.room + col, gap > 0 ? gap : 0);
  }
}

// -- paths between columns ------------------------------------------------------------------------

// The sum of a number of each thread of the block, for all of them.
__device__ inline long long sum_of_block(long long number) {
  __shared__ long long total;
  number = joined_in_block(number, [](long long one, long long other) { return one + other; });
  if (threadIdx.x == 0) total = number;
  __syncthreads();
  number = total;
  __syncthreads();
  return number;
}

// The sum of the numbers of the threads before this one. *total becomes that of all.
__device__ inline long long sum_before(long long number, long long* total) {
  __shared__ long long of_warp[kWarp];
  long long sum = number;
  for (int step = 1; step < static_cast<int>(kWarp); step *= 2) {
    const long long before = __shfl_sync(kWholeWarp, sum, max(lane_index() - step, 0));
    if (lane_index() >= step) sum += before;
  }
  if (lane_index() == kWarp - 1) of_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  long long all = 0, before = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x / kWarp); ++w) {
    if (w == static_cast<int>(threadIdx.x / kWarp)) before = all;
    all += of_warp[w];
  }
  __syncthreads();
  *total = all;
  return before + sum - number;
}

// The least number of all threads, and of equal ones the least place.
template <typename Number>
struct Least {
  Number number;
  int place;

  __device__ void join(Number other, int its) {
    if (other < number || (other == number && its < place)) {
      number = other;
      place = its;
    }
  }
};

// For all threads of the block. A barrier must come before the next call.
template <typename Number>
__device__ Least<Number> least_of_block(Least<Number> least) {
  __shared__ Number numbers[kWarp];
  __shared__ int places[kWarp];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Number other = __shfl_xor_sync(kWholeWarp, least.number, step);
    least.join(other, __shfl_xor_sync(kWholeWarp, least.place, step));
  }
  if (lane_index() == 0) {
    numbers[threadIdx.x / kWarp] = least.number;
    places[threadIdx.x / kWarp] = least.place;
  }
  __syncthreads();
  const int warps = blockDim.x / kWarp;  // a power of two
  least = {numbers[lane_index() % warps], places[lane_index() % warps]};
  for (int step = warps / 2; step > 0; step /= 2) {
    const Number other = __shfl_xor_sync(kWholeWarp, least.number, step);
    least.join(other, __shfl_xor_sync(kWholeWarp, least.place, step));
  }
  return least;
}

// Lower the arcs from column a by the entries from `first` to `last` of its list. If `gone` is a row,
// the arcs that it has made are found again by these entries; if it is kAll, all arcs are. All threads
// of the block take part, several of them for each arc.
constexpr int kNone = -1, kAll = -2;
template <typename Cost>
__device__ void find_arcs(const Flow<Cost>& f, int a, int first, int last, int gone) {
  __shared__ Cost least[kBlock];
  __shared__ int rows[kBlock];
  const Cost never = far<Cost>();
  const int count = f.matrix.count, base = f.begin[a];
  int lanes = 1;
  while (lanes < count && lanes < static_cast<int>(blockDim.x)) lanes *= 2;
  const int groups = blockDim.x / lanes, lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  for (int begin = 0; begin < count; begin += lanes) {
    const int b = begin + lane;
    const long long at = f.arc(a, b);
    const bool is_arc = b < count && b != a;
    const bool is_new = is_arc && (gone == kAll || (gone >= 0 && f.by[at] == gone));
    Cost best = never;
    int row = -1;
    if (is_arc && (gone == kNone || is_new)) {
      for (int e = base + first + group; e < base + last; e += groups) {
        const Cost cost = f.matrix.cost(f.rows[e], b);
        if (!(cost < never) || !(cost - f.own[e] < best)) continue;
        best = cost - f.own[e];
        row = f.rows[e];
      }
    }
    least[threadIdx.x] = best;
    rows[threadIdx.x] = row;
    __syncthreads();
    if (group == 0 && is_arc) {
      for (int g = 1; g < groups; ++g) {
        if (!(least[g * lanes + lane] < best)) continue;
        best = least[g * lanes + lane];
        row = rows[g * lanes + lane];
      }
      if (is_new || best < f.table[at]) {
        f.table[at] = best;
        f.by[at] = row;
      }
    } else if (group == 0 && b == a) {
      f.table[at] = never;
      f.by[at] = -1;
    }
    __syncthreads();
  }
}

// Put entries into the lists, entry k at place at[k]. A thread an entry.
template <typename Cost>
__global__ void hold(Flow<Cost> f, const int* rows, const int* cols, const long long* units,
                     const long long* at, int count) {
  for (int k = thread_index(); k < count; k += thread_count()) {
    f.rows[at[k]] = rows[k];
    f.units[at[k]] = units[k];
    f.own[at[k]] = f.matrix.cost(rows[k], cols[k]);
  }
}

// The arcs to and from the source of what is spare.
template <typename Cost>
__device__ void find_spare_arcs(const Flow<Cost>& f) {
  const int source = f.matrix.count;
  for (int col = threadIdx.x; col < source; col += blockDim.x) {
    f.table[f.arc(col, source)] = f.spare[col] > 0 ? 0 : far<Cost>();
    f.table[f.arc(source, col)] = f.spare[col] < f.most_spare[col] ? 0 : far<Cost>();
  }
  if (threadIdx.x == 0) f.table[f.arc(source, source)] = far<Cost>();
  __syncthreads();
}

// All arcs between columns. A block a column.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) find_all_arcs(Flow<Cost> f) {
  for (int a = blockIdx.x; a < f.matrix.count; a += gridDim.x) find_arcs(f, a, 0, f.size[a], kAll);
}

// What an entry carries if its row ties for the arc from column a to column b, else 0.
template <typename Cost>
__device__ long long tied(const Flow<Cost>& f, int e, int b, Cost length) {
  const Cost cost = f.matrix.cost(f.rows[e], b);
  return cost < far<Cost>() && cost - f.own[e] == length ? f.units[e] : 0;
}

// Move units along the arc from column a to column b, which has them. The list of b has room.
template <typename Cost>
__device__ void move(const Flow<Cost>& f, int a, int b, long long amount) {
  __shared__ int last_gone;
  const Cost length = f.table[f.arc(a, b)];
  const int from = f.begin[a], size = f.size[a], to = f.begin[b], before = f.size[b];
  int added = 0, gone = 0;
  if (threadIdx.x == 0) last_gone = kNone;
  __syncthreads();
  for (int first = 0; first < size && amount > 0; first += blockDim.x) {
    const int e = from + first + threadIdx.x;
    const long long units = first + static_cast<int>(threadIdx.x) < size ? tied(f, e, b, length) : 0;
    long long all, count;
    const long long ahead = sum_before(units, &all);
    const long long taken = min(max(amount - ahead, 0ll), units);
    const long long at = sum_before(taken > 0, &count);
    const bool is_gone = taken > 0 && taken == f.units[e];
    if (taken > 0) {
      const int there = to + before + added + static_cast<int>(at);
      f.rows[there] = f.rows[e];
      f.units[there] = taken;
      f.own[there] = f.matrix.cost(f.rows[e], b);
      f.units[e] -= taken;
      if (is_gone) last_gone = f.rows[e];  // of any of them: it counts only if it is the only one
    }
    added += static_cast<int>(count);
    gone += static_cast<int>(sum_of_block(is_gone));
    amount -= min(amount, all);
  }
  int kept = 0;
  for (int first = 0; first < size && gone > 0; first += blockDim.x) {
    const int e = from + first + threadIdx.x;
    const bool is_there = first + static_cast<int>(threadIdx.x) < size;
    const long long units = is_there ? f.units[e] : 0;
    const int row = is_there ? f.rows[e] : 0;
    const Cost own = is_there ? f.own[e] : 0;
    long long count;
    const long long at = sum_before(units > 0, &count);  // with a barrier: all have read theirs
    if (units > 0) {
      const int there = from + kept + static_cast<int>(at);
      f.rows[there] = row;
      f.units[there] = units;
      f.own[there] = own;
    }
    kept += static_cast<int>(count);
  }
  __syncthreads();
  const int which = gone == 1 ? last_gone : kAll;
  if (threadIdx.x == 0) {
    f.size[b] = before + added;
    if (gone > 0) f.size[a] = kept;
  }
  __syncthreads();
  if (gone > 0) find_arcs(f, a, 0, kept, which);
  find_arcs(f, b, before, before + added, kNone);
}

// The state of a search, and what it reads of columns.
template <typename Cost>
struct Labels {
  Cost reach[kMost];  // the length of the shortest path from the source
  Cost price[kMost];
  Cost room[kMost];
  int before[kMost];  // the column before it on the path
  bool is_done[kMost];
  bool lacks[kMost];  // whether it has too little
};

// Lower the prices of the columns that are nearer to the source than `length`.
template <typename Cost>
__device__ void lower_prices(int count, Labels<Cost>& labels, Cost length) {
  for (int col = threadIdx.x; col < count; col += blockDim.x) {
    if (!labels.is_done[col] || !(labels.reach[col] < length)) continue;
    const Cost fall = length - labels.reach[col];
    labels.price[col] -= fall;
    if (labels.room[col] < far<Cost>()) {
      labels.room[col] = max(labels.room[col] - fall, static_cast<Cost>(0));
    }
  }
  __syncthreads();
}

// Search from a node with too much to one with too little. Returns that one; or -1 if a price may
// not fall further, or -2 if there is no path. Prices are lowered as far as the search went.
template <typename Cost>
__device__ int search(const Flow<Cost>& f, Labels<Cost>& labels, int source, int* looks) {
  const Cost never = far<Cost>();
  const int count = f.nodes();
  for (int col = threadIdx.x; col < count; col += blockDim.x) {
    labels.reach[col] = col == source ? 0 : never;
    labels.before[col] = -1;
    labels.is_done[col] = false;
  }
  __syncthreads();
  Cost most = never;  // the length beyond which a price would fall too far
  while (true) {
    Least<Cost> own = {never, count};
    for (int col = threadIdx.x; col < count; col += blockDim.x) {
      if (!labels.is_done[col]) own.join(labels.reach[col], col);
    }
    const Least<Cost> top = least_of_block(own);
    if (!(top.number < never) || top.number > most) {
      __syncthreads();
      if (most < never) {
        lower_prices(count, labels, most);
        return -1;
      }
      return -2;
    }
    if (threadIdx.x == 0) labels.is_done[top.place] = true;
    ++*looks;
    if (labels.lacks[top.place]) {
      __syncthreads();
      lower_prices(count, labels, top.number);
      return top.place;
    }
    const Cost room = labels.room[top.place], price = labels.price[top.place];
    if (room < never) most = min(most, top.number + room);
    const Cost* arcs = f.table + f.arc(top.place, 0);
    for (int col = threadIdx.x; col < count; col += blockDim.x) {
      const Cost arc = arcs[col];
      if (col == top.place || labels.is_done[col] || !(arc < never)) continue;
      const Cost length = max(arc + price - labels.price[col], static_cast<Cost>(0));
      if (!(top.number + length < labels.reach[col])) continue;
      labels.reach[col] = top.number + length;
      labels.before[col] = top.place;
    }
    __syncthreads();
  }
}

// Ship along paths until no node has too much, or as much was done as `longest` looks at nodes take. One
// block.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) ship(Flow<Cost> f, Progress* progress, int longest) {
  __shared__ Labels<Cost> labels;
  const int count = f.nodes(), spare = f.matrix.count;
  int looks = 0, paths = 0, status = kGoing, column = -1, needed = 0;
  for (int col = threadIdx.x; col < count; col += blockDim.x) {
    labels.price[col] = f.price[col];
    labels.room[col] = f.room[col];
    labels.lacks[col] = f.excess[col] < 0;
  }
  find_spare_arcs(f);
  int entries = 0;
  while (looks + entries / kEntriesALook < longest) {
    Least<int> own = {count, count};
    for (int col = threadIdx.x; col < count; col += blockDim.x) {
      if (f.excess[col] > 0) own.join(col, col);
    }
    const int source = least_of_block(own).place;
    __syncthreads();
    if (source == count) {
      status = kShipped;
      break;
    }
    const int target = search(f, labels, source, &looks);
    if (target < 0) {
      status = target == -1 ? kNarrow : kCut;
      break;
    }
    long long amount = min(f.excess[source], -f.excess[target]);
    for (int b = target; b != source && status == kGoing; b = labels.before[b]) {
      const int a = labels.before[b];
      if (a == spare || b == spare) {
        amount = min(amount, a == spare ? f.most_spare[b] - f.spare[b] : f.spare[a]);
        continue;
      }
      const int from = f.begin[a];
      const Cost length = f.table[f.arc(a, b)];
      entries += f.size[a];
      long long units = 0, ties = 0;
      for (int k = threadIdx.x; k < f.size[a]; k += blockDim.x) {
        const long long its = tied(f, from + k, b, length);
        units += its;
        ties += its > 0;
      }
      amount = min(amount, sum_of_block(units));
      ties = sum_of_block(ties);
      if (f.begin[b] + f.size[b] + ties > f.begin[b + 1]) {
        status = kFull;
        column = b;
        needed = f.size[b] + static_cast<int>(ties);
      }
    }
    if (status == kFull) break;
    __syncthreads();  // all have read what is spare
    bool moves_spare = false;
    for (int b = target; b != source; b = labels.before[b]) {
      const int a = labels.before[b];
      if (a != spare && b != spare) {
        move(f, a, b, amount);
        continue;
      }
      moves_spare = true;
      if (threadIdx.x == 0) {
        if (a == spare) f.spare[b] += amount;
        else f.spare[a] -= amount;
      }
    }
    __syncthreads();
    if (moves_spare) find_spare_arcs(f);
    if (threadIdx.x == 0) {
      f.excess[source] -= amount;
      f.excess[target] += amount;
      labels.lacks[target] = f.excess[target] < 0;
    }
    __syncthreads();
    ++paths;
  }
  for (int col = threadIdx.x; col < count; col += blockDim.x) {
    f.price[col] = labels.price[col];
    f.room[col] = labels.room[col];
    f.is_reached[col] = status == kCut && labels.is_done[col];
  }
  if (threadIdx.x == 0) {
    progress->status = status;
    progress->column = column;
    progress->needed = needed;
    progress->paths += paths;
    progress->looks += looks;
  }
}
