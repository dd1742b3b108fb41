// tanh of vectors, and with average-pools behind convolutions.

#pragma once

#include "convolution.h"

inline V either(M mask, V a, V b) { return (V)((mask & (M)a) | (~mask & (M)b)); }

// To about 2 units in the last place, as the C library's; NaN stays NaN.
//
// The polynomials are those of Cephes (tanhf and expf).
inline V tanh(V x) {
  const M sign = (M)x & INT32_MIN;
  const V size = (V)((M)x ^ sign), square = x * x;
  V near = square * -5.70498872745e-3f + 2.06390887954e-2f;  // below 0.625
  near = near * square - 5.37397155531e-2f;
  near = near * square + 1.33314422036e-1f;
  near = near * square - 3.33332819422e-1f;
  near = near * square * x + x;
  // 1 - 2 / (exp(2 size) + 1), which is 1 from 10 on.
  const V twice = either(size > 10, zero() + 20, size + size);
  const M power = __builtin_convertvector(twice * 1.44269504088896341f + 0.5f, M);
  const V whole = __builtin_convertvector(power, V);
  const V rest = twice - whole * 0.693359375f + whole * 2.12194440e-4f;
  V e = rest * 1.9875691500e-4f + 1.3981999507e-3f;
  e = e * rest + 8.3334519073e-3f;
  e = e * rest + 4.1665795894e-2f;
  e = e * rest + 1.6666665459e-1f;
  e = e * rest + 5.0000001201e-1f;
  e = (e * rest * rest + rest + 1) * (V)((power + 127) << 23);
  const V far = 1 - 2 / (e + 1);
  return either(size > 0.625f, (V)((M)far | sign), near);
}

// tanh and the mean of each window.
struct MeanTanh {
  struct Kept {  // for the way back: tanh of the four
    V at[Q];
  };
  static constexpr bool RELU = false;
  static void pool(const V *z, V &out, Kept *kept) {
    V total = zero();
    for (int q = 0; q < Q; ++q) {
      const V found = tanh(z[q]);
      total += found;
      if (kept) kept->at[q] = found;
    }
    out = total * 0.25f;
  }
  static V back(const Kept &kept, int q, V grad) {
    return grad * 0.25f * (1 - kept.at[q] * kept.at[q]);
  }
  static V sum_back(const Kept &kept, V grad) {
    V total = zero();
    for (int q = 0; q < Q; ++q) total += back(kept, q, grad);
    return total;
  }
  static void activate(V *a, int n) {
    for (int i = 0; i < n; ++i) a[i] = tanh(a[i]);
  }
  static void through(const V *given, int n, V *grad) {
    for (int i = 0; i < n; ++i) grad[i] *= 1 - given[i] * given[i];
  }
};
