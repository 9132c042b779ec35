// SHA-256 of bytes that come in pieces; of a whole file or text see base/file.h.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ropd {

class Sha256 {
 public:
  Sha256();
  void add(const void* bytes, size_t count);
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string hexadecimal();  // lower case; ends the calculation

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

}  // namespace ropd
