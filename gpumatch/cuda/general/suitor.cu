// Suitor: the matching that takes the edge of the greatest key first, found by bids of vertices.
// The header of cpu/general/suitor.py states the order of the edges and why all vertices may act at
// once. On GPUs: Naim, Manne, Halappanavar, Tumeo, Langguth, IPDPS Workshops 2015.
//
// A group of lanes bids for a vertex. Whoever loses a place to it bids next, so there are no
// rounds. A vertex tries its best neighbour without asking who can be won, which needs no memory
// beyond its row. Once it has lost, it looks only for neighbours whose best bid it can exceed.
//
// If all weights are equal, the key of an edge is its whole place in the order of the edges: the
// degrees, then the scrambled number. Then no comparison reads the rows of other bidders, whose
// places in memory are random.
//
// Encodings
//   Key          weight, or unit / (unit + slack) of duals, as bits in their order; of equal weights
//                kMostDegrees + 1 less the degrees of both ends, above kNumberBits of the scrambled
//                number; 0 never matched
//   degree[v]    the degree of v, kMostDegree at most: a byte, because it is read at random
//   suitor[v]    best bid for v: its bidder << 32 | place of the entry in the bidder's row; kNobody
//   held[v]      a key that the best bid for v has at least; it may lag behind, and never exceeds
//   later        vertices that bid in the next launch, each behind a chain of kChain bids
#include "general/edges.cuh"

using Key = unsigned long long;
using Bid = unsigned long long;

enum Order { kByWeight, kBySlack, kByDegree };

constexpr Bid kNobody = ~0ull;
constexpr int kMostDegree = 255;  // as in cpu/general/suitor.py
constexpr int kMostDegrees = 2 * kMostDegree;
constexpr int kNumberBits = 55;
constexpr int kChain = 4096;  // bids of a group, one after the other, in a launch: some 10 ms

template <typename Offset, typename Weight>
struct Keys {
  Edges<Offset, Weight> edges;
  const unsigned char* degree;
  const double* dual;  // of kBySlack
  double unit;
};

struct Bids {
  Bid* suitor;
  Key* held;
  Queue<int> later;
};

__device__ inline unsigned long long scrambled_pair(int u, int v) {
  unsigned long long number = min(u, v) * 0x9e3779b97f4a7c15ull + max(u, v) * 0xc2b2ae3d27d4eb4full;
  number = (number ^ number >> 32) * 0xd6e8feb86659fd93ull;
  return (number ^ number >> 32) >> (64 - kNumberBits);
}

template <Order kOrder, typename Offset, typename Weight>
__device__ Key key_of(const Keys<Offset, Weight>& keys, Offset e, int u, int v) {
  if (kOrder == kByDegree) {
    const Key fewness = kMostDegrees + 1 - keys.degree[u] - keys.degree[v];
    return fewness << kNumberBits | scrambled_pair(u, v);
  }
  const Number<Weight> weight = counted(keys.edges.weights[e], 0);
  if (kOrder == kByWeight || weight <= 0) return bits_of(weight);
  const double slack = (keys.dual[u] + keys.dual[v]) - static_cast<double>(weight);
  return bits_of(keys.unit / (keys.unit + (slack > 0 ? slack : 0.0)));
}

// Of two edges of v with equal keys, does that to u come before that to the rival?
__device__ inline bool precedes(int u, int rival, int v, const unsigned char* degree) {
  if (degree[u] != degree[rival]) return degree[u] < degree[rival];
  const unsigned long long number = scrambled_pair(u, v), its = scrambled_pair(rival, v);
  return number != its ? number > its : u < rival;
}

__device__ inline int bidder_of(Bid bid) { return static_cast<int>(bid >> 32); }
template <typename Offset>
__device__ Offset place_of(Bid bid) {
  return static_cast<Offset>(bid & 0xffffffffull);
}

template <Order kOrder, typename Offset, typename Weight>
__device__ Key key_of_bid(const Keys<Offset, Weight>& keys, Bid bid, int v) {
  const int u = bidder_of(bid);
  return key_of<kOrder>(keys, keys.edges.indptr[u] + place_of<Offset>(bid), u, v);
}

template <Order kOrder, typename Offset, typename Weight>
__device__ bool loses(const Keys<Offset, Weight>& keys, int u, Key key, int v, const Bids& bids) {
  const Bid best = now(bids.suitor[v]);
  if (best == kNobody) return false;
  const Key rival = key_of_bid<kOrder>(keys, best, v);
  return rival > key || (rival == key && precedes(bidder_of(best), u, v, keys.degree));
}

template <typename Offset>
struct Choice {
  Key key;  // 0: none
  int v;
  Offset e;
};

// The best neighbour of u; among those that it can still win if it `asks`.
template <Order kOrder, int kLanes, typename Offset, typename Weight>
__device__ Choice<Offset> best_neighbour(const Keys<Offset, Weight>& keys,
                                         const Group<kLanes>& group, int u, bool asks,
                                         const Bids& bids) {
  const Edges<Offset, Weight>& edges = keys.edges;
  Choice<Offset> best{0, 0, 0};
  const auto is_better = [&](Key key, int v) {
    return key > best.key || (key == best.key && key != 0 && precedes(v, best.v, u, keys.degree));
  };
  const Offset end = edges.indptr[u + 1];
  for (Offset e = edges.indptr[u] + group.lane; e < end; e += kLanes) {
    const int v = edges.indices[e];
    const Key key = v == u ? 0 : key_of<kOrder>(keys, e, u, v);
    if (!is_better(key, v)) continue;
    if (asks) {
      const Key held = now(bids.held[v]);
      if (key < held || (key == held && loses<kOrder>(keys, u, key, v, bids))) continue;
    }
    best = {key, v, e};
  }
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const Key key = __shfl_xor_sync(group.mask, best.key, step);
    const int v = __shfl_xor_sync(group.mask, best.v, step);
    const Offset e = __shfl_xor_sync(group.mask, best.e, step);
    if (is_better(key, v)) best = {key, v, e};
  }
  return best;
}

// Bid for a neighbour: the vertex that must bid now, u itself if its bid is not the best; -1 none.
template <Order kOrder, typename Offset, typename Weight>
__device__ int bid_for(const Keys<Offset, Weight>& keys, int u, const Choice<Offset>& choice,
                       const Bids& bids) {
  const Bid bid = static_cast<Bid>(u) << 32 | static_cast<Bid>(choice.e - keys.edges.indptr[u]);
  Bid seen = now(bids.suitor[choice.v]);
  while (true) {
    if (seen != kNobody) {
      const Key rival = key_of_bid<kOrder>(keys, seen, choice.v);
      if (rival > choice.key ||
          (rival == choice.key && precedes(bidder_of(seen), u, choice.v, keys.degree))) {
        atomicMax(bids.held + choice.v, rival);
        return u;
      }
    }
    const Bid before = atomicCAS(bids.suitor + choice.v, seen, bid);
    if (before == seen) break;
    seen = before;
  }
  atomicMax(bids.held + choice.v, choice.key);
  return seen == kNobody ? -1 : bidder_of(seen);
}

// Let vertices bid, and all that lose their places to them: those listed, or all without a list.
template <typename Offset, typename Weight, Order kOrder, int kLanes>
__global__ void bid(Keys<Offset, Weight> keys, const int* listed, int length, Bids bids) {
  const Group<kLanes> group;
  for (long long i = group.index; i < length; i += group.groups) {
    int u = listed == nullptr ? static_cast<int>(i) : listed[i];
    bool asks = listed != nullptr;
    for (int step = 0; u >= 0; ++step) {
      if (step == kChain) {
        if (group.lane == 0) push(bids.later, u);
        break;
      }
      const Choice<Offset> best = best_neighbour<kOrder>(keys, group, u, asks, bids);
      if (best.key == 0) break;
      if (group.lane == 0) u = bid_for<kOrder>(keys, u, best, bids);
      u = group.of_first(u);
      asks = true;
    }
  }
}

template <typename Offset>
__global__ void take_degrees(int count, const Offset* indptr, unsigned char* degree) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    const Offset entries = indptr[v + 1] - indptr[v];
    degree[v] = static_cast<unsigned char>(entries < kMostDegree ? entries : kMostDegree);
  }
}

// Set *differs if a weight is not the first one.
template <typename Weight>
__global__ void compare_weights(const Weight* weights, long long length, int* differs) {
  const Weight first = weights[0];
  for (long long e = thread_index(); e < length && now(*differs) == 0; e += thread_count()) {
    if (weights[e] != first) set_now(*differs, 1);
  }
}

// The mates and entries of the vertices that are each other's suitors.
template <typename Offset>
__global__ void take_mates(int count, const Offset* indptr, const Bid* suitor, int* mate,
                           long long* entry) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    const Bid bid = suitor[v];
    const int u = bid == kNobody ? -1 : bidder_of(bid);
    const bool is_mate = u >= 0 && suitor[u] != kNobody && bidder_of(suitor[u]) == v;
    mate[v] = is_mate ? u : -1;
    entry[v] = is_mate ? static_cast<long long>(indptr[u] + place_of<Offset>(bid)) : -1;
  }
}
