// Rows of a file that lies open between sessions: each has a checksum behind it (a tab and 16 digits), so that
// a later session takes only what is whole.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ropd::io {

// The row with its checksum, without newline.
std::string with_checksum(std::string_view row);
// The row of such a line; nothing when the checksum is absent or does not fit.
std::optional<std::string_view> checked_row(std::string_view line);
// Whether a line of JSON has a checksum, or had one: it ends like that, or a power cut has left zeros in it. A
// finished file has neither.
bool is_unfinished_line(std::string_view line);

}  // namespace ropd::io
