#include "torture/damage.h"

#include <algorithm>
#include <vector>

namespace ropd::torture {
namespace {

size_t below(size_t bound, std::mt19937_64& random) { return bound == 0 ? 0 : random() % bound; }

std::string at(size_t place) { return " at " + std::to_string(place); }

std::string flip_bit(std::string& content, std::mt19937_64& random) {
  const size_t place = below(content.size(), random);
  content[place] = static_cast<char>(content[place] ^ (1 << random() % 8));
  return "a bit flipped" + at(place);
}

// Another digit in the place of one, where there is one: the damage that parsers do not see.
std::string change_digit(std::string& content, std::mt19937_64& random) {
  std::vector<size_t> places;
  for (size_t i = 0; i < content.size(); ++i)
    if (content[i] >= '0' && content[i] <= '9') places.push_back(i);
  if (places.empty()) return flip_bit(content, random);
  const size_t place = places[below(places.size(), random)];
  content[place] = static_cast<char>('0' + (content[place] - '0' + 1 + static_cast<int>(random() % 9)) % 10);
  return "another digit" + at(place);
}

std::string zero_out(std::string& content, std::mt19937_64& random) {
  const size_t begin = below(content.size(), random);
  const size_t count = std::min<size_t>(1 + below(4096, random), content.size() - begin);
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(begin), count, '\0');
  return std::to_string(count) + " bytes zeroed" + at(begin);
}

std::string cut(std::string& content, std::mt19937_64& random) {
  content.resize(below(content.size(), random));
  return "cut to " + std::to_string(content.size()) + " bytes";
}

std::string append_noise(std::string& content, std::mt19937_64& random) {
  const size_t count = 1 + below(64, random);
  for (size_t i = 0; i < count; ++i) content += static_cast<char>(random());
  return std::to_string(count) + " bytes of noise behind its end";
}

std::string remove_line(std::string& content, std::mt19937_64& random) {
  const size_t begin = content.rfind('\n', below(content.size(), random));
  if (begin == std::string::npos) return cut(content, random);
  const size_t end = std::min(content.find('\n', begin + 1), content.size());
  content.erase(begin, end - begin);
  return "a line removed" + at(begin);
}

std::string repeat_line(std::string& content, std::mt19937_64& random) {
  const size_t begin = content.rfind('\n', below(content.size(), random));
  if (begin == std::string::npos) return append_noise(content, random);
  const size_t end = std::min(content.find('\n', begin + 1), content.size());
  content.insert(begin, content.substr(begin, end - begin));
  return "a line twice" + at(begin);
}

std::string grow_number(std::string& content, std::mt19937_64& random) {
  const size_t digit = content.find_first_of("0123456789", below(content.size(), random));
  if (digit == std::string::npos) return flip_bit(content, random);
  content.insert(digit, "99999999999999");
  return "a huge number" + at(digit);
}

}  // namespace

std::string damage_content(std::string& content, std::mt19937_64& random) {
  if (content.empty()) return append_noise(content, random);
  using Kind = std::string (*)(std::string&, std::mt19937_64&);
  constexpr Kind kKinds[] = {flip_bit, flip_bit,     change_digit, change_digit, zero_out,
                             cut,      append_noise, remove_line,  repeat_line,  grow_number};
  return kKinds[random() % std::size(kKinds)](content, random);
}

std::string damage(Tree& tree, std::mt19937_64& random) {
  std::vector<std::string> files;
  for (const auto& [name, entry] : tree)
    if (entry.kind == TreeEntry::Kind::file) files.push_back(name);
  if (files.empty()) return "";
  const std::string name = files[below(files.size(), random)];
  switch (random() % 12) {
    case 0:
      tree.erase(name);
      return name + ": removed";
    case 1: {
      const std::string other = files[below(files.size(), random)];
      std::swap(tree[name], tree[other]);
      return name + ": swapped with " + other;
    }
    case 2:
      tree[name] = {TreeEntry::Kind::folder, ""};
      return name + ": a folder in its place";
    default:
      return name + ": " + damage_content(tree[name].content, random);
  }
}

}  // namespace ropd::torture
