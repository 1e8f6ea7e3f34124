// The classical variant of the Hungarian algorithm: Date, Nagi, Parallel Computing 57, 2016.
//
// The edges of slack 0 are in an adjacency Z of the rows. The forward pass is a breadth-first
// search on Z from all rows that must still be matched. It is the search of frontier.cuh, which the
// cardinality algorithms run on their graphs. If its frontier is empty and it has reached no
// unmatched column, a dual update makes new edges. One cooperative kernel makes all iterations, and
// its stages are the paper's kernels:
//
//   kCheck       Algorithm 2, the optimality check; the roots are queued, the arrays reset
//   kCompress    Z by stream compaction (section 3.3). The predicate is that the slack is 0. A warp
//                compacts a row. The place of the row in Z comes from one counter, because the
//                order of rows does not matter. A prefix sum over rows would need their
//                counts first, and so a second read of the matrix: the call takes 12 to
//                23 % longer (docs/develop.md)
//   kForward     Algorithm 3: a level's expansion and contraction, by expand() and a visitor. After
//                the last level, the unmatched columns in trees are F_rev
//   kDualUpdate  Algorithms 7 and 8: the least slack between uncovered rows and columns. It is
//                added to the duals of the trees' rows and subtracted from those of their columns.
//                (Algorithm 8 adds and subtracts half of it, for all rows and columns. All slacks
//                change by the same amounts, but here the duals of unmatched columns stay 0.)
//   kAugment     Algorithms 5 and 6 (paths.cuh)
//
// After a dual update only the trees' rows are compressed again. The slacks of other rows have not
// changed, or have risen at columns that are in trees already. All other rows are compressed when
// the search has ended, unless no dual update was made. If Z has room for twice the edges of all
// rows, a search can always make at least one dual update.
//
// A launch makes a bounded number of steps and leaves its position in `State`, which the host reads
// between launches. At each of these points the pairs are a matching, and tight.
#include "assignment/hungarian/paths.cuh"

// None of these is measured here. In the matching engine, frontiers of 128 to 512 for one block are
// alike (docs/algorithms/gpu_engine_trials.md). 64 levels are many beside the two barriers around
// them. Rows of Z are short where costs are distinct, and 64 edges of each of a block's warps take
// 4 KiB of shared memory. Four packs are 64 bytes in flight for each lane.
constexpr int kAlone = 256;         // the largest frontier that one block expands alone
constexpr int kAloneLevels = 64;    // the most levels that it expands before the next barrier
constexpr int kGathered = 64;       // the edges of a row that a warp gathers while it counts
constexpr int kPacksAtOnce = 4;     // the packs that a lane loads before it uses the first

struct Adjacency {
  int* cols;
  long long* begin;  // the edges of row i begin here in cols[]
  long long* end;
  long long room;    // the length of cols[]
};

template <typename Cost>
struct Alternating {
  Problem<Cost> p;
  Trees t;
  Adjacency z;
  Queue<Member> out;

  __device__ Walk enter(Member m) const {
    return {m.row, 0, z.cols + z.begin[m.row], z.cols + z.end[m.row]};
  }

  __device__ int look(int col) const { return now(t.col_pred[col]); }

  __device__ void visit(int row, int, int col, int pred) const {
    if (pred != -1 || atomicCAS(t.col_pred + col, -1, row) != -1) return;
    const int mate = p.col_to_row[col];
    if (mate == -1) return;
    t.row_pred[mate] = col;
    push(out, Member{-p.row_dual[mate], mate});
  }
};

// Count a row's edges of slack 0, and pass each to take(position, column). Called by a warp.
template <typename Cost, bool kAligned, typename Take>
__device__ int tight_columns(const Problem<Cost>& p, int row, Take take) {
  using P = Pack<Cost, kAligned>;
  const int packs = p.ncols / P::kWidth;
  const Cost* costs = p.row(row);
  const long long base = -p.row_dual[row];
  int count = 0;
  for (int first = 0; first < packs; first += kPacksAtOnce * kWarp) {
    unsigned tight = 0;  // a bit for each cost of this lane
#pragma unroll
    for (int k = 0; k < kPacksAtOnce; ++k) {
      const int pack = first + k * kWarp + lane_index();
      if (pack >= packs) continue;
      const typename P::Values values = P::load(costs, pack);
#pragma unroll
      for (int w = 0; w < P::kWidth; ++w) {
        const long long here = reach(p, values.value[w], base);
        const bool is_tight = here == p.col_dual[pack * P::kWidth + w] && here != kNever;
        tight |= static_cast<unsigned>(is_tight) << (k * P::kWidth + w);
      }
    }
    count += compact_in_warp<kPacksAtOnce * P::kWidth>(tight, [&](int place, int bit) {
      const int pack = first + bit / P::kWidth * kWarp + lane_index();
      take(count + place, pack * P::kWidth + bit % P::kWidth);
    });
  }
  return count;
}

// Make Z's list of a row. A row of few edges is read once. Called by a warp.
template <typename Cost, bool kAligned>
__device__ void compress_row(const Problem<Cost>& p, const Adjacency& z, int row, State& state) {
  __shared__ int gathered[kBlock / kWarp][kGathered];
  int* own = gathered[threadIdx.x / kWarp];
  const int count = tight_columns<Cost, kAligned>(p, row, [own](int place, int col) {
    if (place < kGathered) own[place] = col;
  });
  long long begin = 0;
  if (lane_index() == 0) {
    begin = static_cast<long long>(atomicAdd(
        reinterpret_cast<unsigned long long*>(&state.adjacent), static_cast<unsigned long long>(count)));
  }
  begin = __shfl_sync(kWholeWarp, begin, 0);
  const bool fits = begin + count <= z.room;
  if (lane_index() == 0) {
    z.begin[row] = begin;
    z.end[row] = fits ? begin + count : begin;
  }
  __syncwarp();
  if (!fits) return;
  if (count <= kGathered) {
    for (int k = lane_index(); k < count; k += kWarp) z.cols[begin + k] = own[k];
  } else {
    int* out = z.cols + begin;
    tight_columns<Cost, kAligned>(p, row, [out](int place, int col) { out[place] = col; });
  }
  __syncwarp();
}

// Algorithm 7: the least slack between a row in a tree and a column outside the trees.
template <typename Cost, bool kAligned>
__device__ long long least_uncovered(const Problem<Cost>& p, const Trees& t, int members) {
  constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  const int packs = p.ncols / kWidth;
  const int shares = shares_for(members, packs);
  long long best = kNever;
  for (int item = thread_index(); item < packs * shares; item += thread_count()) {
    const int pack = item % packs;
    long long least[kWidth];
    int nearest[kWidth];
#pragma unroll
    for (int w = 0; w < kWidth; ++w) least[w] = kNever;
    lower_to_members<Cost, kAligned>(p, t.members, members, item / packs, shares, pack, least,
                                     nearest);
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int col = pack * kWidth + w;
      if (least[w] != kNever && t.col_pred[col] == -1) {
        best = min(best, least[w] - p.col_dual[col]);
      }
    }
  }
  for (int k = thread_index(); p.has_limit() && k < members; k += thread_count()) {
    best = min(best, t.members[k].base + p.limit);
  }
  return best;
}

// Algorithm 8.
template <typename Cost>
__device__ void update_duals(const Problem<Cost>& p, const Trees& t, int members,
                             long long least) {
  State& state = *t.state;
  for (int k = thread_index(); k < members; k += thread_count()) {
    Member& m = t.members[k];
    if (m.base < least - p.most) state.is_too_fine = 1;
    m.base -= least;
    p.row_dual[m.row] = -m.base;
  }
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    if (t.col_pred[col] != -1) p.col_dual[col] -= least;
  }
}

// F_rev: unmatched columns in trees, and rows of trees that may stay unmatched. Returns its size.
template <typename Cost>
__device__ int find_leaves(const Problem<Cost>& p, const Trees& t, int members) {
  const int leaves = compact(
      t.compaction(), p.ncols + (p.has_limit() ? members : 0),
      [&](int leaf) {
        if (leaf < p.ncols) return t.col_pred[leaf] != -1 && p.col_to_row[leaf] == -1;
        return p.row_dual[t.members[leaf - p.ncols].row] == p.limit;
      },
      [&](int place, int leaf) {
        t.leaves[place] = leaf < p.ncols ? leaf : ~t.members[leaf - p.ncols].row;
      });
  grid_barrier(t.barrier);
  return leaves;
}

// Algorithm 2. Returns the number of rows that must still be matched.
template <typename Cost>
__device__ int check(const Problem<Cost>& p, const Trees& t) {
  for (int col = thread_index(); col < p.ncols; col += thread_count()) t.col_pred[col] = -1;
  for (int i = thread_index(); i < p.nrows; i += thread_count()) t.row_pred[i] = t.row_next[i] = -1;
  return compact(
      t.compaction(), p.nrows, [&](int i) { return p.wants(i); },
      [&](int place, int i) { t.members[place] = {-p.row_dual[i], i}; });
}

template <typename Cost, bool kAligned>
__global__ void __launch_bounds__(kBlock)
    hungarian_classical(Problem<Cost> p, Trees t, Adjacency z, int max_steps) {
  State& state = *t.state;
  const bool is_first = thread_index() == 0;
  Position at = state.at;
  Tally tally = state.tally;
  bool is_stale = state.is_stale != 0;  // equal in all blocks
  if (is_first) state.clock = nanoseconds();
  for (int steps = 0; steps < max_steps && at.stage < kDone; ++steps, ++at.step) {
    const Segment frontier = {now(state.bases[(at.step + 2) % 3]),
                              now(state.sizes[(at.step + 2) % 3])};
    const int next = frontier.base + frontier.size;
    int& made = state.sizes[at.step % 3];
    if (is_first) {
      state.sizes[(at.step + 1) % 3] = 0;
      state.bases[at.step % 3] = next;
    }
    const int current = at.stage;
    Part part = kForwardPass;
    switch (current) {
      case kCheck:
        if (is_first && is_stale) state.adjacent = 0;
        at.roots = check(p, t);
        if (is_first) {
          state.bases[at.step % 3] = 0;
          made = at.roots;
        }
        grid_barrier(t.barrier);
        at.members = is_stale ? 0 : at.roots;
        at.stage = at.roots == 0                 ? kDone
                   : now(state.is_too_fine) != 0 ? kTooFine
                   : is_stale                    ? kCompress
                                                 : kForward;
        break;
      case kCompress: {
        // Before a search all rows are compressed, during it those in trees. These are the
        // frontier.
        const bool all = at.members == 0;
        const int rows = all ? p.nrows : at.members;
        for (int k = thread_index() / kWarp; k < rows; k += thread_count() / kWarp) {
          compress_row<Cost, kAligned>(p, z, all ? k : t.members[k].row, state);
        }
        if (is_first) {
          state.bases[at.step % 3] = 0;
          made = all ? at.roots : at.members;
        }
        grid_barrier(t.barrier);
        const long long adjacent = now(state.adjacent);
        at.stage = kForward;
        if (all) {
          is_stale = 2 * adjacent > z.room;
          if (is_stale) at.stage = kFull;
          at.members = at.roots;
        } else if (adjacent > z.room) {
          at.stage = kCheck;        // outdated lists fill Z: clear it in the check,
          grid_barrier(t.barrier);  // after all blocks have read its size
        }
        part = kCompression;
        break;
      }
      case kForward: {
        Alternating<Cost> visitor = {p, t, z, {t.members + next, &made}};
        if (is_first) state.least = kNever;
        if (frontier.size == 0) {
          at.members = next;
          at.leaves = find_leaves(p, t, at.members);
          at.stage = at.leaves != 0 ? kAugment : kDualUpdate;
          break;
        }
        if (frontier.size > kAlone) {
          expand(whole_grid(), t.members + frontier.base, frontier.size, visitor);
          ++tally.levels;
          tally.scans += frontier.size;
        } else if (blockIdx.x == 0) {
          const Advance end = expand_alone(visitor, t.members, frontier, kAlone, kAloneLevels);
          tally.levels += end.levels;
          tally.scans += end.visited;
          if (is_first) {
            state.bases[at.step % 3] = end.frontier.base;
            made = end.frontier.size;
          }
        }
        grid_barrier(t.barrier);
        break;
      }
      case kDualUpdate: {
        lower_to_least(&state.least, least_uncovered<Cost, kAligned>(p, t, at.members));
        grid_barrier(t.barrier);
        const long long least = now(state.least);
        part = kDuals;
        if (least == kNever) {
          at.stage = kDone;
          break;
        }
        update_duals(p, t, at.members, least);
        is_stale = true;
        ++tally.updates;
        grid_barrier(t.barrier);
        at.leaves = p.has_limit() ? find_leaves(p, t, at.members) : 0;
        at.stage = now(state.is_too_fine) != 0 ? kTooFine
                   : at.leaves != 0            ? kAugment
                                               : kCompress;
        break;
      }
      case kAugment:
        augment(p, t, at, tally);
        tally = {0, 0, 0};
        part = kReverseAndAugmentation;
        break;
    }
    if (is_first && at.stage != current) spend(state, part);
  }
  if (is_first) {
    leave(state, at, tally);
    state.is_stale = is_stale;
  }
}
