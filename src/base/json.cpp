#include "base/json.h"

#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace ropd {
namespace {

// Builds the document and refuses what nlohmann's own builder lets through: duplicate keys and unbounded
// depth.
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(std::string_view where, int max_depth) : where_(where), max_depth_(max_depth) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no such thing in text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back()->contains(name)) fail(where_, ": the key \"", name, "\" occurs twice in one object");
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    fail(where_, ": not valid JSON at byte ", position, ": ", error.what());
  }

 private:
  // constant after construction
  std::string_view where_;
  size_t max_depth_;
  // the document so far
  Json root_;
  std::vector<Json*> open_;  // objects and arrays around this place; parents stay while a child is open
  std::string key_;

  template <class Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  template <class Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::forward<Value>(value));
      return &open_.back()->back();
    }
    return &((*open_.back())[key_] = std::forward<Value>(value));
  }
  bool open(Json empty) {
    if (open_.size() >= max_depth_) fail(where_, ": nested deeper than ", max_depth_, " levels");
    open_.push_back(place(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where, int max_depth) {
  StrictBuilder builder(where, max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, /*strict=*/true)) {
    fail(where, ": not valid JSON");
  }
  return builder.take();
}

}  // namespace ropd
