#include "app/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/log.h"
#include "base/standard_streams.h"
#include "io/model_path.h"
#include "kernels/limits.h"

namespace ropd::app {

CLI::Validator to_model() {
  return CLI::Validator(
      [](std::string& path) -> std::string {
        path = io::find_model(path).string();
        return "";
      },
      "");
}

CLI::Option* add_base(CLI::App& command, const std::string& name, std::string& base) {
  return command
      .add_option(name, base,
                  "of an adapter: folder of its base (default: what its adapter_config.json names)")
      ->check(CLI::ExistingDirectory);
}

CLI::Validator or_standard_input() {
  return CLI::Validator(
      [](std::string& path) -> std::string {
        if (path == "-") path = kStandardInput;
        return "";
      },
      "");
}

CLI::Validator number_in(const char* expected, bool (*is_right)(double)) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        double value = NAN;
        if (CLI::detail::lexical_cast(text, value) && is_right(value)) return "";
        return "is " + text + ", expected " + expected;
      },
      "");
}

CLI::Validator is_temperature() {
  return number_in("a number between 1e-6 and 1e6", [](double x) { return x >= 1e-6 && x <= 1e6; });
}

CLI::Validator is_seed() {
  return number_in("a whole number from 0 to 9007199254740991",
                   [](double x) { return x >= 0 && x <= 9007199254740991.0 && x == std::floor(x); });
}

CLI::Validator is_memory_gb() {
  return number_in("a number from 0 to 1e6", [](double x) { return x >= 0 && x <= 1e6; });
}

namespace {

template <class T>
bool is_decimal(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string without_leading_zeros(const std::string& text) {
  const size_t first = std::min(text.find_first_not_of('0'), text.size());
  const bool has_more = first < text.size() && text[first] >= '0' && text[first] <= '9';
  return text.substr(first == 0 || has_more ? first : first - 1);  // the last zero of 00 and of 0x10 stays
}

}  // namespace

void read_numbers_as_written(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();  // UINT, INT, or of --threads: ":INT in [1 - 4096]"
    if (type.find("INT") == std::string::npos) continue;
    const bool has_sign = !type.starts_with("UINT");
    option->transform(without_leading_zeros);
    option->check([has_sign](const std::string& text) -> std::string {
      if (has_sign ? is_decimal<int64_t>(text) : is_decimal<uint64_t>(text)) return "";
      return "is " + text + ", expected a whole number" +
             (has_sign ? "" : " from 0 to " + std::to_string(std::numeric_limits<uint64_t>::max()));
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    read_numbers_as_written(*command);
}

CLI::Validator is_precision() {
  return CLI::IsMember(
      std::vector<std::string>(kernels::kPrecisionNames.begin(), kernels::kPrecisionNames.end()));
}

void mention_tiles(std::initializer_list<std::pair<const char*, kernels::Precision>> settings) {
  std::string faster;
  for (const auto& [name, precision] : settings)
    if (precision == kernels::Precision::bf16) faster += std::string(name) + "bf16_tiles ";
  if (!faster.empty() && kernels::has_matrix_units())
    log_info("this machine has matrix units (AMX): ", faster, "would be faster here than bf16");
}

}  // namespace ropd::app
