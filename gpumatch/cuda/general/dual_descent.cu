// Duals that bound what any matching weighs, lowered by sweeps over all vertices at once.
// The header of cpu/general/dual_descent.py states the theorem; a group of lanes adds up a row.
//
// The sum of exponentials may be rough, because a dual is lowered to the greatest w - y_u at most,
// which is found without rounding but that of its subtractions.
#include "general/edges.cuh"

constexpr double kSteepest = 1e300;  // beyond, 1 / temperature may be infinite
constexpr int kAtOnce = 4;  // entries that a lane loads before it looks at them
constexpr int kNegligible = 20;  // temperatures below the greatest: such a term adds less than 2e-9

// The weight of the edge of each vertex, 0 without one.
template <typename Weight>
__global__ void weigh(int count, const long long* entry, const Weight* weights, double* weight) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    weight[v] = entry[v] < 0 ? 0.0 : static_cast<double>(counted(weights[entry[v]], 0));
  }
}

template <typename Offset, typename Weight, int kLanes>
__global__ void sweep(Edges<Offset, Weight> edges, const double* dual, double temperature,
                      double* lowered) {
  const Group<kLanes> group;
  const double least = -kNegligible * temperature;
  const double scale = temperature > 1 / kSteepest ? 1 / temperature : kSteepest;
  for (long long v = group.index; v < edges.count; v += group.groups) {
    const double own = dual[v];
    double top = -own;
    float total = group.lane == 0 && -own > least ? __expf(static_cast<float>(-own * scale)) : 0.0f;
    const Offset end = edges.indptr[v + 1];
    for (Offset first = edges.indptr[v] + group.lane; first < end; first += kAtOnce * kLanes) {
      double excess[kAtOnce];  // -infinity for what is no edge
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const Offset e = first + k * kLanes;
        const int u = e < end ? edges.indices[e] : static_cast<int>(v);
        const double weight = u == v ? -far<double>() : counted(edges.weights[e], 0);
        excess[k] = weight - own - dual[u];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        top = excess[k] > top ? excess[k] : top;
        if (excess[k] > least) total += __expf(static_cast<float>(excess[k] * scale));
      }
    }
    top = group.joined(top, [](double one, double other) { return one > other ? one : other; });
    total = group.joined(total, [](float one, float other) { return one + other; });
    if (group.lane != 0) continue;
    if (top > least) {
      const double soft = temperature * static_cast<double>(logf(total));
      top = soft > top ? soft : top;
    }
    lowered[v] = own + 0.5 * top;
  }
}

// Duals that cover each edge as exact numbers, of those after a sweep.
__global__ void cover(int count, double factor, double smallest, double* dual) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    if (dual[v] > 0) dual[v] = dual[v] * factor + smallest;
  }
}
