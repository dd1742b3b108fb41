// A multi-layer perceptron on the CPU: forward, backward and SGD for a whole stage of a client in
// one call, and its logits. The network is fedlogit/models/mlp.py: linear layers with ReLU between
// them on images that may be zero-padded. Parameters lie flat in PyTorch's order.
//
// Everything is a product of small matrices. Activations are kept twice: by unit ("batch
// innermost", so that a layer is weights times activations) and by sample (so that a gradient is
// errors times activations). Both products then stream rows of their right side and broadcast
// scalars of their left side. Padded pixels are zero: they reach nothing, and their weights never
// change, so they are left out.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "vectors.h"

namespace {

constexpr int ROWS = 6, VECTORS = MANY_REGISTERS ? 4 : 2;  // of a tile that stays in registers
constexpr int DEPTH = 96;  // of a panel that stays in the first cache

// A tile of c: R rows, N vectors wide; it begins with what is there if `more`. Element (i, k) of a
// is a[i * ar + k * ak]; b is a panel, (depth x N vectors).
template <int R, int N>
inline void tile(int depth, const float *a, int ar, int ak, const V *b, float *c, int ldc,
                 bool more) {
  V sum[R][N];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j) sum[i][j] = more ? load(c + (int64_t)i * ldc + j * L) : zero();
  for (int k = 0; k < depth; ++k, b += N)
    for (int i = 0; i < R; ++i) {
      const float scalar = a[(int64_t)i * ar + (int64_t)k * ak];
      for (int j = 0; j < N; ++j) sum[i][j] += b[j] * scalar;
    }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j) store(c + (int64_t)i * ldc + j * L, sum[i][j]);
}

template <int N>
void strip(int rows, int depth, const float *a, int ar, int ak, const float *b, int ldb, float *c,
           int ldc, bool more) {
  V panel[DEPTH * N];
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < N; ++j) panel[k * N + j] = load(b + (int64_t)k * ldb + j * L);
  int i = 0;
  for (; i + ROWS <= rows; i += ROWS)
    tile<ROWS, N>(depth, a + (int64_t)i * ar, ar, ak, panel, c + (int64_t)i * ldc, ldc, more);
  for (; i < rows; ++i)
    tile<1, N>(depth, a + (int64_t)i * ar, ar, ak, panel, c + (int64_t)i * ldc, ldc, more);
}

// c (rows x columns) = a (rows x depth) b (depth x columns); columns are a multiple of L.
void product(int rows, int columns, int depth, const float *a, int ar, int ak, const float *b,
             int ldb, float *c, int ldc) {
  for (int k = 0; k < depth; k += DEPTH, a += (int64_t)DEPTH * ak, b += (int64_t)DEPTH * ldb) {
    const int deep = std::min(DEPTH, depth - k);
    int j = 0;
    for (; j + VECTORS * L <= columns; j += VECTORS * L)
      strip<VECTORS>(rows, deep, a, ar, ak, b + j, ldb, c + j, ldc, k > 0);
    for (; j < columns; j += L) strip<1>(rows, deep, a, ar, ak, b + j, ldb, c + j, ldc, k > 0);
  }
}

int rounded(int n) { return (n + L - 1) / L * L; }

// to (columns x rows, rows of `ldt`) = from (rows x columns, rows of `ldf`), by small blocks.
void transpose(int rows, int columns, const float *from, int ldf, float *to, int ldt) {
  for (int i = 0; i < rows; i += L)
    for (int j = 0; j < columns; j += L)
      for (int y = i; y < std::min(i + L, rows); ++y)  // rows 4 KiB apart share a cache set
        for (int x = j; x < std::min(j + L, columns); ++x)
          to[(int64_t)x * ldt + y] = from[(int64_t)y * ldf + x];
}

struct Layer {
  int in, out;          // without padding
  int wide;             // entries in a row of the weights, padding included
  int64_t weight, bias; // where they start in the vector
  std::vector<float> z, zt, g, gt;  // activation and error: by sample, and by unit
};

}  // namespace

extern "C" {

// Train on minibatches that end at `ends`; return the summed loss. See native/mlp.py.
double fedlogit_mlp_train(float *parameters, const uint8_t *images, int channels, int side_y,
                          int side_x, int pad, const int32_t *sizes, int layers,
                          const int64_t *rows, const int64_t *targets, const float *distributions,
                          float temperature, const int64_t *ends, int64_t batches,
                          const float *scale, const float *shift, double rate,
                          const volatile int *cancel) {
  const int pixels = channels * side_y * side_x, classes = sizes[layers - 1];
  const int padded_x = side_x + 2 * pad, padded_y = side_y + 2 * pad;
  int64_t widest = 0, begin = 0;
  for (int64_t b = 0; b < batches; ++b) widest = std::max(widest, ends[b] - (b ? ends[b - 1] : 0));
  const int cap = rounded((int)widest);

  std::vector<Layer> net(layers);
  int64_t offset = 0;
  for (int l = 0; l < layers; ++l) {
    Layer &layer = net[l];
    layer.in = l ? sizes[l - 1] : pixels;
    layer.wide = l ? sizes[l - 1] : channels * padded_y * padded_x;
    layer.out = sizes[l];
    layer.weight = offset, offset += (int64_t)layer.out * layer.wide;
    layer.bias = offset, offset += layer.out;
    layer.z.assign((int64_t)cap * rounded(layer.out), 0.f);
    layer.zt.assign((int64_t)cap * rounded(layer.out), 0.f);
    layer.g.assign((int64_t)cap * rounded(layer.out), 0.f);
    layer.gt.assign((int64_t)cap * rounded(layer.out), 0.f);
  }
  // The first layer's weights without the padded pixels, for as long as the stage takes.
  std::vector<float> first((int64_t)net[0].out * pixels);
  auto inside = [&](int p) {
    const int c = p / (side_y * side_x), y = p / side_x % side_y, x = p % side_x;
    return (int64_t)(c * padded_y + y + pad) * padded_x + x + pad;
  };
  std::vector<int64_t> place(pixels);
  for (int p = 0; p < pixels; ++p) place[p] = inside(p);
  for (int o = 0; o < net[0].out; ++o)
    for (int p = 0; p < pixels; ++p)
      first[(int64_t)o * pixels + p] = parameters[net[0].weight + (int64_t)o * net[0].wide + place[p]];

  const int width = rounded(pixels);
  int64_t gradients = (int64_t)net[0].out * width;
  for (int l = 1; l < layers; ++l)
    gradients = std::max(gradients, (int64_t)net[l].out * rounded(net[l].in));
  std::vector<float> x((int64_t)cap * width, 0.f), xt((int64_t)width * cap, 0.f), grad(gradients);
  std::vector<float> logits(classes), divided(classes);
  double total = 0;

  for (int64_t b = 0; b < batches; begin = ends[b], ++b) {
    if (*cancel) break;
    const int n = (int)(ends[b] - begin), ld = rounded(n);
    for (int t = 0; t < n; ++t) {
      const uint8_t *image = images + rows[begin + t] * pixels;
      float *to = &x[(int64_t)t * width];
      const int plane = side_y * side_x;
      for (int c = 0; c < channels; ++c)
        for (int p = 0; p < plane; ++p) to[c * plane + p] = image[c * plane + p] * scale[c] + shift[c];
    }
    transpose(n, pixels, x.data(), width, xt.data(), ld);
    if (ld > n)  // lanes past the last sample
      for (int p = 0; p < pixels; ++p) std::fill(&xt[(int64_t)p * ld + n], &xt[(int64_t)p * ld] + ld, 0.f);

    for (int l = 0; l < layers; ++l) {
      Layer &layer = net[l];
      const float *weight = l ? parameters + layer.weight : first.data();
      const float *below = l ? net[l - 1].zt.data() : xt.data();
      product(layer.out, ld, layer.in, weight, layer.in, 1, below, ld, layer.zt.data(), ld);
      const bool last = l == layers - 1;
      for (int o = 0; o < layer.out; ++o) {
        float *row = &layer.zt[(int64_t)o * ld];
        const float bias = parameters[layer.bias + o];
        for (int t = 0; t < ld; ++t) row[t] = last ? row[t] + bias : std::max(row[t] + bias, 0.f);
      }
      transpose(layer.out, n, layer.zt.data(), ld, layer.z.data(), rounded(layer.out));
    }

    Layer &top = net[layers - 1];
    const int ldo = rounded(classes);
    for (int t = 0; t < n; ++t) {
      const float *z = &top.z[(int64_t)t * ldo], *want = distributions + targets[begin + t] * classes;
      float *g = &top.g[(int64_t)t * ldo];
      for (int c = 0; c < classes; ++c) divided[c] = z[c] / temperature;
      const float highest = *std::max_element(divided.begin(), divided.end());
      float sum = 0, mass = 0;
      double loss = 0;
      for (int c = 0; c < classes; ++c) logits[c] = std::exp(divided[c] - highest), sum += logits[c];
      const float log_sum = std::log(sum) + highest;
      for (int c = 0; c < classes; ++c) mass += want[c], loss += want[c] * (log_sum - divided[c]);
      for (int c = 0; c < classes; ++c)
        g[c] = temperature * (mass * logits[c] / sum - want[c]) / n;
      total += temperature * temperature * loss;
    }
    std::fill(top.gt.begin(), top.gt.end(), 0.f);
    transpose(n, classes, top.g.data(), ldo, top.gt.data(), ld);

    for (int l = layers - 1; l >= 0; --l) {
      Layer &layer = net[l];
      if (l) {  // the error below, before these weights change
        Layer &below = net[l - 1];
        product(below.out, ld, layer.out, parameters + layer.weight, 1, layer.in, layer.gt.data(), ld,
                below.gt.data(), ld);
        for (int64_t i = 0; i < (int64_t)below.out * ld; ++i)
          below.gt[i] = below.zt[i] > 0.f ? below.gt[i] : 0.f;
      }
      const int columns = l ? rounded(layer.in) : width;
      const float *right = l ? net[l - 1].z.data() : x.data();
      product(layer.out, columns, n, layer.gt.data(), ld, 1, right, columns, grad.data(), columns);
      float *weight = l ? parameters + layer.weight : first.data();
      const float step = (float)rate;
      for (int o = 0; o < layer.out; ++o) {
        for (int i = 0; i < layer.in; ++i)
          weight[(int64_t)o * layer.in + i] -= step * grad[(int64_t)o * columns + i];
        float sum = 0;
        for (int t = 0; t < n; ++t) sum += layer.gt[(int64_t)o * ld + t];
        parameters[layer.bias + o] -= step * sum;
      }
    }
  }
  for (int o = 0; o < net[0].out; ++o)
    for (int p = 0; p < pixels; ++p)
      parameters[net[0].weight + (int64_t)o * net[0].wide + place[p]] = first[(int64_t)o * pixels + p];
  return total;
}

// Computes logits (n, classes) of normalised images (n, channels, side_y, side_x). Activations lie
// by sample, and weights by input unit without those of padded pixels, so that images are multiplied
// as they come.
void fedlogit_mlp_logits(const float *parameters, const float *images, int64_t n, int channels,
                         int side_y, int side_x, int pad, const int32_t *sizes, int layers,
                         float *logits) {
  constexpr int SAMPLES = 16 * ROWS;  // at a time, so that they stay in the cache
  const int pixels = channels * side_y * side_x, classes = sizes[layers - 1];
  const int padded_x = side_x + 2 * pad, padded_y = side_y + 2 * pad;
  std::vector<std::vector<float>> weights(layers), biases(layers);  // (inputs x units), (units)
  int widest = 0;
  for (int l = 0, in = pixels; l < layers; in = sizes[l++]) {
    const int columns = rounded(sizes[l]);
    weights[l].assign((int64_t)in * columns, 0.f);
    widest = std::max(widest, columns);
    if (l) {
      transpose(sizes[l], in, parameters, in, weights[l].data(), columns);
    } else {
      in = channels * padded_y * padded_x;
      for (int c = 0; c < channels; ++c)
        for (int y = 0; y < side_y; ++y)
          transpose(sizes[0], side_x, parameters + (c * padded_y + y + pad) * padded_x + pad, in,
                    &weights[0][(int64_t)(c * side_y + y) * side_x * columns], columns);
    }
    parameters += (int64_t)sizes[l] * in;
    biases[l].assign(columns, 0.f);
    std::copy(parameters, parameters + sizes[l], biases[l].begin());
    parameters += sizes[l];
  }
  std::vector<float> z((int64_t)SAMPLES * widest), below(z.size());
  for (int64_t from = 0; from < n; from += SAMPLES) {
    const int k = (int)std::min<int64_t>(SAMPLES, n - from);
    const float *input = images + from * pixels;
    for (int l = 0, in = pixels, ld = pixels; l < layers; in = sizes[l], ld = rounded(in), ++l) {
      const int columns = rounded(sizes[l]);
      product(k, columns, in, input, ld, 1, weights[l].data(), columns, z.data(), columns);
      const float *bias = biases[l].data();
      for (int i = 0; i < k * columns; i += L) {
        const V v = load(&z[i]) + load(bias + i % columns);
        store(&z[i], l < layers - 1 ? relu(v) : v);
      }
      z.swap(below);
      input = below.data();
    }
    for (int t = 0; t < k; ++t)
      std::copy(input + t * rounded(classes), input + t * rounded(classes) + classes,
                logits + (from + t) * classes);
  }
}
}
