// LeNet-5 on the CPU: a whole stage of a client with Adam in one call, or a minibatch's logits and
// gradients, for any loss and optimizer. A file that includes this one says which form of it, by
// LENET_FORM, and what its functions are called, by LENET(name).
//
// PyTorch is five to nine times off a core's limit on networks this narrow. Here L samples share a
// vector register ("batch innermost"), so that every layer is a sum of vector x scalar products
// whatever its number of channels. Gradients of convolution weights are summed as vectors over
// samples and folded once a minibatch; those of linear layers are products over the minibatch.
//
// The network is fedlogit/models/lenet.py: conv 5x5 to 6 (padding 2), conv 5x5 to 16, each with a
// pool and an activation, linear to 120, 84 and the classes. Parameters lie flat in PyTorch's order.
// Unused lanes and the padding are multiplied, too: where a parameter is infinite, more becomes NaN
// than elsewhere.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "convolution.h"
#include "linear.h"
#include "pools.h"
#include "transposes.h"

namespace {

typedef LENET_FORM Form;
typedef Form::Kept Kept;

constexpr int C1 = 6, C2 = 16, F1 = 120, F2 = 84, K = 5, TAPS = K * K, RIM = 2;
// Channels at a time: 6 x 4 places and what is multiplied just fit into 32 registers. Sums of weights
// take fewer, since they are of five places of the kernel.
constexpr int J1 = MANY_REGISTERS ? 6 : 2, J2 = MANY_REGISTERS ? 4 : 2;
constexpr int SUMS1 = MANY_REGISTERS ? 3 : 2, SUMS2 = J2;

typedef VectorConv<K, J1, false> Conv1;
typedef VectorConv<K, J2, false> Conv2;
typedef VectorConv<K, J1, true> BackConv2;

// Sizes of the network for images of a size, and where its parameters lie.
struct Shape {
  int channels, classes, features;
  Plane image, x, a1, a2;
  int w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, end;
  Shape(int channels, int height, int width, int classes) : channels(channels), classes(classes) {
    image = {height, width}, x = image.rimmed(RIM), a1 = x.conv(K).pooled();
    a2 = a1.conv(K).pooled(), features = C2 * a2.size();
    w1 = 0, b1 = C1 * channels * TAPS, w2 = b1 + C1, b2 = w2 + C2 * C1 * TAPS, w3 = b2 + C2;
    b3 = w3 + F1 * features, w4 = b3 + F1, b4 = w4 + F2 * F1, w5 = b4 + F2;
    b5 = w5 + classes * F2, end = b5 + classes;
  }
  // Vectors that a block of samples keeps for the way back.
  int64_t kept() const {
    const int64_t pooled = C1 * a1.size() + features;
    const int64_t windows = (pooled * sizeof(Kept) + sizeof(V) - 1) / sizeof(V);
    return (int64_t)channels * x.size() + pooled + windows + F1 + F2;
  }
};

// What a block of L samples keeps: input, activations, and what a pool needs on the way back.
struct Block {
  V *x, *a1, *a2, *a3, *a4;
  Kept *at1, *at2;
  Block(const Shape &s, V *memory) {
    x = memory, a1 = x + s.channels * s.x.size(), a2 = a1 + C1 * s.a1.size();
    a3 = a2 + s.features, a4 = a3 + F1, at1 = (Kept *)(a4 + F2), at2 = at1 + C1 * s.a1.size();
  }
};

// The network with parameters that stay as they are for a minibatch.
class Network {
  const Shape &s;
  const float *p;
  Conv1 conv1;
  Conv2 conv2;

 public:
  Network(const Shape &s, const float *p)
      : s(s), p(p), conv1(p + s.w1, C1, s.channels, s.x, s.x.size(), 0),
        conv2(p + s.w2, C2, C1, s.a1, s.a1.size(), 0) {}
  // From the input of a block to its logits, (classes).
  void forward(const Block &b, V *logits) {
    conv1.take(b.x);
    conv_pool<K, C1, Form>(conv1, s.x, p + s.b1, b.a1, b.at1);
    conv2.take(b.a1);
    conv_pool<K, C2, Form>(conv2, s.a1, p + s.b2, b.a2, b.at2);
    linear<Form::RELU>(p + s.w3, p + s.b3, b.a2, s.features, b.a3, F1);
    Form::activate(b.a3, F1);
    linear<Form::RELU>(p + s.w4, p + s.b4, b.a3, F1, b.a4, F2);
    Form::activate(b.a4, F2);
    linear<false>(p + s.w5, p + s.b5, b.a4, F2, logits, s.classes);
  }
};

// The way back through the blocks of a minibatch of at most `samples`.
class Backward {
  const Shape &s;
  const Plane z2, rimmed;  // what the second pool saw, and a rim of zeros around it
  const int inner, row;    // where that begins; what is kept of each sample's features
  std::vector<V> g5, g4, g3, g2, g1, dz2;
  std::vector<V> w1, b1, w2, b2;              // sums
  std::vector<float> a2, a3, a4, d3, d4, d5;  // samples in rows, for the linear layers

 public:
  Backward(const Shape &s, int64_t samples)
      : s(s), z2{2 * s.a2.height, 2 * s.a2.width},
        rimmed(z2.rimmed(K - 1)), inner((K - 1) * (rimmed.width + 1)), row(s.features + L),
        g5(s.classes), g4(F2), g3(F1), g2(s.features), g1(C1 * s.a1.size()),
        dz2(C2 * rimmed.stride()), w1(C1 * s.channels * TAPS), b1(C1), w2(C2 * C1 * TAPS), b2(C2),
        a2(samples * row), a3(samples * F1), a4(samples * F2), d3(samples * F1), d4(samples * F2),
        d5(samples * s.classes) {}

  V *logits_grad() { return g5.data(); }  // (classes), which `add` reads
  // Adds a block of k samples, the first of which is the minibatch's `from`th.
  void add(const float *p, const Block &b, int64_t from, int k) {
    linear_back(p + s.w5, g5.data(), s.classes, g4.data(), F2);
    Form::through(b.a4, F2, g4.data());
    linear_back(p + s.w4, g4.data(), F2, g3.data(), F1);
    Form::through(b.a3, F1, g3.data());
    linear_back(p + s.w3, g3.data(), F1, g2.data(), s.features);
    keep_rows(b, from, k);

    for (int o = 0; o < C2; ++o) {
      const V *g = &g2[o * s.a2.size()];
      const Kept *at = b.at2 + o * s.a2.size();
      b2[o] += sum_before<Form>(g, at, s.a2.size());
      unpool<Form>(g, at, s.a2, &dz2[o * rimmed.stride() + inner], rimmed.width);
    }
    weight_sums<K, SUMS2>(&dz2[inner], C2, rimmed.width, rimmed.stride(), z2, b.a1, C1, s.a1,
                          w2.data());
    BackConv2 back(p + s.w2, C2, C1, rimmed, rimmed.stride(), K - 1);
    back.take(dz2.data());
    conv_back<K>(back, rimmed, C1, g1.data(), s.a1);

    for (int o = 0; o < C1; ++o)
      b1[o] += sum_before<Form>(&g1[o * s.a1.size()], b.at1 + o * s.a1.size(), s.a1.size());
    pooled_weight_sums<K, SUMS1, Form>(g1.data(), b.at1, C1, s.a1, b.x, s.channels, s.x, w1.data());
  }
  // Adds the gradient of a minibatch of n samples to `grad`, which holds zeros; the next one begins.
  void finish(int64_t n, float *grad) {
    fold(w1, grad + s.w1), fold(b1, grad + s.b1), fold(w2, grad + s.w2), fold(b2, grad + s.b2);
    linear_grad(d3.data(), F1, a2.data(), s.features, row, n, grad + s.w3, grad + s.b3);
    linear_grad(d4.data(), F2, a3.data(), F1, F1, n, grad + s.w4, grad + s.b4);
    linear_grad(d5.data(), s.classes, a4.data(), F2, F2, n, grad + s.w5, grad + s.b5);
  }

 private:
  void keep_rows(const Block &b, int64_t from, int k) {
    spread(b.a2, s.features, &a2[from * row], row, k);
    spread(b.a3, F1, &a3[from * F1], F1, k), spread(b.a4, F2, &a4[from * F2], F2, k);
    spread(g3.data(), F1, &d3[from * F1], F1, k), spread(g4.data(), F2, &d4[from * F2], F2, k);
    spread(g5.data(), s.classes, &d5[from * s.classes], s.classes, k);
  }
};

// T² times the cross-entropy of k samples, their logits divided by T, with target distributions,
// (k, classes); returns their summed loss and writes `scale` times its gradient.
double loss(const V *found, const float *target, int classes, int k, float temperature, float scale,
            V *logits, V *grad) {
  for (int c = 0; c < classes; ++c) logits[c] = found[c] / temperature;
  double total = 0;
  for (int c = 0; c < classes; ++c) grad[c] = zero();
  for (int t = 0; t < k; ++t) {
    float top = logits[0][t];
    for (int c = 1; c < classes; ++c) top = logits[c][t] > top ? logits[c][t] : top;
    double mass = 0, weight = 0, dot = 0;
    for (int c = 0; c < classes; ++c) {
      float q = target[t * classes + c];
      mass += std::exp((double)logits[c][t] - top);
      weight += q;
      dot += (double)q * logits[c][t];
    }
    double log_mass = std::log(mass) + top;
    total += weight * log_mass - dot;
    for (int c = 0; c < classes; ++c)
      grad[c][t] =
          scale * temperature *
          (float)(weight * std::exp(logits[c][t] - log_mass) - target[t * classes + c]);
  }
  return temperature * temperature * total;
}

// Writes zeros where a block's padded input lies; what is loaded afterwards leaves its rim.
void clear_input(const Shape &s, V *x) {
  std::memset(static_cast<void *>(x), 0, s.channels * s.x.size() * sizeof(V));
}

V *row_of(const Shape &s, V *x, int channel, int y) {
  return x + channel * s.x.size() + (y + RIM) * s.x.width + RIM;
}

// Loads k normalised images, (channels, height, width) each.
void load_normalised(const Shape &s, const float *images, int k, V *x) {
  const int64_t stride = (int64_t)s.channels * s.image.size();
  for (int c = 0; c < s.channels; ++c)
    for (int y = 0; y < s.image.height; ++y)
      load_images(images + (c * s.image.height + y) * s.image.width, k, stride, s.image.width,
                  row_of(s, x, c, y));
}

// Where an image is cut out of itself with a border of zeros, and whether that is mirrored.
struct Crop {
  int down, right;  // how far the upper left corner is from the image's own
  bool mirrored;
};

// What is done to each sample of a task: three rows, as `draw_crops` of transforms.py gives them.
struct Crops {
  const int64_t *drawn;  // null: nothing
  int64_t samples;
  int padding;
  Crop of(int64_t i) const {
    const int64_t top = drawn[i], left = drawn[samples + i], mirrored = drawn[2 * samples + i];
    return {(int)top - padding, (int)left - padding, mirrored != 0};
  }
};

// Cuts a channel of an image out, `to` of the same size.
void cut_out(const uint8_t *from, Plane image, Crop crop, uint8_t *to) {
  std::memset(to, 0, image.size());
  const int width = image.width, begin = crop.right < 0 ? -crop.right : 0;
  const int end = crop.right < 0 ? width : width - crop.right;
  for (int y = 0; y < image.height; ++y, to += width) {
    const int row = y + crop.down;
    if (row < 0 || row >= image.height) continue;
    const uint8_t *p = from + row * width + begin + crop.right;
    if (crop.mirrored)
      for (int x = begin; x < end; ++x) to[width - 1 - x] = *p++;
    else
      std::memcpy(to + begin, p, end - begin);
  }
}

// Normalises images of bytes, the samples `first` to `first` + k of a task, of which `rows` says
// which image each is: v becomes v * scale + shift, by channel. `cropped` is memory for one channel.
void normalise(const Shape &s, const uint8_t *images, const int64_t *rows, const Crops &crops,
               int64_t first, int k, const float *scale, const float *shift, uint8_t *cropped,
               float *to) {
  const int size = s.image.size();
  for (int64_t i = first; i < first + k; ++i)
    for (int c = 0; c < s.channels; ++c, to += size) {
      const uint8_t *from = images + (rows[i] * s.channels + c) * size;
      if (crops.drawn) cut_out(from, s.image, crops.of(i), cropped), from = cropped;
      for (int p = 0; p < size; ++p) to[p] = from[p] * scale[c] + shift[c];
    }
}

struct Adam {
  double lr, beta1, beta2, eps;
  void step(int64_t number, const std::vector<float> &grad, float *p, float *m, float *v) const {
    const float rate = lr / (1 - std::pow(beta1, (double)number));
    const float root = std::sqrt(1 - std::pow(beta2, (double)number));
    const float u = beta1, w = beta2, u1 = 1 - beta1, w1 = 1 - beta2, tiny = eps;
    for (size_t i = 0; i < grad.size(); ++i) {
      m[i] = u * m[i] + u1 * grad[i];
      v[i] = w * v[i] + w1 * grad[i] * grad[i];
      p[i] -= rate * m[i] / (std::sqrt(v[i]) / root + tiny);
    }
  }
};

}  // namespace

extern "C" {

// Trains on `batches` minibatches and returns the summed loss over samples.
//
// parameters, moment1, moment2: flat, of the same size, updated in place.
// images: uint8 (n, channels, height, width); rows: image of each sample in order; targets: row of
// `distributions`. ends: where each minibatch ends in `rows`. steps: Adam steps taken before.
// temperature: T, by which `distributions` have been softened before.
// crops: int64 (3, samples), how far down and right of an image with `padding` zeros around it each
// sample begins, and whether it is mirrored; null leaves images as they are.
// Of channel c pixel value v becomes v * scale[c] + shift[c]. A non-zero *cancel ends the call early.
double LENET(train)(float *parameters, float *moment1, float *moment2,
                            const uint8_t *images, int channels, int height, int width,
                            const int64_t *rows, const int64_t *targets,
                            const float *distributions, int classes, float temperature,
                            const int64_t *ends, int64_t batches, const int64_t *crops, int padding,
                            const float *scale, const float *shift, double lr, double beta1,
                            double beta2, double eps, int64_t steps, const volatile int *cancel) {
  const Shape s(channels, height, width, classes);
  int64_t largest = 0;
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t n = ends[b] - (b ? ends[b - 1] : 0);
    largest = n > largest ? n : largest;
  }
  std::vector<V> memory(s.kept());
  const Block block(s, memory.data());
  Backward back(s, largest);
  const Adam adam = {lr, beta1, beta2, eps};
  std::vector<float> grad(s.end), target(L * classes), normalised(L * channels * s.image.size());
  std::vector<V> logits(classes), divided(classes);
  std::vector<uint8_t> cropped(s.image.size());
  const Crops cuts = {crops, batches ? ends[batches - 1] : 0, padding};
  double total = 0;

  for (int64_t b = 0; b < batches && !*cancel; ++b) {
    const int64_t begin = b ? ends[b - 1] : 0, n = ends[b] - begin;
    Network network(s, parameters);
    for (int64_t from = 0; from < n; from += L) {
      const int k = n - from < L ? (int)(n - from) : L;
      normalise(s, images, rows, cuts, begin + from, k, scale, shift, cropped.data(),
                normalised.data());
      load_normalised(s, normalised.data(), k, block.x);
      network.forward(block, logits.data());
      for (int t = 0; t < k; ++t)
        std::memcpy(&target[t * classes], distributions + targets[begin + from + t] * classes,
                    4 * classes);
      total += loss(logits.data(), target.data(), classes, k, temperature, 1.f / n,
                    divided.data(), back.logits_grad());
      back.add(parameters, block, from, k);
    }
    std::memset(grad.data(), 0, grad.size() * sizeof(float));
    back.finish(n, grad.data());
    adam.step(++steps, grad, parameters, moment1, moment2);
  }
  return total;
}

// Returns the number of floats that `kept` of the next function needs for n samples.
int64_t LENET(kept)(int64_t n, int channels, int height, int width, int classes) {
  return (n + L - 1) / L * Shape(channels, height, width, classes).kept() * L;
}

// Computes logits (n, classes) of images (n, channels, height, width), normalised.
//
// kept: aligned to 64 bytes; null computes logits alone.
void LENET(forward)(const float *p, const float *images, int64_t n, int channels,
                            int height, int width, int classes, float *logits, float *kept) {
  const Shape s(channels, height, width, classes);
  std::vector<V> own(kept ? 0 : s.kept());
  Network network(s, p);
  std::vector<V> found(classes);
  for (int64_t from = 0; from < n; from += L) {
    const int k = n - from < L ? (int)(n - from) : L;
    const Block b(s, kept ? (V *)kept + from / L * s.kept() : own.data());
    if (kept) clear_input(s, b.x);
    load_normalised(s, images + from * channels * s.image.size(), k, b.x);
    network.forward(b, found.data());
    for (int t = 0; t < k; ++t)
      for (int c = 0; c < classes; ++c) logits[(from + t) * classes + c] = found[c][t];
  }
}

// Adds the gradient of the parameters to `grad`, which holds zeros, from that of the logits.
void LENET(backward)(const float *p, int64_t n, int channels, int height, int width,
                             int classes, const float *kept, const float *dlogits, float *grad) {
  const Shape s(channels, height, width, classes);
  Backward back(s, n);
  for (int64_t from = (n - 1) / L * L; from >= 0; from -= L) {  // first what is still in the cache
    const int k = n - from < L ? (int)(n - from) : L;
    V *g = back.logits_grad();
    for (int c = 0; c < classes; ++c) {
      g[c] = zero();
      for (int t = 0; t < k; ++t) g[c][t] = dlogits[(from + t) * classes + c];
    }
    back.add(p, Block(s, (V *)kept + from / L * s.kept()), from, k);
  }
  back.finish(n, grad);
}
}
