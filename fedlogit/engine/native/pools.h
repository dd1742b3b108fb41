// Pools of 2 x 2 with ReLU behind convolutions, and the way back through them.
//
// A tie goes to the first of the window in row-major order, as in PyTorch.

#pragma once

#include <cstdint>
#include <vector>

#include "convolution.h"

// Which of a window won, for L samples, in as many bytes: what is kept has to reach the memory.
typedef int8_t Won __attribute__((vector_size(L)));

// The largest of a 2 x 2 window, then ReLU; `at` says which one won, or -1.
template <class Winner>
inline void pool(const V *z, V &out, Winner *at) {
  M right = z[1] > z[0], low_right = z[3] > z[2];
  V top = (V)(((M)z[1] & right) | ((M)z[0] & ~right));
  V bottom = (V)(((M)z[3] & low_right) | ((M)z[2] & ~low_right));
  M low = bottom > top;
  V best = (V)(((M)bottom & low) | ((M)top & ~low));
  M alive = ~(best <= zero());
  // right and the others are 0 or -1; the winner's number is 0, 1, 2 or 3.
  const M won = (((low & (2 - low_right)) | (~low & -right)) & alive) | ~alive;
  if (at) *at = __builtin_convertvector(won, Winner);
  out = choose(alive, best);
}

// Convolution, pool and ReLU: a window of the pool at a time.
template <int K, int OUT, class Conv>
void conv_pool(Conv &conv, Plane plane, const float *bias, V *to, Won *at) {
  constexpr int most = Conv::WINDOWS;
  const Plane small = plane.conv(K).pooled();
  V acc[most * OUT][Q];
  for (int y = 0; y < small.height; ++y)
    for (int from = 0; from < small.width; from += most) {
      const int n = small.width - from < most ? small.width - from : most;
      Window windows[most];
      for (int w = 0; w < n; ++w) {
        windows[w] = window_at(2 * y, 2 * (from + w), plane, plane.conv(K), {0, K}, {0, K});
        for (int o = 0; o < OUT; ++o) {
          const int i = o * small.size() + y * small.width + from + w;
          __builtin_prefetch(to + i, 1);  // written when all products are done
          if (at) __builtin_prefetch(at + i, 1);
          for (int q = 0; q < Q; ++q) acc[w * OUT + o][q] = zero() + bias[o];
        }
      }
      conv(windows, n, acc);
      for (int o = 0; o < OUT; ++o)
        for (int w = 0; w < n; ++w) {
          const int i = o * small.size() + y * small.width + from + w;
          pool(acc[w * OUT + o], to[i], at ? at + i : nullptr);
        }
    }
}

// The sum of n pooled gradients, but for those that ReLU cut.
inline V sum_of_winners(const V *grad, const Won *at, int n) {
  V total = zero();
  for (int i = 0; i < n; ++i) total += choose(__builtin_convertvector(at[i], M) >= 0, grad[i]);
  return total;
}

// Puts pooled gradients where the winners were; the rest of `to` holds zeros.
inline void unpool(const V *grad, const Won *at, Plane small, V *to, int width) {
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x, ++grad, ++at) {
      const M won = __builtin_convertvector(*at, M);
      for (int q = 0; q < 4; ++q)
        to[(2 * y + q / 2) * width + 2 * x + q % 2] = choose(won == q, *grad);
    }
}

// Adds the gradients of the weights of a convolution behind which there is a pool, to `dw` as in
// `weight_sums`: two rows of places at a time, which the first cache holds.
template <int K, int J, class Total>
void pooled_weight_sums(const V *grad, const Won *at, int out, Plane small, const V *in,
                        int channels, Plane plane, Total *dw) {
  const Plane pair = {2, 2 * small.width};
  std::vector<V> places(J * pair.size());
  for (int o = 0; o < out; o += J)
    for (int y = 0; y < small.height; ++y) {
      for (int j = 0; j < J; ++j) {
        const int i = (o + j) * small.size() + y * small.width;
        unpool(grad + i, at + i, {1, small.width}, &places[j * pair.size()], pair.width);
      }
      weight_sums<K, J>(places.data(), J, pair.width, pair.size(), pair, in + 2 * y * plane.width,
                        channels, plane, dw + o * channels * K * K);
    }
}

// Cuts the gradient where ReLU cut what it gave.
inline void let_through(const V *given, int n, V *grad) {
  for (int i = 0; i < n; ++i) grad[i] = choose(~(given[i] <= zero()), grad[i]);
}
