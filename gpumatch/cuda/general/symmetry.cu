// Whether both entries of each edge are there, with one weight: a look at canonical CSR.
//
// Only entries above the diagonal look for their twins. Those below it are counted: the ones that
// have not been found have no twin.
//
// Encodings
//   weights            null if only the pattern counts
//   faults[kAlone]     entries without an equal one at the same place of the transposed matrix
//   faults[kInfinite]  weights that are infinite or NaN
//   faults[kLoops]     entries on the diagonal
#include "general/edges.cuh"

using Count = unsigned long long;

enum Fault { kAlone, kInfinite, kLoops };

template <typename Offset, typename Weight>
__device__ bool has_twin(const Edges<Offset, Weight>& edges, int v, Offset e) {
  const int u = edges.indices[e];
  Offset begin = edges.indptr[u], end = edges.indptr[u + 1];
  while (begin < end) {
    const Offset middle = begin + (end - begin) / 2;
    if (edges.indices[middle] < v) begin = middle + 1;
    else end = middle;
  }
  return begin < edges.indptr[u + 1] && edges.indices[begin] == v &&
         (edges.weights == nullptr || edges.weights[begin] == edges.weights[e]);
}

template <typename Offset, typename Weight>
__global__ void compare_triangles(Edges<Offset, Weight> edges, Count* faults) {
  const Group<4> group;
  Count alone = 0, infinite = 0, loops = 0;  // alone: modulo 2^64 in between
  for (long long v = group.index; v < edges.count; v += group.groups) {
    const Offset end = edges.indptr[v + 1];
    for (Offset e = edges.indptr[v] + group.lane; e < end; e += 4) {
      infinite += edges.weights != nullptr && !(edges.weights[e] - edges.weights[e] == 0);
      loops += edges.indices[e] == v;
      if (edges.indices[e] < v) alone += 1;
      if (edges.indices[e] > v) alone += has_twin(edges, static_cast<int>(v), e) ? -1 : 1;
    }
  }
  add_to(faults + kAlone, alone);
  add_to(faults + kInfinite, infinite);
  add_to(faults + kLoops, loops);
}
