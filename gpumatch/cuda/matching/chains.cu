// Long chains of vertices that have two neighbours, contracted before a search and matched after it.
//
// A hub is a vertex with three entries or more. All others are in chains: paths that end at a hub or
// at a vertex without another neighbour, and cycles. A chain of `length` vertices has these maximum
// matchings; positions count from its start, which is the end without a hub if there is one:
//   no hub          (0, 1), (2, 3), ..
//   a hub behind    the same. If the length is odd, the last vertex may have the hub
//   two hubs, even  (0, 1), (2, 3), ..; or each hub has its end of the chain, and the others are
//                   (1, 2), (3, 4), .. with one pair more. So the chain is as an edge of the hubs
//   two hubs, odd   one vertex is left over, which may have either hub. So the chain is as one
//                   vertex, with an edge to each hub; the first vertex stands for it
//   a cycle         each row has the next column in one direction
// So the contracted graph has the same vertices, an edge for each pair of hubs that are neighbours,
// and at most two for each chain. If its matching is maximum, so is that of the graph (the chains'
// pairs are added to both).
//
// Where a vertex is in its chain is found by pointer jumping (Wyllie 1979). Both directions of each
// vertex are nodes. Each points to a node that is ahead of it, and knows how far it is. In each round
// it takes the pointer of that node, and adds both distances. A node's 64 bits are read and written
// at once, so they are true whatever the others do in the meantime.
//
// Encodings
//   vertices        rows, then columns: column c is nrows + c
//   neighbours[v]   the two neighbours of a vertex in a chain, or kNone; {kHub, kHub} of a hub
//   node            2 * v + s: from vertex v on, to its neighbour s. It is the last one if that is a
//                   hub or kNone, and then points to itself
//   steps[node]     the node that it points to, and the vertices from it to there, which are 0 for a
//                   last node only; in `least`, the least node from it to there instead. Nodes in
//                   cycles have no last one, and their number stays at kFar
//   mates           of the contracted graph, as in engine.cu
//   wins[row]       which of equal edges a matched hub has: kDirect, or the first vertex of a chain
#include "grid.cuh"

constexpr int kNone = -1;
constexpr int kHub = -2;
constexpr int kDirect = -1;
constexpr int kChainDegree = 2;
constexpr int kFar = 1 << 29;  // more than the vertices of a chain

struct __align__(8) Pair {
  int first;
  int second;
};

struct __align__(8) Step {
  int node;
  int number;
};

template <typename Offset>
struct Sides {
  const Offset* indptr;
  const int* indices;
  const Offset* col_indptr;
  const int* col_indices;
  int nrows;
  int ncols;
};

struct Chains {
  const Pair* neighbours;
  const Step* steps;
  const Step* least;  // null if there are no cycles
  int nrows;
  int ncols;

  __device__ int vertices() const { return nrows + ncols; }
  __device__ bool is_hub(int v) const { return neighbours[v].first == kHub; }
  __device__ int neighbour(int v, int side) const {
    return side == 0 ? neighbours[v].first : neighbours[v].second;
  }
  __device__ int end_of(int node) const { return neighbour(node >> 1, node & 1); }
  __device__ bool is_in_cycle(int v) const { return steps[steps[2 * v].node].number != 0; }
};

// Where a vertex is in a chain.
struct Place {
  int position;
  int length;
  int first;   // the vertex at position 0
  int last;    // the last vertex
  int before;  // the hub at its start, or kNone
  int after;   // the hub at its end, or kNone
  int back;    // the side of the neighbour towards the start
};

__device__ inline Place place_of(const Chains& c, int v) {
  const Step ahead[] = {c.steps[2 * v], c.steps[2 * v + 1]};
  const int hubs[] = {c.end_of(ahead[0].node), c.end_of(ahead[1].node)};
  const bool has_both = (hubs[0] < 0) == (hubs[1] < 0);
  const int back = (has_both ? ahead[0].node < ahead[1].node : hubs[0] < 0) ? 0 : 1;
  const Step start = ahead[back], end = ahead[1 - back];
  return {start.number, start.number + end.number + 1, start.node >> 1, end.node >> 1,
          hubs[back], hubs[1 - back], back};
}

// Find the neighbours of the vertices in chains. counts[0] gets the entries of hubs.
template <typename Offset>
__global__ void find_neighbours(Sides<Offset> g, Pair* neighbours, unsigned long long* counts) {
  unsigned long long entries = 0;
  for (int v = thread_index(); v < g.nrows + g.ncols; v += thread_count()) {
    const bool is_row = v < g.nrows;
    const Offset* const offsets = is_row ? g.indptr + v : g.col_indptr + (v - g.nrows);
    const int* const indices = is_row ? g.indices : g.col_indices;
    const Offset begin = offsets[0], degree = offsets[1] - begin;
    Pair found = {kNone, kNone};
    const int beyond = is_row ? g.nrows : 0;
    if (degree > kChainDegree) {
      found = {kHub, kHub};
      entries += degree;
    } else if (degree > 0) {
      found.first = indices[begin] + beyond;
      const int other = indices[begin + degree - 1] + beyond;
      if (other != found.first) found.second = other;
    }
    neighbours[v] = found;
  }
  add_to(counts, entries);
}

// The node that follows a node; itself if it is the last one.
__device__ inline int after(const Pair* neighbours, int node) {
  const int v = node >> 1;
  const Pair own = neighbours[v];
  const int next = node & 1 ? own.second : own.first;
  if (next < 0 || neighbours[next].first == kHub) return node;
  return 2 * next + (neighbours[next].first == v ? 1 : 0);
}

__global__ void begin_steps(const Pair* neighbours, int nodes, Step* steps) {
  for (int x = thread_index(); x < nodes; x += thread_count()) {
    const int next = after(neighbours, x);
    steps[x] = {next, next != x};
  }
}

__global__ void begin_least(const Pair* neighbours, int nodes, Step* least) {
  for (int x = thread_index(); x < nodes; x += thread_count()) {
    least[x] = {after(neighbours, x), x};
  }
}

__device__ inline Step step_now(const Step* step) {
  const long long both = now(*reinterpret_cast<const long long*>(step));
  return {static_cast<int>(both), static_cast<int>(both >> 32)};
}

__device__ inline void set_step(Step* step, Step value) {
  const long long both = static_cast<long long>(value.number) << 32 |
                         static_cast<unsigned>(value.node);
  set_now(*reinterpret_cast<long long*>(step), both);
}

// A round of jumps. counts[1] gets the nodes that may jump again.
__global__ void jump(int nodes, Step* steps, unsigned long long* counts) {
  unsigned long long going = 0;
  for (int x = thread_index(); x < nodes; x += thread_count()) {
    const Step own = step_now(steps + x), other = step_now(steps + own.node);
    if (other.number == 0) continue;
    set_step(steps + x, {other.node, min(own.number + other.number, kFar)});
    ++going;
  }
  add_to(counts + 1, going);
}

// The same for the least node ahead.
__global__ void jump_to_least(int nodes, Step* least) {
  for (int x = thread_index(); x < nodes; x += thread_count()) {
    const Step own = step_now(least + x), other = step_now(least + own.node);
    set_step(least + x, {other.node, min(own.number, other.number)});
  }
}

__device__ inline Pair edge_of(const Chains& c, int one, int other) {
  return one < c.nrows ? Pair{one, other - c.nrows} : Pair{other, one - c.nrows};
}

// List the edges that stand for chains, {row, column}. counts[2] gets the pairs in chains that match
// no hub.
__global__ void list_chains(Chains c, Pair* items, int* size, unsigned long long* counts) {
  const Queue<Pair> edges = {items, size};
  unsigned long long pairs = 0;
  for (int v = thread_index(); v < c.vertices(); v += thread_count()) {
    if (c.is_hub(v)) continue;
    if (c.is_in_cycle(v)) {
      pairs += v < c.nrows;
      continue;
    }
    const Place at = place_of(c, v);
    if (at.position != 0) continue;
    pairs += at.length / 2;
    const bool is_even = at.length % 2 == 0;
    if (at.before >= 0 && is_even) {
      push(edges, edge_of(c, at.before, at.after));
    } else if (at.before >= 0) {
      push(edges, edge_of(c, v, at.before));
      if (at.after != at.before) push(edges, edge_of(c, v, at.after));
    } else if (at.after >= 0 && !is_even) {
      push(edges, edge_of(c, at.last, at.after));
    }
  }
  add_to(counts + 2, pairs);
}

// List the edges of two hubs, {row, column}, with a warp for each row.
template <typename Offset>
__global__ void list_hubs(Sides<Offset> g, Chains c, Pair* items, int* size) {
  const Queue<Pair> edges = {items, size};
  const int warps = thread_count() / kWarp;
  for (int row = thread_index() / kWarp; row < g.nrows; row += warps) {
    if (!c.is_hub(row)) continue;
    const Offset end = g.indptr[row + 1];
    for (Offset k = g.indptr[row] + lane_index(); k < end; k += kWarp) {
      const int col = g.indices[k];
      if (c.is_hub(g.nrows + col)) push(edges, Pair{row, col});
    }
  }
}

struct Mates {
  int* row_to_col;
  int* col_to_row;

  __device__ int of(const Chains& c, int v) const {
    if (v >= c.nrows) return col_to_row[v - c.nrows];
    const int col = row_to_col[v];
    return col < 0 ? -1 : c.nrows + col;
  }

  __device__ void set(const Chains& c, int v, int mate) const {
    if (v < c.nrows) row_to_col[v] = mate < 0 ? -1 : mate - c.nrows;
    else col_to_row[v - c.nrows] = mate;
  }
};

// Let the edges of two hubs win where their hubs are matched, with a warp for each row.
template <typename Offset>
__global__ void find_direct(Sides<Offset> g, Chains c, Mates mates, int* wins) {
  const int warps = thread_count() / kWarp;
  for (int row = thread_index() / kWarp; row < g.nrows; row += warps) {
    const int col = mates.row_to_col[row];
    if (col < 0 || !c.is_hub(row) || !c.is_hub(g.nrows + col)) continue;
    const Offset end = g.indptr[row + 1];
    for (Offset k = g.indptr[row] + lane_index(); k < end; k += kWarp) {
      if (g.indices[k] == col) wins[row] = kDirect;
    }
  }
}

// True if the hubs at both ends of a chain of even length are each other's mate.
__device__ inline bool joins_mates(const Chains& c, const Mates& mates, const Place& at) {
  return at.before >= 0 && at.after >= 0 && at.length % 2 == 0 &&
         mates.of(c, at.before) == at.after;
}

// Let the chain with the least first vertex win of those that join the same hubs.
__global__ void find_winners(Chains c, Mates mates, int* wins) {
  for (int v = thread_index(); v < c.vertices(); v += thread_count()) {
    if (c.is_hub(v) || c.is_in_cycle(v)) continue;
    const Place at = place_of(c, v);
    if (at.position != 0 || !joins_mates(c, mates, at)) continue;
    atomicMin(wins + (at.before < c.nrows ? at.before : at.after), v);
  }
}

// Match the vertices of the chains. `found` begins as a copy of `mates`.
__global__ void match_chains(Chains c, Mates mates, const int* wins, Mates found) {
  for (int v = thread_index(); v < c.vertices(); v += thread_count()) {
    if (c.is_hub(v)) continue;
    if (c.is_in_cycle(v)) {
      if (v >= c.nrows) continue;
      const int col = c.neighbour(v, c.least[2 * v].number & 1);
      found.set(c, v, col);
      found.set(c, col, v);
      continue;
    }
    const Place at = place_of(c, v);
    const bool is_first = at.position == 0, is_last = at.position == at.length - 1;
    bool is_shifted = false;  // the pairs are (1, 2), (3, 4), ..
    int hub = kNone;
    if (joins_mates(c, mates, at)) {
      is_shifted = wins[at.before < c.nrows ? at.before : at.after] == at.first;
      if (is_shifted && is_first) hub = at.before;
      if (is_shifted && is_last) hub = at.after;
    } else if (at.before >= 0 && at.length % 2 == 1) {
      const int mate = mates.of(c, at.first);
      is_shifted = mate < 0 || mate == at.before;
      if (is_shifted ? is_first : is_last) hub = mate;
    } else if (at.after >= 0 && at.length % 2 == 1 && is_last) {
      hub = mates.of(c, v);
    }
    const int other = is_shifted ? ((at.position + 1) ^ 1) - 1 : at.position ^ 1;
    int mate = hub;
    if (hub < 0 && other >= 0 && other < at.length) {
      mate = c.neighbour(v, other < at.position ? at.back : 1 - at.back);
    }
    found.set(c, v, mate);
    if (hub >= 0) found.set(c, hub, v);
  }
}
