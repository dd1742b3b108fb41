// CELM's CNN on the CPU: logits of a minibatch, and the gradients of its parameters.
//
// L samples share a vector register ("batch innermost"), as in lenet.h: every layer is a sum of
// vector x scalar products, pools and ReLU cost next to nothing, and what a pool drops at an odd
// edge is never computed. A way forward keeps its activations for the way back.
//
// The network is fedlogit/models/cnn.py: conv 3x3 to 32, pool, ReLU, conv 3x3 to 64, pool, ReLU,
// conv 3x3 to 64, ReLU, linear to 64, ReLU, linear to the classes; no padding. Parameters lie flat
// in PyTorch's order. A tie in a pool goes to the first of the window in row-major order.

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "convolution.h"
#include "linear.h"
#include "pools.h"
#include "tiles.h"
#include "transposes.h"
#include "winners.h"

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
    const int64_t pooled = C1 * a1.size() + C2 * a2.size();
    return (int64_t)channels * x.size() + pooled + pooled / 4 + features + F;
  }
};

// What a block of L samples keeps: input, activations, and which of a window won; -1 where none.
struct Block {
  V *x, *a1, *a2, *a3, *a4;
  Won *at1, *at2;
  Block(const Shape &s, V *memory) {
    x = memory, a1 = x + s.channels * s.x.size(), a2 = a1 + C1 * s.a1.size();
    a3 = a2 + C2 * s.a2.size(), a4 = a3 + s.features, at1 = (Won *)(a4 + F);
    at2 = at1 + C1 * s.a1.size();
  }
};

// The way back through the second convolution with the products of all places; as `WinnersBack` of
// winners.h, which a unit that multiplies whole tiles has no use for.
template <class Way>
class PlacesBack {
  Plane plane, small, z, rimmed;
  typename Way::Back back;
  typename Way::Sums sums;
  std::vector<V> grads;  // of what the pool saw, in a rim of zeros

 public:
  PlacesBack(const float *w, Plane plane, Plane small)  // what a pool drops counts as rim
      : plane(plane), small(small), z{2 * small.height, 2 * small.width}, rimmed(z.rimmed(K - 1)),
        back(w, C2, C1, rimmed, rimmed.stride(), K - 1), sums(C2, C1, plane, z),
        grads(C2 * rimmed.stride()) {}
  void add(const V *grad, const Won *won, const V *in, int /* n */, V *gin) {
    V *inner = &grads[(K - 1) * (rimmed.width + 1)];
    for (int o = 0; o < C2; ++o)
      unpool(grad + o * small.size(), won + o * small.size(), small, inner + o * rimmed.stride(),
             rimmed.width);
    sums.add(inner, rimmed.width, rimmed.stride(), in);
    back.take(grads.data());
    conv_back<K>(back, rimmed, C1, gin, plane);
  }
  void finish(float *dw) const { sums.finish(dw); }
};

template <class Way>
struct Pooled {
  typedef PlacesBack<Way> Back;
};
template <>
struct Pooled<ByVectors<K, J>> {
  typedef WinnersBack<K, C1, C2> Back;
};

// Logits of n images; `kept` may be null.
template <class Way>
void forward(const Shape &s, const float *p, const float *images, int64_t n, float *logits,
             float *kept) {
  [[maybe_unused]] const Way way{};
  VectorConv<K, J, false> conv1(p + s.w1, C1, s.channels, s.x, s.x.size(), 0);
  typename Way::Forward conv2(p + s.w2, C2, C1, s.a1, s.a1.size(), 0);
  typename Way::Forward conv3(p + s.w3, C3, C2, s.a2, s.a2.size(), 0);
  V *own = kept ? nullptr : (V *)operator new(s.kept() * sizeof(V), std::align_val_t(64));
  std::vector<V> out(s.classes);
  for (int64_t from = 0; from < n; from += L) {
    const int k = n - from < L ? (int)(n - from) : L;
    const Block b(s, kept ? (V *)kept + from / L * s.kept() : own);
    const int64_t stride = (int64_t)s.channels * s.x.size();
    load_images(images + from * stride, k, stride, stride, b.x);
    conv1.take(b.x);
    conv_pool<K, C1>(conv1, s.x, p + s.b1, b.a1, kept ? b.at1 : nullptr);
    conv2.take(b.a1);
    conv_pool<K, C2>(conv2, s.a1, p + s.b2, b.a2, kept ? b.at2 : nullptr);
    conv3.take(b.a2);
    convolve<K>(conv3, s.a2, p + s.b3, C3, b.a3);
    linear<true>(p + s.w4, p + s.b4, b.a3, s.features, b.a4, F);
    linear<false>(p + s.w5, p + s.b5, b.a4, F, out.data(), s.classes);
    for (int t = 0; t < k; ++t)
      for (int c = 0; c < s.classes; ++c) logits[(from + t) * s.classes + c] = out[c][t];
  }
  if (own) operator delete(own, std::align_val_t(64));
}

// Adds the gradient of the parameters to `grad`.
template <class Way>
void backward(const Shape &s, const float *p, int64_t n, const float *kept, const float *dlogits,
              float *grad) {
  [[maybe_unused]] const Way way{};
  const int row = s.features + L;  // what is kept of each sample for `linear_grad`
  std::vector<float> a3(n * row), a4(n * F), d4(n * F);
  const Plane r3 = s.a3.rimmed(K - 1), z1 = {2 * s.a1.height, 2 * s.a1.width};
  typename Pooled<Way>::Back back2(p + s.w2, s.a1, s.a2);
  typename Way::Back back3(p + s.w3, C3, C2, r3, r3.stride(), K - 1);
  typename Way::Sums sums3(C3, C2, s.a2, s.a3);
  std::vector<V> g5(s.classes), g4(F), g3r(C3 * r3.stride());
  const std::unique_ptr<V[]> g3(new V[s.features]), g2(new V[C2 * s.a2.size()]);
  const std::unique_ptr<V[]> g1(new V[C1 * s.a1.size()]), g1z(new V[J * z1.size()]);
  for (int64_t from = (n - 1) / L * L; from >= 0; from -= L) {  // first what is still in the cache
    const int k = n - from < L ? (int)(n - from) : L;
    const Block b(s, (V *)kept + from / L * s.kept());
    for (int c = 0; c < s.classes; ++c) {
      g5[c] = zero();
      for (int t = 0; t < k; ++t) g5[c][t] = dlogits[(from + t) * s.classes + c];
    }
    linear_back(p + s.w5, g5.data(), s.classes, g4.data(), F);
    let_through(b.a4, F, g4.data());
    linear_back(p + s.w4, g4.data(), F, g3.get(), s.features);
    let_through(b.a3, s.features, g3.get());
    spread(b.a4, F, &a4[from * F], F, k), spread(g4.data(), F, &d4[from * F], F, k);
    spread(b.a3, s.features, &a3[from * row], row, k);

    for (int o = 0; o < C3; ++o) {
      const V *g = &g3[o * s.a3.size()];
      V total = zero();
      for (int i = 0; i < s.a3.size(); ++i) total += g[i];
      grad[s.b3 + o] += sum(total);
      for (int y = 0; y < s.a3.height; ++y)
        std::memcpy(&g3r[o * r3.stride() + (y + 2) * r3.width + 2], g + y * s.a3.width,
                    s.a3.width * sizeof(V));
    }
    sums3.add(&g3r[2 * r3.width + 2], r3.width, r3.stride(), b.a2);
    back3.take(g3r.data());
    conv_back<K>(back3, r3, C2, g2.get(), s.a2);

    for (int o = 0; o < C2; ++o)
      grad[s.b2 + o] +=
          sum(sum_before(&g2[o * s.a2.size()], b.at2 + o * s.a2.size(), s.a2.size()));
    back2.add(g2.get(), b.at2, b.a1, k, g1.get());

    for (int o = 0; o < C1; o += J) {  // so few that the second cache holds them
      for (int j = 0; j < J; ++j) {
        const V *g = &g1[(o + j) * s.a1.size()];
        const Won *at = b.at1 + (o + j) * s.a1.size();
        grad[s.b1 + o + j] += sum(sum_before(g, at, s.a1.size()));
        unpool(g, at, s.a1, &g1z[j * z1.size()], z1.width);
      }
      weight_sums<K, J>(g1z.get(), J, z1.width, z1.size(), z1, b.x, s.channels, s.x,
                        grad + s.w1 + o * s.channels * TAPS);
    }
  }
  back2.finish(grad + s.w2), sums3.finish(grad + s.w3);
  linear_grad(d4.data(), F, a3.data(), s.features, row, n, grad + s.w4, grad + s.b4);
  linear_grad(dlogits, s.classes, a4.data(), F, F, n, grad + s.w5, grad + s.b5);
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
#ifdef FEDLOGIT_TILES
  if (tiles_usable()) return forward<ByTiles<K>>(s, p, images, n, logits, kept);
#endif
  forward<ByVectors<K, J>>(s, p, images, n, logits, kept);
}

// Adds the gradient of the parameters to `grad`, which holds zeros, from that of the logits.
void fedlogit_tf_cnn_backward(const float *p, int64_t n, int channels, int height, int width,
                              int classes, const float *kept, const float *dlogits, float *grad) {
  const Shape s(channels, height, width, classes);
#ifdef FEDLOGIT_TILES
  if (tiles_usable()) return backward<ByTiles<K>>(s, p, n, kept, dlogits, grad);
#endif
  backward<ByVectors<K, J>>(s, p, n, kept, dlogits, grad);
}
}
