// Products on the matrix units of Intel's AMX: one instruction multiplies 16 rows of A with 16 columns of B over
// a depth of 32 and adds to C as product.h says. Only the code between the two attribute lines is compiled for
// that instruction set (see product_native_bf16.cpp), and it is called only where has_amx() says so.
#include "kernels/pair_packing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/large_allocations.h"
#include "base/parallel.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

HWY_PUSH_ATTRIBUTES("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")
namespace ropd::kernels {
namespace amx {

#include "kernels/product_blocks.h"

inline constexpr int64_t kTileRows = 16, kTileColumns = 16;  // of C; a panel is two tiles wide

// The shapes of the tile registers for `rows` <= 32 rows of C: 0 to 3 are C, 4 and 5 are A, 6 and 7 are B. The
// system keeps the registers of a thread only while they are configured, so they are released as soon as a run
// of tiles is done.
class TileRegisters {
 public:
  explicit TileRegisters(int64_t rows) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    const auto upper = static_cast<uint8_t>(std::min(rows, kTileRows)),
               lower = static_cast<uint8_t>(std::max<int64_t>(rows - kTileRows, 1));
    const uint8_t shapes[8] = {upper, upper, lower, lower, upper, lower, kTileDepth / 2, kTileDepth / 2};
    for (int i = 0; i < 8; ++i) {
      config.rows[i] = shapes[i];
      config.row_bytes[i] = 64;
    }
    _tile_loadconfig(&config);
  }
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

struct AmxKernel {
  using AElement = Bf16;
  static constexpr int64_t kRows = 2 * kTileRows;
  static constexpr int64_t kPanel = kPairPanel;
  static constexpr int64_t kRowBlock = 256;
  static constexpr int64_t kUnit = kTileDepth;
  static constexpr bool kReadsRows = false;   // A is rounded while it is packed
  static constexpr int64_t kDepthInL1 = 512;  // of a panel, for tiles one below the other
  static_assert(kPanel == 2 * kTileColumns);

  static void pack_a(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
    pack_tile_rows(to, p, row, rows, depth0, depth);
  }
  static void pack_b(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                     int64_t depth) {
    pack_pair_panels(to, p, panel_begin, panel_end, depth0, depth, unit_depth<AmxKernel>(depth));
  }

  // What comes next, for one step of depth.
  static void fetch(FetchAhead& ahead) {
    const int64_t bytes = ahead.step * (kTileDepth / FetchAhead::kDepth);
    for (int64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(ahead.from + at, 0, 2);
    ahead.from += bytes;
  }

  // The compiler does not know that tile instructions read and write memory: what it does before and after must
  // stay there.
  static void memory_is_used() { asm volatile("" ::: "memory"); }

  // Up to 32 rows: two tiles of A with two of B. kIsTall: more than 16.
  template <bool kIsTall>
  static void tile(int64_t rows, const Bf16* a, const Bf16* b, int64_t depth, float* c, int64_t c_stride,
                   bool add, FetchAhead& ahead) {
    constexpr int64_t kARow = 64, kBRow = 2 * 64;  // bytes
    const int64_t c_row = c_stride * static_cast<int64_t>(sizeof(float));
    float* const lower = c + kTileRows * c_stride;
    memory_is_used();
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kIsTall) {
      _tile_zero(2);
      _tile_zero(3);
    }
    if (add) {
      _tile_loadd(0, c, c_row);
      _tile_loadd(1, c + kTileColumns, c_row);
      if constexpr (kIsTall) {
        _tile_loadd(2, lower, c_row);
        _tile_loadd(3, lower + kTileColumns, c_row);
      }
    }
    for (int64_t k = 0; k < depth; k += kTileDepth, a += rows * kTileDepth, b += kPanel * kTileDepth) {
      // More than 16 rows compute longer than the processor's own fetching takes.
      if constexpr (!kIsTall) fetch(ahead);
      _tile_loadd(6, b, kBRow);
      _tile_loadd(4, a, kARow);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 2 * kTileColumns, kBRow);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kIsTall) {
        _tile_loadd(5, a + kTileRows * kTileDepth, kARow);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, c, c_row);
    _tile_stored(1, c + kTileColumns, c_row);
    if constexpr (kIsTall) {
      _tile_stored(2, lower, c_row);
      _tile_stored(3, lower + kTileColumns, c_row);
    }
    memory_is_used();
  }

  static void tiles(int64_t tiles, int64_t rows, int64_t panels, const Bf16* a, int64_t, const Bf16* b,
                    int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride, bool add,
                    FetchAhead ahead) {
    const TileRegisters registers(rows);
    const auto one = rows > kTileRows ? tile<true> : tile<false>;
    const int64_t depth_at_once = tiles > 1 ? kDepthInL1 : depth;
    ahead.step = static_cast<int32_t>(ahead.step / panels);  // it is meant for panels side by side
    for (int64_t panel = 0; panel < panels; ++panel, b += b_panel_stride, c += kPanel)
      for (int64_t k = 0; k < depth; k += depth_at_once)
        for (int64_t i = 0; i < tiles; ++i)
          one(rows, a + i * rows * depth + k * rows, b + k * kPanel, std::min(depth_at_once, depth - k),
              c + i * rows * c_stride, c_stride, add || k > 0, ahead);
  }
};

// Whether the matrix unit adds as product.h says, by sums of all magnitudes: any other order of additions or
// number of roundings gets some of them wrong.
bool adds_in_order() {
  constexpr int64_t kSize = kTileRows * kTileDepth;
  alignas(64) Bf16 a[kSize], b[kSize];  // [16, 32]; [16 pairs, 16 columns, 2]
  alignas(64) float c[kTileRows * kTileColumns], sums[kTileRows * kTileColumns];
  uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return std::ldexp(static_cast<float>(static_cast<int32_t>(state)), static_cast<int>(state >> 5 & 7) - 32);
  };
  for (int64_t i = 0; i < kSize; ++i) a[i] = float_to_bf16(next()), b[i] = float_to_bf16(next());
  for (float& value : c) value = next();
  std::memcpy(sums, c, sizeof c);
  {
    const TileRegisters registers(kTileRows);
    AmxKernel::memory_is_used();
    _tile_loadd(0, sums, 64);
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stored(0, sums, 64);
  }
  for (int64_t i = 0; i < kTileRows * kTileColumns; ++i) {
    float half[2] = {};
    for (int64_t k = 0; k < kTileDepth; ++k)
      half[k % 2] =
          std::fma(bf16_to_float(a[i / kTileColumns * kTileDepth + k]),
                   bf16_to_float(b[(k / 2 * kTileColumns + i % kTileColumns) * 2 + k % 2]), half[k % 2]);
    if (sums[i] != c[i] + (half[0] + half[1])) return false;
  }
  return true;
}

}  // namespace amx

void amx_product(const Product& product) { amx::product_threads<amx::AmxKernel, Bf16>(product); }

void amx_products(const Product* products, int64_t count) {
  amx::products_threads<amx::AmxKernel, Bf16>(products, count);
}

double amx_burst(int64_t rounds, float* sink) {
  alignas(64) float c[amx::kTileRows * amx::kTileColumns] = {};
  const amx::TileRegisters registers(amx::AmxKernel::kRows);
  amx::AmxKernel::memory_is_used();
  _tile_loadd(4, c, 64);
  _tile_loadd(5, c, 64);
  _tile_loadd(6, c, 64);
  _tile_loadd(7, c, 64);
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(3, c, 64);
  *sink = c[0];
  return static_cast<double>(rounds) * 4 * amx::kTileRows * amx::kTileColumns * kTileDepth * 2;
}

}  // namespace ropd::kernels
HWY_POP_ATTRIBUTES

namespace ropd::kernels {
namespace {

// Of the processor itself: clang 14 does not know these names for __builtin_cpu_supports.
bool has_tiles_of_bf16() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 && (d & kTile) != 0;
}

}  // namespace

bool has_amx() {
  static const bool has = [] {
    // Linux hands out the tile registers, which are large, on request: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA.
    constexpr long kRequest = 0x1023, kTileData = 18;
    return __builtin_cpu_supports("avx512dq") && has_tiles_of_bf16() &&
           syscall(SYS_arch_prctl, kRequest, kTileData) == 0 && amx::adds_in_order();
  }();
  return has;
}

}  // namespace ropd::kernels

#else  // another processor family or system: product_tiles.cpp computes the same

#include "base/error.h"

namespace ropd::kernels {
bool has_amx() { return false; }
void amx_product(const Product&) { fail("products on matrix units are not built for this machine"); }
void amx_products(const Product* products, int64_t) { amx_product(*products); }
double amx_burst(int64_t, float*) {
  amx_product({});
  return 0;
}
}  // namespace ropd::kernels

#endif
