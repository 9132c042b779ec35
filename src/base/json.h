// JSON with the limits that files from strangers need: depth and size are bounded, errors name the place.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace ropd {

using Json = nlohmann::json;

// Parses strictly: valid UTF-8, no trailing text, no duplicate keys in an object, at most max_depth levels.
// `where` ("file.json", "bank.jsonl:17") begins every error text.
Json parse_json(std::string_view text, std::string_view where, int max_depth = 64);

}  // namespace ropd
