// Prices of few columns at which the loads of the columns nearly agree with their demands.
//
// The dual of transport is a concave function of the prices v of the columns: the sum of share_i times
// the least c_ij - v_j of each row i, and of target_j v_j. The target of a column is the most that it
// takes if its price is below 0, and the least if it is above 0. At 0, any load between both will do.
// If the totals of both sides agree, each column must get just its demand. The gradient is target -
// load.
//
// A row whose second best column costs at most delta more than its best one is near the border of
// both. If such rows are spread evenly, their number tells how the loads change with the prices:
// Newton's method for semi-discrete transport (Merigot, Meyron, Thibert 2018). Here a row near a border
// is shared by both columns in proportion to its gap, and delta is the radius of a trust region: no
// price changes by more. A step that does not raise the dual is taken back, and delta becomes smaller.
//
// A round is a `look` at all rows, `judge`, a `survey` of the rows near borders, and a `step`. All of
// it stays on the device. The prices are a beginning only, so they need not be exact.
//
// The first look reads all costs. Later ones read only rows that may come near a border: no gap has
// become smaller since the first look than by the rise of the highest price, less that of the row's
// own column.
//
// Encodings
//   share[i]        the supply of row i as a share of all, in units of 2^-50
//   most[j], least[j]   the shares that column j takes at most and at least; beyond all shares for that
//                   of the limit
//   rows[]          the rows that are looked at; null for all of them
//   price           the prices by which the dual is largest so far
//   trial           those of the next look
//   best, second, gap   of each row that is looked at, its two cheapest columns and the difference of
//                   their reduced costs: [0] and [1] in turn; state.own says which belongs to `price`
//   first_price, first_best, first_least, first_gap   the prices of the first look, and what it found
//   load[], held[]  the share that each column gets at the trial prices, and at `price`
//   sums[2 b], sums[2 b + 1]   the part of block b in the sum of least reduced costs, and of gaps
//   near[a * count + b]  the share of rows near the border of a and b, symmetric
//   shift[j]        what column j gets more if rows near borders are shared, modulo 2^64
#include "transport/few_columns.cuh"

constexpr int kIterations = 32;  // most of the conjugate gradients in a step
constexpr int kWide = 4;        // rows are read if their gap may be up to so many delta
constexpr double kPinned = 16;      // a price that a step would lead past 0 stays there if it is within
                                    // this part of delta of it
constexpr double kDamping = 1e-3;   // what is added to each column's rows near borders, of their mean
constexpr double kLeast = 1e-9;     // the same, of all rows
constexpr double kPrecise = 1e-6;   // the conjugate gradients end at this share of the first residual

// What a search knows between its kernels.
struct Search {
  double value;   // of the dual at `price`
  double delta;
  double longest;  // the greatest change of a price by the last step
  double over;    // the shares beyond targets at `price`, or those that are missing, if that is more
  int own;
  int rounds;
  bool is_whole;  // whether the last step was not cut by the trust region
  bool has_value;
  bool is_over;
};

template <typename Cost>
struct Looks {
  Matrix<Cost> matrix;
  const int* rows;
  const long long* share;
  const double* most;
  const double* least;
  double* price;
  double* trial;
  int* best;
  int* second;
  double* gap;
  double* first_price;
  int* first_best;
  double* first_least;
  double* first_gap;
  unsigned long long* load;
  unsigned long long* held;
  double* sums;
  unsigned long long* near;
  unsigned long long* shift;
  Search* search;
  int size;   // rows that are looked at
  int width;  // lanes that read a row together
  int blocks;  // of `look`
  bool has_spare;  // whether there is more demand than supply, so that prices of 0 mean anything
  double total;    // the sum of all shares that are looked at
  double finest;   // and if delta is less than this
  double enough;   // the search is over if no more than so many rows are too many
};

template <typename Cost>
__global__ void __launch_bounds__(kBlock) look(Looks<Cost> l) {
  __shared__ double price[kMost], rise[kMost];
  __shared__ unsigned long long load[kMost];
  __shared__ double highest;
  if (l.search->is_over) return;
  const bool is_first = !l.search->has_value;
  double most = -far<double>();
  for (int col = threadIdx.x; col < l.matrix.count; col += kBlock) {
    price[col] = l.trial[col];
    rise[col] = is_first ? 0 : price[col] - l.first_price[col];
    most = fmax(most, rise[col]);
    load[col] = 0;
    if (is_first && blockIdx.x == 0) l.first_price[col] = price[col];
  }
  most = joined_in_block(most, [](double one, double other) { return fmax(one, other); });
  if (threadIdx.x == 0) highest = most;
  __syncthreads();
  const double wide = highest + kWide * l.search->delta;
  const long long base = static_cast<long long>(1 - l.search->own) * l.size;
  const int groups = thread_count() / l.width;
  double least = 0, gaps = 0;
  const int first = thread_index() / l.width, turns = (l.size + groups - 1) / groups;
  for (int turn = 0; turn < turns; ++turn) {
    const int at = first + turn * groups;
    const int row = at >= l.size ? -1 : l.rows == nullptr ? at : l.rows[at];
    const int its = is_first || row < 0 ? -1 : l.first_best[at];
    const bool is_far = its >= 0 && l.first_gap[at] + rise[its] > wide;
    Cheapest<double> found = cheapest(l.matrix, price, is_far ? -1 : row, l.width);
    if (row < 0 || lane_index() % l.width != 0) continue;
    double gap = found.other >= 0 ? found.second - found.least : far<double>();
    if (is_far) {
      gap = l.first_gap[at] + rise[its] - highest;  // or more
      found.least = l.first_least[at] - rise[its];
      found.col = its;
    }
    l.best[base + at] = found.col;
    l.second[base + at] = found.other;
    l.gap[base + at] = gap;
    if (is_first) {
      l.first_best[at] = found.col;
      l.first_least[at] = found.least;
      l.first_gap[at] = gap;
    }
    if (found.col < 0) continue;
    const double share = static_cast<double>(l.share[row]);
    atomicAdd(load + found.col, static_cast<unsigned long long>(l.share[row]));
    least += share * found.least;
    if (gap < far<double>()) gaps += share * gap;
  }
  __syncthreads();
  for (int col = threadIdx.x; col < l.matrix.count; col += kBlock) {
    if (load[col] != 0) atomicAdd(l.load + col, load[col]);
  }
  const auto add = [](double one, double other) { return one + other; };
  least = joined_in_block(least, add);
  gaps = joined_in_block(gaps, add);
  if (threadIdx.x == 0) {
    l.sums[2 * blockIdx.x] = least;
    l.sums[2 * blockIdx.x + 1] = gaps;
  }
}

// Take the trial prices if the dual is larger there. One block.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) judge(Looks<Cost> l) {
  __shared__ bool is_better;
  Search& search = *l.search;
  if (search.is_over) return;
  double value = 0, gaps = 0, over = 0, under = 0;
  for (int b = threadIdx.x; b < l.blocks; b += kBlock) {
    value += l.sums[2 * b];
    gaps += l.sums[2 * b + 1];
  }
  for (int col = threadIdx.x; col < l.matrix.count; col += kBlock) {
    const double price = l.trial[col], load = static_cast<double>(l.load[col]);
    const bool may_be_less = l.has_spare && price >= 0, must_be_least = l.has_spare && price > 0;
    const double most = must_be_least ? l.least[col] : l.most[col];
    if (price != 0) value += most * price;
    over += fmax(0.0, load - most);
    under += fmax(0.0, (may_be_less ? l.least[col] : l.most[col]) - load);
  }
  const auto add = [](double one, double other) { return one + other; };
  value = joined_in_block(value, add);
  gaps = joined_in_block(gaps, add);
  over = fmax(joined_in_block(over, add), joined_in_block(under, add));
  if (threadIdx.x == 0) {
    is_better = !search.has_value || value > search.value;
    ++search.rounds;
    if (!search.has_value && search.delta == 0) search.delta = 2 * gaps / l.total;
    if (is_better) {
      if (search.has_value) {
        search.delta = search.is_whole ? fmax(2 * search.longest, search.delta / 8)
                                       : 2 * search.delta;
      }
      search.value = value;
      search.over = over;
      search.has_value = true;
      search.own = 1 - search.own;
      if (over * l.size <= l.enough * l.total) search.is_over = true;
    } else {
      search.delta /= 4;
    }
    if (!(search.delta > l.finest && search.delta < far<double>())) search.is_over = true;
  }
  __syncthreads();
  for (int col = threadIdx.x; col < l.matrix.count; col += kBlock) {
    if (is_better) {
      l.price[col] = l.trial[col];
      l.held[col] = l.load[col];
    }
    l.load[col] = l.shift[col] = 0;
  }
}

// Add up the rows near borders. `near` is 0 before.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) survey(Looks<Cost> l) {
  __shared__ unsigned long long shift[kMost];
  if (l.search->is_over) return;
  const int count = l.matrix.count;
  for (int col = threadIdx.x; col < count; col += kBlock) shift[col] = 0;
  __syncthreads();
  const long long base = static_cast<long long>(l.search->own) * l.size;
  const double delta = l.search->delta;
  for (int at = thread_index(); at < l.size; at += thread_count()) {
    const double gap = l.gap[base + at];
    if (!(gap < delta)) continue;
    const int row = l.rows == nullptr ? at : l.rows[at];
    const long long one = l.best[base + at], other = l.second[base + at];
    const auto share = static_cast<unsigned long long>(l.share[row]);
    const double part = static_cast<double>(share) * (0.5 - gap / (2 * delta));
    const auto moved = static_cast<unsigned long long>(part);
    atomicAdd(l.near + one * count + other, share);
    atomicAdd(l.near + other * count + one, share);
    atomicAdd(shift + one, ~moved + 1);
    atomicAdd(shift + other, moved);
  }
  __syncthreads();
  for (int col = threadIdx.x; col < count; col += kBlock) {
    if (shift[col] != 0) atomicAdd(l.shift + col, shift[col]);
  }
}

// Sum term(a, b) over the columns a, for each column b of `count`. All threads of the block take part,
// several of them for a column. `parts` has a number of each thread.
template <typename Term>
__device__ void sum_over_columns(int count, double* out, double* parts, Term term) {
  int lanes = 1;
  while (lanes < count && lanes < static_cast<int>(blockDim.x)) lanes *= 2;
  const int groups = blockDim.x / lanes, lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  for (int begin = 0; begin < count; begin += lanes) {
    const int b = begin + lane;
    double sum = 0;
    if (b < count) {
#pragma unroll 8
      for (int a = group; a < count; a += groups) sum += term(a, b);
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0 && b < count) {
      for (int g = 1; g < groups; ++g) sum += parts[g * lanes + lane];
      out[b] = sum;
    }
    __syncthreads();
  }
}

// The sum of a number of each thread of the block, for all of them.
__device__ inline double total_of_block(double number) {
  __shared__ double total;
  number = joined_in_block(number, [](double one, double other) { return one + other; });
  if (threadIdx.x == 0) total = number;
  __syncthreads();
  number = total;
  __syncthreads();
  return number;
}

// Find the trial prices by Newton's step from `price`. One block.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) step(Looks<Cost> l) {
  __shared__ double change[kMost], rest[kMost], ahead[kMost], image[kMost], degree[kMost];
  __shared__ double parts[kBlock];
  __shared__ bool is_open[kMost];
  Search& search = *l.search;
  if (search.is_over) return;
  const int count = l.matrix.count, self = threadIdx.x;
  const double scale = 1 / (2 * search.delta);
  const auto near = [&](int a, int b) {
    return static_cast<double>(l.near[static_cast<long long>(a) * count + b]);
  };
  sum_over_columns(count, degree, parts, near);
  double sum = 0;
  for (int col = self; col < count; col += kBlock) sum += degree[col];
  const double all = total_of_block(sum);
  if (all * l.size <= 4 * count * l.total) {  // hardly a row a column is near a border
    if (self == 0) search.is_over = true;
    return;
  }
  const double more = scale * kDamping * all / count + kLeast * scale * l.total;
  double product = 0;
  for (int col = self; col < count; col += kBlock) {
    const auto shared = static_cast<long long>(l.held[col] + l.shift[col]);
    const double load = static_cast<double>(shared);
    double lack = l.most[col] - load;
    if (l.has_spare && (l.price[col] > 0 || (l.price[col] == 0 && lack > 0))) {
      lack = l.least[col] - load;
      if (l.price[col] == 0) lack = fmax(lack, 0.0);
    }
    const double price = l.price[col], above = l.least[col] - load;
    const bool is_near = l.has_spare && fabs(price) < search.delta / kPinned;
    const bool passes = price < 0 ? lack > 0 && above <= 0 : above < 0 && l.most[col] >= load;
    is_open[col] = !l.has_spare || (lack != 0 && !(is_near && price != 0 && passes));
    degree[col] = degree[col] * scale + more;
    change[col] = 0;
    rest[col] = is_open[col] ? lack : 0;
    ahead[col] = rest[col] / degree[col];
    product += rest[col] * ahead[col];
  }
  product = total_of_block(product);
  const double goal = kPrecise * product;
  for (int k = 0; k < kIterations && product > goal; ++k) {
    sum_over_columns(count, image, parts, [&](int a, int b) { return near(a, b) * ahead[a]; });
    double bend = 0;
    for (int col = self; col < count; col += kBlock) {
      image[col] = is_open[col] ? degree[col] * ahead[col] - scale * image[col] : 0;
      bend += image[col] * ahead[col];
    }
    bend = total_of_block(bend);
    if (!(bend > 0)) break;
    const double length = product / bend;
    double next = 0;
    for (int col = self; col < count; col += kBlock) {
      change[col] += length * ahead[col];
      rest[col] -= length * image[col];
      next += rest[col] * rest[col] / degree[col];
    }
    next = total_of_block(next);
    for (int col = self; col < count; col += kBlock) {
      ahead[col] = rest[col] / degree[col] + next / product * ahead[col];
    }
    product = next;
    __syncthreads();
  }
  const auto larger = [](double one, double other) { return fmax(one, other); };
  __shared__ double longest, top;
  double most = 0;
  for (int col = self; col < count; col += kBlock) most = fmax(most, fabs(change[col]));
  most = joined_in_block(most, larger);
  if (self == 0) longest = most;
  __syncthreads();
  const double part = longest > search.delta ? search.delta / longest : 1;
  most = -far<double>();
  for (int col = self; col < count; col += kBlock) {
    change[col] = l.price[col] + part * change[col];
    if (l.has_spare && !is_open[col] && fabs(l.price[col]) < search.delta / kPinned) change[col] = 0;
    if (l.has_spare && (l.price[col] < 0 || l.least[col] == 0)) change[col] = fmin(change[col], 0.0);
    if (l.has_spare && l.price[col] > 0) change[col] = fmax(change[col], 0.0);
    most = fmax(most, change[col]);
  }
  most = joined_in_block(most, larger);
  if (self == 0) top = l.has_spare ? 0 : most;
  __syncthreads();
  for (int col = self; col < count; col += kBlock) l.trial[col] = change[col] - top;
  if (self == 0) {
    search.longest = part * longest;
    search.is_whole = part == 1;
  }
}
