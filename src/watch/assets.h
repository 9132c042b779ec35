// The page's own files: web/ as it was when the program was built, and the colours and charts' style that the
// report has.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::watch {

struct Asset {
  std::string path;  // /app.js
  std::string content_type;
  std::shared_ptr<const std::string> body;
};

const std::vector<Asset>& assets();
// "/" is /index.html. Lives as long as the program; nullptr when there is none.
const Asset* find_asset(std::string_view path);

}  // namespace ropd::watch
