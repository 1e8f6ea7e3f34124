// The shortest augmenting paths of a problem of a batch. batch.cu describes them, and the
// encodings.
#pragma once

#include "assignment/batched/team.cuh"

// The end of a search.
struct Ending {
  double distance;  // infinity if there is no path
  int col;          // the unmatched column; -1 if a row becomes unmatched instead
  int row;          // that row
};
// Instead of a number of rows:
constexpr int kTired = -1;  // the steps are spent
constexpr int kLong = -2;   // paths are expected to take so many steps that auctions come first

constexpr double kAgain = 1.5;  // mean scans of a matched row in a path that tell of repeated ones
constexpr int kScansToTell = 8;  // scans of each row before which that mean tells little
constexpr float kNarrower = 0.75f, kWider = 1.5f;  // factors of the width of a step
constexpr int kFilled = 4;      // the rows that a thread scans without a branch
constexpr int kFewRows = 256;    // rows below which auctions take longer than most paths

// What searches have cost.
struct Spent {
  int steps;
  int scans;    // of rows
  float width;  // of the distances of a step; negative before the first
};

// What the searches of a problem have come to so far.
struct Effort {
  int steps;    // the steps of all paths, and the rounds of auctions
  double fall;  // the most by which a path has lowered a price, once paths are found to be long
};

// The columns of a thread: every threads()-th from thread() on.
template <int kColumns>
struct Columns {
  double price[kColumns];
  double distance[kColumns];
  int mate[kColumns];
  int pred[kColumns];
  unsigned scanned;  // a bit for each column
};

// About `most` of the nearest lanes of a mask, which has more. These are the lanes within `width` of
// the nearest one. The width follows what it has found. If there is none yet, it is a share of the
// whole; 0 remains 0, except for more than one lane.
__device__ __forceinline__ unsigned nearest_lanes(unsigned lanes, double distance, int most,
                                                  float& width) {
  const bool counts = (lanes >> lane_index() & 1) != 0;
  const float own = counts ? static_cast<float>(distance) : static_cast<float>(far<double>());  // precise enough
  const float least = least_of_warp(own);
  if (width < 0.0f) {
    width = (-least_of_warp(counts ? -own : static_cast<float>(far<double>())) - least) * most / __popc(lanes);
  }
  const unsigned nearer = __ballot_sync(kWholeWarp, counts && !(own > least + width));
  const int found = __popc(nearer);
  if (found > most) width *= kNarrower;
  else if (2 * found < most) width *= kWider;
  return nearer;
}

// Put the nearer of the columns that warps lane and lane + kWarp name into `seen`. Returns the
// lanes for which it is that of the later warp.
__device__ __forceinline__ unsigned see_later(const Named* named, int warps, Named& seen) {
  const int later = lane_index() + kWarp;
  bool is_nearer = false;
  if (later < warps) {
    const Named other = named[later];
    is_nearer =
        other.distance < seen.distance || (other.distance == seen.distance && other.row < 0);
    if (is_nearer) seen = other;
  }
  return __ballot_sync(kWholeWarp, is_nearer);
}

// List the rows to scan for the lanes of this warp: those that the chosen lanes have seen. All warps
// of a block write the same list. It is filled up to a multiple of kFilled.
template <typename Cost>
__device__ __forceinline__ void list_vias(const Problem<Cost>& problem, Via* vias, unsigned lanes,
                                          const Named& seen) {
  const int lane = lane_index(), count = __popc(lanes);
  if ((lanes >> lane & 1) != 0) {
    vias[__popc(lanes & ((1u << lane) - 1))] = {seen.distance - seen.dual, seen.distance,
                                                seen.row * problem.step, seen.row};
  }
  if (lane >= count && lane < (count + kFilled - 1) / kFilled * kFilled) {
    vias[lane] = {far<double>(), far<double>(), 0, -1};
  }
  __syncwarp();
}

// The number of rows whose costs a thread loads before it uses the first.
template <int kColumns>
__device__ constexpr int rows_together() {
  return kColumns == 1 ? 8 : kColumns == 8 ? 2 : 4;
}

// Relax the columns of this thread by `count` listed rows.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ void relax(const Problem<Cost>& problem, const Team& shared,
                                      const Via* vias, int count, Columns<kColumns>& own) {
  constexpr int kRows = rows_together<kColumns>(), kHalf = kRows < kFilled ? kRows : kFilled;
  Cost there[kRows][kColumns];
  const auto load = [&](int first, int r) {
    const Cost* const costs = problem.costs + vias[first + r].begin;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int col = shared.thread() + c * shared.threads();
      there[r][c] = costs[col < problem.cols ? col : 0];
    }
  };
  const auto use = [&](int first, int r) {
    const Via via = vias[first + r];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const double through =
          no_less(via.base + (problem.paid(there[r][c]) - own.price[c]), via.distance);
      const bool is_nearer = through < own.distance[c];
      own.distance[c] = is_nearer ? through : own.distance[c];
      own.pred[c] = is_nearer ? via.row : own.pred[c];
      own.scanned &= ~(static_cast<unsigned>(is_nearer) << c);
    }
  };
  for (int first = 0; first < count; first += kRows) {
    const bool has_more = kRows > kHalf && first + kHalf < count;
#pragma unroll
    for (int r = 0; r < kHalf; ++r) load(first, r);
    if (has_more) {
#pragma unroll
      for (int r = kHalf; r < kRows; ++r) load(first, r);
    }
#pragma unroll
    for (int r = 0; r < kHalf; ++r) use(first, r);
    if (has_more) {
#pragma unroll
      for (int r = kHalf; r < kRows; ++r) use(first, r);
    }
  }
}

// Note the nearest of the rows seen by the chosen lanes that may stay unmatched instead.
template <typename Cost>
__device__ __forceinline__ void see_leaving(const Problem<Cost>& problem, unsigned lanes,
                                            const Named& seen, Ending& leave) {
  if (problem.wish.limit == far<double>()) return;
  double going = far<double>();
  if ((lanes >> lane_index() & 1) != 0) {
    going = no_less(seen.distance - seen.dual + problem.wish.limit, seen.distance);
  }
  const double least = least_of_warp(going);
  if (!(least < leave.distance)) return;
  const unsigned ends = __ballot_sync(kWholeWarp, going == least);
  leave = {least, -1, __shfl_sync(kWholeWarp, seen.row, __ffs(ends) - 1)};
}

// The nearest column of this warp that is not scanned. `lane` gets the lane that has it, and `at`
// its place there.
template <int kColumns, typename Team>
__device__ __forceinline__ Named name_nearest(const Team& shared, const Columns<kColumns>& own,
                                              int& lane, int& at) {
  double nearest = far<double>();
  int mate = 0;
  at = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const bool is_scanned = own.scanned >> c & 1;
    const double there = is_scanned ? far<double>() : own.distance[c];
    if (there < nearest || (there == nearest && own.mate[c] < 0)) {
      nearest = there;
      at = c;
      mate = own.mate[c];
    }
  }
  const unsigned lanes = lanes_with_least(nearest);
  const unsigned free = lanes & __ballot_sync(kWholeWarp, mate < 0);
  lane = __ffs(free != 0 ? free : lanes) - 1;
  const double least = __shfl_sync(kWholeWarp, nearest, lane);
  const int col = __shfl_sync(kWholeWarp, shared.thread() + at * shared.threads(), lane);
  const int row = __shfl_sync(kWholeWarp, mate, lane);
  const double dual = row < 0 || least == far<double>() ? 0.0 : shared.dual[row];
  return {least, dual, col, row};
}

// Begin a search: the distances of this thread's columns from a root.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ void see_from(const Problem<Cost>& problem, const Team& shared, int root,
                                         Columns<kColumns>& own) {
  own.scanned = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = shared.thread() + c * shared.threads();
    own.distance[c] = far<double>();
    own.mate[c] = 0;
    own.pred[c] = root;
    if (col >= problem.cols) continue;
    own.distance[c] = problem.cost(root, col) - own.price[c];
    own.mate[c] = shared.mate[col];
  }
}

// Search for the nearest unmatched column of a root, and find the distances of all nearer columns.
template <int kColumns, typename Cost>
__device__ __forceinline__ Ending search(const Problem<Cost>& problem, const Shared<false>& shared,
                                         int root, int rows_at_once, Columns<kColumns>& own,
                                         Spent& spent) {
  const int warp = shared.warp(), warps = shared.warps(), lane = warp % static_cast<int>(kWarp);
  see_from(problem, shared, root, own);
  Ending leave = {problem.wish.limit, -1, root};
  for (;;) {
    if (++spent.steps > problem.wish.most_steps) return leave;
    Named* const named = shared.named + (spent.steps & 1) * kMostWarps;
    int chosen, at;
    shared.expect(warps, sizeof(Named));
    shared.send(named + warp, name_nearest(shared, own, chosen, at));
    shared.receive();
    Named seen = {far<double>(), 0.0, -1, -1};
    if (lane_index() < warps) seen = named[lane_index()];
    unsigned later = 0;
    if (warps > static_cast<int>(kWarp)) later = see_later(named, warps, seen);
    const double free = least_of_warp(seen.row < 0 ? seen.distance : far<double>());
    const bool is_nearer =
        seen.distance < free && !problem.goes_without(leave.distance, seen.distance);
    unsigned lanes = __ballot_sync(kWholeWarp, seen.row >= 0 && is_nearer);
    if (lanes == 0) {
      if (problem.goes_without(leave.distance, free)) return leave;
      const unsigned ends = __ballot_sync(kWholeWarp, seen.row < 0 && seen.distance == free);
      return {free, __shfl_sync(kWholeWarp, seen.col, __ffs(ends) - 1), -1};
    }
    if (rows_at_once == 1) spent.width = 0.0f;
    if (__popc(lanes) > rows_at_once) {
      lanes = nearest_lanes(lanes, seen.distance, rows_at_once, spent.width);
    }
    const int count = __popc(lanes);
    spent.scans += count;
    const bool is_own = (lanes >> lane & 1) != 0 && (later >> lane & 1) == warp / kWarp;
    if (is_own && lane_index() == chosen) own.scanned |= 1u << at;
    Via* const vias = shared.vias + (spent.steps & 1) * kWarp;
    list_vias(problem, vias, lanes, seen);
    see_leaving(problem, lanes, seen, leave);
    relax(problem, shared, vias, count, own);
  }
}

// The search of a team of one warp, which scans one row in each step.
template <int kColumns, typename Cost>
__device__ __forceinline__ Ending search(const Problem<Cost>& problem, const Shared<true>& shared,
                                         int root, int, Columns<kColumns>& own, Spent& spent) {
  see_from(problem, shared, root, own);
  Ending leave = {problem.wish.limit, -1, root};
  for (;;) {
    if (++spent.steps > problem.wish.most_steps) return leave;
    int chosen, at;
    const Named via = name_nearest(shared, own, chosen, at);
    if (problem.goes_without(leave.distance, via.distance)) return leave;
    if (via.row < 0) return {via.distance, via.col, -1};
    if (lane_index() == chosen) own.scanned |= 1u << at;
    const double base = via.distance - via.dual;
    const double going = no_less(base + problem.wish.limit, via.distance);
    if (going < leave.distance) leave = {going, -1, via.row};
    const Cost* const costs = problem.costs + via.row * problem.step;
    Cost there[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int col = lane_index() + c * kWarp;
      there[c] = costs[col < problem.cols ? col : 0];
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const double through =
          no_less(base + (problem.paid(there[c]) - own.price[c]), via.distance);
      const bool is_nearer = through < own.distance[c];
      own.distance[c] = is_nearer ? through : own.distance[c];
      own.pred[c] = is_nearer ? via.row : own.pred[c];
    }
  }
}

// Augment along the path to the end of the search, by one thread.
template <typename Team>
__device__ inline void augment(const Team& shared, int root, Ending ending) {
  int col = ending.col;
  if (col < 0) {
    col = shared.held[ending.row];
    shared.held[ending.row] = -1;
    if (ending.row == root) return;
  }
  for (;;) {
    const int row = shared.pred[col], next = shared.held[row];
    shared.mate[col] = row;
    shared.held[row] = col;
    if (row == root) return;
    col = next;
  }
}

// The share of the steps for all rows that the served rows have taken. If paths lengthen, it is s *
// s, where s is the share if the k-th path from the end takes a k-th of the last one's steps. This
// was so for uniform costs and points of 4,096 rows.
__device__ inline double share_of(const Wish& wish, int served, int rows) {
  if (!wish.lengthens) return static_cast<double>(served) / rows;
  const double all = rows + 1.0;
  const double share = log(all / (all - served)) / log(all);
  return share * share;
}

// True if the steps for all rows are estimated to exceed the limit, from those for the served rows.
__device__ inline bool is_tired(const Wish& wish, int steps, int served, int rows) {
  if (steps <= wish.first_steps) return false;
  return steps > wish.most_steps * share_of(wish, served, rows);
}

// True if the paths of the other rows are expected to take more steps than auctions would. They are
// not before there has been a step for each of the problem's `rows`. `all` rows were unmatched
// before the first path. If these were a fourth of the rows to half of them, auctions take longer:
// two thirds of the rows of a line against one twice as wide have a place that no bid disputes. In
// small problems, they also do if fewer rows were unmatched.
__device__ inline bool are_long(const Wish& wish, int rows, int steps, int served, int all) {
  if (steps <= rows) return false;
  const bool are_some = 2 * all < rows && (4 * all >= rows || rows < kFewRows);
  const int most = are_some ? wish.steps_a_row_of_some : wish.steps_a_row;
  return 1.0 * steps * (all - served) > 1.0 * most * rows * served;
}

// True if paths scan rows again and again. A path scans a row once if the nearest row comes first.
// `matched` rows were matched before the first of the `served` paths.
__device__ inline bool scan_again(int scans, int rows, int matched, int served) {
  return scans > kScansToTell * rows && scans > kAgain * served * (matched + 0.5 * served);
}

// Match the unmatched rows by shortest paths. Returns the number of rows without a path, or kTired,
// or, if auctions may be held, kLong. Then each path found has matched its row.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ int find_paths(const Problem<Cost>& problem, const Team& shared,
                                          int waiting, bool may_bid, Effort& effort) {
  const int thread = shared.thread(), threads = shared.threads(), before = effort.steps;
  Columns<kColumns> own;
  int stuck = 0, rows_at_once = problem.wish.rows_at_once;
  Spent spent = {before, 0, -1.0f};
  float fall = 0.0f;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = thread + c * threads;
    own.price[c] = col < problem.cols ? shared.price[col] : -far<double>();  // never reached
  }
#pragma unroll 1
  for (int k = 0; k < waiting; ++k) {
    const int root = shared.left[k];
    const Ending ending = search(problem, shared, root, rows_at_once, own, spent);
    if (spent.steps > problem.wish.most_steps) return kTired;
    if (is_tired(problem.wish, spent.steps - before, k + 1, waiting)) return kTired;
    if (ending.distance == far<double>()) {
      ++stuck;
      if (!problem.wish.may_lack) break;
      continue;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (own.distance[c] > ending.distance) continue;
      shared.put(shared.pred + thread + c * threads, own.pred[c]);
      if (own.distance[c] == ending.distance) continue;
      const double nearer = ending.distance - own.distance[c];
      own.price[c] -= nearer;
      fall = max(fall, static_cast<float>(nearer));
      shared.put(shared.dual + own.mate[c], shared.dual[own.mate[c]] + nearer);
    }
    if (shared.thread_here() == 0) shared.dual[root] = ending.distance;
    shared.wait();
    if (shared.thread_here() == 0) augment(shared, root, ending);
    shared.wait_here();
    const int served = k + 1;
    if (shared.is_one_block() &&
        scan_again(spent.scans, problem.rows, problem.rows - waiting, served)) {
      rows_at_once = 1;
    }
    if (may_bid &&
        are_long(problem.wish, problem.rows, spent.steps - before, served, waiting)) {
      effort = {spent.steps, greatest_of_team(shared, fall)};
      stuck = kLong;
      break;
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = thread + c * threads;
    if (col < problem.cols) shared.put(shared.price + col, own.price[c]);
  }
  shared.wait();
  return stuck;
}
