// What is done with alternating trees between their growths: rows are collected, trees that have
// reached a free column are counted, duals are changed, and paths are flipped.
//
// Each function is one step, of all threads of the grid. There is a barrier between any two.
#pragma once

#include "assignment/sparse/labels.cuh"

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
