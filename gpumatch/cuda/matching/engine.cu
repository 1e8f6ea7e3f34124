// The engine: maximum matching with the whole search on the device.
//
// A phase grows vertex-disjoint alternating trees from the free vertices of one side, the near one,
// until none grows any more. Then it augments along one path in each tree that has reached a free
// far vertex. A far vertex belongs to the tree whose near vertex claims it by compare-and-swap. A
// tree stops growing with the first free far vertex that it claims. So the paths of a phase share
// no vertex, and one thread walks each without conflict.
//
// Trees that have found a path are released. If these hold most of the vertices, the trees that
// have found none start again from their roots, because most of them will find one soon. Otherwise
// they stay as they are, and the next phase goes on from all their near vertices. Near vertices
// next to released vertices take them over (tree grafting: Azad, Buluç, Pothen, TPDS 2017, but from
// the trees' side, so that only the near side's edges are needed). Then the long thin levels at a
// tree's rim are not walked again in every phase.
//
// When a phase finds no path, the trees hold all that alternating paths reach from the free near
// vertices, because each of their near vertices has been expanded since the last release. No free
// far vertex is among it, so the matching is maximum (Berge 1957).
//
// All of it runs in one kernel, whose blocks step together from barrier to barrier. What a step
// does is its stage. A launch makes a bounded number of steps and leaves its position in state[],
// so that the host can look in between. At each of these points the matching is valid.
//
// Encodings
//   far[v]        {mate: its near vertex or -1; parent}: one load tells both
//   parent        -1: in no tree. p >= 0: claimed by the near vertex that is the mate of far vertex
//                 p. Below -1: claimed by a root, near vertex -2 - parent. So a path is walked from
//                 far vertex to far vertex, at one load each
//   mate[u]       the far vertex of near vertex u or -1
//   path_end[t]   of the t-th tree: -1 while it grows, then the free far vertex that it has
//                 reached, and kMatched once it is augmented
//   log[]         two of nnear, used in turns by phase: the near vertices of the trees in the order
//                 reached, each as its parent, its tree and its edges, so that the next level does
//                 not have to look for these. The frontier is what the last step has added.
//   state         see `State`; sizes and bases are indexed by step % 3, because one is read while
//                 the next is made, and no block may clear what another still reads
#include "frontier.cuh"

struct __align__(8) Far {
  int mate;
  int parent;
};

template <typename Offset>
struct alignas(4 * sizeof(Offset)) Member {
  int parent;  // what the far vertices that it claims have as parent
  int tree;
  Offset begin;  // its edges in indices[]
  int degree;

  __device__ bool is_root() const { return parent < -1; }
};

template <typename Offset>
struct Judged {
  Member<Offset> member;
  bool stays;  // in the next phase
};

constexpr int kNoTree = -1;

__device__ inline int as_parent(int root) { return -2 - root; }
__device__ inline int root_of(int parent) { return -2 - parent; }

enum Stage { kCollect, kGrow, kAugment, kRelease, kDone };
enum Part { kCollecting, kWideLevels, kNarrowLevels, kAugmenting, kReleasing, kParts };

constexpr int kBlock = 512;         // threads
constexpr int kMatched = -2;
constexpr int kTraceLength = 4096;  // phases recorded: levels, paths found
constexpr int kSampled = 16;        // of these near vertices, one is asked how much its tree holds
constexpr int kAlone = 512;         // a frontier that one block expands alone
constexpr int kAloneLevels = 64;    // and for how many levels at a time

struct State {
  int stage;
  int step;
  int phase;
  int levels;   // of this phase so far
  int matched;  // edges of the matching
  int ntrees;   // grown in all
  int sizes[3];  // of the frontier that the step makes
  int bases[3];  // where it begins in the log
  int found[3];  // paths found, by phase % 3
  int freed[3];  // near vertices in trees with a path, about, by phase % 3
  long long spent[kParts];  // nanoseconds
};

template <typename Offset>
struct Engine {
  const Offset* indptr;  // near -> far
  const int* indices;
  int nnear;
  int nfar;
  int* mate;
  int* far_mate;  // the caller's; far[] holds them until the search is done
  Far* far;
  int* path_end;
  Member<Offset>* log;
  State* state;
  int* trace;
  unsigned* barrier;

  __device__ Member<Offset>* log_of(int phase) const {
    return log + static_cast<size_t>(phase & 1) * nnear;
  }
};

// Count the vertices of a side with one entry, with two, and with more, from counts[3] on.
template <typename Offset>
__device__ void count_degrees(const Offset* indptr, int size, int* counts) {
  int leaves = 0, middles = 0, hubs = 0;
  for_all(
      size, [&](int v) { return indptr[v + 1] - indptr[v]; },
      [&](int, Offset degree) {
        leaves += degree == 1;
        middles += degree == 2;
        hubs += degree > 2;
      });
  add_to(counts + 3, leaves);
  add_to(counts + 4, middles);
  add_to(counts + 5, hubs);
}

// Count what decides the near side: counts[0] matched rows, counts[1] free rows with an edge,
// counts[2] free columns with an edge. A side whose offsets are not there is left out.
template <typename Offset>
__global__ void survey(const Offset* indptr, int nrows, const int* row_to_col,
                       const Offset* col_indptr, int ncols, const int* col_to_row, int* counts) {
  int matched = 0, free_rows = 0, free_cols = 0;
  for (int r = thread_index(); r < nrows; r += thread_count()) {
    if (row_to_col[r] >= 0) ++matched;
    else if (indptr != nullptr && indptr[r] != indptr[r + 1]) ++free_rows;
  }
  for (int c = thread_index(); c < ncols && col_indptr != nullptr; c += thread_count()) {
    free_cols += col_to_row[c] == -1 && col_indptr[c] != col_indptr[c + 1];
  }
  add_to(counts, matched);
  add_to(counts + 1, free_rows);
  add_to(counts + 2, free_cols);
  if (indptr != nullptr) count_degrees(indptr, nrows, counts);
  if (col_indptr != nullptr) count_degrees(col_indptr, ncols, counts);
}

template <typename Offset, typename Out>
struct Grower {
  const Offset* indptr;
  const int* indices;
  Far* far;
  int* path_end;
  Out out;

  __device__ bool grows(int tree) const { return now(path_end[tree]) == -1; }

  __device__ Walk enter(Member<Offset> m) const {
    prefetch(indices + m.begin);
    if (!grows(m.tree)) return {};
    return {m.parent, m.tree, indices + m.begin, indices + m.begin + m.degree};
  }

  __device__ Far look(int v) const {
    const long long both = now(*reinterpret_cast<const long long*>(far + v));
    return {static_cast<int>(both), static_cast<int>(both >> 32)};
  }

  __device__ void visit(int parent, int tree, int v, Far seen) const {
    if (seen.parent != kNoTree) return;
    int* claim = &far[v].parent;
    if (seen.mate != -1) {
      const Offset begin = indptr[seen.mate], end = indptr[seen.mate + 1];
      if (atomicCAS(claim, kNoTree, parent) == kNoTree) {
        push(out, Member<Offset>{v, tree, begin, static_cast<int>(end - begin)});
      }
    } else if (grows(tree) && atomicCAS(claim, kNoTree, parent) == kNoTree &&
               atomicCAS(path_end + tree, -1, v) != -1) {
      *claim = kNoTree;  // the tree has its path already: leave the vertex to others
    }
  }
};

template <typename Offset, typename Item>
__device__ void end_turn(Grower<Offset, GatheringQueue<Item>>& grower) {
  append_gathered(grower.out);
}

// Augment along the path that ends in far vertex `end`. No member of the log stands for that
// vertex, so it leaves the tree here. It leaves last: if it left first, all walks of a phase were
// measured to take up to 2.8 times as long.
__device__ inline void augment_path(Far* far, int* mate, int end) {
  int v = end, parent = far[v].parent;
  while (parent >= 0) {
    const Far next = far[parent];
    mate[next.mate] = v;
    far[v].mate = next.mate;
    v = parent;
    parent = next.parent;
  }
  mate[root_of(parent)] = v;
  far[v].mate = root_of(parent);
  far[end].parent = kNoTree;
}

// -- stages ---------------------------------------------------------------------------------------

// What a step works on.
template <typename Offset>
struct Step {
  int phase;
  int index;          // step % 3
  Segment frontier;   // in the phase's log
  Member<Offset>* log;
  GatheringQueue<Member<Offset>> out;  // the frontier that the step makes, behind this one
};

// kCollect: every free near vertex with an edge is the root of a tree. The log is empty. Returns
// the number of trees.
template <typename Offset>
__device__ int collect(const Engine<Offset>& e, const Step<Offset>& s) {
  using Item = Member<Offset>;
  for_all(
      e.nfar, [&](int v) { return e.far_mate[v]; },
      [&](int v, int mate) { e.far[v] = {mate, kNoTree}; });
  for_all(
      e.nnear, [&](int u) { return e.mate[u]; },
      [&](int u, int mate) {
        if (mate != -1) return;
        const Offset begin = e.indptr[u], end = e.indptr[u + 1];
        const Item root = {as_parent(u), 0, begin, static_cast<int>(end - begin)};
        if (begin != end) push(s.out, root);
      },
      [&] { append_gathered(s.out); });
  append_gathered(s.out, 1);
  grid_barrier(e.barrier);
  const int ntrees = now(*s.out.queue.size);
  for (int t = thread_index(); t < ntrees; t += thread_count()) {
    s.log[t].tree = t;
    e.path_end[t] = -1;
  }
  return ntrees;
}

// kGrow: a level, by all blocks; or some, by one block while they are small.
template <typename Offset>
__device__ void grow(const Engine<Offset>& e, const Step<Offset>& s) {
  using Item = Member<Offset>;
  State& state = *e.state;
  const bool is_first = thread_index() == 0;
  int levels = 1;
  if (s.frontier.size == 0) {
    levels = 0;
  } else if (s.frontier.size > kAlone) {
    Grower<Offset, GatheringQueue<Item>> grower = {e.indptr, e.indices, e.far, e.path_end, s.out};
    expand(whole_grid(), s.log + s.frontier.base, s.frontier.size, grower);
    append_gathered(s.out, 1);
  } else if (blockIdx.x == 0) {
    const Grower<Offset, Queue<Item>> grower = {e.indptr, e.indices, e.far, e.path_end, {}};
    const Advance end = expand_alone(grower, s.log, s.frontier, kAlone, kAloneLevels);
    levels = end.levels;
    if (is_first) {
      state.bases[s.index] = end.frontier.base;
      state.sizes[s.index] = end.frontier.size;
    }
  }
  if (is_first) state.levels += levels;
}

// kAugment: along one path in each tree that has found one. The log ends where the frontier, which
// is empty, begins; so it does when trees are released.
template <typename Offset>
__device__ void augment(const Engine<Offset>& e, const Step<Offset>& s, int ntrees) {
  int found = 0, freed = 0;
  for_all(
      share_of(s.frontier.base, 0, kSampled),
      [&](int i) { return e.path_end[s.log[kSampled * i].tree]; },
      [&](int, int end) { freed += end != -1 ? kSampled : 0; });
  for (int t = thread_index(); t < ntrees; t += thread_count()) {
    if (e.path_end[t] < 0) continue;
    augment_path(e.far, e.mate, e.path_end[t]);
    e.path_end[t] = kMatched;
    ++found;
  }
  add_to(e.state->found + s.phase % 3, found);
  add_to(e.state->freed + s.phase % 3, freed);
}

// kRelease: trees that have found a path, and all but the roots of the others where they hold
// little. What stays opens the next phase's log. Returns the number of paths that the phase has
// found; after the last one, which finds none, the caller's mates are written.
template <typename Offset>
__device__ int release(const Engine<Offset>& e, const Step<Offset>& s) {
  using Item = Member<Offset>;
  State& state = *e.state;
  const int found = now(state.found[s.phase % 3]);
  const int freed = now(state.freed[s.phase % 3]);
  const bool grafts = freed <= s.frontier.base - freed;
  GatheringQueue<Item> out = s.out;
  out.queue.items = e.log_of(s.phase + 1);
  for_all(
      found != 0 ? s.frontier.base : 0,
      [&](int i) -> Judged<Offset> {
        const Item m = s.log[i];
        return {m, e.path_end[m.tree] == -1 && (grafts || m.is_root())};
      },
      [&](int, const Judged<Offset>& it) {
        if (it.stays) push(out, it.member);
        else if (!it.member.is_root()) e.far[it.member.parent].parent = kNoTree;
      },
      [&] { append_gathered(out); });
  append_gathered(out, 1);
  for_all(
      found == 0 ? e.nfar : 0, [&](int v) { return e.far[v].mate; },
      [&](int v, int mate) { e.far_mate[v] = mate; });
  if (thread_index() == 0) {
    if (s.phase < kTraceLength) {
      e.trace[2 * s.phase] = state.levels;
      e.trace[2 * s.phase + 1] = found;
    }
    state.found[(s.phase + 1) % 3] = state.freed[(s.phase + 1) % 3] = 0;
    state.levels = 0;
    state.matched += found;
    state.bases[s.index] = 0;
  }
  return found;
}

// Open a step: the place of its frontier, and of the next one, which it makes. The warp gathers in
// `gathered` what it pushes.
template <typename Offset>
__device__ Step<Offset> open_step(const Engine<Offset>& e, int phase, int step,
                                  Gathered<Member<Offset>>* gathered) {
  State& state = *e.state;
  const Segment frontier = {now(state.bases[(step + 2) % 3]), now(state.sizes[(step + 2) % 3])};
  const int next = frontier.base + frontier.size;
  Member<Offset>* log = e.log_of(phase);
  if (thread_index() == 0) {
    state.sizes[(step + 1) % 3] = 0;
    state.bases[step % 3] = next;
  }
  return {phase, step % 3, frontier, log, {{log + next, &state.sizes[step % 3]}, gathered}};
}

template <typename Offset>
__global__ void __launch_bounds__(kBlock, 1) matching_engine(Engine<Offset> e, int max_steps) {
  __shared__ Gathered<Member<Offset>> gathered[kBlock / kWarp];
  State& state = *e.state;
  const bool is_first = thread_index() == 0;
  int stage = state.stage, step = state.step, phase = state.phase;
  int ntrees = state.ntrees;  // the same in every block
  long long clock = nanoseconds();
  Gathered<Member<Offset>>& own = gathered[threadIdx.x / kWarp];
  if (lane_index() == 0) own.count = 0;
  __syncwarp();
  for (int steps = 0; steps < max_steps && stage != kDone; ++steps, ++step) {
    const Step<Offset> at = open_step(e, phase, step, &own);
    Part part = kCollecting;
    switch (stage) {
      case kCollect:
        ntrees = collect(e, at);
        stage = kGrow;
        break;
      case kGrow:
        part = at.frontier.size > kAlone ? kWideLevels : kNarrowLevels;
        grow(e, at);
        if (at.frontier.size == 0) stage = kAugment;
        break;
      case kAugment:
        part = kAugmenting;
        augment(e, at, ntrees);
        stage = kRelease;
        break;
      case kRelease:
        part = kReleasing;
        stage = release(e, at) == 0 ? kDone : kGrow;
        ++phase;
        break;
    }
    grid_barrier(e.barrier);
    const long long now_is = nanoseconds();
    if (is_first) state.spent[part] += now_is - clock;
    clock = now_is;
  }
  if (is_first) {
    state.stage = stage;
    state.step = step;
    state.phase = phase;
    state.ntrees = ntrees;
  }
}
