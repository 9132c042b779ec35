#include "app/help_format.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "base/terminal_line.h"

namespace ropd::app {
namespace {

constexpr size_t kDescriptionColumn = 26;

// The longest beginning of `line` that ends before a space and fits; where no such part does, up to its first space.
size_t end_of_part(std::string_view line, size_t columns) {
  size_t end = std::string_view::npos;
  for (size_t at = line.find_first_not_of(' '); (at = line.find(' ', at)) != std::string_view::npos;
       at = line.find_first_not_of(' ', at)) {
    if (end != std::string_view::npos && columns_of(line.substr(0, at)) > columns) break;
    end = at;
  }
  return end;
}

// One line in several, the further ones behind `indent`; `tie` ends those that go on.
std::string wrap_line(std::string_view line, size_t columns, const std::string& indent,
                      std::string_view tie) {
  std::string result, start;
  while (columns_of(start) + columns_of(line) > columns) {
    const size_t end = end_of_part(line, columns - columns_of(start) - tie.size());
    if (end == std::string_view::npos) break;
    result += start + std::string(line.substr(0, end)) + std::string(tie) + "\n";
    line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    start = indent;
  }
  return result + start + std::string(line);
}

// Every line for itself. Commands stay what a shell takes.
std::string wrap(std::string_view text, size_t columns) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool is_command = indent > 0 && line.substr(indent).starts_with("ropd ");
    result +=
        wrap_line(line, columns, std::string(indent > 0 ? indent + 2 : 0, ' '), is_command ? " \\" : "");
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat() { column_width(kDescriptionColumn); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return row(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return row(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return wrap(Formatter::make_description(app), kHelpColumns);
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return wrap_line(Formatter::make_usage(app, std::move(name)), kHelpColumns, "  ", "");
  }
  std::string make_footer(const CLI::App* app) const override {
    return wrap(Formatter::make_footer(app), kHelpColumns);
  }

 private:
  static std::string row(const std::string& name, const std::string& description) {
    std::ostringstream out;
    CLI::detail::format_help(out, wrap_line(name, kHelpColumns - 2, "      ", ""),
                             wrap(description, kHelpColumns - kDescriptionColumn), kDescriptionColumn);
    return out.str();
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<HelpFormat>(); }

}  // namespace ropd::app
