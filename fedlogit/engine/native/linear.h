// Linear layers of vectors over samples, of any sizes, and the gradients of their weights.

#pragma once

#include <cstdint>
#include <cstring>

#include "vectors.h"

// out = W in + b; m is a multiple of 4, `b` may be null.
//
// Some outputs at a time, each as four partial sums: a sum of a thousand is about as exact as PyTorch's.
template <bool Relu>
void linear(const float *w, const float *b, const V *in, int m, V *out, int n) {
  constexpr int O = MANY_REGISTERS ? 4 : 2, P = 4;
  for (int o = 0; o < n; o += O) {
    const int k = n - o < O ? n - o : O;
    V acc[O][P] = {};
    if (k == O)
      for (int i = 0; i < m; i += P)
        for (int p = 0; p < P; ++p)
          for (int j = 0; j < O; ++j) acc[j][p] += w[(o + j) * m + i + p] * in[i + p];
    else
      for (int i = 0; i < m; i += P)
        for (int p = 0; p < P; ++p)
          for (int j = 0; j < k; ++j) acc[j][p] += w[(o + j) * m + i + p] * in[i + p];
    for (int j = 0; j < k; ++j) {
      const V sum = (acc[j][0] + acc[j][1]) + (acc[j][2] + acc[j][3]) + (b ? b[o + j] : 0.f);
      out[o + j] = Relu ? relu(sum) : sum;
    }
  }
}

// gin = W^T gout.
inline void linear_back(const float *w, const V *gout, int n, V *gin, int m) {
  for (int i = 0; i < m; i += 10) {
    int k = m - i < 10 ? m - i : 10;
    V acc[10];
    for (int j = 0; j < 10; ++j) acc[j] = zero();
    if (k == 10)
      for (int o = 0; o < n; ++o)
        for (int j = 0; j < 10; ++j) acc[j] += w[o * m + i + j] * gout[o];
    else
      for (int o = 0; o < n; ++o)
        for (int j = 0; j < k; ++j) acc[j] += w[o * m + i + j] * gout[o];
    for (int j = 0; j < k; ++j) gin[i + j] = acc[j];
  }
}

// dW[n][m] = sum over samples of out[s][n] * in[s][m], db[n] = sum of out[s][n]; `db` may be null.
//
// Rows of `in` lie `stride` apart: at a power of two they would share a place in the cache.
inline void linear_grad(const float *out, int n, const float *in, int m, int stride, int64_t samples,
                        float *dw, float *db) {
  for (int o = 0; db && o < n; ++o) {
    float total = 0;
    for (int64_t t = 0; t < samples; ++t) total += out[t * n + o];
    db[o] = total;
  }
  for (int i = 0; i < m; i += 3 * L) {
    int width = m - i < 3 * L ? m - i : 3 * L;
    for (int o = 0; o < n; o += 4) {
      int rows = n - o < 4 ? n - o : 4;
      V acc[4][3] = {};
      if (rows == 4 && width == 3 * L) {
        for (int64_t t = 0; t < samples; ++t) {
          V v[3];
          for (int k = 0; k < 3; ++k) v[k] = load(in + t * stride + i + k * L);
          for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 3; ++k) acc[j][k] += out[t * n + o + j] * v[k];
        }
      } else {
        for (int64_t t = 0; t < samples; ++t) {
          V v[3] = {};
          std::memcpy(v, in + t * stride + i, 4 * width);
          for (int j = 0; j < rows; ++j)
            for (int k = 0; k < 3; ++k) acc[j][k] += out[t * n + o + j] * v[k];
        }
      }
      for (int j = 0; j < rows; ++j) std::memcpy(dw + (o + j) * m + i, acc[j], 4 * width);
    }
  }
}
