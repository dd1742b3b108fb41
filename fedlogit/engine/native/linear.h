// Linear layers of vectors over samples, of any sizes, and the gradients of their weights.

#pragma once

#include <cstring>

#include "vectors.h"

// out = W in + b, twelve outputs at a time; `b` may be null.
template <bool Relu>
void linear(const float *w, const float *b, const V *in, int m, V *out, int n) {
  for (int o = 0; o < n; o += 12) {
    int k = n - o < 12 ? n - o : 12;
    V acc[12];
    for (int j = 0; j < 12; ++j) acc[j] = zero() + (b && j < k ? b[o + j] : 0.f);
    if (k == 12)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < 12; ++j) acc[j] += w[(o + j) * m + i] * in[i];
    else
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < k; ++j) acc[j] += w[(o + j) * m + i] * in[i];
    for (int j = 0; j < k; ++j) out[o + j] = Relu ? relu(acc[j]) : acc[j];
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
inline void linear_grad(const float *out, int n, const float *in, int m, int samples, float *dw, float *db) {
  for (int o = 0; db && o < n; ++o) {
    float total = 0;
    for (int t = 0; t < samples; ++t) total += out[t * n + o];
    db[o] = total;
  }
  for (int i = 0; i < m; i += 3 * L) {
    int width = m - i < 3 * L ? m - i : 3 * L;
    for (int o = 0; o < n; o += 4) {
      int rows = n - o < 4 ? n - o : 4;
      V acc[4][3] = {};
      if (rows == 4 && width == 3 * L) {
        for (int t = 0; t < samples; ++t) {
          V v[3];
          std::memcpy(v, in + t * m + i, sizeof v);
          for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 3; ++k) acc[j][k] += out[t * n + o + j] * v[k];
        }
      } else {
        for (int t = 0; t < samples; ++t) {
          V v[3] = {};
          std::memcpy(v, in + t * m + i, 4 * width);
          for (int j = 0; j < rows; ++j)
            for (int k = 0; k < 3; ++k) acc[j][k] += out[t * n + o + j] * v[k];
        }
      }
      for (int j = 0; j < rows; ++j) std::memcpy(dw + (o + j) * m + i, acc[j], 4 * width);
    }
  }
}

// Transposes a block's vectors into rows of samples.
inline void spread(const V *from, int n, float *to, int samples) {
  for (int i = 0; i < n; ++i)
    for (int t = 0; t < samples; ++t) to[t * n + i] = from[i][t];
}

