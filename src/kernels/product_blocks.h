// The loops around a register tile: cache blocks, packing, threads. Included inside the namespace of each
// instruction set. A kernel policy has:
//   AElement, kRows          packed A: tiles of kRows rows, [depth / kUnit][rows][kUnit]
//   BElement, kPanel, kUnit  packed B: panels of kPanel columns, [depth / kUnit][kPanel][kUnit]
//   pack_a, pack_b           copy a block into that form
//   tile<rows, panels>(...)  C tile += A tile · B panels, chains in order of depth
// Threads split columns or rows of C, never the depth, so nothing here can change a result.

// Scratch for packed blocks. Per thread and kept between calls: a call is shorter than mapping fresh pages
// would take.
template <class Element>
Element* block_scratch(size_t elements) {
  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
    ~Buffer() { std::free(data); }
  };
  static thread_local Buffer buffer;
  const size_t bytes = (elements * sizeof(Element) + 63) / 64 * 64;
  if (bytes > buffer.bytes) {
    std::free(buffer.data);
    buffer.data = std::aligned_alloc(64, bytes);
    if (!buffer.data) throw std::bad_alloc();
    buffer.bytes = bytes;
  }
  return static_cast<Element*>(buffer.data);
}

inline constexpr int64_t kDepthBlock = 256;  // a B panel of this depth stays in L1
inline constexpr int64_t kRowBlock = 144;    // an A block of this many rows stays in L2
inline constexpr int64_t kPanelBlock = 96;   // panels of B packed at a time

// C tile of `rows` rows and up to `panels` panels at (row, panel); the last panel may be partly outside of C.
template <class Kernel, class BElement>
void tile_at(const Product& p, const typename Kernel::AElement* a, int64_t rows, const BElement* b,
             int64_t b_panel_stride, int64_t row, int64_t panel, int64_t panels, int64_t depth, bool add) {
  const int64_t column = panel * Kernel::kPanel;
  const int64_t width = std::min(p.n - column, panels * Kernel::kPanel);
  float* c = p.c + row * p.n + column;
  if (width == panels * Kernel::kPanel) {
    Kernel::tile(rows, panels, a, b, b_panel_stride, depth, c, p.n, add);
    return;
  }
  alignas(64) float edge[Kernel::kRows * Kernel::kPanel * 4];
  const int64_t stride = panels * Kernel::kPanel;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < stride; ++j) edge[r * stride + j] = j < width && add ? c[r * p.n + j] : 0.0f;
  Kernel::tile(rows, panels, a, b, b_panel_stride, depth, edge, stride, add);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(edge + r * stride, width, c + r * p.n);
}

// Rows [row_begin, row_end) and panels [panel_begin, panel_end) of C, by one thread.
template <class Kernel, class BElement>
void product_part(const Product& p, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                  int64_t panel_end) {
  using AElement = typename Kernel::AElement;
  constexpr int64_t kUnit = Kernel::kUnit;
  const bool is_packed = p.panels != nullptr;
  const int64_t padded_depth = (kDepthBlock + kUnit - 1) / kUnit * kUnit;
  // Few rows: the chains of one panel cannot hide the latency of an fma, so several panels go side by side.
  const int64_t side_by_side = row_end - row_begin == 1 ? 4 : row_end - row_begin <= 3 ? 2 : 1;
  const int64_t scratch_panels = is_packed ? 0 : std::min(kPanelBlock, panel_end - panel_begin);
  const size_t a_bytes = (kRowBlock * padded_depth * sizeof(AElement) + 63) / 64 * 64;
  std::byte* scratch =
      block_scratch<std::byte>(a_bytes + scratch_panels * Kernel::kPanel * padded_depth * sizeof(BElement));
  AElement* a_block = reinterpret_cast<AElement*>(scratch);
  BElement* b_block = reinterpret_cast<BElement*>(scratch + a_bytes);

  for (int64_t panel0 = panel_begin; panel0 < panel_end; panel0 += kPanelBlock) {
    const int64_t panel1 = std::min(panel_end, panel0 + kPanelBlock);
    for (int64_t depth0 = 0; depth0 < p.k; depth0 += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, p.k - depth0);
      const int64_t unit_depth = (depth + kUnit - 1) / kUnit * kUnit;
      const bool add = p.add || depth0 > 0;
      if (!is_packed)
        for (int64_t panel = panel0; panel < panel1; ++panel)
          Kernel::pack_b(b_block + (panel - panel0) * Kernel::kPanel * unit_depth, p, panel, depth0, depth);
      for (int64_t row0 = row_begin; row0 < row_end; row0 += kRowBlock) {
        const int64_t row1 = std::min(row_end, row0 + kRowBlock);
        // Tiles of equal height: eight rows are 4 + 4, not 6 + 2, where the second tile would read B for
        // little work.
        const int64_t tiles = (row1 - row0 + Kernel::kRows - 1) / Kernel::kRows;
        const int64_t height = (row1 - row0 + tiles - 1) / tiles;
        for (int64_t row = row0; row < row1; row += height)
          Kernel::pack_a(a_block + (row - row0) * unit_depth, p, row, std::min(height, row1 - row), depth0,
                         depth);
        for (int64_t panel = panel0; panel < panel1; panel += side_by_side) {
          const int64_t panels = std::min(side_by_side, panel1 - panel);
          const BElement* b;
          int64_t stride;
          if (is_packed) {
            b = reinterpret_cast<const BElement*>(p.panels + panel * p.panel_bytes) + depth0 * Kernel::kPanel;
            stride = p.panel_bytes / static_cast<int64_t>(sizeof(BElement));
          } else {
            b = b_block + (panel - panel0) * Kernel::kPanel * unit_depth;
            stride = Kernel::kPanel * unit_depth;
          }
          for (int64_t row = row0; row < row1; row += height)
            tile_at<Kernel>(p, a_block + (row - row0) * unit_depth, std::min(height, row1 - row), b, stride,
                            row, panel, panels, unit_depth, add);
        }
      }
    }
  }
}

template <class Kernel, class BElement>
void product_threads(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    if (!p.add) std::fill_n(p.c, p.m * p.n, 0.0f);
    return;
  }
  const int64_t panels = (p.n + Kernel::kPanel - 1) / Kernel::kPanel;
  const int64_t row_tiles = (p.m + Kernel::kRows - 1) / Kernel::kRows;
  constexpr double kWorthThreads =
      1 << 18;  // below this many products waking the other threads costs more than it saves
  const bool is_small =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) < kWorthThreads;
  const int threads = is_small || omp_in_parallel() ? 1 : omp_get_max_threads();
  if (threads == 1) {
    product_part<Kernel, BElement>(p, 0, p.m, 0, panels);
    return;
  }
  const bool split_columns = panels >= 4 * threads || panels >= row_tiles;
#pragma omp parallel num_threads(threads)
  {
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    if (split_columns) {
      product_part<Kernel, BElement>(p, 0, p.m, panels * part / parts, panels * (part + 1) / parts);
    } else {
      const int64_t begin = row_tiles * part / parts * Kernel::kRows,
                    end = row_tiles * (part + 1) / parts * Kernel::kRows;
      product_part<Kernel, BElement>(p, std::min(begin, p.m), std::min(end, p.m), 0, panels);
    }
  }
}
