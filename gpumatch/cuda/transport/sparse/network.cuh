// A transport problem in CSR on the device, its entries by columns, and a flow on them.
//
// Encodings
//   indptr, indices, costs   the entries of each row; entry k costs costs[k] a unit
//   places[k]     where entry k is among the entries by columns
//   colptr        where the entries of each column begin there
//   owners[t]     the row of the entry at place t; holders[t] is its column
//   flow[t]       the units of the entry at place t
//   excess[i]     the units of row i that have no column yet
//   room[j]       the units that column j still takes; less than 0 while bids are being settled
#pragma once

#include "assignment/sparse/rows.cuh"

template <typename Cost>
struct Network {
  const long long* indptr;
  const int* indices;
  const Cost* costs;
  const long long* places;
  const long long* colptr;
  const int* owners;
  const int* holders;
  int nrows;
  int ncols;
  int lanes;
  long long* flow;
  long long* excess;
  long long* room;
};

// Add units, and return how many there were.
__device__ inline long long add_units(long long* place, long long units) {
  return static_cast<long long>(atomicAdd(reinterpret_cast<unsigned long long*>(place),
                                          static_cast<unsigned long long>(units)));
}
