// Any text as a YAML config with an override on its last line: refused with Error, or a config that survives
// saving.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/config_fields.h"
#include "base/error.h"

namespace {

enum class Kind { current, initial };
constexpr auto enum_names(Kind) {
  return std::array{ropd::EnumName{Kind::current, "current"}, ropd::EnumName{Kind::initial, "initial"}};
}

struct Stage {
  Kind source = Kind::current;
  std::optional<int> iterations;
  void fields(auto&& field) {
    field("source", source, "");
    field("iterations", iterations, "", ropd::at_least(1));
  }
  bool operator==(const Stage&) const = default;
};

struct Config {
  std::string a;
  double rate = 1e-6;
  uint64_t seed = 1;
  bool flag = false;
  ropd::Auto<double> memory;
  std::array<double, 2> betas = {0.9, 0.999};
  std::vector<Stage> stages;
  std::vector<std::string> ids;
  Stage inner;
  void fields(auto&& field) {
    field("a", a, "");
    field("rate", rate, "", ropd::above(0));
    field("seed", seed, "");
    field("flag", flag, "");
    field("memory", memory, "");
    field("betas", betas, "", ropd::between(0, 1));
    field("stages", stages, "");
    field("ids", ids, "");
    field("inner", inner, "");
  }
  bool operator==(const Config&) const = default;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.rfind('\n');
  std::vector<std::string> overrides;
  if (line != std::string_view::npos && line + 1 < size) overrides.emplace_back(text.substr(line + 1));
  Config config;
  try {
    config = ropd::parse_config<Config>(text.substr(0, line), "fuzz", overrides);
  } catch (const ropd::Error&) {
    return 0;
  }
  if (ropd::parse_config<Config>(ropd::config_to_yaml(config), "saved") != config) std::abort();
  return 0;
}
