// Augmenting paths between unmatched vertices, by alternating trees that grow from all of them at
// once and meet.
//
// A tree has pairs of mates: an inner vertex, which an outer one of the tree has reached, and its
// mate, which is outer. Its root is unmatched, and outer, too. A pair is in one tree at most. So an
// edge between outer vertices of two trees closes an augmenting path from root to root. The two
// trees then grow no further, and meet no others. At the end each such path is flipped.
//
// An edge between two outer vertices of one tree would make a blossom. It is ignored, so a path that
// leads around a blossom is not found. The search on the host finds it, if there is one.
//
// Encodings
//   tree[p]     of a pair, at its smaller vertex: the root of its tree; kNone; kOutside if no path
//               may enter it. An unmatched vertex is a pair by itself.
//   parent[v]   of an inner vertex: the outer vertex that has reached it; else kNone
//   joint[r]    of a root: the vertex of its tree at which it has met another one; kNone before
//   partner[r]  of a root with a joint: the root of that other tree; else kNone
//   found[0]    paths
#include "frontier.cuh"

constexpr int kNone = -1;
constexpr int kOutside = -2;

struct Forest {
  int count;  // of vertices
  int* mate;
  int* tree;
  int* parent;
  int* joint;
  int* partner;
};

// The pair of a vertex, and its mate.
struct Pair {
  int mate;
  int tree;
};

template <typename Offset>
struct TreeVisitor {
  Forest forest;
  const Offset* indptr;
  const int* indices;
  int* found;
  Queue<int> out;
  int level;

  __device__ Pair look(int v) const {
    const int mate = forest.mate[v];
    return {mate, now(forest.tree[mate < 0 ? v : min(v, mate)])};
  }

  __device__ Walk enter(int u) const {
    const int root = look(u).tree;
    if (root == kOutside || now(forest.joint[root]) != kNone) return {u, root, nullptr, nullptr};
    return {u, root, indices + indptr[u], indices + indptr[u + 1]};
  }

  __device__ void visit(int u, int root, int v, Pair pair) const {
    if (pair.tree == kNone) {
      pair.tree = atomicCAS(forest.tree + min(v, pair.mate), kNone, root);
      if (pair.tree == kNone) {
        set_now(forest.parent[v], u);
        push(out, pair.mate);
        return;
      }
    }
    if (pair.tree == root || pair.tree == kOutside) return;
    // An outer vertex whose parent is not there yet looks at this edge in its turn.
    const bool is_outer = pair.mate < 0 || now(forest.parent[pair.mate]) != kNone;
    if (is_outer && claim(root, u, pair.tree, v)) {
      forest.partner[root] = pair.tree;
      forest.partner[pair.tree] = root;
      atomicAdd(found, 1);
    }
  }

  // Claim both trees of an edge, the one with the smaller root first, or none.
  __device__ bool claim(int root, int u, int other, int v) const {
    if (root > other) return claim(other, v, root, u);
    if (now(forest.joint[other]) != kNone) return false;
    if (atomicCAS(forest.joint + root, kNone, u) != kNone) return false;
    if (atomicCAS(forest.joint + other, kNone, v) == kNone) return true;
    atomicExch(forest.joint + root, kNone);
    return false;
  }

  __device__ bool done(int) const { return false; }
};

template <typename Offset>
__global__ void grow_trees(Forest forest, const Offset* indptr, const int* indices,
                           Frontier frontier, int max_levels) {
  const TreeVisitor<Offset> visitor = {forest, indptr, indices, frontier.state->found};
  search_levels(frontier, visitor, max_levels);
}

// A forest of roots, which are counted; vertices that have a part are outside.
__global__ void plant(Forest forest, const signed char* part, int* roots) {
  int found = 0;
  for (int v = thread_index(); v < forest.count; v += thread_count()) {
    const bool is_root = part[v] == 0 && forest.mate[v] < 0;
    forest.tree[v] = is_root ? v : part[v] == 0 ? kNone : kOutside;
    forest.parent[v] = forest.joint[v] = forest.partner[v] = kNone;
    found += is_root;
  }
  add_to(roots, found);
}

// Flip the half of a path from each root up to the edge where its tree has met the other one.
__global__ void flip_paths(Forest forest) {
  for (int root = thread_index(); root < forest.count; root += thread_count()) {
    if (forest.partner[root] == kNone) continue;
    int v = forest.joint[root], mate = forest.joint[forest.partner[root]];
    while (true) {
      const int inner = forest.mate[v];
      forest.mate[v] = mate;
      if (v == root) break;
      mate = inner;
      v = forest.parent[inner];
      forest.mate[inner] = v;
    }
  }
}
