// The work of a single rank on alternating forests that are divided among ranks, each with a GPU
// (gpumatch/distributed/forests.py). Of several threads that reach a column, one wins.
//
// Encodings
//   row_root, col_root, parent, done, seen   as in gpumatch/cpu/distributed/forests.py
//   taken, seen           marks: bytes, 0 or 1, in whole words of four
//   offers                (column, row, root), all global
//   followers             (mate, root), all global
//   ends                  (root, column), all global
#include "frontier.cuh"

// Set a mark. Returns true if it was not set before.
__device__ inline bool claim(unsigned char* marks, int at) {
  if (now(marks[at]) != 0) return false;
  unsigned* const word = reinterpret_cast<unsigned*>(marks) + at / 4;
  const unsigned mark = 1u << at % 4 * 8;
  return (atomicOr(word, mark) & mark) == 0;
}

// wanted[]: the first column that each row can claim; -1 for none.
template <typename Offset>
__global__ void claim_free(const int* rows, int count, const Offset* indptr, const int* indices,
                           unsigned char* taken, int* wanted) {
  for (int k = thread_index(); k < count; k += thread_count()) {
    const Offset end = indptr[rows[k] + 1];
    int found = -1;
    for (Offset e = indptr[rows[k]]; e < end && found < 0; ++e) {
      if (claim(taken, indices[e])) found = indices[e];
    }
    wanted[k] = found;
  }
}

template <typename Offset>
struct Offering {
  const Offset* indptr;
  const int* indices;
  const int* row_root;
  const bool* done;
  int first;
  unsigned char* seen;
  int* offers;
  int* count;

  __device__ Walk enter(int row) const {
    const int root = row_root[row];
    if (done[root]) return {0, 0, nullptr, nullptr};
    return {row, root, indices + indptr[row], indices + indptr[row + 1]};
  }
  __device__ unsigned char look(int col) const { return now(seen[col]); }
  __device__ void visit(int row, int root, int col, unsigned char known) {
    if (known != 0 || !claim(seen, col)) return;
    int* const offer = offers + 3ll * take_place(count);
    offer[0] = col;
    offer[1] = first + row;
    offer[2] = root;
  }
};

// Make an offer to each column that is not seen and has an edge to a row of the frontier.
template <typename Offset>
__global__ void expand_rows(const int* frontier, int size, int first, const Offset* indptr,
                            const int* indices, const int* row_root, const bool* done,
                            unsigned char* seen, int* offers, int* count) {
  Offering<Offset> offering{indptr, indices, row_root, done, first, seen, offers, count};
  expand(whole_grid(), frontier, size, offering);
}

// Add own columns to trees, each by one of its offers. The mates of matched columns are followers.
// An unmatched column ends a path.
__global__ void join_columns(const int* offers, int size, int first, const int* col_to_row,
                             const bool* done, int* col_root, int* parent, int* followers,
                             int* ends, int* counts) {
  for (int k = thread_index(); k < size; k += thread_count()) {
    const int* const offer = offers + 3ll * k;
    const int col = offer[0] - first, root = offer[2];
    if (done[root] || atomicCAS(col_root + col, -1, root) != -1) continue;
    parent[col] = offer[1];
    const int mate = col_to_row[col];
    if (mate >= 0) {
      int* const follower = followers + 2ll * take_place(counts);
      follower[0] = mate;
      follower[1] = root;
    } else {
      int* const end = ends + 2ll * take_place(counts + 1);
      end[0] = root;
      end[1] = offer[0];
    }
  }
}
