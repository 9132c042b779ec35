// The loops around a register tile: cache blocks, packing, threads. Included inside the namespace of each
// instruction set. A kernel policy has:
//   AElement, kRows          packed A: tiles of kRows rows, [depth / kUnit][rows][kUnit]
//   BElement, kPanel, kUnit  packed B: blocks of kDepthBlock rows, in each panels of kPanel columns,
//                            [depth / kUnit][kPanel][kUnit]
//   pack_a, pack_b           copy rows and a run of panels into that form
//   kRowBlock                rows of a deep A block, so many that it stays in L2; a multiple of kRows
//   kReadsRows               whether tiles() can also take A as stored, rows a_stride apart (0: packed)
//   tiles(n, rows, panels, ...)  C += A · B panels for n tiles of so many rows one below the other, in order
//   of depth, fetching `ahead` meanwhile
// Threads split columns or rows of C, never the depth, so nothing here can change a result.

// Scratch for packed blocks, one piece of memory for each use. Per thread and kept between calls: a call is
// shorter than mapping fresh pages would take.
enum class Scratch { rows, panels };
template <Scratch kUse, class Element>
Element* block_scratch(int64_t elements) {
  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
    ~Buffer() { std::free(data); }
  };
  static thread_local Buffer buffer;
  const size_t bytes = (static_cast<size_t>(elements) * sizeof(Element) + 63) / 64 * 64;
  if (bytes > buffer.bytes) {
    std::free(buffer.data);
    buffer.data = allocate_aligned(bytes);
    if (!buffer.data) throw std::bad_alloc();
    buffer.bytes = bytes;
  }
  return static_cast<Element*>(buffer.data);
}

inline constexpr int64_t kCacheLine = 64;  // bytes

// What a tile fetches into the cache while it computes: `step` bytes further for every kDepth of its depth.
// So small that it is passed in registers.
struct FetchAhead {
  static constexpr int64_t kDepth = 4;
  const char* from;
  int32_t step;
  bool is_large;  // more than L1 holds beside what is in use: into L2
  // A tile of one or two rows does nothing but read, several panels side by side. The processor sees these
  // streams by itself and is faster alone: one sequence decodes 1.2 to 1.3 times as fast.
  template <int kTileRows>
  void fetch() {
    if constexpr (kTileRows <= 2) return;
    const char* const until = from + step;
    if (is_large)
      for (const char* line = from; line < until; line += kCacheLine) __builtin_prefetch(line, 0, 2);
    else
      for (const char* line = from; line < until; line += kCacheLine) __builtin_prefetch(line, 0, 3);
    from = until;
  }
  // Behind a tile of this depth.
  void pass(int64_t depth) { from += step * (depth / kDepth); }
};

// Deep blocks, so that C is read and written seldom. A panel of this depth no longer stays in L1, but the
// next tile finds it in L2, and what a tile reads of it is little beside its arithmetic.
inline constexpr int64_t kDepthBlock = 1024;
inline constexpr int64_t kDepthInPlace = 512;  // rows of A as stored lie close enough together
inline constexpr int64_t kWorthL1 = 16 << 10;  // bytes; more of B are fetched into L2 only
inline constexpr int64_t kDepthAtOnce = 3;     // depth blocks, and
inline constexpr int64_t kRowsAtOnce = 5184;   // rows of a depth block of A (21 MB) and
inline constexpr int64_t kPanelsAtOnce = 192;  // panels of a depth block (12 MB) that are packed at a time
inline constexpr int64_t kTasksPerThread = 8;  // of several row blocks: enough for an even end
inline constexpr int64_t kMinTaskPanels = 8;   // fewer would read A too often
inline constexpr int64_t kMaxTaskPanels = 64;

// A tile of C whose last panel is partly outside of C: `width` columns of it exist.
template <class Kernel, class BElement>
void edge_tile(const typename Kernel::AElement* a, int64_t a_stride, int64_t rows, const BElement* b,
               int64_t b_panel_stride, int64_t panels, int64_t depth, float* c, int64_t c_stride,
               int64_t width, bool add, FetchAhead ahead) {
  alignas(64) float edge[Kernel::kRows * Kernel::kPanel * 4];
  const int64_t stride = panels * Kernel::kPanel;
  if (add)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < stride; ++j) edge[r * stride + j] = j < width ? c[r * c_stride + j] : 0.0f;
  Kernel::tiles(1, rows, panels, a, a_stride, b, b_panel_stride, depth, edge, stride, add, ahead);
  // Two copies of constant size that overlap, where that is possible: small vocabularies end here.
  constexpr int64_t kHalf = Kernel::kPanel / 2;
  const bool is_one_panel = width >= kHalf && width < Kernel::kPanel;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = edge + r * stride;
    float* to = c + r * c_stride;
    if (is_one_panel) {
      std::memcpy(to, from, kHalf * sizeof(float));
      std::memcpy(to + width - kHalf, from + width - kHalf, kHalf * sizeof(float));
    } else {
      std::copy_n(from, width, to);
    }
  }
}

// Tiles of the same height one below the other.
struct TileRun {
  int64_t tiles, height;
  int64_t rows() const { return tiles * height; }
};

// The next tiles of `rows` rows. The last two are of about equal height: eight rows are 4 + 4, not 6 + 2,
// where the second tile would read B for little work.
template <class Kernel>
TileRun next_tiles(int64_t rows) {
  constexpr int64_t kRows = Kernel::kRows;
  if (rows % kRows == 0) return {rows / kRows, kRows};
  if (rows > 2 * kRows) return {rows / kRows - 1, kRows};
  return {1, rows > kRows ? (rows + 1) / 2 : rows};
}

// One block of A against panels [panel, panel + panels) of one depth block.
template <class Kernel, class BElement>
void tiles_down(const Product& p, const typename Kernel::AElement* a, int64_t a_stride, int64_t row0,
                int64_t row1, const BElement* b, int64_t b_panel_stride, int64_t panel, int64_t panels,
                int64_t depth, bool add, FetchAhead ahead) {
  const int64_t column = panel * Kernel::kPanel, width = std::min(p.n - column, panels * Kernel::kPanel);
  float* c = p.c + row0 * p.n + column;
  const bool is_whole = width == panels * Kernel::kPanel;
  for (int64_t row = row0; row < row1;) {
    TileRun run = next_tiles<Kernel>(row1 - row);
    if (is_whole) {
      Kernel::tiles(run.tiles, run.height, panels, a, a_stride, b, b_panel_stride, depth, c, p.n, add, ahead);
    } else {
      run.tiles = 1;
      edge_tile<Kernel>(a, a_stride, run.height, b, b_panel_stride, panels, depth, c, p.n, width, add, ahead);
    }
    row += run.rows();
    a += run.rows() * (a_stride ? a_stride : depth);
    c += run.rows() * p.n;
    for (int64_t i = 0; i < run.tiles; ++i) ahead.pass(depth);
  }
}

// A part of the product: rows of C, panels of C, depth.
template <class Kernel>
struct Piece {
  int64_t row_begin, row_end, panel_begin, panel_end, depth_begin, depth_end;
  int64_t rows() const { return row_end - row_begin; }
  int64_t panels() const { return panel_end - panel_begin; }
  int64_t rows_per_block() const {
    return depth_end - depth_begin <= kDepthBlock / 2 ? 2 * Kernel::kRowBlock : Kernel::kRowBlock;
  }
  int64_t row_blocks() const { return (rows() + rows_per_block() - 1) / rows_per_block(); }
  int64_t depth_blocks() const { return (depth_end - depth_begin + kDepthBlock - 1) / kDepthBlock; }
};

// A row block and panels [panel_begin, panel_end) of C, for one thread.
struct Task {
  int64_t block, panel_begin, panel_end;
};

template <class Kernel>
int64_t unit_depth(int64_t depth) {
  return (depth + Kernel::kUnit - 1) / Kernel::kUnit * Kernel::kUnit;
}

// The rows of A of a piece, as tiles read them: packed in blocks of about equal height and kDepthBlock
// columns, each in a place of its own, or in place.
template <class Kernel>
struct RowBlocks {
  using Element = typename Kernel::AElement;
  static_assert(Kernel::kRowBlock % Kernel::kRows == 0 && kDepthBlock % Kernel::kUnit == 0);
  Piece<Kernel> piece;
  Element* packed = nullptr;
  const float* in_place = nullptr;  // instead: row_begin
  int64_t stride = 0;               // of rows in place; 0: packed
  int64_t block_depth() const { return std::min(kDepthBlock, piece.depth_end - piece.depth_begin); }
  int64_t block_size() const {
    constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(Element));
    return (piece.rows_per_block() * unit_depth<Kernel>(block_depth()) + kLine - 1) / kLine * kLine;
  }
  // Of a block; a multiple of the tile's height.
  int64_t height() const {
    const int64_t rows = (piece.rows() + piece.row_blocks() - 1) / piece.row_blocks();
    return (rows + Kernel::kRows - 1) / Kernel::kRows * Kernel::kRows;
  }
  int64_t first_row(int64_t index) const {
    return std::min(piece.row_begin + index * height(), piece.row_end);
  }
  Element* packed_block(int64_t index, int64_t depth0) const {
    return packed + ((depth0 - piece.depth_begin) / kDepthBlock * piece.row_blocks() + index) * block_size();
  }
  // What a thread packs in one go: of a block of few rows, as in decoding, a part of its depth.
  int64_t depth_per_unit() const {
    constexpr int64_t kShortest = 256, kElements = 4096;
    return std::clamp(kElements / std::min(height(), piece.rows()) / kShortest * kShortest, kShortest,
                      kDepthBlock);
  }
  int64_t units_per_block() const { return (block_depth() + depth_per_unit() - 1) / depth_per_unit(); }
  int64_t num_units() const {
    return packed ? piece.depth_blocks() * piece.row_blocks() * units_per_block() : 0;
  }
  const Element* block(int64_t index, int64_t depth0) const {
    if constexpr (Kernel::kReadsRows)
      if (in_place) return in_place + index * height() * stride;
    return packed_block(index, depth0);
  }
};

template <class Kernel>
int64_t num_panels(const Product& p) {
  return (p.n + Kernel::kPanel - 1) / Kernel::kPanel;
}

// Panels of B, packed: depth blocks one behind the other, in each all panels.
template <class Kernel, class BElement>
struct Panels {
  BElement* data;
  int64_t depth_begin, panel_begin, count;
  BElement* panel(int64_t index, int64_t depth0, int64_t panel_size) const {
    return data + (depth0 - depth_begin) * count * Kernel::kPanel + (index - panel_begin) * panel_size;
  }
};

// Where a task begins to read.
template <class Kernel, class BElement>
const BElement* first_panel(const Panels<Kernel, BElement>& b, const Piece<Kernel>& piece, const Task& task) {
  const int64_t depth = std::min(kDepthBlock, piece.depth_end - piece.depth_begin);
  return b.panel(task.panel_begin, piece.depth_begin, Kernel::kPanel * unit_depth<Kernel>(depth));
}

// Rows that are close to each other are read in place as fast as from a packed copy.
static_assert(kDepthInPlace <= kDepthBlock);  // a tile sees the whole depth of such rows
template <class Kernel, class BElement>
bool reads_in_place(const Product& p) {
  return Kernel::kReadsRows && sizeof(BElement) == 4 && !p.round_to_bf16 && p.a_column_stride == 1 &&
         p.k <= kDepthInPlace;
}

// Unit number `index` of [depth blocks][row blocks][units of a block].
template <class Kernel>
void pack_rows_of(const Product& p, const RowBlocks<Kernel>& a, int64_t index) {
  static_assert(kDepthBlock % Kernel::kUnit == 0);
  const int64_t begin = index % a.units_per_block() * a.depth_per_unit();
  index /= a.units_per_block();
  const int64_t block = index % a.piece.row_blocks(),
                depth0 = a.piece.depth_begin + index / a.piece.row_blocks() * kDepthBlock;
  const int64_t depth = std::min(kDepthBlock, a.piece.depth_end - depth0);
  if (begin >= depth) return;  // the last block is less deep
  const int64_t row0 = a.first_row(block), row1 = a.first_row(block + 1);
  for (int64_t row = row0, height; row < row1; row += height) {
    height = next_tiles<Kernel>(row1 - row).height;
    Kernel::pack_a(a.packed_block(block, depth0) + (row - row0) * unit_depth<Kernel>(depth) + height * begin,
                   p, row, height, depth0 + begin, std::min(a.depth_per_unit(), depth - begin));
  }
}

// Panels that a thread packs in one go; they lie side by side in B, so its rows are read in longer runs.
inline constexpr int64_t kPanelsPerUnit = 8;

template <class Kernel, class BElement>
int64_t num_panel_units(const Panels<Kernel, BElement>& b, int64_t depth_end) {
  return (depth_end - b.depth_begin + kDepthBlock - 1) / kDepthBlock *
         ((b.count + kPanelsPerUnit - 1) / kPanelsPerUnit);
}

// Unit number `index` of [depth blocks][runs of panels].
template <class Kernel, class BElement>
void pack_panels_of(const Product& p, const Panels<Kernel, BElement>& b, int64_t depth_end, int64_t index) {
  const int64_t runs = (b.count + kPanelsPerUnit - 1) / kPanelsPerUnit;
  const int64_t first = b.panel_begin + index % runs * kPanelsPerUnit,
                depth0 = b.depth_begin + index / runs * kDepthBlock;
  const int64_t depth = std::min(kDepthBlock, depth_end - depth0);
  Kernel::pack_b(b.panel(first, depth0, Kernel::kPanel * unit_depth<Kernel>(depth)), p, first,
                 std::min(first + kPanelsPerUnit, b.panel_begin + b.count), depth0, depth);
}

// Few rows: the chains of one panel cannot hide the latency of an fma, so several panels go side by side.
inline int64_t panels_side_by_side(int64_t rows) { return rows == 1 ? 4 : rows <= 2 ? 2 : 1; }

// The C of a piece is divided into tasks that threads take as they get done: cores are not equally fast on a
// shared machine. One row block, as in decoding, has the smallest tasks, so that threads end together.
struct TaskGrid {
  int64_t panel_begin, panel_end, panels_per_task, panel_tasks, count;
  template <class Kernel>
  static TaskGrid of(const Piece<Kernel>& piece, int threads) {
    const int64_t panels = piece.panels(), blocks = piece.row_blocks();
    const int64_t each = blocks == 1 ? panels_side_by_side(piece.rows())
                                     : std::clamp(blocks * panels / (kTasksPerThread * threads),
                                                  kMinTaskPanels, kMaxTaskPanels);
    const int64_t tasks = (panels + each - 1) / each;
    return {piece.panel_begin, piece.panel_end, blocks == 1 ? each : (panels + tasks - 1) / tasks, tasks,
            blocks * tasks};
  }
  Task task(int64_t index) const {
    const int64_t panel = panel_begin + index % panel_tasks * panels_per_task;
    return {index / panel_tasks, panel, std::min(panel_end, panel + panels_per_task)};
  }
};

// A task over the depth of the piece. `next`: panels that this thread will read behind it; may be null.
template <class Kernel, class BElement>
void product_part(const Product& p, const RowBlocks<Kernel>& a, const Panels<Kernel, BElement>& b,
                  const Task& task, const BElement* next) {
  const Piece<Kernel>& piece = a.piece;
  const int64_t row0 = a.first_row(task.block), row1 = a.first_row(task.block + 1), rows = row1 - row0;
  const int64_t tiles = (rows + Kernel::kRows - 1) / Kernel::kRows;
  const int64_t side_by_side = panels_side_by_side(rows);

  for (int64_t depth0 = piece.depth_begin; depth0 < piece.depth_end; depth0 += kDepthBlock) {
    const int64_t depth = unit_depth<Kernel>(std::min(kDepthBlock, piece.depth_end - depth0));
    const int64_t panel_size = Kernel::kPanel * depth,
                  steps = std::max<int64_t>(1, depth / FetchAhead::kDepth);
    const bool add = p.add || depth0 > 0;
    const auto* a_block = a.block(task.block, depth0);
    for (int64_t panel = task.panel_begin; panel < task.panel_end; panel += side_by_side) {
      const int64_t panels = std::min(side_by_side, task.panel_end - panel);
      const BElement* panel_data = b.panel(panel, depth0, panel_size);
      // While these panels are used what comes next is fetched, evenly over the arithmetic: panels, and with
      // the last ones the next block of A if it is a large one.
      const bool is_last = panel + panels >= task.panel_end,
                 has_next = depth0 + kDepthBlock < piece.depth_end;
      const BElement* coming = !is_last   ? panel_data + panels * panel_size
                               : has_next ? b.panel(task.panel_begin, depth0 + kDepthBlock, panel_size)
                                          : next;
      const int64_t bytes = coming ? panels * panel_size * static_cast<int64_t>(sizeof(BElement)) : 0;
      FetchAhead ahead{reinterpret_cast<const char*>(coming), static_cast<int32_t>(bytes / (tiles * steps)),
                       bytes > kWorthL1};
      if (is_last && has_next && rows > Kernel::kRowBlock / 2)
        ahead = {
            reinterpret_cast<const char*>(a.block(task.block, depth0 + kDepthBlock)),
            static_cast<int32_t>(Kernel::kRows * FetchAhead::kDepth * static_cast<int64_t>(sizeof(*a_block))),
            true};
      tiles_down<Kernel>(p, a_block, a.stride, row0, row1, panel_data, panel_size, panel, panels, depth, add,
                         ahead);
    }
  }
}

// Every panel of p.b, in the order in which product_part reads them.
template <class Kernel, class BElement>
void pack_all(BElement* to, const Product& p) {
  const Panels<Kernel, BElement> b{to, 0, 0, num_panels<Kernel>(p)};
  const int64_t units = num_panel_units(b, p.k);
  parallel_chunks(units, 1, p.n * p.k, [&](int64_t unit, int64_t) { pack_panels_of(p, b, p.k, unit); });
}

// Where the rows of a piece are or will be packed.
template <class Kernel, class BElement>
RowBlocks<Kernel> rows_of(const Product& p, const Piece<Kernel>& piece) {
  RowBlocks<Kernel> a{piece};
  if (reads_in_place<Kernel, BElement>(p)) {
    a.in_place = p.a + piece.row_begin * p.a_row_stride;
    a.stride = p.a_row_stride;
  } else {
    a.packed = block_scratch<Scratch::rows, typename Kernel::AElement>(piece.row_blocks() *
                                                                       piece.depth_blocks() * a.block_size());
  }
  return a;
}

// As PackedWeight keeps them; only read.
template <class Kernel, class BElement>
Panels<Kernel, BElement> stored_panels(const Product& p) {
  return {reinterpret_cast<BElement*>(const_cast<std::byte*>(p.panels)), 0, 0, num_panels<Kernel>(p)};
}

// Calls pack(unit) for all units, then run(task, next) for all tasks: the next one is what the thread will take
// behind it, if that is known (-1: not). `work` as in parallel_chunks().
template <class Pack, class Run>
void pack_and_run(int64_t units, const Pack& pack, int64_t tasks, const Run& run, int threads, int64_t work) {
  const bool packs_alone = units < threads || threads == 1;  // waiting for each other would take longer
  if (packs_alone)
    for (int64_t unit = 0; unit < units; ++unit) pack(unit);
  if (threads == 1) {
    for (int64_t task = 0; task < tasks; ++task) run(task, task + 1 < tasks ? task + 1 : -1);
    return;
  }
  std::atomic<int64_t> next_unit = packs_alone ? units : 0;
  Countdown unpacked(static_cast<uint32_t>(packs_alone ? 0 : units));
  // Runs of neighbours, because what a thread takes next is fetched while it works.
  Runs runs(tasks, static_cast<size_t>(threads));
  run_on_threads(static_cast<size_t>(threads), work, [&](size_t worker) {
    for (int64_t unit; (unit = next_unit.fetch_add(1, std::memory_order_relaxed)) < units;) {
      pack(unit);
      unpacked.one_done();
    }
    unpacked.wait();
    for (Runs::Taken taken; (taken = runs.take(worker)).index >= 0;) run(taken.index, taken.next);
  });
}

// In elementary operations; a tile multiplies and adds eight times in each.
inline int64_t work_of(int64_t m, int64_t n, int64_t k) {
  constexpr double kProductsEach = 8, kMost = 1e18;
  return static_cast<int64_t>(std::min(
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / kProductsEach, kMost));
}

// has_rows: the piece before had the same rows and depth, they are packed.
template <class Kernel, class BElement>
void product_piece(const Product& p, const Piece<Kernel>& piece, bool has_rows, int threads) {
  const RowBlocks<Kernel> a = rows_of<Kernel, BElement>(p, piece);
  Panels<Kernel, BElement> b = stored_panels<Kernel, BElement>(p);
  const int64_t row_units = has_rows ? 0 : a.num_units();
  int64_t panel_units = 0;
  if (!p.panels) {
    b = {block_scratch<Scratch::panels, BElement>(piece.panels() * piece.depth_blocks() * Kernel::kPanel *
                                                  kDepthBlock),
         piece.depth_begin, piece.panel_begin, piece.panels()};
    panel_units = num_panel_units(b, piece.depth_end);
  }
  const auto pack = [&](int64_t unit) {
    if (unit < row_units) return pack_rows_of(p, a, unit);
    pack_panels_of(p, b, piece.depth_end, unit - row_units);
  };
  const int64_t units = row_units + panel_units;
  const TaskGrid grid = TaskGrid::of(piece, threads);
  const auto run = [&](int64_t task, int64_t next) {
    product_part<Kernel, BElement>(p, a, b, grid.task(task),
                                   next < 0 ? nullptr : first_panel(b, piece, grid.task(next)));
  };
  pack_and_run(units, pack, grid.count, run, threads,
               work_of(piece.rows(), piece.panels() * Kernel::kPanel, piece.depth_end - piece.depth_begin));
}

inline int threads_for(const Product& p) {
  return static_cast<int>(num_workers(SIZE_MAX, work_of(p.m, p.n, p.k)));
}

template <class Kernel, class BElement>
void product_threads(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    if (!p.add) std::fill_n(p.c, p.m * p.n, 0.0f);
    return;
  }
  const int threads = threads_for(p);
  const int64_t panels = num_panels<Kernel>(p);
  const int64_t depth_blocks = std::min((p.k + kDepthBlock - 1) / kDepthBlock, kDepthAtOnce);
  const int64_t depth_at_once = depth_blocks * kDepthBlock,
                rows_at_once = kRowsAtOnce / depth_blocks / Kernel::kRowBlock * Kernel::kRowBlock,
                panels_at_once = p.panels ? panels : kPanelsAtOnce / depth_blocks;
  for (int64_t depth = 0; depth < p.k; depth += depth_at_once)
    for (int64_t row = 0; row < p.m; row += rows_at_once)
      for (int64_t panel = 0; panel < panels; panel += panels_at_once)
        product_piece<Kernel, BElement>(
            p,
            {row, std::min(p.m, row + rows_at_once), panel, std::min(panels, panel + panels_at_once), depth,
             std::min(p.k, depth + depth_at_once)},
            panel > 0, threads);
}

// Products of the same A with stored panels. Where they are small, as in decoding, their tasks are shared out
// together: one product after the other, threads would wait at the end of each.
template <class Kernel, class BElement>
void products_threads(const Product* products, int64_t count) {
  constexpr int64_t kMost = 4;
  const Product& first = products[0];
  const Piece<Kernel> rows{0, first.m, 0, 0, 0, first.k};
  const int threads = threads_for(first);
  if (count > kMost || threads == 1 || first.m > rows.rows_per_block() ||
      rows.depth_blocks() > kDepthAtOnce) {
    for (int64_t i = 0; i < count; ++i) product_threads<Kernel, BElement>(products[i]);
    return;
  }
  const RowBlocks<Kernel> a = rows_of<Kernel, BElement>(first, rows);
  TaskGrid grids[kMost];
  int64_t tasks = 0;
  for (int64_t i = 0; i < count; ++i) {
    Piece<Kernel> piece = rows;
    piece.panel_end = num_panels<Kernel>(products[i]);
    grids[i] = TaskGrid::of(piece, threads);
    tasks += grids[i].count;
  }
  struct Place {
    int64_t product;
    Task task;
  };
  const auto place_of = [&](int64_t task) {
    int64_t i = 0;
    for (; task >= grids[i].count; ++i) task -= grids[i].count;
    return Place{i, grids[i].task(task)};
  };
  const auto panels_of = [&](const Place& place) {
    return stored_panels<Kernel, BElement>(products[place.product]);
  };
  const auto run = [&](int64_t task, int64_t next) {
    const Place place = place_of(task);
    const BElement* coming = nullptr;
    if (next >= 0) {
      const Place then = place_of(next);
      coming = first_panel(panels_of(then), rows, then.task);
    }
    product_part(products[place.product], a, panels_of(place), place.task, coming);
  };
  pack_and_run(
      a.num_units(), [&](int64_t unit) { pack_rows_of(first, a, unit); }, tasks, run, threads,
      count * work_of(first.m, first.n, first.k));
}
