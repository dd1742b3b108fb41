// An activation and pools of 2 x 2 behind convolutions, and the way back through them.
//
// Which ones is a `Form`: `MaxRelu` here, or `MeanTanh` in tanh.h.

#pragma once

#include <cstdint>
#include <vector>

#include "convolution.h"

// Which of a window won, for L samples, in as many bytes: what is kept has to reach the memory.
typedef int8_t Won __attribute__((vector_size(L)));

// The largest of a 2 x 2 window, then ReLU; `at` says which one won, or -1. A tie goes to the first
// of the window in row-major order, as in PyTorch.
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

// Cuts the gradient where ReLU cut what it gave.
inline void let_through(const V *given, int n, V *grad) {
  for (int i = 0; i < n; ++i) grad[i] = choose(~(given[i] <= zero()), grad[i]);
}

// ReLU and the largest of each window.
struct MaxRelu {
  typedef Won Kept;  // for the way back: which one won, or -1
  static constexpr bool RELU = true;
  static void pool(const V *z, V &out, Kept *at) { ::pool(z, out, at); }
  // The gradient of place q of a window, from that of what the window gave.
  static V back(const Kept &at, int q, V grad) {
    return choose(__builtin_convertvector(at, M) == q, grad);
  }
  // The sum of those of its four places.
  static V sum_back(const Kept &at, V grad) {
    return choose(__builtin_convertvector(at, M) >= 0, grad);
  }
  static void activate(V *, int) {}  // `linear` has done it
  static void through(const V *given, int n, V *grad) { let_through(given, n, grad); }
};

// Convolution, activation and pool: a window of the pool at a time.
template <int K, int OUT, class Form = MaxRelu, class Conv>
void conv_pool(Conv &conv, Plane plane, const float *bias, V *to, typename Form::Kept *at) {
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
          Form::pool(acc[w * OUT + o], to[i], at ? at + i : nullptr);
        }
    }
}

// The sum of the gradients before a pool, from the n behind it.
template <class Form = MaxRelu>
V sum_before(const V *grad, const typename Form::Kept *at, int n) {
  V total = zero();
  for (int i = 0; i < n; ++i) total += Form::sum_back(at[i], grad[i]);
  return total;
}

// Writes the gradients before a pool, from those behind it; the rest of `to` holds zeros.
template <class Form = MaxRelu>
void unpool(const V *grad, const typename Form::Kept *at, Plane small, V *to, int width) {
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x, ++grad, ++at)
      for (int q = 0; q < 4; ++q)
        to[(2 * y + q / 2) * width + 2 * x + q % 2] = Form::back(*at, q, *grad);
}

// Adds the gradients of the weights of a convolution behind which there is a pool, to `dw` as in
// `weight_sums`: two rows of places at a time, which the first cache holds.
template <int K, int J, class Form = MaxRelu, class Total>
void pooled_weight_sums(const V *grad, const typename Form::Kept *at, int out, Plane small,
                        const V *in, int channels, Plane plane, Total *dw) {
  const Plane pair = {2, 2 * small.width};
  std::vector<V> places(J * pair.size());
  for (int o = 0; o < out; o += J)
    for (int y = 0; y < small.height; ++y) {
      for (int j = 0; j < J; ++j) {
        const int i = (o + j) * small.size() + y * small.width;
        unpool<Form>(grad + i, at + i, {1, small.width}, &places[j * pair.size()], pair.width);
      }
      weight_sums<K, J>(places.data(), J, pair.width, pair.size(), pair, in + 2 * y * plane.width,
                        channels, plane, dw + o * channels * K * K);
    }
}
