// The footer of a parquet file: the schema as a tree, and where each column's pages lie.
// Definition and repetition levels are those of Dremel (Melnik et al. 2010): a leaf's definition level counts
// the optional and repeated nodes above it that are present, its repetition level says at which repeated node
// a new element starts.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ropd::io {

enum class ParquetType : uint8_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_byte_array = 7,
};

enum class ParquetRepetition : uint8_t { required = 0, optional = 1, repeated = 2 };

struct SchemaNode {
  std::string name;
  ParquetRepetition repetition = ParquetRepetition::required;
  uint8_t max_definition = 0;  // levels of this node itself
  uint8_t max_repetition = 0;
  bool is_list = false;  // group annotated LIST: its value is an array
  std::vector<SchemaNode> children;
  // Leaves only.
  ParquetType type = ParquetType::int32;
  bool is_unsigned = false;
  int32_t type_length = 0;  // of fixed_byte_array
  // Leaves in depth-first order are columns: this node holds columns [first_leaf, end_leaf).
  uint32_t first_leaf = 0;
  uint32_t end_leaf = 0;

  bool is_leaf() const { return children.empty(); }
};

struct ColumnChunk {
  int32_t codec = 0;
  uint64_t num_entries = 0;  // values and nulls
  uint64_t begin = 0;        // file bytes [begin, end)
  uint64_t end = 0;
};

struct RowGroup {
  uint64_t num_rows = 0;
  std::vector<ColumnChunk> columns;  // [leaves]
};

struct ParquetFooter {
  SchemaNode root;
  uint64_t num_rows = 0;
  std::vector<RowGroup> row_groups;
};

// Reads and checks the footer of a whole file's bytes; `name` begins every error text.
ParquetFooter read_parquet_footer(std::span<const std::byte> file, const std::string& name);

// The leaves in column order; pointers into `root`.
std::vector<const SchemaNode*> schema_leaves(const SchemaNode& root);

}  // namespace ropd::io
