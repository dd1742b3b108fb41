// Convolutions on the matrix unit of Intel's chips (AMX), as exact as in float32.
//
// The unit multiplies tiles of bfloat16 and adds up in float32. A float is the sum of three
// bfloat16 to the last bit; of the nine products of two such sums, six are computed, and the other
// three are less than what float32 rounds (Henry, Tang and Heinecke, "Leveraging the bfloat16
// Artificial Intelligence Datatype For Higher-Precision Computations", ARITH 2019). Six products of
// tiles still take less time than one of vectors.
//
// A tile of sums is 16 channels x 16 samples, or 16 x 16 channels where weights get gradients. Of
// channels there have to be multiples of 32.

#pragma once

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BW__) && defined(__linux__)
#define FEDLOGIT_TILES

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "convolution.h"

typedef uint16_t Bf;  // the bits of a bfloat16
typedef uint32_t U __attribute__((vector_size(64)));

constexpr int T = 16;      // rows of a tile
constexpr int DEPTH = 32;  // bfloat16 in a row: how many products are added up
constexpr int TILE = T * DEPTH;
constexpr int PARTS = 3;  // of a float, the largest first

// Memory of bfloat16 as tiles are read: aligned, and zero at first.
class Tiles {
  std::vector<V> memory;

 public:
  explicit Tiles(int64_t count) : memory((count + 2 * L - 1) / (2 * L)) {}
  Bf *data() { return (Bf *)memory.data(); }
  const Bf *data() const { return (const Bf *)memory.data(); }
};

// Whether the system lets this process use tiles: Linux wants to be asked, once.
inline bool tiles_usable() {
  constexpr int request_permission = 0x1023, tile_data = 18;
  static const bool usable = !syscall(SYS_arch_prctl, request_permission, tile_data);
  return usable;
}

// How a thread's eight tiles are laid out: 16 rows of 64 bytes each, while this lives.
class TileUnit {
  struct alignas(64) Layout {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } before;

 public:
  TileUnit() {
    _tile_storeconfig(&before);
    Layout layout;
    for (int i = 0; i < 8; ++i) layout.bytes[i] = 2 * DEPTH, layout.rows[i] = T;
    _tile_loadconfig(&layout);
  }
  ~TileUnit() { _tile_loadconfig(&before); }  // of oneDNN, say; without one, tiles are released
};

// Cuts the largest part off: the upper half of the bits of each float.
inline U cut(V &rest) {
  const U part = (U)rest & 0xffff0000u;
  rest -= (V)part;
  return part;
}

// Writes pairs of a and b, one for each sample, part by part.
inline void pair_up(V a, V b, Bf *to, int step) {
  for (int part = 0; part < PARTS; ++part) {
    const U low = cut(a), high = cut(b);
    *(U *)(to + part * step) = low >> 16 | high;
  }
}

// Weights (out, in, K x K) as (out / 16, K x K, in / 32, part) tiles; turned for the way back, on
// which outputs and inputs change places.
template <int K, bool Back>
Tiles weight_tiles(const float *w, int out, int in) {
  const int rows = Back ? in : out, depth = Back ? out : in;
  Tiles tiles((int64_t)rows * depth * K * K * PARTS);
  for (int r = 0; r < rows; ++r)
    for (int d = 0; d < depth; ++d)
      for (int t = 0; t < K * K; ++t) {
        float rest = Back ? w[(d * in + r) * K * K + K * K - 1 - t] : w[(r * in + d) * K * K + t];
        const int block = (r / T * K * K + t) * (depth / DEPTH) + d / DEPTH;
        Bf *to = tiles.data() + (int64_t)block * PARTS * TILE + r % T * DEPTH + d % DEPTH;
        for (int part = 0; part < PARTS; ++part) {
          uint32_t bits;
          std::memcpy(&bits, &rest, 4);
          bits &= 0xffff0000u;
          to[part * TILE] = bits >> 16;
          float taken;
          std::memcpy(&taken, &bits, 4);
          rest -= taken;
        }
      }
  return tiles;
}

// Four tiles of sums, 0 to 3: those of a pair of operands with another pair.
inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Two operands of the same kind, part by part; rows and parts lie so many bfloat16 apart.
struct Operand {
  const Bf *first, *second;
  int row, part;
};

// Adds six of the nine products of two floats' parts; from one to the next, one operand stays.
inline void add_products(Operand a, Operand b) {
  auto load_a = [&](int i) {
    _tile_loadd(4, a.first + (int64_t)i * a.part, 2 * a.row);
    _tile_loadd(5, a.second + (int64_t)i * a.part, 2 * a.row);
  };
  auto load_b = [&](int i) {
    _tile_loadd(6, b.first + (int64_t)i * b.part, 2 * b.row);
    _tile_loadd(7, b.second + (int64_t)i * b.part, 2 * b.row);
  };
  load_a(0), load_b(2), multiply();
  load_b(1), multiply();
  load_a(1), multiply();
  load_b(0), multiply();
  load_a(2), multiply();
  load_a(0), multiply();
}

// GCC's loads of tiles do not say that they read memory: what was written before must be there.
inline void finish_writing() { asm volatile("" ::: "memory"); }

// A convolution whose products are those of tiles; as `VectorConv` of convolution.h.
//
// Of the input there are so many rows of tiles as a row of windows needs, (place, channels / 32,
// part), made when they are first needed: the second cache would not hold all.
template <int K, bool Back>
class TileConv {
 public:
  static constexpr int WINDOWS = 6;  // at a time, at most

 private:
  static constexpr int ROWS = K + 1;
  int channels, out, stride, rim;
  Plane plane;
  Tiles weights, pairs;
  const V *in = nullptr;
  int ready = 0;  // rows

 public:
  TileConv(const float *w, int out, int in, Plane plane, int stride, int rim)
      : channels(Back ? out : in), out(Back ? in : out), stride(stride), rim(rim), plane(plane),
        weights(weight_tiles<K, Back>(w, out, in)),
        pairs((int64_t)ROWS * plane.width * channels * L * PARTS) {}

  void take(const V *given) { in = given, ready = 0; }

  // For all windows of a row, so that weights are seldom read, and so few rows and channels that
  // what they need stays in the first cache.
  void operator()(const Window *windows, int n, V (*acc)[Q]) {
    for (const int end = windows[0].places[0] / plane.width + ROWS; ready < end; ++ready)
      if (ready < plane.height) make_row(ready);
    finish_writing();
    for (int o = 0; o < out; o += 2 * T)
      for (int c = 0; c < step(); c += PARTS * TILE)
        for (int ky = 0; ky < K; ++ky)
          for (int i = 0; i < n; ++i)
            if (windows[i].rows.from <= ky && ky < windows[i].rows.to)
              for (int q = 0; q < Q; q += 2) add_row(windows[i], o, c, ky, q, acc + i * out + o);
  }

 private:
  int step() const { return channels / DEPTH * PARTS * TILE; }  // from one place to the next

  Bf *tiles(int y, int x) { return pairs.data() + (int64_t)(y % ROWS * plane.width + x) * step(); }

  void make_row(int y) {
    const bool zeros = y < rim || y >= plane.height - rim;
    if (zeros) std::memset(tiles(y, 0), 0, (int64_t)plane.width * step() * sizeof(Bf));
    for (int x = rim; x < plane.width - rim && !zeros; ++x) {
      const V *p = in + y * plane.width + x;
      Bf *to = tiles(y, x);
      for (int c = 0; c < channels; c += DEPTH, to += PARTS * TILE)
        for (int r = 0; r < T; ++r)
          pair_up(p[(c + 2 * r) * stride], p[(c + 2 * r + 1) * stride], to + r * DEPTH, TILE);
    }
  }

  // Adds the products with a row of the kernel, for two places and 32 outputs.
  void add_row(const Window &window, int o, int c, int ky, int q, V (*acc)[Q]) {
    const int *at = window.places + q;
    const Bf *f = weights.data() + ((int64_t)o / T * K + ky) * K * step() + c;
    const Bf *first = tiles(at[0] / plane.width + ky, at[0] % plane.width) + c;
    const Bf *second = tiles(at[1] / plane.width + ky, at[1] % plane.width) + c;
    _tile_loadd(0, &acc[0][q], sizeof *acc);
    _tile_loadd(1, &acc[0][q + 1], sizeof *acc);
    _tile_loadd(2, &acc[T][q], sizeof *acc);
    _tile_loadd(3, &acc[T][q + 1], sizeof *acc);
    for (int kx = window.columns.from; kx < window.columns.to; ++kx) {
      const int i = kx * step();
      add_products({f + i, f + i + K * K * step(), DEPTH, TILE},
                   {first + i, second + i, DEPTH, TILE});
    }
    _tile_stored(0, &acc[0][q], sizeof *acc);
    _tile_stored(1, &acc[0][q + 1], sizeof *acc);
    _tile_stored(2, &acc[T][q], sizeof *acc);
    _tile_stored(3, &acc[T][q + 1], sizeof *acc);
  }
};

// Vectors of 16 channels over samples as vectors of 16 samples over channels.
inline void transpose(const V *from, int stride, V *to) {
  __m512 a[T], b[T];
  for (int i = 0; i < T; i += 2) {
    const __m512 low = (__m512)from[i * stride], high = (__m512)from[(i + 1) * stride];
    a[i] = _mm512_unpacklo_ps(low, high), a[i + 1] = _mm512_unpackhi_ps(low, high);
  }
  for (int i = 0; i < T; i += 4)
    for (int k = 0; k < 2; ++k) {
      const __m512d low = (__m512d)a[i + k], high = (__m512d)a[i + k + 2];
      b[i + 2 * k] = (__m512)_mm512_unpacklo_pd(low, high);
      b[i + 2 * k + 1] = (__m512)_mm512_unpackhi_pd(low, high);
    }
  for (int k = 0; k < 4; ++k) {  // b[4 i + k] has samples k, 4 + k, ... of channels 4 i to 4 i + 3
    const __m512 first = _mm512_shuffle_f32x4(b[k], b[4 + k], 0x88);
    const __m512 second = _mm512_shuffle_f32x4(b[k], b[4 + k], 0xdd);
    const __m512 third = _mm512_shuffle_f32x4(b[8 + k], b[12 + k], 0x88);
    const __m512 fourth = _mm512_shuffle_f32x4(b[8 + k], b[12 + k], 0xdd);
    to[k] = (V)_mm512_shuffle_f32x4(first, third, 0x88);
    to[4 + k] = (V)_mm512_shuffle_f32x4(second, fourth, 0x88);
    to[8 + k] = (V)_mm512_shuffle_f32x4(first, third, 0xdd);
    to[12 + k] = (V)_mm512_shuffle_f32x4(second, fourth, 0xdd);
  }
}

// Gradients of a convolution's weights, summed up over the blocks of a minibatch.
template <int K>
class TileWeightSums {
  int out, channels;
  Plane plane, result;
  int pairs;            // of neighbouring places in a row; a last one alone has a zero beside it
  int row, part;        // from one channel of `planes` to the next, and from one part to the next
  Tiles planes, grads;  // (part, channel, K rows of places), (pair, out / 16, part) of one row
  std::vector<V> sums;  // (out / 16, channels / 16, K x K, channel, output)

  static constexpr int PAIRS = 3;  // at a time: what they need stays in the first cache

 public:
  TileWeightSums(int out, int channels, Plane plane, Plane result)
      : out(out), channels(channels), plane(plane), result(result), pairs((result.width + 1) / 2),
        row(K * plane.width * T), part(channels * row), planes(PARTS * part + TILE),
        grads((int64_t)pairs * out / T * PARTS * TILE), sums((int64_t)out / T * channels * K * K) {}

  // Adds those of a block; `grad` as in `weight_sums` of convolution.h.
  void add(const V *grad, int width, int stride, const V *in) {
    for (int y = 0; y < K - 1; ++y) cut_row(in, y);
    for (int y = 0; y < result.height; ++y) {
      cut_row(in, y + K - 1);
      for (int x = 0; x < result.width; ++x)
        for (int o = 0; o < out; o += T) {
          V samples[T];
          transpose(grad + o * stride + y * width + x, stride, samples);
          Bf *to = grad_tile(x / 2, o) + x % 2 * TILE / 2;
          for (int r = 0; r < T; r += 2) pair_up(samples[r], samples[r + 1], to + r * T, TILE);
        }
      for (int o = 0; o < out; o += 2 * T)
        for (int c = 0; c < channels; c += 2 * T)
          for (int pair = 0; pair < pairs; pair += PAIRS)
            for (int t = 0; t < K * K; ++t) add_pairs(y, pair, o, c, t);
    }
  }

  // Adds the sums to `dw` (out, channels, K x K).
  void finish(float *dw) const {
    for (int o = 0; o < out; ++o)
      for (int c = 0; c < channels; ++c)
        for (int t = 0; t < K * K; ++t)
          dw[(o * channels + c) * K * K + t] += sums[at(o, c, t) + c % T][o % T];
  }

 private:
  int64_t at(int o, int c, int t) const {
    return (((int64_t)o / T * (channels / T) + c / T) * K * K + t) * T;
  }
  Bf *grad_tile(int pair, int o) {
    return grads.data() + ((int64_t)pair * (out / T) + o / T) * PARTS * TILE;
  }
  void cut_row(const V *in, int y) {
    for (int c = 0; c < channels; ++c) {
      const V *from = in + c * plane.size() + y * plane.width;
      Bf *to = planes.data() + c * row + y % K * plane.width * T;
      for (int x = 0; x < plane.width; ++x, to += T) {
        V rest = from[x];
        for (int i = 0; i < PARTS; ++i)
          _mm256_store_si256((__m256i *)(to + i * part),
                             _mm512_cvtepi32_epi16((__m512i)(cut(rest) >> 16)));
      }
    }
  }
  void add_pairs(int y, int from, int o, int c, int tap) {
    const int end = from + PAIRS < pairs ? from + PAIRS : pairs;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    finish_writing();
    for (int i = from; i < end; ++i) {
      const int place = (y + tap / K) % K * plane.width + 2 * i + tap % K;
      const Bf *a = planes.data() + c * row + place * T, *b = grad_tile(i, o);
      add_products({a, a + T * row, row, part}, {b, b + PARTS * TILE, DEPTH, TILE});
    }
    V found[4][T];
    _tile_stored(0, found[0], 64);
    _tile_stored(1, found[1], 64);
    _tile_stored(2, found[2], 64);
    _tile_stored(3, found[3], 64);
    for (int i = 0; i < 4; ++i) {
      V *to = &sums[at(o + i % 2 * T, c + i / 2 * T, tap)];
      for (int r = 0; r < T; ++r) to[r] += found[i][r];
    }
  }
};

// How a network convolves, as `ByVectors` of convolution.h.
template <int K>
struct ByTiles {
  typedef TileConv<K, false> Forward;
  typedef TileConv<K, true> Back;
  typedef TileWeightSums<K> Sums;
  TileUnit unit;
};

#endif
