// Duals of a graph with integer weights from those of its double cover, and what they are too high.
// The header of weights.py has the argument.
//
// Encodings
//   dual[v]     the dual of a vertex for doubled weights
//   level       the least dual, which unmatched vertices have
//   entry[v]    the place of v's matched edge, of the smaller end; -1 else
//   excess[v]   what both duals of that edge are above its doubled weight; of an unmatched vertex,
//               what its dual is above the level; 0 else
#include "general/edges.cuh"

constexpr int kLanes = 8;

__device__ inline long long larger(long long one, long long other) {
  return one > other ? one : other;
}

// Raise each vertex by half of what its edges lack at most. So both ends of an edge rise by what it
// lacks, or more.
template <typename Offset>
__global__ void raise_duals(Edges<Offset, long long> edges, long long level, const long long* dual,
                            long long* raised) {
  const Group<kLanes> group;
  for (long long v = group.index; v < edges.count; v += group.groups) {
    const long long own = larger(dual[v], level);
    long long most = 0;
    for (Offset e = edges.indptr[v] + group.lane; e < edges.indptr[v + 1]; e += kLanes) {
      const long long other = larger(dual[edges.indices[e]], level);
      most = larger(most, 2 * edges.weights[e] - own - other);
    }
    most = group.joined(most, larger);
    if (group.lane == 0) raised[v] = own + (most + 1) / 2;
  }
}

template <typename Offset>
__global__ void take_entries(Edges<Offset, long long> edges, long long level, const long long* dual,
                             const int* mate, long long* entry, double* excess) {
  const Group<kLanes> group;
  for (long long v = group.index; v < edges.count; v += group.groups) {
    const int partner = mate[v];
    long long place = -1;
    if (partner > v) {
      for (Offset e = edges.indptr[v] + group.lane; e < edges.indptr[v + 1]; e += kLanes) {
        if (edges.indices[e] == partner) place = e;
      }
    }
    place = group.joined(place, larger);
    if (group.lane != 0) continue;
    entry[v] = place;
    long long above = 0;
    if (partner < 0) above = dual[v] - level;
    if (partner > v) above = dual[v] + dual[partner] - 2 * edges.weights[place];
    excess[v] = static_cast<double>(above);
  }
}
