// Convolutions of vectors over samples ("batch innermost"), and what lies around them.
//
// Kernels are K x K, without padding of their own. J output channels are done at a time, whose sums
// stay in registers; J divides the number of channels.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "vectors.h"

struct Plane {  // of a feature map
  int height, width;
  int size() const { return height * width; }
  int stride() const { return size() | 1; }  // of a plane with a rim: see `conv_back`
  Plane rimmed(int rim) const { return {height + 2 * rim, width + 2 * rim}; }
  Plane conv(int k) const { return {height - k + 1, width - k + 1}; }
  Plane pooled() const { return {height / 2, width / 2}; }
};

// Weights (out, in, K x K) as (out / J, in, K x K, J): those of J outputs lie side by side.
template <int K, int J>
void forward_order(const float *w, int out, int in, float *to) {
  for (int o = 0; o < out; ++o)
    for (int i = 0; i < in * K * K; ++i)
      to[(o / J * in * K * K + i) * J + o % J] = w[o * in * K * K + i];
}

// The same as (in / J, out, turned K x K, J): the way back is a convolution with the turned kernel.
template <int K, int J>
void backward_order(const float *w, int out, int in, float *to) {
  for (int o = 0; o < out; ++o)
    for (int c = 0; c < in; ++c)
      for (int t = 0; t < K * K; ++t)
        to[((c / J * out + o + 1) * K * K - 1 - t) * J + c % J] = w[(o * in + c) * K * K + t];
}

struct Range {
  int from, to;
  bool is_all(int k) const { return from == 0 && to == k; }
};

constexpr int Q = 4;  // places at a time

// The rows and columns of a kernel that count: all, or some. Those known when this is compiled make
// loops of a known length.
template <int K>
struct All {
  constexpr Range rows() const { return {0, K}; }
  constexpr Range columns() const { return {0, K}; }
};
struct Some {
  Range y, x;
  Range rows() const { return y; }
  Range columns() const { return x; }
};

// acc[j][q] += sum over channels and places of the kernel, w[c][tap][j] * in[c][place q + tap].
//
// `Taps` is `All` or `Some`. Not inlined: by itself this keeps all sums in registers.
template <int K, int J, class Taps>
__attribute__((noinline)) void products(const V *in, int channels, Plane plane, int stride,
                                        const int *places, const float *w, Taps taps, V (*acc)[Q]) {
  const Range rows = taps.rows(), columns = taps.columns();
  V sums[J][Q];
  for (int j = 0; j < J; ++j)
    for (int q = 0; q < Q; ++q) sums[j][q] = acc[j][q];
  const V *at[Q];
  for (int q = 0; q < Q; ++q) at[q] = in + places[q];
  for (int c = 0; c < channels; ++c, w += K * K * J) {
    for (int ky = rows.from; ky < rows.to; ++ky)
      for (int kx = columns.from; kx < columns.to; ++kx) {
        const int step = ky * plane.width + kx;
        const float *f = w + (ky * K + kx) * J;
        V v[Q];
        for (int q = 0; q < Q; ++q) v[q] = at[q][step];
        for (int q = 0; q < Q; ++q) HOLD(v[q]);
        for (int j = 0; j < J; ++j)
          for (int q = 0; q < Q; ++q) sums[j][q] += f[j] * v[q];
      }
    for (int q = 0; q < Q; ++q) at[q] += stride;
  }
  for (int j = 0; j < J; ++j)
    for (int q = 0; q < Q; ++q) acc[j][q] = sums[j][q];
}

// The same for all outputs: acc is (out, Q). So few channels at a time that what the places see of
// them stays in the first cache for all outputs.
template <int K, int J, class Taps>
void all_products(const V *in, int channels, Plane plane, int stride, const int *places,
                  const float *w, int out, Taps taps, V (*acc)[Q]) {
  constexpr int most = 16;
  for (int c = 0; c < channels; c += most) {
    const int n = channels - c < most ? channels - c : most;
    for (int o = 0; o < out; o += J)
      products<K, J>(in + c * stride, n, plane, stride, places, w + (o * channels + c * J) * K * K,
                     taps, acc + o);
  }
}

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

// Convolution, with a bias and ReLU or without both, some places of a row-major plane at a time.
template <int K, int J>
void convolve(const V *in, int channels, Plane plane, const float *w, const float *bias, int out,
              V *to) {
  const Plane result = plane.conv(K);
  std::vector<V> memory(out * Q);
  V(*acc)[Q] = (V(*)[Q])memory.data();
  for (int i = 0; i < result.size(); i += Q) {
    const int k = result.size() - i < Q ? result.size() - i : Q;
    int places[Q];
    for (int q = 0; q < Q; ++q) {
      const int at = i + (q < k ? q : 0);
      places[q] = at / result.width * plane.width + at % result.width;
    }
    for (int o = 0; o < out; ++o)
      for (int q = 0; q < Q; ++q) acc[o][q] = zero() + (bias ? bias[o] : 0.f);
    all_products<K, J>(in, channels, plane, plane.size(), places, w, out, All<K>(), acc);
    for (int o = 0; o < out; ++o)
      for (int q = 0; q < k; ++q)
        to[o * result.size() + i + q] = bias ? relu(acc[o][q]) : acc[o][q];
  }
}

// Gradient of a convolution's input from that of its output, around which are K - 1 zeros.
//
// `grad` is (out, rimmed plane); `to` is (in, plane of the input), of which `used` is written: what
// a pool behind drops has none.
template <int K, int J>
void conv_back(const V *grad, int out, Plane rimmed, const float *w, int in, V *to, Plane plane) {
  const Plane used = rimmed.conv(K), inner = rimmed.rimmed(1 - K);
  auto taps = [](int first, int n) {  // of which at least one of two neighbours is not in the rim
    const int end = n + K - 1 - first;
    return Range{first < K - 2 ? K - 2 - first : 0, end < K ? end : K};
  };
  std::vector<V> memory(in * Q);
  V(*acc)[Q] = (V(*)[Q])memory.data();
  for (int i = 0; i < in * plane.size(); ++i) to[i] = zero();
  for (int y = 0; y < used.height; y += 2)
    for (int x = 0; x < used.width; x += 2) {
      const int right = x + 1 < used.width, low = y + 1 < used.height;
      const int corner = y * rimmed.width + x;
      const int places[Q] = {corner, corner + right, corner + low * rimmed.width,
                             corner + low * rimmed.width + right};
      const Some some = {taps(y, inner.height), taps(x, inner.width)};
      const bool all = some.y.is_all(K) && some.x.is_all(K);
      for (V &v : memory) v = zero();
      if (all)
        all_products<K, J>(grad, out, rimmed, rimmed.stride(), places, w, in, All<K>(), acc);
      else
        all_products<K, J>(grad, out, rimmed, rimmed.stride(), places, w, in, some, acc);
      for (int c = 0; c < in; ++c) {
        V *p = to + c * plane.size() + y * plane.width + x;
        p[0] = acc[c][0];
        if (right) p[1] = acc[c][1];
        if (low) p[plane.width] = acc[c][2];
        if (low && right) p[plane.width + 1] = acc[c][3];
      }
    }
}

// dw[j][c][ky][k] += sum over places and samples of grad[j] * in[c], for `C` channels and a row of
// the kernel.
template <int K, int J, int C>
__attribute__((noinline)) void kernel_row(const V *grad, int width, int stride, Plane result,
                                          const V *in, Plane plane, float *dw, int channels) {
  V acc[C][J][K] = {};
  for (int y = 0; y < result.height; ++y) {
    const V *g = grad + y * width, *p = in + y * plane.width;
    for (int x = 0; x < result.width; ++x, ++g, ++p) {
      V v[J];
      for (int j = 0; j < J; ++j) v[j] = g[j * stride];
      for (int j = 0; j < J; ++j) HOLD(v[j]);
      for (int c = 0; c < C; ++c)
        for (int k = 0; k < K; ++k) {
          V i = p[c * plane.size() + k];
          HOLD(i);
          for (int j = 0; j < J; ++j) acc[c][j][k] += v[j] * i;
        }
    }
  }
  for (int c = 0; c < C; ++c)
    for (int j = 0; j < J; ++j)
      for (int k = 0; k < K; ++k) dw[(j * channels + c) * K * K + k] += sum(acc[c][j][k]);
}

// Adds the gradients of a convolution's weights, (out, channels, K x K), to `dw`.
//
// `grad` points at the first place of `out` planes, `width` wide and `stride` apart.
template <int K, int J>
void weight_sums(const V *grad, int out, int width, int stride, Plane result, const V *in,
                 int channels, Plane plane, float *dw) {
  constexpr int C = 2 * J * K <= (MANY_REGISTERS ? 24 : 12) ? 2 : 1;  // sums stay in registers
  // So few rows at a time that their gradients stay in the first cache for all channels.
  const int rows = 72 / result.width > 1 ? 72 / result.width : 1;
  for (int o = 0; o < out; o += J)
    for (int y = 0; y < result.height; y += rows) {
      const Plane part = {result.height - y < rows ? result.height - y : rows, result.width};
      const V *g = grad + o * stride + y * width;
      for (int c = 0; c < channels; c += C)
        for (int ky = 0; ky < K; ++ky) {
          const V *p = in + c * plane.size() + (y + ky) * plane.width;
          float *to = dw + (o * channels + c) * K * K + ky * K;
          if (c + C <= channels)
            kernel_row<K, J, C>(g, width, stride, part, p, plane, to, channels);
          else
            kernel_row<K, J, 1>(g, width, stride, part, p, plane, to, channels);
        }
    }
}

// Makes vectors over n samples of `count` pixels; samples lie `stride` apart.
inline void load_images(const float *images, int n, int64_t stride, int64_t count, V *to) {
  for (int64_t i = 0; i < count; i += L) {  // a square at a time, which the first cache holds
    const int64_t end = count - i < L ? count : i + L;
    for (int64_t k = i; k < end; ++k) to[k] = zero();
    for (int t = 0; t < n; ++t)
      for (int64_t k = i; k < end; ++k) to[k][t] = images[t * stride + k];
  }
}
