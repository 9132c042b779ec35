// The loops around a register tile: cache blocks, packing, threads. Included inside the namespace of each
// instruction set. A kernel policy has:
//   AElement, kRows          packed A: tiles of kRows rows, [depth / kUnit][rows][kUnit]
//   BElement, kPanel, kUnit  packed B: blocks of kDepthBlock rows, in each panels of kPanel columns,
//                            [depth / kUnit][kPanel][kUnit]
//   pack_a, pack_b           copy a block into that form; pack_a may write kPackSlack elements too many
//   kWidens                  whether tiles are faster on f32 panels, so that a bf16 panel that several tiles
//                            use is better widened once, by widen()
//   kReadsRows               whether tile() can also take A as stored, rows a_stride apart (0: packed)
//   tile(rows, panels, ...)  C tile += A tile · B panels, chains in order of depth, fetching `ahead`
//   meanwhile
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

// What a tile fetches into the cache while it computes: `step` bytes further for every kDepth of its depth.
struct FetchAhead {
  static constexpr int64_t kDepth = 4;
  const char* from;
  int64_t step;
  // A tile of few rows is done with its panels sooner, so it has more to fetch each time; its panels side by
  // side are more than L1 holds, so they go to L2.
  template <int kTileRows>
  void fetch() {
    __builtin_prefetch(from, 0, kTileRows <= 3 ? 2 : 3);
    if constexpr (kTileRows <= 3)
      for (int64_t i = 64; i < step; i += 64) __builtin_prefetch(from + i, 0, 2);
    else
      __builtin_prefetch(from + step / 2, 0, 3);
    from += step;
  }
};

inline constexpr int64_t kDepthBlock = 384;    // a B panel of this depth stays in L1
inline constexpr int64_t kRowBlock = 144;      // an A block of this many rows stays in L2
inline constexpr int64_t kPanelBlock = 96;     // panels of B packed at a time
inline constexpr int64_t kCacheLine = 16;      // floats
inline constexpr int64_t kPackedBlocks = 144;  // of A, packed at a time: 32 MB
inline constexpr int64_t kTasksPerThread = 8;  // enough for an even end
inline constexpr int64_t kMinTaskPanels = 4;   // fewer would read A too often
inline constexpr int64_t kStreamRows = 12;     // up to so many, B comes from memory: in one long run each

// C tile of `rows` rows and up to `panels` panels at (row, panel); the last panel may be partly outside of C.
template <class Kernel, class BElement>
void tile_at(const Product& p, const typename Kernel::AElement* a, int64_t a_stride, int64_t rows,
             const BElement* b, int64_t b_panel_stride, int64_t row, int64_t panel, int64_t panels,
             int64_t depth, bool add, FetchAhead ahead) {
  const int64_t column = panel * Kernel::kPanel;
  const int64_t width = std::min(p.n - column, panels * Kernel::kPanel);
  float* c = p.c + row * p.n + column;
  if (width == panels * Kernel::kPanel) {
    Kernel::tile(rows, panels, a, a_stride, b, b_panel_stride, depth, c, p.n, add, ahead);
    return;
  }
  alignas(64) float edge[Kernel::kRows * Kernel::kPanel * 4];
  const int64_t stride = panels * Kernel::kPanel;
  if (add)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < stride; ++j) edge[r * stride + j] = j < width ? c[r * p.n + j] : 0.0f;
  Kernel::tile(rows, panels, a, a_stride, b, b_panel_stride, depth, edge, stride, add, ahead);
  // Two copies of constant size that overlap, where that is possible: small vocabularies end here.
  constexpr int64_t kHalf = Kernel::kPanel / 2;
  const bool is_one_panel = width >= kHalf && width < Kernel::kPanel;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = edge + r * stride;
    float* to = c + r * p.n;
    if (is_one_panel) {
      std::memcpy(to, from, kHalf * sizeof(float));
      std::memcpy(to + width - kHalf, from + width - kHalf, kHalf * sizeof(float));
    } else {
      std::copy_n(from, width, to);
    }
  }
}

// One block of A against panels [panel, panel + panels) of one depth block.
template <class Kernel, class BElement>
void tiles_down(const Product& p, const typename Kernel::AElement* a, int64_t a_stride, int64_t row0,
                int64_t row1, int64_t height, const BElement* b, int64_t b_panel_stride, int64_t panel,
                int64_t panels, int64_t depth, bool add, FetchAhead ahead) {
  for (int64_t row = row0; row < row1; row += height) {
    const int64_t rows = std::min(height, row1 - row);
    if (row + height < row1)  // the C of the next tile, on its way while this one is computed
      for (int64_t r = 0; r < std::min(height, row1 - row - height); ++r)
        __builtin_prefetch(p.c + (row + height + r) * p.n + panel * Kernel::kPanel, 1, 3);
    tile_at<Kernel>(p, a + (row - row0) * (a_stride ? a_stride : depth), a_stride, rows, b, b_panel_stride,
                    row, panel, panels, depth, add, ahead);
    ahead.from += ahead.step * (depth / FetchAhead::kDepth);
  }
}

// Some rows of A, as tiles read them: packed in blocks of kRowBlock rows and kDepthBlock columns, each in a
// place of its own (pack_a writes a little too much, and threads pack different blocks at the same time); or
// in place.
template <class Kernel>
struct RowBlocks {
  using Element = typename Kernel::AElement;
  static constexpr int64_t kBlockSize = kRowBlock * kDepthBlock + kCacheLine;
  static_assert(Kernel::kPackSlack <= kCacheLine);
  int64_t row_begin, row_end;  // of C
  Element* packed = nullptr;
  const float* in_place = nullptr;  // instead: row_begin
  int64_t stride = 0;               // of rows in place; 0: packed
  int64_t count() const { return (row_end - row_begin + kRowBlock - 1) / kRowBlock; }
  Element* packed_block(int64_t index, int64_t depth0) const {
    return packed + (depth0 / kDepthBlock * count() + index) * kBlockSize;
  }
  const Element* block(int64_t index, int64_t depth0) const {
    if constexpr (Kernel::kReadsRows)
      if (in_place) return in_place + index * kRowBlock * stride;
    return packed_block(index, depth0);
  }
};

// Where one depth block is all there is, rows are so close to each other that tiles read them in place as
// fast as from a packed copy.
template <class Kernel, class BElement>
bool reads_in_place(const Product& p) {
  return Kernel::kReadsRows && sizeof(BElement) == 4 && !p.round_to_bf16 && p.a_column_stride == 1 &&
         p.k <= kDepthBlock;
}

// Tiles of equal height: eight rows are 4 + 4, not 6 + 2, where the second tile would read B for little work.
template <class Kernel>
int64_t tile_height(int64_t rows) {
  const int64_t tiles = (rows + Kernel::kRows - 1) / Kernel::kRows;
  return (rows + tiles - 1) / tiles;
}

// Block number `index` of [depth blocks][row blocks].
template <class Kernel>
void pack_block(const Product& p, const RowBlocks<Kernel>& a, int64_t index) {
  const int64_t row_block = index % a.count(), depth0 = index / a.count() * kDepthBlock;
  const int64_t depth = std::min(kDepthBlock, p.k - depth0);
  const int64_t unit_depth = (depth + Kernel::kUnit - 1) / Kernel::kUnit * Kernel::kUnit;
  const int64_t row0 = a.row_begin + row_block * kRowBlock, row1 = std::min(a.row_end, row0 + kRowBlock);
  const int64_t height = tile_height<Kernel>(row1 - row0);
  for (int64_t row = row0; row < row1; row += height)
    Kernel::pack_a(a.packed_block(row_block, depth0) + (row - row0) * unit_depth, p, row,
                   std::min(height, row1 - row), depth0, depth);
}

// Row blocks [block_begin, block_end) of `a` and panels [panel_begin, panel_end) of C, by one thread.
template <class Kernel, class BElement>
void product_part(const Product& p, const RowBlocks<Kernel>& a, int64_t block_begin, int64_t block_end,
                  int64_t panel_begin, int64_t panel_end) {
  constexpr int64_t kUnit = Kernel::kUnit, kPanel = Kernel::kPanel;
  const bool is_packed = p.panels != nullptr;
  const int64_t all_panels = (p.n + kPanel - 1) / kPanel;
  const int64_t num_rows = a.row_end - a.row_begin;
  // Few rows: the chains of one panel cannot hide the latency of an fma, so several panels go side by side.
  const int64_t side_by_side = num_rows == 1 ? 4 : num_rows <= 3 ? 2 : 1;
  const bool widens = Kernel::kWidens && sizeof(BElement) == 2 && num_rows > 2 * Kernel::kRows;
  const int64_t scratch_panels = is_packed ? 0 : panel_end - panel_begin;
  const size_t b_bytes = static_cast<size_t>(scratch_panels * kPanel * kDepthBlock) * sizeof(BElement);
  std::byte* scratch = block_scratch<std::byte>(b_bytes + kPanel * kDepthBlock * sizeof(float));
  BElement* b_block = reinterpret_cast<BElement*>(scratch);
  [[maybe_unused]] float* wide_panel = reinterpret_cast<float*>(scratch + b_bytes);

  for (int64_t depth0 = 0; depth0 < p.k; depth0 += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, p.k - depth0);
    const int64_t unit_depth = (depth + kUnit - 1) / kUnit * kUnit;
    const int64_t panel_size = kPanel * unit_depth;
    const bool add = p.add || depth0 > 0;
    const BElement* b_panels = b_block;  // of panel_begin and the ones behind it
    if (is_packed)
      b_panels = reinterpret_cast<const BElement*>(p.panels) + depth0 * all_panels * kPanel +
                 panel_begin * panel_size;
    else
      for (int64_t panel = panel_begin; panel < panel_end; ++panel)
        Kernel::pack_b(b_block + (panel - panel_begin) * panel_size, p, panel, depth0, depth);
    for (int64_t row_block = block_begin; row_block < block_end; ++row_block) {
      const int64_t row0 = a.row_begin + row_block * kRowBlock, row1 = std::min(a.row_end, row0 + kRowBlock);
      const int64_t height = tile_height<Kernel>(row1 - row0), tiles = (row1 - row0 + height - 1) / height;
      const auto* a_block = a.block(row_block, depth0);
      for (int64_t panel = panel_begin; panel < panel_end; panel += side_by_side) {
        const int64_t panels = std::min(side_by_side, panel_end - panel);
        const BElement* b = b_panels + (panel - panel_begin) * panel_size;
        // While these panels are used the next ones are fetched, evenly over the arithmetic.
        const int64_t next_bytes = panels * panel_size * static_cast<int64_t>(sizeof(BElement));
        const FetchAhead ahead{reinterpret_cast<const char*>(b + panels * panel_size),
                               next_bytes / std::max<int64_t>(1, tiles * (unit_depth / FetchAhead::kDepth))};
        if constexpr (Kernel::kWidens && sizeof(BElement) == 2) {
          if (widens) {
            Kernel::widen(wide_panel, b, panel_size);
            tiles_down<Kernel>(p, a_block, a.stride, row0, row1, height, wide_panel, panel_size, panel,
                               panels, unit_depth, add, ahead);
            continue;
          }
        }
        tiles_down<Kernel>(p, a_block, a.stride, row0, row1, height, b, panel_size, panel, panels, unit_depth,
                           add, ahead);
      }
    }
  }
}

// Every panel of p.b, in the order in which product_part reads them.
template <class Kernel, class BElement>
void pack_all(BElement* to, const Product& p) {
  constexpr int64_t kUnit = Kernel::kUnit, kPanel = Kernel::kPanel;
  const int64_t panels = (p.n + kPanel - 1) / kPanel;
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t depth0 = 0; depth0 < p.k; depth0 += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, p.k - depth0);
      const int64_t panel_size = (depth + kUnit - 1) / kUnit * kUnit * kPanel;
      Kernel::pack_b(to + depth0 * panels * kPanel + panel * panel_size, p, panel, depth0, depth);
    }
}

// How C is divided into tasks that threads take as they get done: cores are not equally fast on a shared
// machine.
struct TaskGrid {
  int64_t row_blocks, panels;  // of C
  int64_t row_blocks_per_task, panels_per_task;
  static TaskGrid of(const Product& p, int64_t row_blocks, int64_t panels, int threads) {
    TaskGrid grid{row_blocks, panels, row_blocks, std::min(panels, kPanelBlock)};
    if (p.panels && p.m <= kStreamRows) {
      grid.panels_per_task = (panels + threads - 1) / threads;
      return grid;
    }
    if (threads == 1) return grid;
    const int64_t wanted = kTasksPerThread * threads;
    grid.panels_per_task =
        std::clamp<int64_t>(panels / wanted, std::min(panels, kMinTaskPanels), kPanelBlock);
    const int64_t row_tasks = std::clamp<int64_t>(wanted / grid.panel_tasks(), 1, row_blocks);
    grid.row_blocks_per_task = (row_blocks + row_tasks - 1) / row_tasks;
    return grid;
  }
  int64_t panel_tasks() const { return (panels + panels_per_task - 1) / panels_per_task; }
  int64_t row_tasks() const { return (row_blocks + row_blocks_per_task - 1) / row_blocks_per_task; }
};

template <class Kernel, class BElement>
void product_threads(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    if (!p.add) std::fill_n(p.c, p.m * p.n, 0.0f);
    return;
  }
  // Below this many products waking the other threads costs more than it saves.
  constexpr double kWorthThreads = 1 << 18;
  const bool is_small =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) < kWorthThreads;
  const int threads = is_small || omp_in_parallel() ? 1 : omp_get_max_threads();
  const int64_t panels = (p.n + Kernel::kPanel - 1) / Kernel::kPanel;
  const int64_t depth_blocks = (p.k + kDepthBlock - 1) / kDepthBlock;
  const int64_t rows_at_once = std::max<int64_t>(1, kPackedBlocks / depth_blocks) * kRowBlock;
  for (int64_t row_begin = 0; row_begin < p.m; row_begin += rows_at_once) {
    RowBlocks<Kernel> a{row_begin, std::min(p.m, row_begin + rows_at_once)};
    int64_t blocks = 0;  // to pack
    if (reads_in_place<Kernel, BElement>(p)) {
      a.in_place = p.a + row_begin * p.a_row_stride;
      a.stride = p.a_row_stride;
    } else {
      blocks = a.count() * depth_blocks;
      a.packed = block_scratch<typename Kernel::AElement>(static_cast<size_t>(blocks * a.kBlockSize));
    }
    const TaskGrid grid = TaskGrid::of(p, a.count(), panels, threads);
    const int64_t tasks = grid.row_tasks() * grid.panel_tasks();
    const auto run = [&](int64_t task) {
      const int64_t block = task / grid.panel_tasks() * grid.row_blocks_per_task,
                    panel = task % grid.panel_tasks() * grid.panels_per_task;
      product_part<Kernel, BElement>(p, a, block, std::min(a.count(), block + grid.row_blocks_per_task),
                                     panel, std::min(panels, panel + grid.panels_per_task));
    };
    if (threads == 1) {
      for (int64_t block = 0; block < blocks; ++block) pack_block(p, a, block);
      for (int64_t task = 0; task < tasks; ++task) run(task);
      continue;
    }
    const bool packs_alone = blocks < threads;  // a barrier would take longer
    if (packs_alone)
      for (int64_t block = 0; block < blocks; ++block) pack_block(p, a, block);
#pragma omp parallel num_threads(threads)
    {
      if (!packs_alone)
#pragma omp for schedule(dynamic, 1)
        for (int64_t block = 0; block < blocks; ++block) pack_block(p, a, block);
#pragma omp for schedule(dynamic, 1)
      for (int64_t task = 0; task < tasks; ++task) run(task);
    }
  }
}
