#include "model/layer_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "base/memory_info.h"
#include "model/forward.h"

namespace ropd::model {
namespace {

constexpr std::string_view kEmbedding = "model.embed_tokens.weight", kHead = "lm_head.weight",
                           kLayers = "model.layers.";

// The part that a tensor belongs to; nothing for the embedding that is no head and for the last norm, which
// is always in memory.
std::optional<size_t> part_of(std::string_view name, const ModelConfig& config) {
  if (name == (config.tie_word_embeddings ? kEmbedding : kHead))
    return static_cast<size_t>(config.num_layers);
  if (!name.starts_with(kLayers)) return std::nullopt;
  size_t layer = 0;
  const std::string_view number = name.substr(kLayers.size());
  std::from_chars(number.data(), number.data() + number.size(), layer);
  return layer;
}

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

// The whole pages around some bytes of a mapped file.
std::span<std::byte> pages_around(std::span<const std::byte> bytes) {
  const size_t page = page_bytes();
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page,
             end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size() + page - 1) / page * page;
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

// Returns when the pages are in this process.
void bring_in(std::span<std::byte> pages) {
  if (::madvise(pages.data(), pages.size(), MADV_POPULATE_READ) == 0 || errno != EINVAL) return;
  for (size_t at = 0; at < pages.size(); at += page_bytes())  // a kernel older than 5.14
    (void)*static_cast<const volatile std::byte*>(pages.data() + at);
}

}  // namespace

std::vector<uint64_t> stream_parts(const ModelConfig& config, uint64_t element_bytes) {
  std::vector<uint64_t> parts(static_cast<size_t>(config.num_layers) + 1);
  for (const io::ExpectedTensor& tensor : io::expected_tensors(config)) {
    uint64_t bytes = element_bytes;
    for (const int64_t dimension : tensor.shape) bytes *= static_cast<uint64_t>(dimension);
    if (const auto part = part_of(tensor.name, config)) parts[*part] += bytes;
  }
  return parts;
}

StreamBudget divide_memory(std::span<const uint64_t> parts, const ModelConfig& config, uint64_t memory_bytes,
                           int64_t batch_tokens) {
  const uint64_t largest = *std::ranges::max_element(parts);
  uint64_t largest_pair = largest;
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    largest_pair = std::max(largest_pair, parts[i] + parts[i + 1]);
  // The head takes the states that predict something; there may be as many as the batch has tokens.
  const uint64_t states = static_cast<uint64_t>(config.hidden_size) * sizeof(float),
                 working = static_cast<uint64_t>(batch_tokens) * (forward_bytes_per_token(config) + states);
  StreamBudget budget{.window_bytes = largest};
  if (largest_pair + working <= memory_bytes) budget = {.window_bytes = largest_pair, .reads_ahead = true};
  const uint64_t held = budget.window_bytes + working;
  budget.positions = batch_tokens;
  if (memory_bytes > held)
    budget.positions += static_cast<int64_t>((memory_bytes - held) / waiting_bytes_per_token(config));
  return budget;
}

LayerStream::LayerStream(std::shared_ptr<const io::ModelDirectory> directory, uint64_t memory_bytes)
    : directory_(std::move(directory)),
      parts_(static_cast<size_t>(directory_->config().num_layers) + 1),
      memory_bytes_(memory_bytes) {
  for (const io::StoredTensor& tensor : directory_->tensors()) {
    if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % dtype_bytes(tensor.dtype) != 0)
      fail(directory_->path().string(), ": tensor '", tensor.name,
           "' does not begin at a multiple of its element size, so the model cannot be streamed from its "
           "files (save it again with a current safetensors)");
    if (const auto part = part_of(tensor.name, directory_->config()))
      add(parts_[*part], tensor);
    else if (tensor.name == kEmbedding)
      add(embedding_, tensor);
  }
  for (const io::SafetensorsFile& file : directory_->files()) {
    File& opened = files_.emplace_back();
    opened.descriptor = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (opened.descriptor < 0 || ::fstat(opened.descriptor, &opened.opened) != 0)
      fail(file.path().string(), ": cannot open: ", std::generic_category().message(errno));
  }
}

LayerStream::~LayerStream() {
  for (const File& file : files_)
    if (file.descriptor >= 0) ::close(file.descriptor);
}

// Tensors come sorted by name; in files they usually lie that way, so most ranges grow.
void LayerStream::add(Part& part, const io::StoredTensor& tensor) const {
  part.tensors.push_back(&tensor);
  part.bytes += tensor.bytes.size();
  const auto files = directory_->files();
  for (size_t f = 0; f < files.size(); ++f) {
    const auto all = files[f].bytes();
    if (tensor.bytes.data() < all.data() || tensor.bytes.data() >= all.data() + all.size()) continue;
    const auto begin = static_cast<size_t>(tensor.bytes.data() - all.data());
    const Range range{f, begin, begin + tensor.bytes.size()};
    if (!part.ranges.empty() && part.ranges.back().file == f && part.ranges.back().end == range.begin)
      part.ranges.back().end = range.end;
    else
      part.ranges.push_back(range);
  }
}

std::span<const std::byte> LayerStream::bytes_of(const Range& range) const {
  return directory_->files()[range.file].bytes().subspan(range.begin, range.end - range.begin);
}

// Advice all of it: pages that stay cost memory, not results.
void LayerStream::give_back(const Part& part, bool drops_cache) const {
  for (const Range& range : part.ranges) {
    const auto pages = pages_around(bytes_of(range));
    ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
    if (drops_cache)
      ::posix_fadvise(files_[range.file].descriptor, static_cast<off_t>(range.begin),
                      static_cast<off_t>(range.end - range.begin), POSIX_FADV_DONTNEED);
  }
}

void LayerStream::check(Part& part) const {
  if (part.is_checked) return;
  for (const io::StoredTensor* tensor : part.tensors)
    if (!is_finite({tensor->bytes.data(), tensor->dtype, tensor->num_elements(), 1}))
      fail(directory_->path().string(), ": ", tensor->name,
           " holds NaN or infinity (damaged or diverged checkpoint?)");
  part.is_checked = true;
}

void LayerStream::check_files() const {
  for (size_t f = 0; f < files_.size(); ++f) {
    const File& file = files_[f];
    const Path& path = directory_->files()[f].path();
    struct stat now {};
    if (::fstat(file.descriptor, &now) != 0)
      fail(path.string(), ": cannot read its size: ", std::generic_category().message(errno));
    if (now.st_size != file.opened.st_size || now.st_mtim.tv_sec != file.opened.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != file.opened.st_mtim.tv_nsec)
      fail(
          path.string(),
          ": was written to while it was streamed; what was computed with it may be of two models (put a new "
          "model into a folder of its own and begin again)");
  }
}

StreamBudget LayerStream::budget(int64_t batch_tokens) const {
  std::vector<uint64_t> bytes;
  for (const Part& part : parts_) bytes.push_back(part.bytes);
  return divide_memory(bytes, directory_->config(), memory_bytes_, batch_tokens);
}

void LayerStream::hold_head() {
  for (const Range& range : parts_.back().ranges) bring_in(pages_around(bytes_of(range)));
  counts_.bytes += parts_.back().bytes;
  check(parts_.back());
}

LayerStream::Pass::Pass(LayerStream& stream, int64_t batch_tokens)
    : stream_(stream),
      window_(stream.budget(batch_tokens).reads_ahead ? 2 : 1),
      // A model that does not fit into the system's cache would only push out of it what others need: by the
      // next pass its beginning is gone in any case.
      drops_cache_(stream.directory_->num_bytes() > read_memory_info().available_bytes) {
  stream_.give_back(stream_.parts_.back(), drops_cache_);
  reader_ = std::thread([this] { read_ahead(); });
}

LayerStream::Pass::~Pass() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  reader_.join();
  for (size_t part = left_; part < ready_; ++part) stream_.give_back(stream_.parts_[part], drops_cache_);
}

void LayerStream::Pass::read_ahead() {
  constexpr size_t kPieceBytes = size_t{32} << 20;  // between looks at whether the pass has ended
  const auto is_over = [&] {
    const std::lock_guard lock(mutex_);
    return is_over_;
  };
  for (size_t part = 0; part < stream_.parts_.size(); ++part) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_over_ || part < left_ + window_; });
    }
    for (const Range& range : stream_.parts_[part].ranges) {
      auto pages = pages_around(stream_.bytes_of(range));
      ::madvise(pages.data(), pages.size(), MADV_WILLNEED);
      while (!pages.empty()) {
        if (is_over()) return;
        const size_t piece = std::min(pages.size(), kPieceBytes);
        bring_in(pages.first(piece));
        pages = pages.subspan(piece);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      ready_ = part + 1;
    }
    changed_.notify_all();
  }
}

void LayerStream::Pass::leave(size_t part) {
  stream_.give_back(stream_.parts_[part], drops_cache_);
  {
    const std::lock_guard lock(mutex_);
    left_ = part + 1;
  }
  changed_.notify_all();
}

void LayerStream::Pass::enter(size_t part) {
  assert(part == inside_);
  if (part > 0) leave(part - 1);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_ > part; });
  }
  if (part == 0) {  // all tokens have looked up their rows
    stream_.check(stream_.embedding_);
    stream_.give_back(stream_.embedding_.tensors.empty() ? stream_.parts_.back() : stream_.embedding_,
                      drops_cache_);
    ++stream_.counts_.passes;
  }
  stream_.check(stream_.parts_[part]);
  stream_.counts_.bytes += stream_.parts_[part].bytes;
  inside_ = part + 1;
}

void LayerStream::Pass::finish() {
  if (inside_ > 0) leave(inside_ - 1);
  stream_.check_files();
}

Weights stream_weights(std::shared_ptr<const io::ModelDirectory> directory, uint64_t memory_bytes) {
  Weights weights = map_weights(directory);
  weights.stream = std::make_shared<LayerStream>(std::move(directory), memory_bytes);
  weights.execution.sharing = Sharing::products;  // a layer at a time, with all threads
  return weights;
}

}  // namespace ropd::model
