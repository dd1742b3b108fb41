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

// Places of a result, and the rows and columns of the kernel that count for one of them at least.
struct Window {
  int places[Q];
  Range rows, columns;
};

// A window of 2 x 2 places at (y, x) of a result. At an odd edge a place stands for its neighbour.
inline Window window_at(int y, int x, Plane plane, Plane result, Range rows, Range columns) {
  const int at = y * plane.width + x, right = x + 1 < result.width;
  const int low = y + 1 < result.height ? plane.width : 0;
  return {{at, at + right, at + low, at + low + right}, rows, columns};
}

// Writes what a window found: two vectors of a row, and two of the next.
inline void write_window(const V *found, int y, int x, Plane result, int width, V *to) {
  const bool right = x + 1 < result.width, low = y + 1 < result.height;
  V *p = to + y * width + x;
  p[0] = found[0];
  if (right) p[1] = found[1];
  if (low) p[width] = found[2];
  if (low && right) p[width + 1] = found[3];
}

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

// A convolution, or the way back through one, whose products are those of vectors and scalars.
//
// `in` is (channels, plane), planes `stride` apart, and on the way back has a rim of zeros.
template <int K, int J, bool Back>
class VectorConv {
 public:
  static constexpr int WINDOWS = 1;  // at a time, at most

 private:
  int channels, out, stride;
  Plane plane;
  std::vector<float> weights;
  const V *in = nullptr;

 public:
  VectorConv(const float *w, int out, int in, Plane plane, int stride, int /* rim */)
      : channels(Back ? out : in), out(Back ? in : out), stride(stride), plane(plane),
        weights(out * in * K * K) {
    (Back ? backward_order<K, J> : forward_order<K, J>)(w, out, in, weights.data());
  }
  void take(const V *given) { in = given; }
  // Adds the sums at the places of n windows, at most `WINDOWS`, to acc (window, out, Q).
  void operator()(const Window *windows, int n, V (*acc)[Q]) const {
    for (const Window *at = windows; at < windows + n; ++at, acc += out)
      if (at->rows.is_all(K) && at->columns.is_all(K))
        add(at->places, All<K>(), acc);
      else
        add(at->places, Some{at->rows, at->columns}, acc);
  }

 private:
  template <class Taps>
  void add(const int *places, Taps taps, V (*acc)[Q]) const {
    all_products<K, J>(in, channels, plane, stride, places, weights.data(), out, taps, acc);
  }
};

// Convolution, with a bias and ReLU or without both, a row of windows at a time.
template <int K, class Conv>
void convolve(Conv &conv, Plane plane, const float *bias, int out, V *to) {
  constexpr int most = Conv::WINDOWS;
  const Plane result = plane.conv(K);
  std::vector<V> memory(out * Q * most);
  V(*acc)[Q] = (V(*)[Q])memory.data();
  for (int y = 0; y < result.height; y += 2)
    for (int from = 0; from < result.width; from += 2 * most) {
      Window windows[most];
      int n = 0;
      for (int x = from; x < result.width && n < most; x += 2, ++n) {
        windows[n] = window_at(y, x, plane, result, {0, K}, {0, K});
        for (int o = 0; o < out; ++o)
          for (int q = 0; q < Q; ++q) acc[n * out + o][q] = zero() + (bias ? bias[o] : 0.f);
      }
      conv(windows, n, acc);
      for (int i = 0; i < n * out; ++i) {
        for (int q = 0; q < Q && bias; ++q) acc[i][q] = relu(acc[i][q]);
        V *plane_of = to + i % out * result.size();
        write_window(acc[i], y, from + i / out * 2, result, result.width, plane_of);
      }
    }
}

// Gradient of a convolution's input from that of its output, around which are K - 1 zeros.
//
// `conv` has taken the gradient, (out, rimmed plane); `to` is (in, plane of the input), of which
// `used` is written: what a pool behind drops has none.
template <int K, class Conv>
void conv_back(Conv &conv, Plane rimmed, int in, V *to, Plane plane) {
  const Plane used = rimmed.conv(K), inner = rimmed.rimmed(1 - K);
  auto taps = [](int first, int n) {  // of which at least one of two neighbours is not in the rim
    const int end = n + K - 1 - first;
    return Range{first < K - 2 ? K - 2 - first : 0, end < K ? end : K};
  };
  constexpr int most = Conv::WINDOWS;
  std::vector<V> memory(in * Q * most);
  V(*acc)[Q] = (V(*)[Q])memory.data();
  for (int i = 0; i < in * plane.size(); ++i) to[i] = zero();
  for (int y = 0; y < used.height; y += 2)
    for (int from = 0; from < used.width; from += 2 * most) {
      Window windows[most];
      int n = 0;
      for (int x = from; x < used.width && n < most; x += 2, ++n)
        windows[n] = window_at(y, x, rimmed, used, taps(y, inner.height), taps(x, inner.width));
      for (V &v : memory) v = zero();
      conv(windows, n, acc);
      for (int i = 0; i < n * in; ++i)
        write_window(acc[i], y, from + i / in * 2, used, plane.width, to + i % in * plane.size());
    }
}

// What sums over places go to: a number each, or, of few weights, a vector each, which is folded when
// all blocks are done.
inline void add_to(float &total, V found) { total += sum(found); }
inline void add_to(V &total, V found) { total += found; }

// Adds folded vectors to numbers; the vectors are zero afterwards.
inline void fold(std::vector<V> &totals, float *to) {
  for (V &v : totals) *to++ += sum(v), v = zero();
}

// dw[j][c][ky][k] += sum over places and samples of grad[j] * in[c], for `C` channels and a row of
// the kernel. `Total` as in `add_to`.
template <int K, int J, int C, class Total>
__attribute__((noinline)) void kernel_row(const V *grad, int width, int stride, Plane result,
                                          const V *in, Plane plane, Total *dw, int channels) {
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
      for (int k = 0; k < K; ++k) add_to(dw[(j * channels + c) * K * K + k], acc[c][j][k]);
}

// Adds the gradients of a convolution's weights, (out, channels, K x K), to `dw`.
//
// `grad` points at the first place of `out` planes, `width` wide and `stride` apart.
template <int K, int J, class Total>
void weight_sums(const V *grad, int out, int width, int stride, Plane result, const V *in,
                 int channels, Plane plane, Total *dw) {
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
          Total *to = dw + (o * channels + c) * K * K + ky * K;
          if (c + C <= channels)
            kernel_row<K, J, C>(g, width, stride, part, p, plane, to, channels);
          else
            kernel_row<K, J, 1>(g, width, stride, part, p, plane, to, channels);
        }
    }
}

// Gradients of a convolution's weights, summed up over the blocks of a minibatch.
template <int K, int J>
class VectorWeightSums {
  int out, channels;
  Plane plane, result;
  std::vector<float> sums;

 public:
  VectorWeightSums(int out, int channels, Plane plane, Plane result)
      : out(out), channels(channels), plane(plane), result(result), sums(out * channels * K * K) {}
  // Adds those of a block; `grad` as in `weight_sums`, `in` is (channels, plane).
  void add(const V *grad, int width, int stride, const V *in) {
    weight_sums<K, J>(grad, out, width, stride, result, in, channels, plane, sums.data());
  }
  // Adds the sums to `dw` (out, channels, K x K).
  void finish(float *dw) const {
    for (size_t i = 0; i < sums.size(); ++i) dw[i] += sums[i];
  }
};

// How a network convolves: by products of vectors and scalars, which any machine has.
template <int K, int J>
struct ByVectors {
  typedef VectorConv<K, J, false> Forward;
  typedef VectorConv<K, J, true> Back;
  typedef VectorWeightSums<K, J> Sums;
};
