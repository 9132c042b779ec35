#include "io/parquet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "io/parquet_pages.h"

namespace ropd::io {
namespace {

// Puts the rows of one row group together from its columns (Dremel record assembly). Depth is that of the
// schema.
class RowAssembler {
 public:
  RowAssembler(const SchemaNode& root, std::vector<ColumnData> columns, std::string where)
      : columns_(std::move(columns)), cursors_(columns_.size()), where_(std::move(where)) {
    leaves_ = schema_leaves(root);
  }

  Json read_row(const std::vector<const SchemaNode*>& top_level) {
    ++row_;
    Json row = Json::object();
    for (const auto* node : top_level) row[node->name] = read(*node);
    return row;
  }

  // After the last row no column may have anything left.
  void check_finished(const std::vector<const SchemaNode*>& top_level) const {
    for (const auto* node : top_level)
      for (uint32_t leaf = node->first_leaf; leaf < node->end_leaf; ++leaf)
        if (cursors_[leaf].entry != columns_[leaf].num_entries)
          broken(leaf, "has more rows than the row group");
  }

 private:
  struct Cursor {
    uint64_t entry = 0;
    uint64_t value = 0;
    uint64_t row = 0;  // the row, from 1, that consumed the latest entry
  };

  std::vector<ColumnData> columns_;  // [leaves]
  std::vector<Cursor> cursors_;      // [leaves]
  std::vector<const SchemaNode*> leaves_;
  std::string where_;
  uint64_t row_ = 0;

  [[noreturn]] void broken(uint32_t leaf, const char* what) const {
    fail(where_, ": column '", leaves_[leaf]->name, "' ", what, " near row ", row_, " (damaged file?)");
  }

  uint8_t definition(uint32_t leaf) const {
    const auto& column = columns_[leaf];
    if (cursors_[leaf].entry >= column.num_entries) broken(leaf, "ends too early");
    return column.definition_levels.empty() ? 0 : column.definition_levels[cursors_[leaf].entry];
  }

  // Repetition level of the next entry; 0 (a new row) at the end.
  uint8_t next_repetition(uint32_t leaf) const {
    const auto& column = columns_[leaf];
    if (column.repetition_levels.empty() || cursors_[leaf].entry >= column.num_entries) return 0;
    return column.repetition_levels[cursors_[leaf].entry];
  }

  // Consumes one entry of a column and gives its value, or null.
  Json take(uint32_t leaf) {
    const SchemaNode& node = *leaves_[leaf];
    const bool is_present = definition(leaf) == node.max_definition;
    Cursor& cursor = cursors_[leaf];
    if ((next_repetition(leaf) == 0) == (cursor.row == row_))
      broken(leaf, "has rows that do not fit the others");
    cursor.row = row_;
    ++cursor.entry;
    if (!is_present) return nullptr;
    const uint64_t index = cursor.value++;
    const ColumnValues& values = columns_[leaf].values;
    switch (node.type) {
      case ParquetType::boolean:
        return values.integers[index] != 0;
      case ParquetType::int32:
        return values.integers[index];
      case ParquetType::int64:
        return node.is_unsigned ? Json(uint64_t(values.integers[index])) : Json(values.integers[index]);
      case ParquetType::float32:
      case ParquetType::float64:
        return values.reals[index];
      default:
        return std::string(values.texts[index]);
    }
  }

  void take_all(const SchemaNode& node) {
    for (uint32_t leaf = node.first_leaf; leaf < node.end_leaf; ++leaf) take(leaf);
  }

  Json read(const SchemaNode& node) {
    if (node.repetition == ParquetRepetition::repeated) return read_repeated(node, false);
    if (node.is_leaf()) return take(node.first_leaf);
    if (node.repetition == ParquetRepetition::optional && definition(node.first_leaf) < node.max_definition) {
      take_all(node);
      return nullptr;
    }
    if (node.is_list) return read_repeated(node.children[0], is_wrapper(node, node.children[0]));
    return read_object(node);
  }

  // In `group x (LIST) { repeated group list { element } }` the middle group is a wrapper, unless an old
  // writer made it the element itself (rules of parquet/LogicalTypes.md).
  static bool is_wrapper(const SchemaNode& list, const SchemaNode& repeated) {
    return repeated.children.size() == 1 && repeated.name != "array" && repeated.name != list.name + "_tuple";
  }

  Json read_repeated(const SchemaNode& node, bool is_wrapper) {
    Json items = Json::array();
    if (definition(node.first_leaf) < node.max_definition) {
      take_all(node);
      return items;
    }
    do {
      if (node.is_leaf())
        items.push_back(take(node.first_leaf));
      else
        items.push_back(is_wrapper ? read(node.children[0]) : read_object(node));
    } while (next_repetition(node.first_leaf) == node.max_repetition);
    return items;
  }

  Json read_object(const SchemaNode& node) {
    Json object = Json::object();
    for (const auto& child : node.children) object[child.name] = read(child);
    return object;
  }
};

}  // namespace

ParquetFile::ParquetFile(const Path& path, ParquetLimits limits)
    : file_(path),
      bytes_(file_.bytes()),
      name_(path.string()),
      limits_(limits),
      footer_(read_parquet_footer(bytes_, name_)) {}

ParquetFile::ParquetFile(std::span<const std::byte> bytes, std::string name, ParquetLimits limits)
    : bytes_(bytes), name_(std::move(name)), limits_(limits), footer_(read_parquet_footer(bytes_, name_)) {}

std::vector<std::string> ParquetFile::column_names() const {
  std::vector<std::string> names;
  for (const auto& child : footer_.root.children) names.push_back(child.name);
  return names;
}

void ParquetFile::for_each_row(const std::function<void(Json&&, uint64_t index)>& row,
                               const std::vector<std::string>& columns) const {
  std::vector<const SchemaNode*> chosen;
  for (const auto& child : footer_.root.children)
    if (columns.empty() || std::find(columns.begin(), columns.end(), child.name) != columns.end())
      chosen.push_back(&child);
  if (chosen.empty()) fail(name_, ": none of the asked columns is in the file");
  const auto leaves = schema_leaves(footer_.root);
  DecodeBudget budget{limits_.max_decoded_bytes};
  uint64_t index = 0;
  for (const auto& group : footer_.row_groups) {
    std::vector<ColumnData> data(leaves.size());
    for (const auto* node : chosen)
      for (uint32_t leaf = node->first_leaf; leaf < node->end_leaf; ++leaf)
        data[leaf] = decode_column(
            bytes_, group.columns[leaf], *leaves[leaf], budget,
            name_ + " column " + node->name + (node->is_leaf() ? "" : "/" + leaves[leaf]->name));
    RowAssembler assembler(footer_.root, std::move(data), name_);
    for (uint64_t i = 0; i < group.num_rows; ++i) row(assembler.read_row(chosen), index++);
    assembler.check_finished(chosen);
  }
}

}  // namespace ropd::io
