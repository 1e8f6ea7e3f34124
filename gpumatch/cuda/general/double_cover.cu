// A matching of a graph from a maximum matching of its double cover. The header of
// cpu/general/double_cover.py states what paths and cycles of the cover's pairs are worth.
//
// Most vertices are in cycles of two arcs, which are edges of the matching. All others are numbered
// along their path or cycle by pointer jumping: after k rounds a vertex knows the 2^k vertices
// before it. A cycle is cut before its smallest vertex, which all of its vertices know by then, and
// numbered in as many rounds more. Then each vertex with an even number takes the next one.
//
// An odd cycle leaves one vertex, which may be any. So two odd cycles with an edge between them
// need leave none: the ends of the edge take each other. Each cycle is joined with one other at
// most, and its vertices take turns from its joint on.
//
// Encodings
//   after[v]    the column of row v; before[v] the row of column v; -1 none
//   open        the vertices in longer paths and cycles, in any order
//   lengths[v]  of an odd cycle, at its smallest vertex; else 0
//   cycle_of[v] the smallest vertex of the odd cycle of v; -1 if v is in none
//   joints[v]   of an odd cycle, at its smallest vertex: its vertex that is joined; -1 none
//   Link        of an open vertex: the vertex so far before it, -1 beyond the begin; the steps to
//               it, or to the begin; the smallest vertex among those passed, itself too
#include "grid.cuh"

struct Link {
  int jump;
  int steps;
  int least;
};

struct Cover {
  int count;
  const int* after;
  const int* before;
  int* mate;
  Queue<int> open;
};

__global__ void take_pairs(Cover cover) {
  for (int v = thread_index(); v < cover.count; v += thread_count()) {
    const int next = cover.after[v], last = cover.before[v];
    const bool is_pair = next == last;  // also if both are -1
    cover.mate[v] = is_pair ? next : -1;
    if (!is_pair) push(cover.open, v);
  }
}

// The first links. In the second pass cycles are cut, and paths keep their numbers.
__global__ void begin_links(const int* open, int length, const int* before, const Link* first_pass,
                            Link* links) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i];
    const bool is_again = first_pass != nullptr, is_on_path = is_again && first_pass[v].jump < 0;
    const bool is_cut = is_on_path || (is_again && first_pass[v].least == v);
    const int last = is_cut ? -1 : before[v];
    links[v] = {last, is_on_path ? first_pass[v].steps : last >= 0, v};
  }
}

__global__ void double_links(const int* open, int length, const Link* links, Link* doubled) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i];
    Link link = links[v];
    if (link.jump >= 0) {
      const Link other = links[link.jump];
      link = {other.jump, link.steps + other.steps, min(link.least, other.least)};
    }
    doubled[v] = link;
  }
}

// Match vertices with even numbers to the next ones. The last of an odd cycle goes without.
__global__ void take_turns(const int* open, int length, const int* after, const int* before,
                           const Link* links, int* mate, int* lengths, int* odd_cycles) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i], steps = links[v].steps, next = after[v];
    const bool is_even = steps % 2 == 0;
    const bool ends_odd_cycle = is_even && next >= 0 && links[next].steps == 0 && steps > 0;
    if (ends_odd_cycle) {
      atomicAdd(odd_cycles, 1);
      lengths[next] = steps + 1;
    }
    mate[v] = ends_odd_cycle ? -1 : is_even ? next : before[v];
  }
}

__global__ void name_cycles(const int* open, int length, const Link* links, const int* lengths,
                            int* cycle_of) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i], first = links[v].least;
    if (lengths[first] > 0) cycle_of[v] = first;
  }
}

// Claim both cycles of an edge, the smaller one first, or none.
__device__ inline bool claim(int* joints, int cycle, int v, int other_cycle, int u) {
  if (cycle > other_cycle) return claim(joints, other_cycle, u, cycle, v);
  if (atomicCAS(joints + cycle, -1, v) != -1) return false;
  if (atomicCAS(joints + other_cycle, -1, u) == -1) return true;
  atomicExch(joints + cycle, -1);
  return false;
}

template <typename Offset>
__global__ void join_cycles(const int* open, int length, const Offset* indptr, const int* indices,
                            const int* cycle_of, int* joints, int* mate, int* joined) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i], cycle = cycle_of[v];
    if (cycle < 0) continue;
    for (Offset e = indptr[v]; e < indptr[v + 1] && now(joints[cycle]) == -1; ++e) {
      const int u = indices[e], other = cycle_of[u];
      if (other < 0 || other == cycle || now(joints[other]) != -1) continue;
      if (!claim(joints, cycle, v, other, u)) continue;
      mate[v] = u;
      mate[u] = v;
      atomicAdd(joined, 2);
    }
  }
}

// Let the vertices of joined cycles take turns from the joint on.
__global__ void turn_cycles(const int* open, int length, const int* after, const int* before,
                            const Link* links, const int* lengths, const int* cycle_of,
                            const int* joints, int* mate) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i], cycle = cycle_of[v];
    if (cycle < 0 || joints[cycle] < 0 || joints[cycle] == v) continue;
    const int steps = links[v].steps - links[joints[cycle]].steps;
    const bool is_odd = (steps < 0 ? steps + lengths[cycle] : steps) % 2 != 0;
    mate[v] = is_odd ? after[v] : before[v];
  }
}

// The parts of the decomposition, from the cover of the double cover's vertices.
__global__ void take_parts(int count, const bool* outside, const bool* is_inner, signed char* part,
                           signed char outer, signed char inner) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    if (!outside[v]) part[v] = outer;
    else if (is_inner[v]) part[v] = inner;
  }
}
