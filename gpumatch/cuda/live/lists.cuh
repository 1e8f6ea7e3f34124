// Lists of neighbours with room for more, as gpumatch.cpu.live.graph describes them.
#pragma once

#include "grid.cuh"

struct Lists {
  long long* start;  // the list of v is pool[start[v] .. start[v] + length[v])
  int* length;
  int* room;
  int* pool;
  unsigned long long* end;  // *end is where the pool is free
};
