// Parquet files as rows of JSON values: structs become objects, lists arrays, missing values null.
// Reads what pandas, Arrow, Hugging Face datasets and verl write (see parquet_pages.h for encodings and
// codecs); writes nothing. A file of any content gives rows or an Error; memory is bounded by the decode
// limit.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/parquet_schema.h"

namespace ropd::io {

struct ParquetLimits {
  uint64_t max_decoded_bytes = uint64_t{8}
                               << 30;  // over the whole file, texts counted once per row that holds them
};

class ParquetFile {
 public:
  explicit ParquetFile(const Path& path, ParquetLimits limits = {});
  // Over bytes that the caller keeps alive; `name` stands for the file in errors.
  ParquetFile(std::span<const std::byte> bytes, std::string name, ParquetLimits limits = {});

  uint64_t num_rows() const { return footer_.num_rows; }
  // Names of the top-level columns, in file order.
  std::vector<std::string> column_names() const;

  // Calls row(object, index) for every row in order. Reads only the named top-level columns that exist; no
  // names means all.
  void for_each_row(const std::function<void(Json&&, uint64_t index)>& row,
                    const std::vector<std::string>& columns = {}) const;

 private:
  // constant after construction
  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::string name_;
  ParquetLimits limits_;
  ParquetFooter footer_;
};

}  // namespace ropd::io
