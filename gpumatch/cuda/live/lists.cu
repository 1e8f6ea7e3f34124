// Changes of lists of neighbours, many at once.
//
// The edges of a change come in the order of their vertices, each edge once. The edges of one vertex
// are a run, and one warp makes all changes of a run. So no list is changed by two.
#include "live/lists.cuh"

constexpr int kRoom = 4;  // the least room that a list gets when it moves

__device__ inline int warp_index() { return thread_index() / static_cast<int>(kWarp); }
__device__ inline int warp_count() { return thread_count() / static_cast<int>(kWarp); }

// The length of the run that begins with edge `first`; 0 if none begins there.
__device__ inline int run_from(const int* vertices, int count, int first) {
  const int v = vertices[first];
  if (first != 0 && vertices[first - 1] == v) return 0;
  int end = first + 1;
  while (end < count && vertices[end] == v) ++end;
  return end - first;
}

__device__ inline int roomy(int needed) { return 2 * needed + kRoom; }

// The place of w in a list, or -1, for a whole warp.
__device__ inline int place_of(const int* list, int length, int w) {
  for (int base = 0; base < length; base += static_cast<int>(kWarp)) {
    const int at = base + lane_index();
    const unsigned found = __ballot_sync(kWholeWarp, at < length && list[at] == w);
    if (found != 0) return base + __ffs(found) - 1;
  }
  return -1;
}

__global__ void find_edges(Lists lists, const int* vertices, const int* others, int count,
                           bool* found) {
  for (int e = warp_index(); e < count; e += warp_count()) {
    const int v = vertices[e];
    const int at = place_of(lists.pool + lists.start[v], lists.length[v], others[e]);
    if (lane_index() == 0) found[e] = at >= 0;
  }
}

// Decide where lists without room for their run begin anew, at the end of the pool, which has no
// room for them yet; -1 for the others.
__global__ void reserve(Lists lists, const int* vertices, int count, long long* places) {
  for (int e = thread_index(); e < count; e += thread_count()) {
    const int more = run_from(vertices, count, e);
    if (more == 0) continue;
    const int v = vertices[e], needed = lists.length[v] + more;
    places[e] = needed <= lists.room[v]
                    ? -1
                    : static_cast<long long>(atomicAdd(
                          lists.end, static_cast<unsigned long long>(roomy(needed))));
  }
}

__global__ void append(Lists lists, const int* vertices, const int* others, int count,
                       const long long* places) {
  for (int e = warp_index(); e < count; e += warp_count()) {
    const int more = run_from(vertices, count, e);
    if (more == 0) continue;
    const int v = vertices[e], length = lists.length[v];
    int* list = lists.pool + lists.start[v];
    if (places[e] >= 0) {
      int* moved = lists.pool + places[e];
      for (int i = lane_index(); i < length; i += static_cast<int>(kWarp)) moved[i] = list[i];
      list = moved;
    }
    for (int i = lane_index(); i < more; i += static_cast<int>(kWarp)) {
      list[length + i] = others[e + i];
    }
    __syncwarp();
    if (lane_index() != 0) continue;
    lists.length[v] = length + more;
    if (places[e] >= 0) {
      lists.start[v] = places[e];
      lists.room[v] = roomy(length + more);
    }
  }
}

// Remove edges that are there: the last of a list takes the place of one that goes.
__global__ void remove_edges(Lists lists, const int* vertices, const int* others, int count) {
  for (int e = warp_index(); e < count; e += warp_count()) {
    const int more = run_from(vertices, count, e);
    if (more == 0) continue;
    const int v = vertices[e];
    int length = lists.length[v];
    int* list = lists.pool + lists.start[v];
    for (int i = 0; i < more; ++i) {
      const int at = place_of(list, length, others[e + i]);
      --length;
      __syncwarp();
      if (lane_index() == 0) list[at] = list[length];
      __syncwarp();
    }
    if (lane_index() == 0) lists.length[v] = length;
  }
}

// Part the pairs whose edges go.
__global__ void part_pairs(const int* rows, const int* cols, int count, int* row_to_col,
                           int* col_to_row, int* parted) {
  for (int e = thread_index(); e < count; e += thread_count()) {
    if (row_to_col[rows[e]] != cols[e]) continue;
    row_to_col[rows[e]] = col_to_row[cols[e]] = -1;
    atomicAdd(parted, 1);
  }
}

// Number the edges, v * others + w, in the places that indptr gives each list.
__global__ void number_edges(Lists lists, int count, long long others, const long long* indptr,
                             long long* numbers) {
  for (int v = warp_index(); v < count; v += warp_count()) {
    const int* list = lists.pool + lists.start[v];
    for (int i = lane_index(); i < lists.length[v]; i += static_cast<int>(kWarp)) {
      numbers[indptr[v] + i] = v * others + list[i];
    }
  }
}
