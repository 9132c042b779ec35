// A question as it flows from a data file to a prompt.
#pragma once
#include <string>
#include <vector>

namespace ropd {

struct Message {
  std::string role;  // system, user, assistant
  std::string content;
};

struct Query {
  std::string id;
  std::vector<Message> messages;  // a plain problem is one user turn
  std::string answer;             // empty when unknown
};

}  // namespace ropd
