// CELM's CNN on the CPU: logits of a minibatch, and the gradients of its parameters and images.
//
// L samples share a vector register ("batch innermost"), as in lenet.cpp: every layer is a sum of
// vector x scalar products, pools and ReLU cost next to nothing, and what a pool drops at an odd
// edge is never computed. A way forward keeps its activations for the way back.
//
// The network is fedlogit/models/cnn.py: conv 3x3 to 32, pool, ReLU, conv 3x3 to 64, pool, ReLU,
// conv 3x3 to 64, ReLU, linear to 64, ReLU, linear to the classes; no padding. Parameters lie flat
// in PyTorch's order. A tie in a pool goes to the first of the window in row-major order.

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "convolution.h"

namespace {

constexpr int C1 = 32, C2 = 64, C3 = 64, F = 64, K = 3, TAPS = K * K;
constexpr int J = MANY_REGISTERS ? 4 : 2;  // output channels at a time, whose sums stay in registers

// Sizes of the network for images of a size, and where its parameters lie.
struct Shape {
  int channels, classes, features;
  Plane x, z1, a1, z2, a2, a3;
  int w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, end;
  Shape(int channels, int height, int width, int classes) : channels(channels), classes(classes) {
    x = {height, width}, z1 = x.conv(K), a1 = z1.pooled(), z2 = a1.conv(K), a2 = z2.pooled();
    a3 = a2.conv(K), features = C3 * a3.size();
    w1 = 0, b1 = C1 * channels * TAPS, w2 = b1 + C1, b2 = w2 + C2 * C1 * TAPS, w3 = b2 + C2;
    b3 = w3 + C3 * C2 * TAPS, w4 = b3 + C3, b4 = w4 + F * features, w5 = b4 + F;
    b5 = w5 + classes * F, end = b5 + classes;
  }
  // Vectors that a block of samples keeps for the way back.
  int64_t kept() const {
    return (int64_t)channels * x.size() + 2 * C1 * a1.size() + 2 * C2 * a2.size() + features + F;
  }
};

// What a block of L samples keeps: input, activations, and which of a window won; -1 where none.
struct Block {
  V *x, *a1, *a2, *a3, *a4;
  M *at1, *at2;
  Block(const Shape &s, V *memory) {
    x = memory, a1 = x + s.channels * s.x.size();
    at1 = (M *)(a1 + C1 * s.a1.size()), a2 = (V *)at1 + C1 * s.a1.size();
    at2 = (M *)(a2 + C2 * s.a2.size()), a3 = (V *)at2 + C2 * s.a2.size(), a4 = a3 + s.features;
  }
};

// Convolution, pool and ReLU: a window of the pool at a time.
void conv_pool(const V *in, int channels, Plane plane, const float *w, const float *bias, int out,
               V *to, M *at) {
  const Plane small = plane.conv(K).pooled();
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x) {
      const int corner = 2 * y * plane.width + 2 * x;
      const int places[Q] = {corner, corner + 1, corner + plane.width, corner + plane.width + 1};
      for (int o = 0; o < out; o += J) {
        V acc[J][Q];
        for (int j = 0; j < J; ++j)
          for (int q = 0; q < Q; ++q) acc[j][q] = zero() + bias[o + j];
        products<K, J>(in, channels, plane, plane.size(), places, w + o, out, All<K>(), acc);
        for (int j = 0; j < J; ++j) {
          const int i = (o + j) * small.size() + y * small.width + x;
          pool(acc[j], to[i], at ? at + i : nullptr);
        }
      }
    }
}

// Puts pooled gradients where the winners were; the rest of `to` holds zeros.
void unpool(const V *grad, const M *at, Plane small, V *to, int width) {
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x, ++grad, ++at)
      for (int q = 0; q < 4; ++q)
        to[(2 * y + q / 2) * width + 2 * x + q % 2] = choose(*at == q, *grad);
}

void linear(const float *w, const float *bias, const V *in, int m, V *out, int n, bool cut) {
  for (int o = 0; o < n; ++o) {
    V acc[4] = {zero() + bias[o], zero(), zero(), zero()};
    for (int i = 0; i < m; i += 4)  // m is a multiple of 64
      for (int j = 0; j < 4; ++j) acc[j] += w[o * m + i + j] * in[i + j];
    const V all = acc[0] + acc[1] + acc[2] + acc[3];
    out[o] = cut ? relu(all) : all;
  }
}

// Gradient of a linear layer's input, where ReLU let it through; m is a multiple of 8.
void linear_back(const float *w, const V *grad, int n, const V *in, V *to, int m) {
  for (int i = 0; i < m; i += 8) {
    V acc[8] = {};
    for (int o = 0; o < n; ++o)
      for (int j = 0; j < 8; ++j) acc[j] += w[o * m + i + j] * grad[o];
    for (int j = 0; j < 8; ++j) to[i + j] = choose(~(in[i + j] <= zero()), acc[j]);
  }
}

// dw[o][i] += sum over samples of grad[o] * in[i]; m is a multiple of 64.
void linear_grad(const V *grad, int n, const V *in, int m, float *dw, float *db, float *rows) {
  for (int i = 0; i < m; ++i)
    for (int t = 0; t < L; ++t) rows[t * m + i] = in[i][t];
  for (int o = 0; o < n; ++o) db[o] += sum(grad[o]);
  for (int i = 0; i < m; i += 4 * L)
    for (int o = 0; o < n; ++o) {
      V acc[4];
      std::memcpy(acc, dw + o * m + i, sizeof acc);
      for (int t = 0; t < L; ++t) {
        V v[4];
        std::memcpy(v, rows + t * m + i, sizeof v);
        for (int k = 0; k < 4; ++k) acc[k] += grad[o][t] * v[k];
      }
      std::memcpy(dw + o * m + i, acc, sizeof acc);
    }
}

void forward(const Shape &s, const float *p, const float *w1, const float *w2, const float *w3,
             const Block &b, V *logits, bool keep) {
  conv_pool(b.x, s.channels, s.x, w1, p + s.b1, C1, b.a1, keep ? b.at1 : nullptr);
  conv_pool(b.a1, C1, s.a1, w2, p + s.b2, C2, b.a2, keep ? b.at2 : nullptr);
  convolve<K, J>(b.a2, C2, s.a2, w3, p + s.b3, C3, b.a3);
  linear(p + s.w4, p + s.b4, b.a3, s.features, b.a4, F, true);
  linear(p + s.w5, p + s.b5, b.a4, F, logits, s.classes, false);
}

}  // namespace

extern "C" {

// Returns the number of floats that `kept` of fedlogit_tf_cnn_forward needs for n samples.
int64_t fedlogit_tf_cnn_kept(int64_t n, int channels, int height, int width, int classes) {
  return (n + L - 1) / L * Shape(channels, height, width, classes).kept() * L;
}

// Computes logits (n, classes) of images (n, channels, height, width), normalised.
//
// kept: aligned to 64 bytes; null computes logits alone.
void fedlogit_tf_cnn_forward(const float *p, const float *images, int64_t n, int channels,
                             int height, int width, int classes, float *logits, float *kept) {
  const Shape s(channels, height, width, classes);
  std::vector<float> w1(s.b1 - s.w1), w2(s.b2 - s.w2), w3(s.b3 - s.w3);
  forward_order<K>(p + s.w1, C1, channels, w1.data());
  forward_order<K>(p + s.w2, C2, C1, w2.data());
  forward_order<K>(p + s.w3, C3, C2, w3.data());
  V *own = kept ? nullptr : (V *)operator new(s.kept() * sizeof(V), std::align_val_t(64));
  std::vector<V> out(classes);
  for (int64_t from = 0; from < n; from += L) {
    const int k = n - from < L ? (int)(n - from) : L;
    const Block b(s, kept ? (V *)kept + from / L * s.kept() : own);
    const int64_t stride = (int64_t)channels * s.x.size();
    load(images + from * stride, k, stride, stride, b.x);
    forward(s, p, w1.data(), w2.data(), w3.data(), b, out.data(), kept);
    for (int t = 0; t < k; ++t)
      for (int c = 0; c < classes; ++c) logits[(from + t) * classes + c] = out[c][t];
  }
  if (own) operator delete(own, std::align_val_t(64));
}

// Adds the gradient of the parameters to `grad`, from that of the logits, (n, classes).
void fedlogit_tf_cnn_backward(const float *p, int64_t n, int channels, int height, int width,
                              int classes, const float *kept, const float *dlogits, float *grad) {
  const Shape s(channels, height, width, classes);
  std::vector<float> w2(s.b2 - s.w2), w3(s.b3 - s.w3), rows(L * s.features);
  backward_order<K>(p + s.w2, C2, C1, w2.data());
  backward_order<K>(p + s.w3, C3, C2, w3.data());
  // What a pool drops counts as rim: windows only.
  const Plane z2 = {2 * s.a2.height, 2 * s.a2.width}, r3 = s.a3.rimmed(K - 1), r2 = z2.rimmed(K - 1);
  const Plane z1 = {2 * s.a1.height, 2 * s.a1.width};
  std::vector<V> sums(s.w4, V{});  // convolutions' weights and biases, where they lie in `p`
  std::vector<V> g5(classes), g4(F), g3(s.features), g3r(C3 * r3.stride()), g2(C2 * s.a2.size());
  std::vector<V> g2r(C2 * r2.stride()), g1(C1 * s.a1.size()), g1z(J * z1.size());
  for (int64_t from = 0; from < n; from += L) {
    const int k = n - from < L ? (int)(n - from) : L;
    const Block b(s, (V *)kept + from / L * s.kept());
    for (int c = 0; c < classes; ++c) {
      g5[c] = zero();
      for (int t = 0; t < k; ++t) g5[c][t] = dlogits[(from + t) * classes + c];
    }
    linear_back(p + s.w5, g5.data(), classes, b.a4, g4.data(), F);
    linear_back(p + s.w4, g4.data(), F, b.a3, g3.data(), s.features);
    linear_grad(g5.data(), classes, b.a4, F, grad + s.w5, grad + s.b5, rows.data());
    linear_grad(g4.data(), F, b.a3, s.features, grad + s.w4, grad + s.b4, rows.data());

    for (int o = 0; o < C3; ++o)
      for (int y = 0; y < s.a3.height; ++y)
        std::memcpy(&g3r[o * r3.stride() + (y + 2) * r3.width + 2],
                    &g3[o * s.a3.size() + y * s.a3.width], s.a3.width * sizeof(V));
    for (int o = 0; o < C3; o += J)
      weight_sums<K, J>(&g3r[o * r3.stride() + 2 * r3.width + 2], r3.width, r3.stride(), s.a3, b.a2, C2, s.a2,
                  &sums[s.w3 + o * C2 * TAPS], &sums[s.b3 + o]);
    conv_back<K, J>(g3r.data(), C3, r3, w3.data(), C2, g2.data(), s.a2);

    for (int o = 0; o < C2; ++o)
      unpool(&g2[o * s.a2.size()], b.at2 + o * s.a2.size(), s.a2,
             &g2r[o * r2.stride() + 2 * r2.width + 2], r2.width);
    for (int o = 0; o < C2; o += J)
      weight_sums<K, J>(&g2r[o * r2.stride() + 2 * r2.width + 2], r2.width, r2.stride(), z2, b.a1, C1, s.a1,
                  &sums[s.w2 + o * C1 * TAPS], &sums[s.b2 + o]);
    conv_back<K, J>(g2r.data(), C2, r2, w2.data(), C1, g1.data(), s.a1);

    for (int o = 0; o < C1; o += J) {
      for (int j = 0; j < J; ++j)
        unpool(&g1[(o + j) * s.a1.size()], b.at1 + (o + j) * s.a1.size(), s.a1,
               &g1z[j * z1.size()], z1.width);
      weight_sums<K, J>(g1z.data(), z1.width, z1.size(), z1, b.x, channels, s.x, &sums[s.w1 + o * channels * TAPS],
                  &sums[s.b1 + o]);
    }
  }
  for (int i = 0; i < s.w4; ++i) grad[i] += sum(sums[i]);
}
}
