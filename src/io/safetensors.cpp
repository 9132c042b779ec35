#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "stored tensors are little-endian and used as they are");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxRank = 8;
constexpr size_t kLengthBytes = 8;
constexpr const char* kMetadataKey = "__metadata__";

// A tensor of the header with its place in the data.
struct Entry {
  TensorInfo info;
  uint64_t begin = 0, end = 0;
};

DType parse_dtype(const std::string& name, std::string_view where, const std::string& tensor) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  fail(where, ": tensor '", tensor, "' has dtype '", name,
       "', expected F32, F16 or BF16 (a quantised checkpoint?)");
}

uint64_t unsigned_number(const Json& value, std::string_view where, const std::string& tensor,
                         const char* what) {
  if (!value.is_number_unsigned()) {
    fail(where, ": tensor '", tensor, "': ", what, " must be non-negative integers, found ",
         value.dump().substr(0, 60));
  }
  return value.get<uint64_t>();
}

const Json& member(const Json& object, const char* key, std::string_view where, const std::string& tensor) {
  const auto found = object.find(key);
  if (found == object.end()) fail(where, ": tensor '", tensor, "' has no '", key, "'");
  return *found;
}

std::vector<int64_t> parse_shape(const Json& value, std::string_view where, const std::string& tensor) {
  if (!value.is_array() || value.size() > kMaxRank) {
    fail(where, ": tensor '", tensor, "': shape must be a list of at most ", kMaxRank, " sizes");
  }
  std::vector<int64_t> shape;
  uint64_t product = dtype_bytes(DType::f32);  // the widest, so that bytes cannot overflow either
  for (const auto& item : value) {
    const uint64_t size = unsigned_number(item, where, tensor, "sizes");
    const uint64_t largest = std::numeric_limits<int64_t>::max();
    if (size > largest || (size != 0 && product > largest / size)) {
      fail(where, ": tensor '", tensor, "': the product of its shape ", value.dump().substr(0, 100),
           " overflows");
    }
    product *= size;
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

Entry parse_entry(const std::string& name, const Json& object, std::string_view where) {
  if (!object.is_object()) fail(where, ": tensor '", name, "' is not described by an object");
  if (object.size() != 3)
    fail(where, ": tensor '", name, "' must have dtype, shape and data_offsets and nothing else");
  const Json& dtype = member(object, "dtype", where, name);
  if (!dtype.is_string()) fail(where, ": tensor '", name, "': dtype must be text");
  Entry entry;
  entry.info = {name, parse_dtype(dtype.get<std::string>(), where, name),
                parse_shape(member(object, "shape", where, name), where, name)};
  const Json& offsets = member(object, "data_offsets", where, name);
  if (!offsets.is_array() || offsets.size() != 2)
    fail(where, ": tensor '", name, "': data_offsets must be [begin, end]");
  entry.begin = unsigned_number(offsets[0], where, name, "data_offsets");
  entry.end = unsigned_number(offsets[1], where, name, "data_offsets");
  return entry;
}

TensorMetadata parse_metadata(const Json& object, std::string_view where) {
  TensorMetadata metadata;
  if (!object.is_object()) fail(where, ": ", kMetadataKey, " must map names to text");
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) fail(where, ": ", kMetadataKey, ": the value of '", key, "' must be text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Offsets in order, inside the data, as long as the shape says, without holes or overlaps, up to the last
// byte.
void check_places(std::vector<Entry>& entries, uint64_t data_bytes, std::string_view where) {
  for (const auto& entry : entries) {
    const auto& name = entry.info.name;
    if (entry.begin > entry.end) {
      fail(where, ": tensor '", name, "': data_offsets are reversed: [", entry.begin, ", ", entry.end, "]");
    }
    if (entry.end > data_bytes) {
      fail(where, ": tensor '", name, "' ends at byte ", entry.end, " of the data, which has ", data_bytes,
           " (incomplete download?)");
    }
    if (entry.end - entry.begin != entry.info.num_bytes()) {
      fail(where, ": tensor '", name, "' has ", entry.end - entry.begin, " bytes, its shape and dtype need ",
           entry.info.num_bytes());
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
  });
  uint64_t place = 0;
  for (const auto& entry : entries) {
    if (entry.begin != place) {
      fail(where, ": tensor '", entry.info.name, "' begins at byte ", entry.begin, " of the data, expected ",
           place, entry.begin < place ? " (it overlaps the one before)" : " (a hole before it)");
    }
    place = entry.end;
  }
  if (place != data_bytes) fail(where, ": ", data_bytes - place, " bytes follow the last tensor");
}

std::string_view header_text(std::span<const std::byte> file, std::string_view where) {
  if (file.size() < kLengthBytes) {
    fail(where, ": has ", file.size(),
         " bytes, a safetensors file begins with 8 bytes of header length (incomplete download?)");
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  if (header_bytes > kMaxHeaderBytes) {
    fail(where, ": header claims ", header_bytes, " bytes, at most ", kMaxHeaderBytes,
         " are allowed (not a safetensors file?)");
  }
  if (header_bytes > file.size() - kLengthBytes) {
    fail(where, ": header claims ", header_bytes, " bytes, the file has ", file.size(),
         " (incomplete download?)");
  }
  return {reinterpret_cast<const char*>(file.data()) + kLengthBytes, static_cast<size_t>(header_bytes)};
}

std::string make_header(std::span<const TensorInfo> tensors, const TensorMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t place = 0;
  for (const auto& tensor : tensors) {
    if (header.contains(tensor.name)) fail("safetensors: two tensors are named '", tensor.name, "'");
    const uint64_t end = place + tensor.num_bytes();
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data then begins at a multiple of 8
  return text;
}

}  // namespace

int64_t TensorInfo::num_elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

SafetensorsContent parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  const std::string_view text = header_text(file, where);
  if (!text.starts_with('{')) fail(where, ": the header does not begin with '{' (not a safetensors file?)");
  const Json header = parse_json(text, where, /*max_depth=*/4);
  SafetensorsContent content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      content.metadata = parse_metadata(value, where);
    } else {
      entries.push_back(parse_entry(name, value, where));
    }
  }
  const auto data = file.subspan(kLengthBytes + text.size());
  check_places(entries, data.size(), where);
  content.tensors.reserve(entries.size());
  for (auto& entry : entries) {
    const auto bytes =
        data.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin));
    content.tensors.push_back(
        {std::move(entry.info.name), entry.info.dtype, std::move(entry.info.shape), bytes});
  }
  return content;
}

SafetensorsFile::SafetensorsFile(const Path& path)
    : file_(path), content_(parse_safetensors(file_.bytes(), path.string())) {}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  for (const auto& tensor : content_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
  const StoredTensor* found = find(name);
  if (!found) fail(path().string(), ": holds no tensor '", name, "'");
  return *found;
}

SafetensorsWriter::SafetensorsWriter(const Path& path, std::span<const TensorInfo> tensors,
                                     const TensorMetadata& metadata)
    : file_(path), path_(path) {
  const std::string header = make_header(tensors, metadata);
  if (header.size() > kMaxHeaderBytes)
    fail(path.string(), ": ", tensors.size(), " tensors need a header above 100 MB");
  for (const auto& tensor : tensors) expected_bytes_ += tensor.num_bytes();
  const auto length =
      std::bit_cast<std::array<std::byte, kLengthBytes>>(static_cast<uint64_t>(header.size()));
  file_.write(length);
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  if (written_bytes_ > expected_bytes_)
    fail(path_.string(), ": more than the ", expected_bytes_, " bytes its header names");
  file_.write(bytes);
}

void SafetensorsWriter::commit() {
  if (written_bytes_ != expected_bytes_) {
    fail(path_.string(), ": got ", written_bytes_, " bytes of data, the header names ", expected_bytes_);
  }
  file_.commit();
}

void write_safetensors(const Path& path, std::span<const StoredTensor> tensors,
                       const TensorMetadata& metadata) {
  std::vector<TensorInfo> infos;
  for (const auto& tensor : tensors) infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(path, infos, metadata);
  for (const auto& tensor : tensors) writer.write(tensor.bytes);
  writer.commit();
}

}  // namespace ropd::io
