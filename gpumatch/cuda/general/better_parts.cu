// The heavier parts of two matchings: cpu/general/better_parts.py has the idea and the encodings.
//
// A path is followed from both of its ends, and a cycle from each vertex until one comes whose
// scrambled number is smaller; the smaller end, or the vertex that comes around, decides. Then the
// parts that are heavier are followed once more, and exchanged.
#include "general/edges.cuh"

constexpr int kLongest = 1 << 16;  // edges of a part that may change

struct Matchings {
  int count;
  int* mate;
  long long* entry;
  const int* other;
  const long long* other_entry;
};

__device__ inline int following(const Matchings& all, int v, bool by_other) {
  return by_other ? all.other[v] : all.mate[v];
}

__device__ inline bool is_before(int u, int v) {
  const unsigned one = scrambled(u), other = scrambled(v);
  return one != other ? one < other : u < v;
}

// Mark the vertices from which the parts begin that the second matching is to have.
template <typename Weight>
__global__ void compare(Matchings all, const Weight* weights, unsigned char* begins) {
  for (int first = thread_index(); first < all.count; first += thread_count()) {
    begins[first] = 0;
    if (all.mate[first] == all.other[first]) continue;
    const bool is_cycle = all.mate[first] >= 0 && all.other[first] >= 0;
    bool by_other = all.other[first] >= 0;
    Number<Weight> gain = 0;
    int v = first, edges = 0;
    bool decides = true;
    while (true) {
      const int next = following(all, v, by_other);
      if (next < 0) break;
      const long long entry = by_other ? all.other_entry[v] : all.entry[v];
      const Number<Weight> weight = counted(weights[entry], 0);
      gain += by_other ? weight : -weight;
      by_other = !by_other;
      v = next;
      ++edges;
      decides = edges <= kLongest && (!is_cycle || v == first || !is_before(v, first));
      if (v == first || !decides) break;
    }
    if (is_cycle) decides = decides && v == first;
    else decides = decides && first < v;
    begins[first] = decides && gain > 0;
  }
}

__global__ void exchange_parts(Matchings all, const unsigned char* begins) {
  for (int first = thread_index(); first < all.count; first += thread_count()) {
    if (begins[first] == 0) continue;
    bool by_other = all.other[first] >= 0;
    int v = first;
    do {
      const int next = following(all, v, by_other);
      all.mate[v] = all.other[v];
      all.entry[v] = all.other_entry[v];
      by_other = !by_other;
      v = next;
    } while (v >= 0 && v != first);
  }
}
