#include "io/parquet_schema.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "io/parquet_thrift.h"

namespace ropd::io {
namespace {

constexpr int kMaxSchemaDepth = 24;
constexpr uint32_t kConvertedList = 3;
using Field = ThriftReader::Field;

// One element of the flat schema list, before it becomes a tree.
struct FlatElement {
  std::string name;
  int32_t type = -1;
  int32_t type_length = 0;
  int32_t repetition = 0;
  int32_t num_children = 0;
  int32_t converted_type = -1;
  bool is_list = false;
  bool is_unsigned = false;
};

void read_logical_type(ThriftReader& reader, FlatElement& element) {
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    if (field.id == 3) element.is_list = true;
    if (field.id == 10 && field.type == ThriftType::structure) {  // INTEGER {1: width, 2: is signed}
      reader.begin_structure();
      for (Field part = reader.next_field(); part.type != ThriftType::stop; part = reader.next_field()) {
        if (part.id == 2)
          element.is_unsigned = !reader.read_bool(part);
        else
          reader.skip(part.type);
      }
    } else {
      reader.skip(field.type);
    }
  }
}

FlatElement read_schema_element(ThriftReader& reader) {
  FlatElement element;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    switch (field.id) {
      case 1:
        element.type = reader.read_i32(field);
        break;
      case 2:
        element.type_length = reader.read_i32(field);
        break;
      case 3:
        element.repetition = reader.read_i32(field);
        break;
      case 4:
        element.name = reader.read_binary(field);
        break;
      case 5:
        element.num_children = reader.read_i32(field);
        break;
      case 6:
        element.converted_type = reader.read_i32(field);
        break;
      case 10:
        if (field.type == ThriftType::structure)
          read_logical_type(reader, element);
        else
          reader.skip(field.type);
        break;
      default:
        reader.skip(field.type);
    }
  }
  if (element.converted_type == int32_t(kConvertedList)) element.is_list = true;
  if (element.converted_type >= 11 && element.converted_type <= 14) element.is_unsigned = true;
  return element;
}

// Consumes the subtree that starts at flat[next] and gives it its levels.
SchemaNode build_node(const std::vector<FlatElement>& flat, size_t& next, uint32_t& num_leaves,
                      const SchemaNode* parent, int depth, const std::string& name) {
  if (depth > kMaxSchemaDepth) fail(name, ": schema deeper than ", kMaxSchemaDepth, " levels");
  if (next >= flat.size()) fail(name, ": schema names more children than it has elements (damaged file?)");
  const FlatElement& element = flat[next++];
  SchemaNode node;
  node.name = element.name;
  if (element.repetition < 0 || element.repetition > 2)
    fail(name, ": column '", element.name, "' has repetition ", element.repetition, ", expected 0, 1 or 2");
  if (parent) {
    node.repetition = ParquetRepetition(element.repetition);
    node.max_definition = parent->max_definition + (node.repetition != ParquetRepetition::required);
    node.max_repetition = parent->max_repetition + (node.repetition == ParquetRepetition::repeated);
  }
  node.first_leaf = num_leaves;
  if (element.num_children < 0)
    fail(name, ": column '", element.name, "' has ", element.num_children, " children");
  if (element.num_children == 0) {
    if (element.type < 0 || element.type > 7)
      fail(name, ": column '", element.name, "' has type ", element.type, ", expected 0 to 7");
    node.type = ParquetType(element.type);
    node.is_unsigned = element.is_unsigned;
    node.type_length = element.type_length;
    if (node.type == ParquetType::fixed_byte_array && node.type_length <= 0)
      fail(name, ": column '", element.name, "' has fixed length ", node.type_length,
           ", expected more than 0");
    ++num_leaves;
  } else {
    node.is_list = element.is_list;
    for (int32_t child = 0; child < element.num_children; ++child)
      node.children.push_back(build_node(flat, next, num_leaves, &node, depth + 1, name));
    if (node.is_list &&
        (node.children.size() != 1 || node.children[0].repetition != ParquetRepetition::repeated))
      fail(name, ": list column '", element.name, "' has no single repeated child");
  }
  node.end_leaf = num_leaves;
  return node;
}

ColumnChunk read_column_metadata(ThriftReader& reader, const SchemaNode& leaf, uint64_t file_bytes) {
  ColumnChunk chunk;
  int64_t entries = -1, data_offset = -1, dictionary_offset = -1, compressed_bytes = -1;
  int32_t type = -1;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    switch (field.id) {
      case 1:
        type = reader.read_i32(field);
        break;
      case 4:
        chunk.codec = reader.read_i32(field);
        break;
      case 5:
        entries = reader.read_i64(field);
        break;
      case 7:
        compressed_bytes = reader.read_i64(field);
        break;
      case 9:
        data_offset = reader.read_i64(field);
        break;
      case 11:
        dictionary_offset = reader.read_i64(field);
        break;
      default:
        reader.skip(field.type);
    }
  }
  if (type != int32_t(leaf.type))
    reader.broken("column '" + leaf.name + "' has another type than the schema says");
  if (entries < 0 || data_offset < 0 || compressed_bytes < 0)
    reader.broken("column '" + leaf.name + "' lacks its size or place");
  // Some writers leave 0 where there is no dictionary.
  const int64_t begin =
      dictionary_offset > 0 && dictionary_offset < data_offset ? dictionary_offset : data_offset;
  chunk.num_entries = uint64_t(entries);
  chunk.begin = uint64_t(begin);
  if (chunk.begin > file_bytes || uint64_t(compressed_bytes) > file_bytes - chunk.begin)
    reader.broken("column '" + leaf.name + "' claims " + std::to_string(compressed_bytes) +
                  " bytes from byte " + std::to_string(begin) + ", the file has " +
                  std::to_string(file_bytes));
  chunk.end = chunk.begin + uint64_t(compressed_bytes);
  return chunk;
}

ColumnChunk read_column_chunk(ThriftReader& reader, const SchemaNode& leaf, uint64_t file_bytes) {
  ColumnChunk chunk;
  bool has_metadata = false;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    if (field.id == 1 && field.type == ThriftType::binary) {
      if (!reader.read_binary(field).empty())
        reader.broken("column '" + leaf.name + "' lies in another file");
    } else if (field.id == 3 && field.type == ThriftType::structure) {
      chunk = read_column_metadata(reader, leaf, file_bytes);
      has_metadata = true;
    } else if (field.id == 8 || field.id == 9) {
      reader.broken("column '" + leaf.name + "' is encrypted, which is not supported");
    } else {
      reader.skip(field.type);
    }
  }
  if (!has_metadata) reader.broken("column '" + leaf.name + "' has no metadata");
  return chunk;
}

RowGroup read_row_group(ThriftReader& reader, const std::vector<const SchemaNode*>& leaves,
                        uint64_t file_bytes) {
  RowGroup group;
  int64_t rows = -1;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    if (field.id == 1) {
      const auto list = reader.read_list(field, ThriftType::structure);
      if (list.count != leaves.size())
        reader.broken("row group with " + std::to_string(list.count) + " columns, the schema has " +
                      std::to_string(leaves.size()));
      for (uint32_t i = 0; i < list.count; ++i)
        group.columns.push_back(read_column_chunk(reader, *leaves[i], file_bytes));
    } else if (field.id == 3) {
      rows = reader.read_i64(field);
    } else {
      reader.skip(field.type);
    }
  }
  if (rows < 0 || group.columns.empty()) reader.broken("row group without rows or columns");
  group.num_rows = uint64_t(rows);
  return group;
}

void collect_leaves(const SchemaNode& node, std::vector<const SchemaNode*>& leaves) {
  if (node.is_leaf()) leaves.push_back(&node);
  for (const auto& child : node.children) collect_leaves(child, leaves);
}

// The bytes of the metadata: file = "PAR1" ... metadata, its length (4 bytes), "PAR1".
std::span<const std::byte> footer_bytes(std::span<const std::byte> file, const std::string& name) {
  const auto magic_at = [&](size_t at) {
    return std::string_view(reinterpret_cast<const char*>(file.data()) + at, 4);
  };
  if (file.size() < 12 || magic_at(0) != "PAR1")
    fail(name, ": not a parquet file: ", file.size(), " bytes that do not start with 'PAR1'");
  if (magic_at(file.size() - 4) == "PARE")
    fail(name, ": the parquet footer is encrypted, which is not supported");
  if (magic_at(file.size() - 4) != "PAR1") fail(name, ": does not end with 'PAR1' (incomplete download?)");
  uint32_t length = 0;
  std::memcpy(&length, file.data() + file.size() - 8, 4);
  if (length > file.size() - 12)
    fail(name, ": footer claims ", length, " bytes, the file has ", file.size(), " (damaged file?)");
  return file.subspan(file.size() - 8 - length, length);
}

}  // namespace

std::vector<const SchemaNode*> schema_leaves(const SchemaNode& root) {
  std::vector<const SchemaNode*> leaves;
  for (const auto& child : root.children) collect_leaves(child, leaves);
  return leaves;
}

ParquetFooter read_parquet_footer(std::span<const std::byte> file, const std::string& name) {
  ThriftReader reader(footer_bytes(file, name), name);
  ParquetFooter footer;
  std::vector<FlatElement> flat;
  std::vector<const SchemaNode*> leaves;
  int64_t rows = -1;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    if (field.id == 2) {
      const auto list = reader.read_list(field, ThriftType::structure);
      for (uint32_t i = 0; i < list.count; ++i) flat.push_back(read_schema_element(reader));
      size_t next = 0;
      uint32_t num_leaves = 0;
      footer.root = build_node(flat, next, num_leaves, nullptr, 0, name);
      if (next != flat.size())
        fail(name, ": schema with ", flat.size() - next, " elements outside its root (damaged file?)");
      leaves = schema_leaves(footer.root);
      if (leaves.empty()) fail(name, ": the schema has no columns");
    } else if (field.id == 3) {
      rows = reader.read_i64(field);
    } else if (field.id == 4) {
      if (leaves.empty()) reader.broken("row groups before the schema");
      const auto list = reader.read_list(field, ThriftType::structure);
      for (uint32_t i = 0; i < list.count; ++i)
        footer.row_groups.push_back(read_row_group(reader, leaves, file.size()));
    } else if (field.id == 8) {
      reader.broken("encrypted columns, which are not supported,");
    } else {
      reader.skip(field.type);
    }
  }
  if (leaves.empty()) fail(name, ": the footer has no schema");
  uint64_t sum = 0;
  for (const auto& group : footer.row_groups)
    if (__builtin_add_overflow(sum, group.num_rows, &sum)) fail(name, ": row count overflows");
  if (rows < 0 || uint64_t(rows) != sum)
    fail(name, ": the footer claims ", rows, " rows, its row groups have ", sum, " (damaged file?)");
  footer.num_rows = sum;
  return footer;
}

}  // namespace ropd::io
