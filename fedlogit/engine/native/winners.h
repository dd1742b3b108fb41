// The way back through a convolution behind which a pool keeps one of four places, or none where
// ReLU cuts it: products with the winners' gradients alone, a quarter of all at most.
//
// Each sample has winners of its own. So vectors are over input channels here, one sample after
// another, and the vectors of a block, which are over samples, are transposed first. Of input
// channels there have to be multiples of L.

#pragma once

#include <cstdint>
#include <vector>

#include "convolution.h"
#include "transposes.h"

// Gradients of a pooled convolution's input, and of its weights, summed up over the blocks of a
// minibatch.
template <int K, int IN, int OUT>
class WinnersBack {
  static_assert(IN % L == 0);
  static constexpr int TAPS = K * K;
  struct Winner {
    float grad;
    int of;  // the place that won, or the output where it did
  };

  Plane plane, small;                       // of the input, and of what the pool gives
  std::vector<V> weights, sums, block_sums;  // (in / L, out, K x K)
  std::vector<V> images, grads;              // (sample, in / L, place); `grads` holds zeros
  std::vector<Winner> of_outputs;            // one output's after another's, up to its `ends`
  std::vector<Winner> of_places;             // (place, out), so many of each as `counts` says
  std::vector<int> ends, counts;

 public:
  WinnersBack(const float *w, Plane plane, Plane small)
      : plane(plane), small(small), weights(IN / L * OUT * TAPS), sums(weights.size()),
        block_sums(weights.size()), images(IN * plane.size()), grads(images.size()),
        of_outputs(OUT * small.size()), of_places(plane.size() * OUT), ends(OUT),
        counts(plane.size()) {
    for (int o = 0; o < OUT; ++o)
      for (int c = 0; c < IN; ++c)
        for (int t = 0; t < TAPS; ++t) weights[at(o, c, t)][c % L] = *w++;
  }

  // Adds a block of n samples. `grad` and `won`, the winner of each window or -1, are (out, place
  // of the pool), `in` and `gin` are (in, place); `gin` is written.
  template <class Won>
  void add(const V *grad, const Won *won, const V *in, int n, V *gin) {
    take(in);
    const int sample = IN / L * plane.size(), part = OUT * TAPS;
    for (int t = 0; t < n; ++t) {
      find_winners((const float *)grad + t, (const int8_t *)won + t);
      for (int i = 0; i < IN / L; ++i)
        add_sums(&images[t * sample + i * plane.size()], &block_sums[i * part]);
      for (int i = 0; i < IN / L; ++i)
        add_back(&weights[i * part], &grads[t * sample + i * plane.size()]);
    }
    give(gin);
    for (size_t i = 0; i < sums.size(); ++i) {  // sums of sums: as exact as the ones of vectors
      sums[i] += block_sums[i];
      block_sums[i] = zero();
    }
  }

  // Adds the sums to `dw` (out, in, K x K).
  void finish(float *dw) const {
    for (int o = 0; o < OUT; ++o)
      for (int c = 0; c < IN; ++c)
        for (int t = 0; t < TAPS; ++t) *dw++ += sums[at(o, c, t)][c % L];
  }

 private:
  static int at(int o, int c, int tap) { return (c / L * OUT + o) * TAPS + tap; }

  void take(const V *in) {
    for (int c = 0; c < IN; c += L)
      for (int i = 0; i < plane.size(); ++i) {
        V square[L];
        for (int l = 0; l < L; ++l) square[l] = in[(c + l) * plane.size() + i];
        transpose_square(square);
        for (int l = 0; l < L; ++l) images[(l * (IN / L) + c / L) * plane.size() + i] = square[l];
      }
  }
  void give(V *gin) {
    for (int c = 0; c < IN; c += L)
      for (int i = 0; i < plane.size(); ++i) {
        V square[L];
        for (int l = 0; l < L; ++l) {
          V &found = grads[(l * (IN / L) + c / L) * plane.size() + i];
          square[l] = found, found = zero();
        }
        transpose_square(square);
        for (int l = 0; l < L; ++l) gin[(c + l) * plane.size() + i] = square[l];
      }
  }

  // Lists a sample's winners; `grad` and `won` are its entries in vectors. What did not win is
  // written, too, and then over: without a branch.
  void find_winners(const float *grad, const int8_t *won) {
    const int offsets[4] = {0, 1, plane.width, plane.width + 1};
    for (int &count : counts) count = 0;
    int end = 0;
    for (int o = 0; o < OUT; ++o) {
      for (int y = 0; y < small.height; ++y)
        for (int x = 0; x < small.width; ++x, grad += L, won += L) {
          const int place = 2 * (y * plane.width + x) + offsets[*won & 3];
          of_outputs[end] = {*grad, place};
          of_places[place * OUT + counts[place]] = {*grad, o};
          end += *won >= 0, counts[place] += *won >= 0;
        }
      ends[o] = end;
    }
  }

  // sums (out, K x K) += gradient * what the winner saw.
  void add_sums(const V *image, V *to) const {
    for (int o = 0, i = 0; o < OUT; ++o, to += TAPS) {
      V acc[TAPS];
      for (int t = 0; t < TAPS; ++t) acc[t] = to[t];
      for (; i < ends[o]; ++i) {
        const V *seen = image + of_outputs[i].of;
        for (int t = 0; t < TAPS; ++t)
          acc[t] += of_outputs[i].grad * seen[t / K * plane.width + t % K];
      }
      for (int t = 0; t < TAPS; ++t) to[t] = acc[t];
    }
  }

  // What the winners saw += gradient * weights (out, K x K).
  void add_back(const V *w, V *to) const {
    for (int y = 0; y < 2 * small.height; ++y)
      for (int x = 0; x < 2 * small.width; ++x) {
        const int place = y * plane.width + x;
        const Winner *winners = &of_places[place * OUT];
        V acc[TAPS], *seen = to + place;
        for (int t = 0; t < TAPS; ++t) acc[t] = seen[t / K * plane.width + t % K];
        for (int i = 0; i < counts[place]; ++i)
          for (int t = 0; t < TAPS; ++t) acc[t] += winners[i].grad * w[winners[i].of * TAPS + t];
        for (int t = 0; t < TAPS; ++t) seen[t / K * plane.width + t % K] = acc[t];
      }
  }
};
