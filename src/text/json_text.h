// A parsed JSON document that keeps the order of keys (simdjson): for tokenizer files, which are large, and
// for messages and tools, whose key order a chat template writes out. A byte-order mark is skipped; depth is
// bounded; broken UTF-8, lone surrogates and trailing text are refused with file and line.
#pragma once
#include <simdjson.h>

#include <string>
#include <string_view>

namespace ropd::text {

// Owns the document; elements live as long as it. Not thread-safe while it is built.
class JsonDocument {
 public:
  JsonDocument(std::string_view json, const std::string& where);
  simdjson::dom::element root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

}  // namespace ropd::text
