// Chat template -> syntax tree. Supports if/elif/else, for/else with a filter, set (also of namespace
// attributes and as a block), macro, break, continue, generation, and all expressions of Jinja. Any other tag
// is refused by name and line.
#pragma once
#include <string>
#include <string_view>

#include "text/template_syntax.h"

namespace ropd::text {

// `where` begins every error text, the line follows it. Nesting is bounded.
StatementList parse_template(std::string_view jinja, const std::string& where);

}  // namespace ropd::text
