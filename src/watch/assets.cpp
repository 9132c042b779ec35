#include "watch/assets.h"

#include <ropd_web_files.h>

#include <algorithm>

#include "report/style.h"

namespace ropd::watch {
namespace {

const char* type_of(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  return "image/svg+xml";
}

std::vector<Asset> load() {
  std::vector<Asset> all;
  const auto add = [&](std::string path, std::string body) {
    const char* type = type_of(path);
    all.push_back({std::move(path), type, std::make_shared<const std::string>(std::move(body))});
  };
  for (const auto& [name, bytes] : web_files) add("/" + std::string(name), std::string(bytes));
  add("/chart.css", std::string(":root {") + report::kLightColours +
                        "}\n@media (prefers-color-scheme: dark) { :root {" + report::kDarkColours + "} }\n" +
                        report::kChartStyle + report::kTokenStyle);
  return all;
}

}  // namespace

const std::vector<Asset>& assets() {
  static const std::vector<Asset> all = load();  // constant after the first call
  return all;
}

const Asset* find_asset(std::string_view path) {
  if (path == "/") path = "/index.html";
  const auto found = std::ranges::find(assets(), path, &Asset::path);
  return found == assets().end() ? nullptr : &*found;
}

}  // namespace ropd::watch
