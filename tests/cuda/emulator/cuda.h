// What kernels need of CUDA, on the CPU: threads.cpp runs their threads one at a time.
//
// A warp's lanes do not run in step. Those of a collective operation wait for each other. Static
// variables stand for shared memory, one for each block. If its size is set by launches, few blocks
// run at once: one, or a cluster, whose blocks find each other's memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

using std::isinf;
using std::max;
using std::min;

struct Size {
  unsigned x;
  unsigned y;
};

// -- threads.cpp ----------------------------------------------------------------------------------

extern Size gridDim, blockDim;
Size own_thread();
Size own_block_index();
void may_yield();   // to any thread, now and then
void yield();       // to any thread
void has_written();  // the thread has changed what others may wait for
int count_in_block(bool vote);  // of its threads, when all have voted
void wait_for_all();            // threads of the launch
void keep_shared(void* all, std::size_t size);        // tell where the copies of a variable are
void* shared_of_block(void* own, unsigned block);     // the same place in another block
void wait_for_next(void* mail);  // which has not come
void has_come(void* mail);       // tell those that wait for it
// Gives what each lane of the mask has brought.
void exchange(unsigned mask, long long own, long long* all);
void launch(unsigned blocks, unsigned threads, unsigned seed, unsigned odds,
            const std::function<void()>& kernel);

#define threadIdx own_thread()
#define blockIdx own_block_index()

// -- functions of CUDA ----------------------------------------------------------------------------

inline void __syncthreads() { count_in_block(false); }
inline int __syncthreads_count(bool vote) { return count_in_block(vote); }
inline int __syncthreads_or(bool vote) { return count_in_block(vote) != 0; }
inline void __threadfence() { may_yield(); }
inline void __nanosleep(unsigned) { yield(); }
inline unsigned __activemask() { return 1u << own_thread().x % 32; }

inline unsigned __ballot_sync(unsigned mask, bool vote) {
  long long all[32];
  exchange(mask, vote, all);
  unsigned votes = 0;
  for (int lane = 0; lane < 32; ++lane) votes |= ((mask >> lane & 1) && all[lane]) << lane;
  return votes;
}
inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { __ballot_sync(mask, false); }

template <typename T>
T __shfl_sync(unsigned mask, T own, int lane) {
  long long bits = 0, all[32];
  std::memcpy(&bits, &own, sizeof own);
  exchange(mask, bits, all);
  std::memcpy(&own, all + lane % 32, sizeof own);
  return own;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T own, int bits) {
  return __shfl_sync(mask, own, own_thread().x % 32 ^ bits);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T own, int step) {
  const int lane = own_thread().x % 32;
  return __shfl_sync(mask, own, lane + step < 32 ? lane + step : lane);
}

template <typename T>
T least_of_lanes(unsigned mask, T own) {
  long long all[32];
  exchange(mask, own, all);
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) own = min(own, static_cast<T>(all[lane]));
  }
  return own;
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned own) { return least_of_lanes(mask, own); }
inline int __reduce_min_sync(unsigned mask, int own) { return least_of_lanes(mask, own); }
inline unsigned __match_any_sync(unsigned mask, int own) {
  long long all[32];
  exchange(mask, own, all);
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane) same |= ((mask >> lane & 1) && all[lane] == own) << lane;
  return same;
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(bits); }
inline float __expf(float number) { return std::exp(number); }
inline double __dmul_rn(double one, double other) { return one * other; }
inline double __dadd_rn(double one, double other) { return one + other; }
inline double __dsqrt_rn(double number) { return std::sqrt(number); }
inline double __dsub_rd(double one, double other) {
  const double rest = one - other, part = rest - one;
  const double lost = (one - (rest - part)) - (other + part);
  return lost < 0 ? std::nextafter(rest, -HUGE_VAL) : rest;  // of inf, it is NaN
}
inline double __dadd_ru(double one, double other) { return -__dsub_rd(-one, other); }
inline long long __double2ll_rn(double number) { return std::llrint(number); }
inline double __longlong_as_double(long long bits) {
  double number;
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}
inline long long __double_as_longlong(double number) {
  long long bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
template <typename T>
T __ldcg(const T* place) {
  return *place;
}

// Nothing comes between the read and the write of an atomic operation.
#define ATOMIC(name, result)                                              \
  template <typename T, typename U>                                       \
  __attribute__((no_sanitize_thread)) T name(T* place, U given) {         \
    may_yield();                                                          \
    const T before = *place, number = static_cast<T>(given);              \
    *place = result;                                                      \
    if (*place != before) has_written();                                  \
    return before;                                                        \
  }
ATOMIC(atomicAdd, before + number)
ATOMIC(atomicMin, before < number ? before : number)
ATOMIC(atomicMax, before > number ? before : number)
ATOMIC(atomicExch, number)
ATOMIC(atomicOr, before | number)

template <typename T, typename U, typename V>
__attribute__((no_sanitize_thread)) T atomicCAS(T* place, U expected, V number) {
  may_yield();
  const T before = *place;
  if (before == static_cast<T>(expected) && before != static_cast<T>(number)) {
    *place = static_cast<T>(number);
    has_written();
  }
  return before;
}

inline int __float_as_int(float number) {
  int bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
inline float __int_as_float(int bits) {
  float number;
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}

// A barrier that counts bytes: what has still to come, an arrival among it, and the times it came.
constexpr int kArrival = 1 << 20;
inline void count_mail(void* mail, int more) {
  int* const parts = static_cast<int*>(mail);
  if (atomicAdd(parts, more) + more != 0) return;
  atomicAdd(parts, kArrival);
  atomicAdd(parts + 1, 1);
  has_come(mail);
}
__attribute__((no_sanitize_thread)) inline int times_of_mail(void* mail) {
  return static_cast<volatile int*>(mail)[1];
}

// What __shared__ declares: one for each block.
constexpr unsigned kBlocks = 64;  // at once
template <typename T>
struct PerBlock {
  T all[kBlocks];
  bool is_kept;
  __attribute__((no_sanitize_thread)) T& own() {
    if (!is_kept) keep_shared(all, sizeof(T));
    is_kept = true;
    return all[own_block_index().x % kBlocks];
  }
};

// -- launches -------------------------------------------------------------------------------------

template <typename... Arguments, std::size_t... places>
void launch_kernel(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, unsigned seed,
                   unsigned odds, void** arguments, std::index_sequence<places...>) {
  launch(blocks, threads, seed, odds, [=] {
    kernel(*static_cast<std::decay_t<Arguments>*>(arguments[places])...);
  });
}

// A kernel with pointers to its arguments.
template <typename... Arguments>
void launch_kernel(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, unsigned seed,
                   unsigned odds, void** arguments) {
  launch_kernel(kernel, blocks, threads, seed, odds, arguments,
                std::index_sequence_for<Arguments...>());
}
