// A stats::Table as HTML: scrolls sideways by itself, reachable by keyboard, numbers aligned, everything escaped.
#pragma once
#include <map>
#include <string>

#include "stats/table.h"

namespace ropd::report {

// `styles`: the colour key (0..7) shown before a label.
std::string table_html(const stats::Table& table, const std::map<std::string, int>& styles = {});

}  // namespace ropd::report
