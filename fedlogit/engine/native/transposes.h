// From samples in rows to vectors over samples, and back.

#pragma once

#include <cstdint>
#include <utility>

#include "vectors.h"

// Lane i of what this returns is lane I of both vectors, one behind the other.
template <int... I>
inline V pick(V a, V b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, I...);
#else  // GCC has that from version 12 on
  return __builtin_shuffle(a, b, M{I...});
#endif
}

// Swaps corners of STEP x STEP: what two rows of a square have to do with it.
template <int STEP, int... I>
inline void swap_corners(V &a, V &b, std::integer_sequence<int, I...>) {
  const V upper = pick<(I & STEP ? L + I - STEP : I)...>(a, b);
  b = pick<(I & STEP ? L + I : I + STEP)...>(a, b);
  a = upper;
}

// Transposes L vectors.
template <int STEP = 1>
inline void transpose_square(V *square) {
  if constexpr (STEP < L) {
    for (int i = 0; i < L; ++i)
      if (!(i & STEP))
        swap_corners<STEP>(square[i], square[i + STEP], std::make_integer_sequence<int, L>());
    transpose_square<2 * STEP>(square);
  }
}

// Makes vectors over n samples of `count` pixels; samples lie `stride` apart. Lanes beyond the last
// sample hold zeros.
inline void load_images(const float *images, int n, int64_t stride, int64_t count, V *to) {
  for (int64_t i = 0; i < count; i += L) {
    const int64_t k = count - i < L ? count - i : L;
    V square[L] = {};
    for (int t = 0; t < n; ++t)
      if (k == L)
        square[t] = load(images + t * stride + i);
      else
        std::memcpy(&square[t], images + t * stride + i, 4 * k);
    transpose_square(square);
    std::memcpy(static_cast<void *>(to + i), square, k * sizeof(V));
  }
}

// Makes rows of k samples, `stride` apart, of a block's n vectors.
inline void spread(const V *from, int n, float *to, int stride, int k) {
  for (int i = 0; i < n; i += L) {
    const int count = n - i < L ? n - i : L;
    V square[L] = {};
    std::memcpy(static_cast<void *>(square), from + i, count * sizeof(V));
    transpose_square(square);
    for (int t = 0; t < k; ++t)
      if (count == L)
        store(to + t * stride + i, square[t]);
      else
        std::memcpy(to + t * stride + i, &square[t], 4 * count);
  }
}
