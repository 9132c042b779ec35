// Text for HTML and SVG. Everything that comes out of a run directory passes through escape_html before it
// reaches a page.
#pragma once
#include <string>
#include <string_view>

namespace ropd::report {

// & < > " ' become entities; what could hide, reorder or break text becomes visible (base/visible_text.h).
std::string escape_html(std::string_view text);

// At most max_characters code points, the last one an ellipsis when something was left out.
std::string shorten(std::string_view text, size_t max_characters);

// Fixed decimals, a typographic minus, "–" when not finite.
std::string format_number(double value, int decimals);
// As short as exactness to four significant digits allows: 0.0754, 12.3, 1024.
std::string format_brief(double value);

// A name usable as id, file name and CSS class: a-z, 0-9 and single dashes.
std::string slug(std::string_view text);

}  // namespace ropd::report
