// Kernels for points in boxes: the cheapest columns of each row at given prices, and the pairs up to
// a bound.
//
// The columns are in an order in which neighbours follow each other. 32 columns in turn are a leaf,
// 32 leaves in turn a node of the next level, and so on, until a level has at most 32 nodes. So a
// warp opens a node at once, a lane for each of its 32 parts. A node has its box and its greatest
// price.
//
// A warp serves a row. It goes into the node with the least bound first, and leaves out each node
// whose bound is not below what the row has found. A bound is computed by the steps of metrics.cuh
// from the point of the box that is nearest to the row in each coordinate (the farthest if costs are
// negated). All steps are monotone, so no node with a column that is wanted is left out.
//
// Prices of squared distances have slopes: where many columns serve rows that are far away, the
// greatest price of a node tells little. So a node has a linear function that no price of its
// columns exceeds, rest + slope (y - middle), and the bound is the least of (x - y)^2 less that
// function in the box, coordinate by coordinate. It is lowered by what rounding may have added.
//
// Points may be shown in a frame (`gpumatch.numeric.points.clouds`): others in their place, whose
// squared distances are the costs less a number for each row and one for each column, but for
// rounding. Then boxes and bounds are about the shown points, and a margin makes up for rounding.
//
// Encodings
//   cols[k * ncols + place]    coordinate k of the column at a place of the order; rows likewise
//   low, high                  at k * nodes + node: the ends of a node's box
//   first[level]               the first node of a level; leaves are level 0
//   top[node]                  the greatest price of the node's columns, or the rest of a slope
//   slope                      at k * nodes + node, if nodes have slopes; middles are those of boxes
//   least_added, most_added    the least and greatest column offset of a node
//   bound[number]              only values below it are wanted
//   found[number * count + k]  place of the k-th cheapest column, -1 if there are fewer
//   values                     its cost less its price, rounded down; infinity if there is none
#include "grid.cuh"
#include "assignment/points/metrics.cuh"
#include "assignment/points/nearest.cuh"
#include "numbers.cuh"

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarp;
constexpr int kWidth = 6;   // the most coordinates
constexpr double kRounding = 0x1p-44;  // of a bound by slopes, of all that is added up
constexpr int kLevels = 7;  // 32 to the power of 7 is beyond all numbers of columns

struct Boxes {
  const double* cols;
  const double* col_offset;
  const double* price;
  const double* shown_cols;
  const double* shown_price;
  const double* low;
  const double* high;
  const double* top;
  const double* slope;
  const double* least_added;
  const double* most_added;
  int first[kLevels];
  int levels;
  int nodes;
  int ncols;
  int width;
  int is_framed;
  int is_sloped;
  Metric metric;
  Metric shown;
  double margin;  // what rounding may leave in a frame: this, and `error` of the magnitudes
  double error;
};

struct Rows {
  const double* rows;
  const double* row_offset;
  const double* shown_rows;
  const double* shift;  // of a frame: the cost less this number and the column's is the shown cost
  int nrows;
};

// A row, as it asks.
struct Query {
  double point[kWidth];
  double shown[kWidth];
  double offset;
  double shift;

  __device__ void load(const Boxes& b, const Rows& r, int number) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k >= b.width) break;
      const long long at = static_cast<long long>(k) * r.nrows + number;
      point[k] = r.rows[at];
      shown[k] = r.shown_rows[at];
    }
    offset = b.metric.has_offsets ? r.row_offset[number] : 0;
    shift = b.is_framed ? r.shift[number] : 0;
  }

  // The bound below which a shown cost less its price must be, for the cost less its price to be
  // below `most`.
  __device__ double shown_limit(const Boxes& b, double most) const {
    if (!b.is_framed) return most;
    return most - shift + (b.margin + b.error * (fabs(most) + fabs(shift)));
  }

  // No more than any cost less its price in a node.
  __device__ double bound_of(const Boxes& b, int node) const {
    if (b.is_sloped) return sloped_bound_of(b, node);
    double total = 0;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k >= b.width) break;
      const double low = b.low[static_cast<long long>(k) * b.nodes + node];
      const double high = b.high[static_cast<long long>(k) * b.nodes + node];
      const double x = shown[k];
      const double near = fmax(fmax(low - x, x - high), 0.0), far = fmax(high - x, x - low);
      total = b.shown.joined(total, b.shown.sign > 0 ? near : far);
    }
    double added = 0;
    if (b.shown.has_offsets) {
      added = b.shown.sign > 0 ? b.least_added[node] : b.most_added[node];
    }
    return difference_below(b.shown.finished(total, offset, added), b.top[node]);
  }

  // The same by slopes: (x - y)^2 less a linear function is least at the y that is nearest to where
  // its derivative is 0.
  __device__ double sloped_bound_of(const Boxes& b, int node) const {
    const double rest = b.top[node];
    double total = -rest, magnitude = fabs(rest);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k >= b.width) break;
      const long long at = static_cast<long long>(k) * b.nodes + node;
      const double low = b.low[at], high = b.high[at], slope = b.slope[at], x = shown[k];
      const double y = fmin(fmax(x + 0.5 * slope, low), high);
      const double square = (x - y) * (x - y), rise = slope * (y - 0.5 * (low + high));
      total += square - rise;
      magnitude += square + fabs(rise);
    }
    return total - kRounding * magnitude;
  }

  // The cost less the price of a column, rounded down; infinity if the frame tells that it is not
  // below the limit.
  __device__ double value_of(const Boxes& b, int place, double limit) const {
    if (b.is_framed) {
      double total = 0;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (k >= b.width) break;
        total = b.shown.joined(
            total, shown[k] - b.shown_cols[static_cast<long long>(k) * b.ncols + place]);
      }
      if (!(total - b.shown_price[place] < limit)) return far<double>();
    }
    double total = 0;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k >= b.width) break;
      total = b.metric.joined(total,
                              point[k] - b.cols[static_cast<long long>(k) * b.ncols + place]);
    }
    const double added = b.metric.has_offsets ? b.col_offset[place] : 0;
    return difference_below(b.metric.finished(total, offset, added), b.price[place]);
  }
};

// The walk of a warp down the boxes. Each level that is open has the bounds of 32 nodes, infinity
// for those that were entered or do not exist.
struct Walk {
  double (*bounds)[kWarp];  // shared by the warp
  int* nodes;               // the first node of each open level, shared likewise
  int level;

  __device__ void open(const Boxes& b, const Query& q, int at, int node) {
    level = at;
    const int end = at + 1 < b.levels ? b.first[at + 1] : b.nodes;
    const int own = node + lane_index();
    __syncwarp();
    bounds[at][lane_index()] = own < end ? q.bound_of(b, own) : far<double>();
    if (lane_index() == 0) nodes[at] = node;
    __syncwarp();
  }

  // The next leaf whose bound is below the limit, -1 if there is none.
  __device__ int next_leaf(const Boxes& b, const Query& q, double limit) {
    while (level < b.levels) {
      double least = bounds[level][lane_index()];
      int which = lane_index();
#pragma unroll
      for (int step = kWarp / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(kWholeWarp, least, step);
        const int its = __shfl_xor_sync(kWholeWarp, which, step);
        if (other < least || (other == least && its < which)) {
          least = other;
          which = its;
        }
      }
      if (!(least < limit)) {  // equal in all lanes
        ++level;
        continue;
      }
      __syncwarp();
      if (lane_index() == which) bounds[level][which] = far<double>();
      __syncwarp();
      const int node = nodes[level] + which;
      if (level == 0) return node;
      open(b, q, level - 1, b.first[level - 1] + (node - b.first[level]) * static_cast<int>(kWarp));
    }
    return -1;
  }
};

// What a warp's walk keeps in shared memory.
struct Shared {
  double bounds[kLevels][kWarp];
  int nodes[kLevels];
};

__device__ inline Walk walk_from_top(const Boxes& b, const Query& q, Shared& shared) {
  Walk walk = {shared.bounds, shared.nodes, b.levels};
  if (b.levels > 0) walk.open(b, q, b.levels - 1, b.first[b.levels - 1]);
  return walk;
}

// Put the bits of the points' ranks along one coordinate into their keys, which interleave them.
__global__ void interleave(const long long* in_order, int count, int axis, int width, int bits,
                           long long* keys) {
  for (int place = thread_index(); place < count; place += thread_count()) {
    const long long rank = (static_cast<long long>(place) << bits) / count;
    long long spread = 0;
    for (int bit = 0; bit < bits; ++bit) spread |= ((rank >> bit) & 1) << (bit * width + axis);
    keys[in_order[place]] |= spread;
  }
}

// The cheapest columns of each row below its bound: at most `count`, which is at most 32.
__global__ void __launch_bounds__(kBlock)
    find_least(Boxes b, Rows r, int count, const double* bound, int* found, double* values) {
  __shared__ Shared shared[kWarps];
  const int step = thread_count() / static_cast<int>(kWarp), lane = lane_index();
  for (int number = thread_index() / static_cast<int>(kWarp); number < r.nrows; number += step) {
    Query q;
    q.load(b, r, number);
    Nearest<double> nearest = {far<double>(), bound[number], -1};
    Walk walk = walk_from_top(b, q, shared[threadIdx.x / kWarp]);
    while (true) {
      const double limit = q.shown_limit(b, nearest.most);
      const int leaf = walk.next_leaf(b, q, limit);
      if (leaf < 0) break;
      const int place = leaf * static_cast<int>(kWarp) + lane;
      const double here = place < b.ncols ? q.value_of(b, place, limit) : far<double>();
      nearest.add(here, leaf * static_cast<int>(kWarp), count);
    }
    if (lane < count) {
      found[static_cast<long long>(number) * count + lane] = nearest.its;
      values[static_cast<long long>(number) * count + lane] = nearest.value;
    }
    __syncwarp();
  }
}

// The pairs whose costs are below the bounds of their rows. Without `places`, count them. Else
// those of a row go from start[number] on, in no order.
__global__ void __launch_bounds__(kBlock)
    find_below(Boxes b, Rows r, const double* bound, long long* start, int* places,
               double* costs) {
  __shared__ Shared shared[kWarps];
  const int step = thread_count() / static_cast<int>(kWarp), lane = lane_index();
  for (int number = thread_index() / static_cast<int>(kWarp); number < r.nrows; number += step) {
    Query q;
    q.load(b, r, number);
    const double most = bound[number], limit = q.shown_limit(b, most);
    long long at = places == nullptr ? 0 : start[number];
    Walk walk = walk_from_top(b, q, shared[threadIdx.x / kWarp]);
    for (int leaf = walk.next_leaf(b, q, limit); leaf >= 0; leaf = walk.next_leaf(b, q, limit)) {
      const int place = leaf * static_cast<int>(kWarp) + lane;
      const double here = place < b.ncols ? q.value_of(b, place, limit) : far<double>();
      const unsigned wanted = __ballot_sync(kWholeWarp, here < most);
      if (places != nullptr && here < most) {
        const long long own = at + __popc(wanted & ((1u << lane) - 1));
        places[own] = place;
        costs[own] = here;
      }
      at += __popc(wanted);
    }
    if (places == nullptr && lane == 0) start[number] = at;
    __syncwarp();
  }
}
