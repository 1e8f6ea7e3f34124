// The steps between two growths of alternating trees: collect rows, count the trees that have
// reached an unmatched column, update the duals, and augment paths.
//
// Each function is one step of all threads of the grid. There is a grid barrier between any two.
#pragma once

#include "assignment/sparse/labels.cuh"

// Put rows of the trees into the frontier: those with distances above `below` up to the bound, and
// those that are waiting.
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

// Set the ancestor of each labelled column to the column before it, or to the root.
template <typename Number>
__device__ void ask_for_roots(const Trees<Number>& t, int ncols) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.columns[j].distance == kNever) continue;
    const int row = t.row_to(j), before = t.col_before(j);
    t.columns[j].above = before >= 0 ? column_above(before) : root_above(row >= 0 ? row : j);
  }
}

// Set the ancestor of each column to its root. Each thread follows ancestors and writes those that
// it has found. This shortens the paths of all threads, and needs no barrier.
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

// Count the trees that have reached an unmatched column for the first time.
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

// Set the leaf of each tree to its nearest unmatched column.
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

// Update the duals by distances up to `farthest`, and remove the trees that have a leaf. With spare
// rows, whose dual was `spare`, the columns of these trees get the distance of a spare row.
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

// Augment along the path of a tree that ends at a column.
template <typename Number>
__device__ void flip(const Trees<Number>& t, int leaf) {
  for (int j = leaf; j >= 0;) {
    const int row = t.row_to(j), before = t.col_before(j);
    if (row >= 0) t.row_to_col[row] = j;
    t.col_to_row[j] = row >= 0 ? row : kHeld;
    j = before;
  }
}

// Augment along the path of each tree that has a leaf, and keep the other roots.
template <typename Number>
__device__ void augment(const Trees<Number>& t, const int* roots, int nroots, Queue<int> left) {
  for (int k = thread_index(); k < nroots; k += thread_count()) {
    const int leaf = t.leaf[roots[k]];
    if (leaf < 0) push(left, roots[k]);
    else flip(t, leaf);
  }
}

// Augment the trees of spare rows. The root of such a tree is the column that the spare row takes.
template <typename Number>
__device__ void augment_spares(const Trees<Number>& t, int ncols, int* wanted) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.leaf[j] < 0 || t.col_to_row[j] == kHeld) continue;
    flip(t, t.leaf[j]);
    atomicAdd(wanted, -1);
  }
}

// Set the way of columns of removed trees to a spare row.
template <typename Number>
__device__ void plant_again(const Trees<Number>& t, int ncols) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    if (t.leaf[t.root_of(j)] >= 0) t.columns[j].way = kSpareWay;
  }
}
