// safetensors files: 8 bytes little-endian header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the data. Reading maps the file and checks every length, shape and offset before anything is used;
// tensors are views into the mapping. Writing streams the data behind a header that is known beforehand; the
// file appears whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"

namespace ropd::io {

// What a header says about one tensor.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;

  int64_t num_elements() const;  // 1 for a scalar
  uint64_t num_bytes() const { return static_cast<uint64_t>(num_elements()) * dtype_bytes(dtype); }
};

// A tensor of an open file. The bytes are little-endian, row-major, live as long as the file object and, in
// files of other programs, need not be aligned: read them with std::memcpy.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t num_elements() const { return static_cast<int64_t>(bytes.size() / dtype_bytes(dtype)); }
};

using TensorMetadata = std::map<std::string, std::string>;

struct SafetensorsContent {
  std::vector<StoredTensor> tensors;  // in the order of their data
  TensorMetadata metadata;
};

// Checks a whole file held in memory; `where` begins every error text. The result views `file`.
SafetensorsContent parse_safetensors(std::span<const std::byte> file, std::string_view where);

// A mapped file. Constant after construction, so threads may share it.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Path& path);
  const std::vector<StoredTensor>& tensors() const { return content_.tensors; }
  const StoredTensor* find(std::string_view name) const;    // nullptr when absent
  const StoredTensor& tensor(std::string_view name) const;  // fails when absent
  const TensorMetadata& metadata() const { return content_.metadata; }
  const Path& path() const { return file_.path(); }
  std::span<const std::byte> bytes() const { return file_.bytes(); }  // the whole file

 private:
  MappedFile file_;
  SafetensorsContent content_;
};

// Writes one file: the tensors' data in the order of the list, in pieces of any size, then commit().
// Destruction without commit leaves the old file, if there was one.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const Path& path, std::span<const TensorInfo> tensors,
                    const TensorMetadata& metadata = {{"format", "pt"}});
  void write(std::span<const std::byte> bytes);
  void write(std::span<const float> values) { write(std::as_bytes(values)); }
  void commit();

 private:
  AtomicFile file_;
  Path path_;
  uint64_t expected_bytes_ = 0, written_bytes_ = 0;
};

void write_safetensors(const Path& path, std::span<const StoredTensor> tensors,
                       const TensorMetadata& metadata = {{"format", "pt"}});

}  // namespace ropd::io
