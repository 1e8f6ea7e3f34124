// The edges of a symmetric graph, and groups of lanes that read a row together.
#pragma once
#include "grid.cuh"
#include "numbers.cuh"

template <typename Offset, typename Weight>
struct Edges {
  int count;  // of vertices
  const Offset* indptr;
  const int* indices;
  const Weight* weights;  // of entries, equal for both of an edge; null: all weigh 1
};

// Lanes of a warp that act together. The kWarp / kLanes groups of a warp go their own ways.
template <int kLanes>
struct Group {
  unsigned mask;
  int lane;         // in the group
  long long index;  // in the grid
  long long groups;

  __device__ Group()
      : mask(kWholeWarp >> (kWarp - kLanes) << lane_index() / kLanes * kLanes),
        lane(lane_index() % kLanes),
        index(thread_index() / kLanes),
        groups(thread_count() / kLanes) {}

  template <typename T>
  __device__ T of_first(T value) const {
    return __shfl_sync(mask, value, lane_index() / kLanes * kLanes);
  }
  template <typename T, typename Join>
  __device__ T joined(T value, Join join) const {
    for (int step = kLanes / 2; step > 0; step /= 2) {
      value = join(value, __shfl_xor_sync(mask, value, step));
    }
    return value;
  }
};
