// LeNet-5 with batch norm on the CPU: logits of a minibatch, and the gradients of its parameters.
//
// L samples share a vector register, as in tf_cnn.cpp. A norm needs statistics of the whole
// minibatch, so each layer is done for all blocks of L samples before the next one.
//
// The network is fedlogit/models/lenet.py: conv 5x5 to 6 (padding 2), norm, pool, ReLU, conv 5x5 to
// 16, norm, pool, ReLU, linear to 120, norm, ReLU, linear to 84, norm, ReLU, linear to the classes.
// Only the last layer has a bias. Statistics are always the minibatch's own. Parameters lie flat in
// PyTorch's order. A tie in a pool goes to the first of the window in row-major order.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "convolution.h"
#include "linear.h"
#include "pools.h"
#include "transposes.h"

namespace {

constexpr int C1 = 6, C2 = 16, F1 = 120, F2 = 84, K = 5, TAPS = K * K, RIM = 2;
// Channels at a time, as in lenet.h.
constexpr int J1 = MANY_REGISTERS ? 6 : 2, J2 = MANY_REGISTERS ? 4 : 2;
constexpr int SUMS1 = MANY_REGISTERS ? 3 : 2, SUMS2 = J2;
constexpr double EPSILON = 1e-5;

// Sizes of the network for images of a size, and where its parameters lie: weights w, and n of
// norms, all scales before all shifts.
struct Shape {
  int channels, classes, features;
  Plane image, x, z1, a1, z2, a2;
  int w1, n1, w2, n2, w3, n3, w4, n4, w5, b5;
  Shape(int channels, int height, int width, int classes) : channels(channels), classes(classes) {
    image = {height, width}, x = image.rimmed(RIM), z1 = x.conv(K), a1 = z1.pooled();
    z2 = a1.conv(K), a2 = z2.pooled(), features = C2 * a2.size();
    w1 = 0, n1 = C1 * channels * TAPS, w2 = n1 + 2 * C1, n2 = w2 + C2 * C1 * TAPS;
    w3 = n2 + 2 * C2, n3 = w3 + F1 * features, w4 = n3 + 2 * F1, n4 = w4 + F2 * F1;
    w5 = n4 + 2 * F2, b5 = w5 + classes * F2;
  }
  // Vectors of a block of samples: from the second convolution on, and all, for the way back.
  int64_t later() const { return C2 * (z2.size() + 2 * a2.size()) + 2 * (F1 + F2); }
  int64_t block() const {
    return (int64_t)channels * x.size() + C1 * (z1.size() + 2 * a1.size()) + later();
  }
  // The same without a way back, for which what was used is overwritten.
  int64_t smallest() const {
    const int64_t first = C1 * z1.size();
    return C1 * a1.size() + (first > later() ? first : later());
  }
};

// A block of at most L samples. `lanes` has those there are; others are 0 wherever they are summed.
struct Block {
  int samples;
  V *x, *z1, *a1, *z2, *a2, *z3, *a3, *z4, *a4;  // inputs, and before and after norm, pool and ReLU
  M *at1, *at2;  // which of a window won; -1 where none
  V *g1, *g2, *g3, *g4, *g5;  // gradients: of a1 and a2, before the norms 3 and 4, of the logits
  M lanes;
  // `input` is null if the block keeps its own.
  Block(const Shape &s, V *memory, V *input, int samples) : samples(samples) {
    if (input) {
      x = input, a1 = memory, z1 = z2 = a1 + C1 * s.a1.size(), at1 = nullptr;
    } else {
      x = memory, z1 = x + s.channels * s.x.size(), a1 = z1 + C1 * s.z1.size();
      at1 = (M *)(a1 + C1 * s.a1.size()), z2 = (V *)at1 + C1 * s.a1.size();
    }
    a2 = z2 + C2 * s.z2.size(), at2 = (M *)(a2 + s.features), z3 = (V *)at2 + s.features;
    a3 = z3 + F1, z4 = a3 + F1, a4 = z4 + F2;
    for (int t = 0; t < L; ++t) lanes[t] = t < samples ? -1 : 0;
  }
};

typedef std::vector<Block> Blocks;
typedef V *Block::*Part;

// Mean of a channel over all samples and places, and 1 / sqrt(variance + ε).
struct Norm {
  float mean, inverse;
};

struct Norms {
  Norm of1[C1], of2[C2], of3[F1], of4[F2];
};

constexpr int64_t NORMS = (sizeof(Norms) + sizeof(V) - 1) / sizeof(V);  // in vectors

Norm measured(const Blocks &blocks, Part z, int from, int places, int64_t samples) {
  const double count = (double)samples * places;
  double total = 0, squares = 0;
  for (const Block &b : blocks) {
    V s = zero();
    for (int i = from; i < from + places; ++i) s += (b.*z)[i];
    total += sum(s);
  }
  const float mean = total / count;
  for (const Block &b : blocks) {
    V s = zero();
    for (int i = from; i < from + places; ++i) {
      const V away = choose(b.lanes, (b.*z)[i] - mean);
      s += away * away;
    }
    squares += sum(s);
  }
  return {mean, (float)(1 / std::sqrt(squares / count + EPSILON))};
}

// Norm, pool and ReLU of all channels of a layer.
void norm_pool(const Blocks &blocks, Part z, Plane plane, int channels, const float *scale,
               int64_t samples, Norm *norms, Part a, M *Block::*at) {
  const Plane small = plane.pooled();
  for (int c = 0; c < channels; ++c) {
    const Norm m = norms[c] = measured(blocks, z, c * plane.size(), plane.size(), samples);
    const float factor = scale[c] * m.inverse, shift = scale[channels + c] - m.mean * factor;
    for (const Block &b : blocks) {
      const V *from = b.*z + c * plane.size();
      V *to = b.*a + c * small.size();
      M *won = b.*at ? b.*at + c * small.size() : nullptr;
      for (int y = 0; y < small.height; ++y)
        for (int x = 0; x < small.width; ++x, ++to) {
          const V *corner = from + 2 * y * plane.width + 2 * x;
          V window[4];
          for (int q = 0; q < 4; ++q)
            window[q] = corner[q / 2 * plane.width + q % 2] * factor + shift;
          pool(window, *to, won);
          *to = choose(b.lanes, *to);
          if (won) *won++ |= ~b.lanes;
        }
    }
  }
}

// Norm and ReLU of features.
void norm_relu(const Blocks &blocks, Part z, int features, const float *scale, int64_t samples,
               Norm *norms, Part a) {
  for (int f = 0; f < features; ++f) {
    const Norm m = norms[f] = measured(blocks, z, f, 1, samples);
    const float factor = scale[f] * m.inverse, shift = scale[features + f] - m.mean * factor;
    for (const Block &b : blocks)
      (b.*a)[f] = choose(b.lanes, relu((b.*z)[f] * factor + shift));
  }
}

// The way back through a norm: dz = scale inverse (g - mean of g - x̂ mean of g x̂), for the
// normalised x̂ = (z - mean) inverse. The gradients of scale and shift are the sums behind the means.
struct Back {
  Norm m;
  float factor, mean_g, mean_gx;
  Back(Norm m, float scale, V g, V gx, double count, float *dscale, float *dshift) : m(m) {
    *dscale += sum(gx), *dshift += sum(g);
    factor = scale * m.inverse, mean_g = sum(g) / count, mean_gx = sum(gx) / count;
  }
  V standard(V z) const { return (z - m.mean) * m.inverse; }
  V rest(V z) const { return -factor * (mean_g + standard(z) * mean_gx); }
};

// `g`, of the activations of features, becomes the gradient before ReLU and norm.
void norm_relu_back(const Blocks &blocks, Part z, Part a, Part g, int features, const float *scale,
                    int64_t samples, const Norm *norms, float *dscale) {
  for (int f = 0; f < features; ++f) {
    const Norm m = norms[f];
    V sum_g = zero(), sum_gx = zero();
    for (const Block &b : blocks) {
      const V grad = (b.*g)[f] = choose((b.*a)[f] > zero(), (b.*g)[f]);
      sum_g += grad, sum_gx += grad * (((b.*z)[f] - m.mean) * m.inverse);
    }
    const Back back(m, scale[f], sum_g, sum_gx, samples, dscale + f, dscale + features + f);
    for (const Block &b : blocks)
      (b.*g)[f] = choose(b.lanes, back.factor * (b.*g)[f] + back.rest((b.*z)[f]));
  }
}

// Prepares the way back through norms, pools and ReLU of a layer's channels.
std::vector<Back> pool_sums(const Blocks &blocks, Part z, Plane plane, M *Block::*at, Part g,
                            int channels, const float *scale, int64_t samples, const Norm *norms,
                            float *dscale) {
  const Plane small = plane.pooled();
  std::vector<Back> found;
  for (int c = 0; c < channels; ++c) {
    const Norm m = norms[c];
    V sum_g = zero(), sum_gx = zero();
    for (const Block &b : blocks)
      for (int y = 0; y < small.height; ++y)
        for (int x = 0; x < small.width; ++x) {
          const int i = c * small.size() + y * small.width + x;
          const V *corner = b.*z + c * plane.size() + 2 * y * plane.width + 2 * x;
          const M won = (b.*at)[i];
          V best = zero();
          for (int q = 0; q < 4; ++q)
            best += choose(won == q, corner[q / 2 * plane.width + q % 2]);
          const V grad = choose(won >= 0, (b.*g)[i]);
          sum_g += grad, sum_gx += grad * ((best - m.mean) * m.inverse);
        }
    found.emplace_back(m, scale[c], sum_g, sum_gx, (double)samples * plane.size(), dscale + c,
                       dscale + channels + c);
  }
  return found;
}

// The gradient of a channel before norm, pool and ReLU, into a plane that is `width` wide.
void pool_back(const Back &back, const V *z, Plane plane, const M *at, const V *g, M lanes, V *to,
               int width) {
  const Plane small = plane.pooled();
  for (int y = 0; y < plane.height; ++y)
    for (int x = 0; x < plane.width; ++x)
      to[y * width + x] = choose(lanes, back.rest(z[y * plane.width + x]));
  for (int y = 0; y < small.height; ++y)
    for (int x = 0; x < small.width; ++x, ++at, ++g)
      for (int q = 0; q < 4; ++q)
        to[(2 * y + q / 2) * width + 2 * x + q % 2] += choose(*at == q, back.factor * *g);
}

// `input`: memory for the images of a block; null where all are kept.
Blocks blocks_of(const Shape &s, V *memory, V *input, int64_t samples) {
  const int64_t size = input ? s.smallest() : s.block();
  Blocks found;
  for (int64_t from = 0; from < samples; from += L, memory += size) {
    const int64_t left = samples - from;
    found.emplace_back(s, memory, input, left < L ? (int)left : L);
  }
  return found;
}

void load_padded(const Shape &s, const float *images, int samples, V *to) {
  const int64_t stride = (int64_t)s.channels * s.image.size();
  std::memset(static_cast<void *>(to), 0, s.channels * s.x.size() * sizeof(V));
  for (int c = 0; c < s.channels; ++c)
    for (int y = 0; y < s.image.height; ++y)
      load_images(images + (c * s.image.height + y) * s.image.width, samples, stride, s.image.width,
                  to + c * s.x.size() + (y + RIM) * s.x.width + RIM);
}

// The gradient of a linear layer's weights, from gradients and inputs of all blocks.
void weights_of(const Blocks &blocks, Part g, int n, Part in, int m, int64_t samples, float *dw,
                float *db) {
  std::vector<float> out(samples * n), rows(samples * m);
  for (size_t i = 0; i < blocks.size(); ++i) {
    spread(blocks[i].*g, n, &out[i * L * n], n, blocks[i].samples);
    spread(blocks[i].*in, m, &rows[i * L * m], m, blocks[i].samples);
  }
  linear_grad(out.data(), n, rows.data(), m, m, samples, dw, db);
}

}  // namespace

extern "C" {

// Returns the number of floats that `kept` of fedlogit_lenet_bn_forward needs for n samples.
int64_t fedlogit_lenet_bn_kept(int64_t n, int channels, int height, int width, int classes) {
  return (NORMS + (n + L - 1) / L * Shape(channels, height, width, classes).block()) * L;
}

// Computes logits (n, classes) of images (n, channels, height, width), normalised.
//
// kept: aligned to 64 bytes; null computes logits alone.
void fedlogit_lenet_bn_forward(const float *p, const float *images, int64_t n, int channels,
                               int height, int width, int classes, float *logits, float *kept) {
  const Shape s(channels, height, width, classes);
  const int64_t input = (int64_t)channels * s.x.size();
  std::vector<V> own(kept ? 0 : NORMS + input + (n + L - 1) / L * s.smallest());
  Norms &norms = kept ? *(Norms *)kept : *(Norms *)own.data();
  const Blocks blocks = kept ? blocks_of(s, (V *)kept + NORMS, nullptr, n)
                             : blocks_of(s, &own[NORMS + input], &own[NORMS], n);
  VectorConv<K, J1, false> conv1(p + s.w1, C1, channels, s.x, s.x.size(), 0);
  VectorConv<K, J2, false> conv2(p + s.w2, C2, C1, s.a1, s.a1.size(), 0);
  std::vector<V> out(classes);

  for (size_t i = 0; i < blocks.size(); ++i) {
    load_padded(s, images + i * L * channels * s.image.size(), blocks[i].samples, blocks[i].x);
    conv1.take(blocks[i].x);
    convolve<K>(conv1, s.x, nullptr, C1, blocks[i].z1);
  }
  norm_pool(blocks, &Block::z1, s.z1, C1, p + s.n1, n, norms.of1, &Block::a1, &Block::at1);
  for (const Block &b : blocks) {
    conv2.take(b.a1);
    convolve<K>(conv2, s.a1, nullptr, C2, b.z2);
  }
  norm_pool(blocks, &Block::z2, s.z2, C2, p + s.n2, n, norms.of2, &Block::a2, &Block::at2);
  for (const Block &b : blocks) linear<false>(p + s.w3, nullptr, b.a2, s.features, b.z3, F1);
  norm_relu(blocks, &Block::z3, F1, p + s.n3, n, norms.of3, &Block::a3);
  for (const Block &b : blocks) linear<false>(p + s.w4, nullptr, b.a3, F1, b.z4, F2);
  norm_relu(blocks, &Block::z4, F2, p + s.n4, n, norms.of4, &Block::a4);
  for (size_t i = 0; i < blocks.size(); ++i) {
    linear<false>(p + s.w5, p + s.b5, blocks[i].a4, F2, out.data(), classes);
    for (int t = 0; t < blocks[i].samples; ++t)
      for (int c = 0; c < classes; ++c) logits[(i * L + t) * classes + c] = out[c][t];
  }
}

// Adds the gradient of the parameters to `grad`, which holds zeros, from that of the logits.
void fedlogit_lenet_bn_backward(const float *p, int64_t n, int channels, int height, int width,
                                int classes, float *kept, const float *dlogits, float *grad) {
  const Shape s(channels, height, width, classes);
  const Norms &norms = *(Norms *)kept;
  Blocks blocks = blocks_of(s, (V *)kept + NORMS, nullptr, n);
  const int64_t needed = C1 * s.a1.size() + s.features + F1 + F2 + classes;
  std::vector<V> memory(blocks.size() * needed, V{});
  for (size_t i = 0; i < blocks.size(); ++i) {
    Block &b = blocks[i];
    b.g1 = &memory[i * needed], b.g2 = b.g1 + C1 * s.a1.size(), b.g3 = b.g2 + s.features;
    b.g4 = b.g3 + F1, b.g5 = b.g4 + F2;
    for (int t = 0; t < b.samples; ++t)
      for (int c = 0; c < classes; ++c) b.g5[c][t] = dlogits[(i * L + t) * classes + c];
    linear_back(p + s.w5, b.g5, classes, b.g4, F2);
  }
  weights_of(blocks, &Block::g5, classes, &Block::a4, F2, n, grad + s.w5, grad + s.b5);
  norm_relu_back(blocks, &Block::z4, &Block::a4, &Block::g4, F2, p + s.n4, n, norms.of4, grad + s.n4);
  weights_of(blocks, &Block::g4, F2, &Block::a3, F1, n, grad + s.w4, nullptr);
  for (const Block &b : blocks) linear_back(p + s.w4, b.g4, F2, b.g3, F1);
  norm_relu_back(blocks, &Block::z3, &Block::a3, &Block::g3, F1, p + s.n3, n, norms.of3, grad + s.n3);
  weights_of(blocks, &Block::g3, F1, &Block::a2, s.features, n, grad + s.w3, nullptr);
  for (const Block &b : blocks) linear_back(p + s.w3, b.g3, F1, b.g2, s.features);

  const Plane rimmed = s.z2.rimmed(K - 1);
  std::vector<V> dz2(C2 * rimmed.stride(), V{}), dz1(C1 * s.z1.size());
  std::vector<V> w1(C1 * channels * TAPS, V{}), w2(C2 * C1 * TAPS, V{});
  VectorConv<K, J1, true> back_conv2(p + s.w2, C2, C1, rimmed, rimmed.stride(), K - 1);
  const int inner = (K - 1) * rimmed.width + K - 1;
  const auto back2 = pool_sums(blocks, &Block::z2, s.z2, &Block::at2, &Block::g2, C2, p + s.n2, n,
                               norms.of2, grad + s.n2);
  for (const Block &b : blocks) {
    for (int c = 0; c < C2; ++c)
      pool_back(back2[c], b.z2 + c * s.z2.size(), s.z2, b.at2 + c * s.a2.size(),
                b.g2 + c * s.a2.size(), b.lanes, &dz2[c * rimmed.stride() + inner], rimmed.width);
    weight_sums<K, SUMS2>(&dz2[inner], C2, rimmed.width, rimmed.stride(), s.z2, b.a1, C1, s.a1,
                          w2.data());
    back_conv2.take(dz2.data());
    conv_back<K>(back_conv2, rimmed, C1, b.g1, s.a1);
  }
  const auto back1 = pool_sums(blocks, &Block::z1, s.z1, &Block::at1, &Block::g1, C1, p + s.n1, n,
                               norms.of1, grad + s.n1);
  for (const Block &b : blocks) {
    for (int c = 0; c < C1; ++c)
      pool_back(back1[c], b.z1 + c * s.z1.size(), s.z1, b.at1 + c * s.a1.size(),
                b.g1 + c * s.a1.size(), b.lanes, &dz1[c * s.z1.size()], s.z1.width);
    weight_sums<K, SUMS1>(dz1.data(), C1, s.z1.width, s.z1.size(), s.z1, b.x, channels, s.x,
                          w1.data());
  }
  fold(w1, grad + s.w1), fold(w2, grad + s.w2);
}
}
