// LeNet-5 on the CPU: forward, backward and Adam for a whole stage of a client in one call.
//
// PyTorch is five to nine times off a core's limit on networks this narrow. Here L samples share a
// vector register ("batch innermost"), so that every layer is a sum of vector x scalar products
// whatever its number of channels. Gradients of convolution weights are summed as vectors over
// samples and folded once a minibatch; those of linear layers are products over the minibatch.
//
// The network is fedlogit/models/lenet.py for 28 x 28 x 1: conv 5x5 to 6 (padding 2), pool, ReLU,
// conv 5x5 to 16, pool, ReLU, 400-120-84-classes. Parameters lie flat in PyTorch's order. A tie in
// a pool goes to the first of the window in row-major order, as in PyTorch.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "linear.h"
#include "vectors.h"

namespace {

constexpr int C1 = 6, C2 = 16, F0 = 400, F1 = 120, F2 = 84, MAX_CLASSES = 64;
constexpr int W1 = 0, B1 = W1 + C1 * 25, W2 = B1 + C1, B2 = W2 + C2 * C1 * 25, W3 = B2 + C2,
              B3 = W3 + F1 * F0, W4 = B3 + F1, B4 = W4 + F2 * F1, W5 = B4 + F2;

// Output channels at a time, whose sums stay in registers.
constexpr int J1 = MANY_REGISTERS ? 3 : 2, J2 = MANY_REGISTERS ? 4 : 2;

// What one block of L samples needs between the passes.
struct Block {
  V x[32][32];          // input, zero-padded by two
  V a1[C1][14][14];     // after pool and ReLU
  M at1[C1][14][14];    // which of the four won; -1 where ReLU cut it off
  V a2[C2][5][5];
  M at2[C2][5][5];
  V z3[F1], z4[F2], z5[MAX_CLASSES];
  V g5[MAX_CLASSES], g4[F2], g3[F1], g0[F0];
  V g2[C2][10][18];     // gradient at conv2's output, padded by four on both sides of a row
  V ga1[C1][14][14];
};

// Gradients of the convolutions, summed as vectors over samples.
struct Sums {
  V w1[C1][25], b1[C1], w2[C2][C1][25], b2[C2];
};

// The largest of a 2 x 2 window, then ReLU; `at` says which one won, or -1.
inline void pool(V a, V b, V c, V d, V &out, M &at) {
  M right = b > a, low_right = d > c;
  V top = (V)(((M)b & right) | ((M)a & ~right));
  V bottom = (V)(((M)d & low_right) | ((M)c & ~low_right));
  M low = bottom > top;
  V best = (V)(((M)bottom & low) | ((M)top & ~low));
  // right and the others are 0 or -1; the winner's number is 0, 1, 2 or 3.
  M where = (low & (2 - low_right)) | (~low & -right);
  M alive = ~(best <= zero());
  at = (where & alive) | ~alive;
  out = choose(alive, best);
}

void conv1(const float *p, Block &s) {
  for (int y = 0; y < 28; y += 2)
    for (int x = 0; x < 28; x += 2)
      for (int o = 0; o < C1; o += J1) {
        V acc[J1][4];
        for (int j = 0; j < J1; ++j)
          for (int q = 0; q < 4; ++q) acc[j][q] = zero() + p[B1 + o + j];
        for (int ky = 0; ky < 5; ++ky)
          for (int kx = 0; kx < 5; ++kx) {
            V i0 = s.x[y + ky][x + kx], i1 = s.x[y + ky][x + kx + 1];
            V i2 = s.x[y + ky + 1][x + kx], i3 = s.x[y + ky + 1][x + kx + 1];
            for (int j = 0; j < J1; ++j) {
              float w = p[W1 + (o + j) * 25 + ky * 5 + kx];
              acc[j][0] += w * i0, acc[j][1] += w * i1, acc[j][2] += w * i2, acc[j][3] += w * i3;
            }
          }
        for (int j = 0; j < J1; ++j)
          pool(acc[j][0], acc[j][1], acc[j][2], acc[j][3], s.a1[o + j][y / 2][x / 2],
               s.at1[o + j][y / 2][x / 2]);
      }
}

void conv2(const float *p, Block &s) {
  for (int y = 0; y < 10; y += 2)
    for (int x = 0; x < 10; x += 2)
      for (int o = 0; o < C2; o += J2) {
        V acc[J2][4];
        for (int j = 0; j < J2; ++j)
          for (int q = 0; q < 4; ++q) acc[j][q] = zero() + p[B2 + o + j];
        for (int c = 0; c < C1; ++c)
          for (int ky = 0; ky < 5; ++ky)
            for (int kx = 0; kx < 5; ++kx) {
              V i0 = s.a1[c][y + ky][x + kx], i1 = s.a1[c][y + ky][x + kx + 1];
              V i2 = s.a1[c][y + ky + 1][x + kx], i3 = s.a1[c][y + ky + 1][x + kx + 1];
              for (int j = 0; j < J2; ++j) {
                float w = p[W2 + ((o + j) * C1 + c) * 25 + ky * 5 + kx];
                acc[j][0] += w * i0, acc[j][1] += w * i1, acc[j][2] += w * i2, acc[j][3] += w * i3;
              }
            }
        for (int j = 0; j < J2; ++j)
          pool(acc[j][0], acc[j][1], acc[j][2], acc[j][3], s.a2[o + j][y / 2][x / 2],
               s.at2[o + j][y / 2][x / 2]);
      }
}

void forward(const float *p, Block &s, int classes) {
  conv1(p, s);
  conv2(p, s);
  linear<true>(p + W3, p + B3, &s.a2[0][0][0], F0, s.z3, F1);
  linear<true>(p + W4, p + B4, s.z3, F1, s.z4, F2);
  linear<false>(p + W5, p + W5 + F2 * classes, s.z4, F2, s.z5, classes);
}

// Gradient of conv2's weights from g2 and a1, and of its input into ga1.
void conv2_back(const float *p, Block &s, Sums &g) {
  for (int o = 0; o < C2; ++o)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 5; ++x) {
        V grad = s.g0[(o * 5 + y) * 5 + x];
        M at = s.at2[o][y][x];
        for (int q = 0; q < 4; ++q) {
          V part = choose(at == q, grad);
          s.g2[o][2 * y + q / 2][4 + 2 * x + q % 2] = part;
          g.b2[o] += part;
        }
      }
  for (int c = 0; c < C1; ++c)
    for (int ky = 0; ky < 5; ++ky)
      for (int o = 0; o < C2; o += J2) {
        V acc[J2][5];
        for (int j = 0; j < J2; ++j)
          for (int k = 0; k < 5; ++k) acc[j][k] = g.w2[o + j][c][ky * 5 + k];
        for (int y = 0; y < 10; ++y)
          for (int x = 0; x < 10; ++x) {
            const V *in = &s.a1[c][y + ky][x];
            for (int j = 0; j < J2; ++j) {
              V grad = s.g2[o + j][y][4 + x];
              for (int k = 0; k < 5; ++k) acc[j][k] += grad * in[k];
            }
          }
        for (int j = 0; j < J2; ++j)
          for (int k = 0; k < 5; ++k) g.w2[o + j][c][ky * 5 + k] = acc[j][k];
      }
  for (int y = 0; y < 14; ++y)
    for (int x = 0; x < 14; x += 2)
      for (int c = 0; c < C1; c += 6) {
        V acc[6][2];
        for (int j = 0; j < 6; ++j) acc[j][0] = acc[j][1] = zero();
        int first = y > 9 ? y - 9 : 0, last = y < 4 ? y : 4;
        for (int o = 0; o < C2; ++o)
          for (int ky = first; ky <= last; ++ky)
            for (int kx = 0; kx < 5; ++kx) {
              V g0 = s.g2[o][y - ky][4 + x - kx], g1 = s.g2[o][y - ky][4 + x + 1 - kx];
              for (int j = 0; j < 6; ++j) {
                float w = p[W2 + (o * C1 + c + j) * 25 + ky * 5 + kx];
                acc[j][0] += w * g0, acc[j][1] += w * g1;
              }
            }
        for (int j = 0; j < 6; ++j) s.ga1[c + j][y][x] = acc[j][0], s.ga1[c + j][y][x + 1] = acc[j][1];
      }
}

void conv1_back(Block &s, Sums &g) {
  for (int o = 0; o < C1; ++o)
    for (int ky = 0; ky < 5; ++ky) {
      V acc[5], bias = zero();
      for (int k = 0; k < 5; ++k) acc[k] = g.w1[o][ky * 5 + k];
      for (int y = 0; y < 14; ++y)
        for (int x = 0; x < 14; ++x) {
          V grad = s.ga1[o][y][x];
          M at = s.at1[o][y][x];
          V q0 = choose(at == 0, grad), q1 = choose(at == 1, grad);
          V q2 = choose(at == 2, grad), q3 = choose(at == 3, grad);
          const V *up = &s.x[2 * y + ky][2 * x], *down = &s.x[2 * y + ky + 1][2 * x];
          for (int k = 0; k < 5; ++k)
            acc[k] += q0 * up[k] + q1 * up[k + 1] + q2 * down[k] + q3 * down[k + 1];
          bias += choose(at >= 0, grad);
        }
      for (int k = 0; k < 5; ++k) g.w1[o][ky * 5 + k] = acc[k];
      if (ky == 0) g.b1[o] += bias;
    }
}

// Cross-entropy with target distributions; fills g5 and returns the summed loss.
double loss(Block &s, const float *target, int classes, int samples, float scale) {
  double total = 0;
  for (int c = 0; c < classes; ++c) s.g5[c] = zero();
  for (int t = 0; t < samples; ++t) {
    float top = s.z5[0][t];
    for (int c = 1; c < classes; ++c) top = s.z5[c][t] > top ? s.z5[c][t] : top;
    double mass = 0, weight = 0, dot = 0;
    for (int c = 0; c < classes; ++c) {
      float q = target[t * classes + c];
      mass += std::exp((double)s.z5[c][t] - top);
      weight += q;
      dot += (double)q * s.z5[c][t];
    }
    double log_mass = std::log(mass) + top;
    total += weight * log_mass - dot;
    for (int c = 0; c < classes; ++c)
      s.g5[c][t] = scale * (float)(weight * std::exp(s.z5[c][t] - log_mass) - target[t * classes + c]);
  }
  return total;
}

}  // namespace

extern "C" {

// Trains on `batches` minibatches and returns the summed loss over samples.
//
// parameters, moment1, moment2: flat, of the same size, updated in place.
// images: uint8 (n, 784); rows: image of each sample in order; targets: row of `distributions`.
// ends: where each minibatch ends in `rows`. steps: Adam steps taken before.
// pixel value v becomes v * scale + shift. A non-zero *cancel ends the call early.
double fedlogit_lenet_train(float *parameters, float *moment1, float *moment2,
                            const uint8_t *images, const int64_t *rows, const int64_t *targets,
                            const float *distributions, int classes, const int64_t *ends,
                            int64_t batches, float scale, float shift, double lr, double beta1,
                            double beta2, double eps, int64_t steps, const volatile int *cancel) {
  const int size = W5 + F2 * classes + classes, largest = [&] {
    int64_t most = 0;
    for (int64_t b = 0; b < batches; ++b) {
      int64_t n = ends[b] - (b ? ends[b - 1] : 0);
      most = n > most ? n : most;
    }
    return (int)most;
  }();
  Block *s = new (std::align_val_t(64)) Block();
  Sums *g = new (std::align_val_t(64)) Sums();
  std::vector<float> grad(size), target(L * classes);
  std::vector<float> a0(largest * F0), a3(largest * F1), a4(largest * F2), d3(largest * F1),
      d4(largest * F2), d5(largest * classes);
  double total = 0;

  for (int64_t b = 0; b < batches && !*cancel; ++b) {
    const int64_t begin = b ? ends[b - 1] : 0;
    const int n = (int)(ends[b] - begin);
    std::memset(static_cast<void *>(g), 0, sizeof(Sums));
    for (int from = 0; from < n; from += L) {
      const int k = n - from < L ? n - from : L;
      // Lanes beyond the last sample hold zeros, and their gradients are zero.
      for (int y = 0; y < 28; ++y)
        for (int x = 0; x < 28; ++x) {
          V v = zero();
          for (int t = 0; t < k; ++t)
            v[t] = images[rows[begin + from + t] * 784 + y * 28 + x] * scale + shift;
          s->x[y + 2][x + 2] = v;
        }
      for (int t = 0; t < k; ++t)
        std::memcpy(&target[t * classes], distributions + targets[begin + from + t] * classes,
                    4 * classes);
      const V *flat = &s->a2[0][0][0];
      forward(parameters, *s, classes);
      total += loss(*s, target.data(), classes, k, 1.f / n);

      linear_back(parameters + W5, s->g5, classes, s->g4, F2);
      for (int i = 0; i < F2; ++i) s->g4[i] = choose(s->z4[i] > zero(), s->g4[i]);
      linear_back(parameters + W4, s->g4, F2, s->g3, F1);
      for (int i = 0; i < F1; ++i) s->g3[i] = choose(s->z3[i] > zero(), s->g3[i]);
      linear_back(parameters + W3, s->g3, F1, s->g0, F0);
      conv2_back(parameters, *s, *g);
      conv1_back(*s, *g);

      spread(flat, F0, &a0[from * F0], F0, k), spread(s->z3, F1, &a3[from * F1], F1, k);
      spread(s->z4, F2, &a4[from * F2], F2, k), spread(s->g3, F1, &d3[from * F1], F1, k);
      spread(s->g4, F2, &d4[from * F2], F2, k), spread(s->g5, classes, &d5[from * classes], classes, k);
    }
    for (int o = 0; o < C1; ++o) {
      for (int i = 0; i < 25; ++i) grad[W1 + o * 25 + i] = sum(g->w1[o][i]);
      grad[B1 + o] = sum(g->b1[o]);
    }
    for (int o = 0; o < C2; ++o) {
      for (int i = 0; i < C1 * 25; ++i) grad[W2 + o * C1 * 25 + i] = sum(g->w2[o][i / 25][i % 25]);
      grad[B2 + o] = sum(g->b2[o]);
    }
    linear_grad(d3.data(), F1, a0.data(), F0, F0, n, &grad[W3], &grad[B3]);
    linear_grad(d4.data(), F2, a3.data(), F1, F1, n, &grad[W4], &grad[B4]);
    linear_grad(d5.data(), classes, a4.data(), F2, F2, n, &grad[W5], &grad[W5 + F2 * classes]);

    ++steps;
    const float rate = lr / (1 - std::pow(beta1, (double)steps));
    const float root = std::sqrt(1 - std::pow(beta2, (double)steps));
    const float u = beta1, v = beta2, u1 = 1 - beta1, v1 = 1 - beta2, tiny = eps;
    for (int i = 0; i < size; ++i) {
      moment1[i] = u * moment1[i] + u1 * grad[i];
      moment2[i] = v * moment2[i] + v1 * grad[i] * grad[i];
      parameters[i] -= rate * moment1[i] / (std::sqrt(moment2[i]) / root + tiny);
    }
  }
  operator delete(s, std::align_val_t(64));
  operator delete(g, std::align_val_t(64));
  return total;
}

// Computes logits (n, classes) of normalised images (n, 784).
void fedlogit_lenet_logits(const float *parameters, const float *images, int64_t n, int classes,
                           float *logits) {
  Block *s = new (std::align_val_t(64)) Block();
  for (int64_t from = 0; from < n; from += L) {
    const int k = n - from < L ? (int)(n - from) : L;
    for (int i = 0; i < 784; ++i) {
      V v = zero();
      for (int t = 0; t < k; ++t) v[t] = images[(from + t) * 784 + i];
      s->x[i / 28 + 2][i % 28 + 2] = v;
    }
    forward(parameters, *s, classes);
    for (int t = 0; t < k; ++t)
      for (int c = 0; c < classes; ++c) logits[(from + t) * classes + c] = s->z5[c][t];
  }
  operator delete(s, std::align_val_t(64));
}
}
