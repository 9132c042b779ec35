// Cuts a chat template into text and tags, and tags into words: Jinja with trim_blocks and lstrip_blocks on,
// as the official library sets it. `-` and `+` inside a tag's ends control the white space around it; one
// newline at the end of the file goes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::text {

struct TemplateWord {
  enum class Kind {
    text,
    block_begin,
    block_end,
    print_begin,
    print_end,
    name,
    string,
    integer,
    real,
    symbol,
    end
  };
  Kind kind = Kind::end;
  std::string text;  // decoded for strings; spelled as in the template otherwise
  int line = 1;
};

// All words of the template, closed by one of kind `end`. `where` begins every error text, the line follows
// it.
std::vector<TemplateWord> lex_template(std::string_view jinja, const std::string& where);

}  // namespace ropd::text
