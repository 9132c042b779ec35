// One line of a terminal: how wide it may be and what of a text fits into it.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ropd {

// The width of the terminal that stderr is, asked for anew at every call; nothing when it is none.
std::optional<size_t> terminal_columns();

// Columns a terminal gives to a text without control characters: two for wide characters, none for combining
// ones.
size_t columns_of(std::string_view text);

// The text, or its beginning and an ellipsis where it is wider.
std::string cut_to_columns(std::string_view text, size_t columns);

struct LinePart {
  std::string text;
  int rank = 0;  // parts of the highest rank are left out first
};

// The parts in order, two spaces between them (one where that makes them fit), without those for which there
// is no room. All of them where there is no limit.
std::string fit_line(std::span<const LinePart> parts, std::optional<size_t> columns);

}  // namespace ropd
