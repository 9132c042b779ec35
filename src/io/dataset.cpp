#include "io/dataset.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "io/jsonl.h"
#include "io/parquet.h"

namespace ropd::io {
namespace {

const std::vector<std::string> kColumns = {"id",           "messages",  "prompt",   "problem",
                                           "question",     "answer",    "solution", "reward_model",
                                           "ground_truth", "extra_info"};

// The field, or nothing where it is absent or null.
const Json* find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A text, or a number written as JSON writes it.
std::string scalar_text(const Json& value, const std::string& where, const char* field) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  fail(where, ": '", field, "' must be a text or a number, got ", value.type_name());
}

std::string message_content(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    fail(where, ": the content of a message must be a text, got ", content.type_name());
  std::string text;  // parts [{"type": "text", "text": ...}]
  for (const auto& part : content) {
    const Json* value = part.is_object() ? find(part, "text") : nullptr;
    if (!value || !value->is_string())
      fail(where, ": a message has a part that is not text, which is not supported");
    text += value->get<std::string>();
  }
  return text;
}

std::vector<Message> read_messages(const Json& list, const std::string& where, const char* field) {
  if (list.empty()) fail(where, ": '", field, "' is an empty list, expected at least one message");
  std::vector<Message> messages;
  for (const auto& item : list) {
    const Json* role = item.is_object() ? find(item, "role") : nullptr;
    const Json* content = item.is_object() ? find(item, "content") : nullptr;
    if (!role || !role->is_string() || !content)
      fail(where, ": '", field, "' must hold objects with 'role' and 'content', got ",
           item.dump().substr(0, 80));
    messages.push_back({role->get<std::string>(), message_content(*content, where)});
  }
  return messages;
}

// A conversation for fine-tuning: its last turn is what a model shall learn to say.
bool ends_with_response(const Json& messages) {
  if (messages.empty() || !messages.back().is_object()) return false;
  const Json* role = find(messages.back(), "role");
  return role && *role == "assistant";
}

std::vector<Message> read_prompt(const Json& row, const std::string& where) {
  const char* conversation = nullptr;
  for (const char* field : {"messages", "prompt", "problem", "question"}) {
    const Json* value = find(row, field);
    if (!value) continue;
    if (value->is_array() && ends_with_response(*value)) {
      if (!conversation) conversation = field;
      continue;
    }
    if (value->is_array()) return read_messages(*value, where, field);
    if (!value->is_string())
      fail(where, ": '", field, "' must be a text or a list of messages, got ", value->type_name());
    if (value->get_ref<const std::string&>().empty()) fail(where, ": '", field, "' is empty");
    return {{"user", value->get<std::string>()}};
  }
  if (conversation)
    fail(where, ": '", conversation,
         "' ends with an assistant turn and there is no other prompt; a query ends with the user's (the "
         "answer "
         "belongs into 'answer')");
  fail(where, ": no 'problem', 'question', 'prompt' or 'messages' in the row");
}

std::string read_answer(const Json& row, const std::string& where) {
  const Json* value = find(row, "answer");
  const char* field = "answer";
  if (const Json* reward = value ? nullptr : find(row, "reward_model"); reward && reward->is_object()) {
    value = find(*reward, "ground_truth");
    field = "reward_model.ground_truth";
  }
  for (const char* other : {"ground_truth", "solution"})
    if (!value && (value = find(row, other))) field = other;
  if (!value) return "";
  if (value->is_array() && value->size() == 1) value = &value->front();
  std::string answer = scalar_text(*value, where, field);
  constexpr std::string_view kMarker = "#### ";  // GSM8K: reasoning, then the marker and the number
  if (const size_t at = answer.rfind(kMarker); at != std::string::npos && (at == 0 || answer[at - 1] == '\n'))
    answer.erase(0, at + kMarker.size());
  return answer;
}

std::string read_id(const Json& row, const std::string& where) {
  if (const Json* value = find(row, "id")) return scalar_text(*value, where, "id");
  if (const Json* extra = find(row, "extra_info"); extra && extra->is_object())
    if (const Json* value = find(*extra, "index")) return scalar_text(*value, where, "extra_info.index");
  return "";
}

void append_row(Dataset& dataset, const Json& row, uint64_t place) {
  dataset.places.push_back(place);
  const std::string where = dataset.where(dataset.places.size() - 1);
  Query query;
  query.messages = read_prompt(row, where);
  query.answer = read_answer(row, where);
  query.id = read_id(row, where);
  if (query.id.empty()) {
    query.id = generated_id(query.messages);
    ++dataset.num_generated_ids;
  }
  dataset.queries.push_back(std::move(query));
}

void append_lines(Dataset& dataset, JsonlReader& reader) {
  while (const auto line = reader.next()) {
    const std::string where = reader.where(line->number);
    const Json row = parse_json(line->text, where);
    if (!row.is_object())
      fail(where, ": expected a JSON object, got ", row.type_name(), " (a JSON array instead of JSONL?)");
    append_row(dataset, row, line->number);
  }
}

void check_dataset(const Dataset& dataset, DuplicateIds duplicates) {
  if (dataset.queries.empty()) fail(dataset.path.string(), ": no rows, expected at least one query");
  if (duplicates == DuplicateIds::refuse) check_unique_ids(dataset);
}

}  // namespace

std::string Dataset::where(size_t index) const {
  return path.string() + (is_parquet ? " row " : ":") + std::to_string(places[index]);
}

std::string generated_id(const std::vector<Message>& messages) {
  std::string content;
  for (const auto& message : messages) content += message.role + '\0' + message.content + '\0';
  return "q-" + sha256(content).substr(0, 16);
}

void check_unique_ids(const Dataset& dataset) {
  std::unordered_map<std::string_view, size_t> first;
  for (size_t i = 0; i < dataset.queries.size(); ++i) {
    const auto [found, is_new] = first.emplace(dataset.queries[i].id, i);
    if (!is_new)
      fail(dataset.where(i), ": id '", dataset.queries[i].id, "' is already at ",
           dataset.where(found->second),
           ", expected unique ids (`ropd data prepare` removes repeated prompts)");
  }
}

Dataset read_dataset(const Path& path, DuplicateIds duplicates) {
  Dataset dataset;
  dataset.path = path;
  dataset.is_parquet = path.extension() == ".parquet";
  if (dataset.is_parquet) {
    const ParquetFile file(path);
    file.for_each_row([&](Json&& row, uint64_t index) { append_row(dataset, row, index + 1); }, kColumns);
  } else {
    JsonlReader reader(path);
    append_lines(dataset, reader);
  }
  check_dataset(dataset, duplicates);
  return dataset;
}

Dataset parse_jsonl_dataset(std::string_view text, const std::string& name, DuplicateIds duplicates) {
  Dataset dataset;
  dataset.path = name;
  JsonlReader reader(text, name);
  append_lines(dataset, reader);
  check_dataset(dataset, duplicates);
  return dataset;
}

void write_queries(const Path& path, const std::vector<Query>& queries) {
  AtomicFile file(path);
  for (const auto& query : queries) {
    nlohmann::ordered_json row;
    row["id"] = query.id;
    if (query.messages.size() == 1 && query.messages[0].role == "user") {
      row["problem"] = query.messages[0].content;
    } else {
      row["messages"] = nlohmann::ordered_json::array();
      for (const auto& message : query.messages)
        row["messages"].push_back({{"role", message.role}, {"content", message.content}});
    }
    if (!query.answer.empty()) row["answer"] = query.answer;
    file.write(row.dump() + "\n");
  }
  file.commit();
}

}  // namespace ropd::io
