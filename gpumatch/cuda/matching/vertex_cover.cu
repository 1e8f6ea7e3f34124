// The alternating search that finds König's vertex cover of a maximum matching, in bounded
// cooperative launches. state.found[0] is a free column reached + 1: then the matching is not
// maximum.
#include "frontier.cuh"

// From free rows along any edge to a column, from a column along its matched edge to a row.
template <typename Offset>
struct CoverVisitor {
  const Offset* indptr;
  const int* indices;
  const int* col_to_row;
  int* row_seen;
  int* col_seen;
  int* free_col;  // a free column reached + 1: the matching is not maximum
  Queue<int> out;
  int level;

  __device__ Walk enter(int row) const {
    return {row, 0, indices + indptr[row], indices + indptr[row + 1]};
  }

  __device__ int look(int col) const { return col_seen[col]; }

  __device__ void visit(int, int, int col, int seen) const {
    if (seen != 0 || atomicExch(col_seen + col, 1) != 0) return;
    const int mate = col_to_row[col];
    if (mate < 0) {
      *free_col = col + 1;
    } else {
      row_seen[mate] = 1;
      push(out, mate);
    }
  }

  __device__ bool done(int) const { return false; }
};

template <typename Offset>
__global__ void search_cover(const Offset* indptr, const int* indices, const int* col_to_row,
                             int* row_seen, int* col_seen, Frontier frontier, int max_levels) {
  const CoverVisitor<Offset> visitor = {indptr,   indices,  col_to_row,
                                        row_seen, col_seen, frontier.state->found};
  search_levels(frontier, visitor, max_levels);
}
