// A matching of a graph from a maximum matching of its double cover. The header of
// cpu/general/double_cover.py states what paths and cycles of the cover's pairs are worth.
//
// Most vertices are in cycles of two arcs, which are edges of the matching. All others are numbered
// along their path or cycle by pointer jumping: after k rounds a vertex knows the 2^k vertices
// before it. A cycle is cut before its smallest vertex, which all of its vertices know by then, and
// numbered in as many rounds more. Then each vertex with an even number takes the next one.
//
// Encodings
//   after[v]    the column of row v; before[v] the row of column v; -1 none
//   open        the vertices in longer paths and cycles, in any order
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
                           const Link* links, int* mate, int* odd_cycles) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int v = open[i], steps = links[v].steps, next = after[v];
    const bool is_even = steps % 2 == 0;
    const bool ends_odd_cycle = is_even && next >= 0 && links[next].steps == 0 && steps > 0;
    if (ends_odd_cycle) atomicAdd(odd_cycles, 1);
    mate[v] = ends_odd_cycle ? -1 : is_even ? next : before[v];
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
