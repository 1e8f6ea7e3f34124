// Strong components of a digraph in topological order, in bounded cooperative launches: components.py
// says how.
//
// Encodings
//   vertex      a number from 0 up in each round; row_of[vertex] is its row. Vertices of a group
//               follow each other, and so do groups, in topological order.
//   first[v]    the first vertex of v's group
//   place[v]    for the first vertex of a group: the first of the places that the group has in the
//               order of all components; it has as many as vertices
//   reach[v]    ancestor: the greatest vertex known that leads to v; descendant: that v leads to
//   item        a vertex that stands for a component that is found, its greatest; or a vertex whose
//               component is not found yet
//   key         of an item: its ancestor, and among equals the greater descendants first
#include "frontier.cuh"

struct Arc {
  int tail;
  int head;
};

struct __align__(8) Reach {
  int ancestor;
  int descendant;
};

// The vertices and arcs of a round.
struct Digraph {
  int* row_of;
  int* first;
  int* place;
  Arc* arcs;
};

// What a search leaves for the host, and for its next launch.
struct RoundState {
  int vertices;
  int arcs;
  int sweeps;      // over all arcs, in this round
  bool is_known;   // the reach of the round's vertices; then also:
  int items;
  int unresolved;  // of these
  int components;
  int changed[3];
};

struct Search {
  RoundState* state;
  unsigned* barrier;
  int* counts;       // for compaction, a number a block
  Reach* reach;
  int* items;
  long long* keys;
  int* number_of;    // of a vertex: its number in the next round
  int* component;    // of a row: a row of its component, then the component's number
  int* row_at;       // of a place: the row that stands for the component there, -1 for none
};

constexpr int kLeastSlice = 4096;  // arcs of a block: fewer blocks meet at barriers
constexpr int kPasses = 4;         // of a block over its arcs, before it meets the others

__device__ inline bool is_resolved(Reach reach) { return reach.ancestor == reach.descendant; }

__device__ inline bool raise(int* place, int known, int number) {
  if (known >= number) return false;
  atomicMax(place, number);
  return true;
}

// -- the first round ------------------------------------------------------------------------------

// Vertices are the rows inside, in their order; arcs are the entries between them.
template <typename Offset>
__global__ void begin(const int* owners, const int* indices, const int* col_to_row,
                      const bool* inside, int nrows, Offset entries, Search search, Digraph own) {
  const Compaction grid = {search.counts, search.barrier};
  const int vertices = compact(
      grid, nrows, [&](int row) { return inside[row]; },
      [&](int vertex, int row) {
        own.row_of[vertex] = row;
        own.first[vertex] = own.place[vertex] = 0;
        search.component[row] = vertex;
      });
  grid_barrier(search.barrier);
  const int arcs = compact(
      grid, static_cast<int>(entries),
      [&](int entry) {
        const int tail = owners[entry];
        if (!inside[tail]) return false;
        const int head = col_to_row[indices[entry]];
        return head != tail && inside[head];
      },
      [&](int at, int entry) {
        own.arcs[at] = {search.component[owners[entry]],
                        search.component[col_to_row[indices[entry]]]};
      });
  if (thread_index() != 0) return;
  *search.state = RoundState{};
  search.state->vertices = vertices;
  search.state->arcs = arcs;
}

// -- a round --------------------------------------------------------------------------------------

// What an arc tells of its ends, and of the vertices that stand for them: whether anything is new.
// What is read may be in a cache, and older than what others have written. It only rises, so that is
// no error. After a barrier it is new, so a sweep that finds nothing new has missed nothing.
__device__ inline bool relax(Arc arc, Reach* reach) {
  const Reach tail = reach[arc.tail], head = reach[arc.head];
  int ancestor = tail.ancestor, descendant = head.descendant;
  const Reach above = ancestor == arc.tail ? tail : reach[ancestor];
  const Reach below = descendant == arc.head ? head : reach[descendant];
  ancestor = max(ancestor, above.ancestor);
  descendant = max(descendant, below.descendant);
  bool is_new = raise(&reach[arc.tail].ancestor, tail.ancestor, ancestor);
  is_new |= raise(&reach[arc.tail].descendant, tail.descendant, descendant);
  is_new |= raise(&reach[arc.head].ancestor, head.ancestor, ancestor);
  is_new |= raise(&reach[arc.head].descendant, head.descendant, descendant);
  is_new |= raise(&reach[tail.ancestor].descendant, above.descendant, descendant);
  is_new |= raise(&reach[head.descendant].ancestor, below.ancestor, ancestor);
  return is_new;
}

// Sweep over all arcs until nothing is new (true), or so many sweeps have passed (false). A block
// passes over its own arcs again and again before it meets the others.
__device__ inline bool propagate(const Search& search, const Arc* arcs, int narcs, int max_sweeps) {
  RoundState& state = *search.state;
  const unsigned slice = max(static_cast<unsigned>(kLeastSlice), (narcs + gridDim.x - 1) / gridDim.x);
  const unsigned begin = min(blockIdx.x * slice, static_cast<unsigned>(narcs));
  const unsigned end = min(begin + slice, static_cast<unsigned>(narcs));
  const int start = now(state.sweeps);
  for (int sweep = start; sweep - start < max_sweeps; ++sweep) {
    if (thread_index() == 0) state.changed[(sweep + 1) % 3] = 0;
    bool is_new = false, is_over = begin == end;
    for (int pass = 0; pass < kPasses && !is_over; ++pass) {
      bool is_new_now = false;
      for (unsigned at = begin + threadIdx.x; at < end; at += blockDim.x) {
        is_new_now |= relax(arcs[at], search.reach);
      }
      is_over = __syncthreads_count(is_new_now) == 0;
      is_new |= !is_over;
    }
    if (is_new && threadIdx.x == 0) state.changed[sweep % 3] = 1;
    grid_barrier(search.barrier);
    if (now(state.changed[sweep % 3]) == 0) return true;
    if (thread_index() == 0) state.sweeps = sweep + 1;
  }
  return false;
}

// Find the reach of each vertex along the round's arcs; then, if so many sweeps suffice, the items
// and their keys.
__global__ void find_reach(Search search, Digraph own, int max_sweeps) {
  RoundState& state = *search.state;
  const int vertices = state.vertices;
  if (now(state.sweeps) == 0) {
    for_all(vertices, [](int v) { return v; },
            [&](int v, int) { search.reach[v] = {v, v}; });
    if (thread_index() == 0) state.unresolved = 0;
  }
  grid_barrier(search.barrier);
  if (!propagate(search, own.arcs, state.arcs, max_sweeps)) return;
  int unresolved = 0;
  const int items = compact(
      Compaction{search.counts, search.barrier}, vertices,
      [&](int v) {
        const Reach reach = search.reach[v];
        return !is_resolved(reach) || reach.ancestor == v;
      },
      [&](int at, int v) {
        const Reach reach = search.reach[v];
        search.items[at] = v;
        search.keys[at] = static_cast<long long>(reach.ancestor) << 32 | (0x7fffffff - reach.descendant);
        unresolved += !is_resolved(reach);
      });
  for_all(vertices, [&](int v) { return search.reach[v]; },
          [&](int v, Reach reach) {
            if (is_resolved(reach)) {
              search.component[own.row_of[v]] = own.row_of[reach.ancestor];
            }
          });
  add_to(&state.unresolved, unresolved);
  if (thread_index() != 0) return;
  state.items = items;
  state.is_known = true;
}

// The first of the sorted keys that is not below a key.
__device__ inline int first_from(const long long* keys, int count, long long key) {
  int from = 0;
  while (from < count) {
    const int middle = from + (count - from) / 2;
    if (keys[middle] < key) from = middle + 1;
    else count = middle;
  }
  return from;
}

// Give each component that is found its place, and make the next round of the others: a group for
// each key, and the arcs inside groups. order[i] is the item with the i-th of the sorted keys.
__global__ void regroup(const long long* keys, const long long* order, Search search,
                         Digraph own, Digraph next) {
  const Compaction grid = {search.counts, search.barrier};
  RoundState& state = *search.state;
  const int items = state.items, arcs = state.arcs;
  const auto item = [&](int i) { return search.items[order[i]]; };
  const auto place_of = [&](int i, int v) {
    const int first = own.first[v];
    const long long least = static_cast<long long>(first) << 32;
    return own.place[first] + i - (keys[0] >= least ? 0 : first_from(keys, items, least));
  };
  for_all(items, item, [&](int i, int v) {
    if (is_resolved(search.reach[v])) search.row_at[place_of(i, v)] = own.row_of[v];
  });
  const int vertices = compact(
      grid, items, [&](int i) { return !is_resolved(search.reach[item(i)]); },
      [&](int vertex, int i) {
        const int v = item(i);
        const bool is_first = i == 0 || keys[i - 1] != keys[i];
        next.row_of[vertex] = own.row_of[v];
        next.place[vertex] = place_of(i, v);
        next.first[vertex] = is_first ? v : item(first_from(keys, items, keys[i]));
        search.number_of[v] = vertex;
      });
  grid_barrier(search.barrier);
  for_all(vertices, [&](int vertex) { return next.first[vertex]; },
          [&](int vertex, int v) { next.first[vertex] = search.number_of[v]; });
  const int left = compact(
      grid, arcs,
      [&](int at) {
        const Arc arc = own.arcs[at];
        const Reach tail = search.reach[arc.tail], head = search.reach[arc.head];
        return !is_resolved(tail) && tail.ancestor == head.ancestor &&
               tail.descendant == head.descendant;
      },
      [&](int at, int from) {
        const Arc arc = own.arcs[from];
        next.arcs[at] = {search.number_of[arc.tail], search.number_of[arc.head]};
      });
  if (thread_index() != 0) return;
  state.vertices = vertices;
  state.arcs = left;
  state.sweeps = 0;
  state.is_known = false;
  for (int& flag : state.changed) flag = 0;
}

// -- the end --------------------------------------------------------------------------------------

// Number the components by their places.
__global__ void number_components(const bool* inside, int nrows, Search search) {
  const int components = compact(
      Compaction{search.counts, search.barrier}, nrows,
      [&](int place) { return search.row_at[place] >= 0; },
      [&](int number, int place) { search.number_of[search.row_at[place]] = number; });
  grid_barrier(search.barrier);
  for_all(nrows, [&](int row) { return inside[row] ? search.number_of[search.component[row]] : -1; },
          [&](int row, int number) { search.component[row] = number; });
  if (thread_index() == 0) search.state->components = components;
}
