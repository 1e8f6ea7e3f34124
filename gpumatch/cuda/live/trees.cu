// Trees from all unmatched rows and from all unmatched columns, which meet halfway.
//
// The header of gpumatch/cpu/live/graph.py states what a phase is and why its end is a proof. Here
// the trees grow level by level, those of the kind that has fewer vertices waiting. Within a level, an
// edge from a tree to a live one of the other kind completes a path if it claims both trees, its
// own first. Whoever claims the second one has a path; so a tree that is given back has met one
// that is taken. Between two levels, one thread changes the edges of each path.
//
// A vertex that is near in a tree taken in this very level is left alone, because its mate will
// change. An edge that is lost so matters in no phase that finds no path, which is the last.
//
// Encodings
//   own, other   the sides of the kind that grows: its near vertices are rows for forward trees
//   near_tree, far_tree   the tree of the kind that a vertex is in; below `base`: of an earlier
//                phase, so none
//   before[w]    the near vertex from which far vertex w is reached
//   taken[t]     of a tree, less the base: 0 while it lives, 1 + the level at which it got its path
//   queue        near vertices in the order reached; next and last are the ends of what waits
//   sizes, meets by level % 3, as in frontier.cuh
#include "frontier.cuh"
#include "live/lists.cuh"

constexpr int kBlock = 256;

struct Side {
  Lists lists;  // of the near vertices
  int count;
  int* mate;
  int* near_tree;
  int* far_tree;
  int* before;
  int* taken;
  int* queue;
};

struct Meet {
  int near;
  int far;
};

struct State {
  int next[2];
  int last[2];
  int roots[2];
  int sizes[3];
  int meets[3];
  int level;
  int found;
  int has_ended;
};

struct Trees {
  Side forward;
  Side backward;
  Meet* meets;
  State* state;
  unsigned* barrier;
  int base;
};

struct Sight {
  int far_tree;
  int near_tree;  // of the other kind
};

struct Growing {
  const Side& own;
  const Side& other;
  Queue<int> out;
  Queue<Meet> meets;
  int base;
  int level;

  __device__ Walk enter(int v) const {
    const int tree = own.near_tree[v];
    if (now(own.taken[tree - base]) != 0) return {0, 0, nullptr, nullptr};
    const int* first = own.lists.pool + own.lists.start[v];
    return {v, tree, first, first + own.lists.length[v]};
  }

  __device__ Sight look(int w) const { return {now(own.far_tree[w]), other.near_tree[w]}; }

  __device__ void visit(int v, int tree, int w, Sight seen) const {
    if (seen.near_tree >= base) {
      const int since = now(other.taken[seen.near_tree - base]);
      if (since == 0) meet(v, tree, w, seen.near_tree);
      if (since == 0 || since > level) return;
    }
    if (seen.far_tree >= base) return;
    if (atomicCAS(own.far_tree + w, seen.far_tree, tree) != seen.far_tree) return;
    own.before[w] = v;
    const int mate = other.mate[w];
    own.near_tree[mate] = tree;
    push(out, mate);
  }

  __device__ void meet(int v, int tree, int w, int other_tree) const {
    int* mine = own.taken + (tree - base);
    if (atomicCAS(mine, 0, level + 1) != 0) return;
    if (atomicCAS(other.taken + (other_tree - base), 0, level + 1) == 0) push(meets, Meet{v, w});
    else atomicExch(mine, 0);
  }
};

// Queue the unmatched near vertices of a kind as the roots of its trees.
__device__ inline void plant(const Side& own, int base, int* last) {
  for (int v = thread_index(); v < own.count; v += thread_count()) {
    if (own.mate[v] != -1) continue;
    const int tree = take_place(last);
    own.queue[tree] = v;
    own.near_tree[v] = base + tree;
    own.taken[tree] = 0;
  }
}

// Change the edges of the path along the edge of a row and a column, where a tree of each kind ends.
__device__ inline void augment(const Trees& t, int row, int col) {
  int* row_to_col = t.forward.mate;
  int* col_to_row = t.backward.mate;
  int behind = col_to_row[col];
  for (int last = 0; last != -1;) {
    last = row_to_col[row];
    row_to_col[row] = col;
    col_to_row[col] = row;
    if (last == -1) break;
    col = last;
    row = t.forward.before[col];
  }
  while (behind != -1) {
    col = t.backward.before[behind];
    const int following = col_to_row[col];
    row_to_col[behind] = col;
    col_to_row[col] = behind;
    behind = following;
  }
}

// Begin a phase or go on with one, for a number of levels at most. A cooperative launch.
__global__ void __launch_bounds__(kBlock) grow_trees(Trees t, int is_new, int max_levels) {
  State& state = *t.state;
  if (is_new != 0) {
    plant(t.forward, t.base, &state.last[0]);
    plant(t.backward, t.base, &state.last[1]);
    grid_barrier(t.barrier);
  }
  int next[2] = {now(state.next[0]), now(state.next[1])};
  int last[2] = {now(state.last[0]), now(state.last[1])};
  int level = now(state.level), found = 0;
  const int roots[2] = {last[0], last[1]};
  const int end = level + max_levels;
  while (level < end && next[0] < last[0] && next[1] < last[1]) {
    const int kind = last[0] - next[0] <= last[1] - next[1] ? 0 : 1, at = level % 3;
    if (thread_index() == 0) state.sizes[(level + 1) % 3] = state.meets[(level + 1) % 3] = 0;
    const Side& own = kind == 0 ? t.forward : t.backward;
    const Side& other = kind == 0 ? t.backward : t.forward;
    Growing growing = {own,
                       other,
                       {own.queue + last[kind], &state.sizes[at]},
                       {t.meets, &state.meets[at]},
                       t.base,
                       level};
    expand(whole_grid(), own.queue + next[kind], last[kind] - next[kind], growing);
    grid_barrier(t.barrier);
    next[kind] = last[kind];
    last[kind] += now(state.sizes[at]);
    const int paths = now(state.meets[at]);
    for (int i = thread_index(); i < paths; i += thread_count()) {
      const Meet m = t.meets[i];
      augment(t, kind == 0 ? m.near : m.far, kind == 0 ? m.far : m.near);
    }
    if (paths != 0) grid_barrier(t.barrier);
    found += paths;
    ++level;
  }
  grid_barrier(t.barrier);  // every block has read the state
  if (thread_index() != 0) return;
  for (int kind = 0; kind < 2; ++kind) {
    state.next[kind] = next[kind];
    state.last[kind] = last[kind];
    if (is_new != 0) state.roots[kind] = roots[kind];
  }
  state.level = level;
  state.found += found;
  state.has_ended = next[0] == last[0] || next[1] == last[1];
}
