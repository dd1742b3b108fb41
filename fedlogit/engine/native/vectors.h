// Vectors as wide as the machine's registers, and what all networks do with them.
//
// GCC takes wider ones apart through memory, which is slower than PyTorch by a factor of five.

#pragma once

#include <cstdint>
#include <cstring>

// Floats in a vector; whether there are 32 registers of them, or 16.
#if defined(__AVX512F__)
constexpr int L = 16;
constexpr bool MANY_REGISTERS = true;
#elif defined(__AVX__)
constexpr int L = 8;
constexpr bool MANY_REGISTERS = false;
#elif defined(__aarch64__)
constexpr int L = 4;
constexpr bool MANY_REGISTERS = true;
#else
constexpr int L = 4;
constexpr bool MANY_REGISTERS = false;
#endif

typedef float V __attribute__((vector_size(4 * L)));
typedef int32_t M __attribute__((vector_size(4 * L)));

// Keeps a value that is used several times in a register, where GCC would load it again each time.
#if defined(__AVX512F__)
#define HOLD(v) asm("" : "+v"(v))
#elif defined(__AVX__)
#define HOLD(v) asm("" : "+x"(v))
#else
#define HOLD(v)
#endif

typedef V Anywhere __attribute__((aligned(4), may_alias));

inline V zero() { return V{}; }
inline V load(const float *p) { return *(const Anywhere *)p; }
inline void store(float *p, V v) { *(Anywhere *)p = v; }
inline V choose(M mask, V a) { return (V)(mask & (M)a); }
inline V relu(V a) { return choose(~(a <= zero()), a); }  // NaN stays NaN
inline float sum(V a) {
  typedef float Quarter __attribute__((vector_size(16)));
  Quarter part[L / 4];
  std::memcpy(part, &a, sizeof a);
  for (int i = 1; i < L / 4; ++i) part[0] += part[i];
  return (part[0][0] + part[0][1]) + (part[0][2] + part[0][3]);
}
