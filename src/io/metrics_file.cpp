#include "io/metrics_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

// --- writing ---

void write_json(std::string& out, std::string_view value) {
  out += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}
void write_json(std::string& out, const std::string& value) { write_json(out, std::string_view(value)); }
void write_json(std::string& out, bool value) { out += value ? "true" : "false"; }
void write_json(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);  // the shortest form that reads back exactly
  }
}
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) void write_json(std::string& out, T value) { out += std::to_string(value); }
void write_json(std::string& out, const std::vector<std::string>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ',';
    write_json(out, values[i]);
  }
  out += ']';
}

// Absent values, empty texts and lists of nothing watched are left out of the line.
template <class T>
const T* present(const T& value) {
  return &value;
}
template <class T>
const T* present(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}
const std::string* present(const std::string& value) { return value.empty() ? nullptr : &value; }
const std::vector<WatchedRecord>* present(const std::vector<WatchedRecord>& value) {
  return value.empty() ? nullptr : &value;
}

// The fields of a record, each behind a comma.
template <class Record>
void write_fields(std::string& out, const Record& record);

void write_json(std::string& out, const std::vector<WatchedRecord>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    std::string fields;
    write_fields(fields, values[i]);
    out += (i ? ",{" : "{") + fields.substr(1) + "}";
  }
  out += ']';
}

template <class Record>
void write_fields(std::string& out, const Record& record) {
  Record copy = record;  // fields() serves reading too, so it needs a mutable object
  copy.fields([&](std::string_view name, auto& member, std::string_view) {
    const auto* value = present(std::as_const(member));
    if (!value) return;
    out += ',';
    write_json(out, name);
    out += ':';
    write_json(out, *value);
  });
}

template <class Record>
std::string line_of(std::string_view kind, const Record& record) {
  std::string out = "{\"kind\":";
  write_json(out, kind);
  write_fields(out, record);
  return out + "}";
}

// --- reading ---

[[noreturn]] void refuse(const std::string& where, std::string_view name, const Json& value,
                         std::string_view expected) {
  fail(where, ": ", name, " is ", value.dump().substr(0, 80), ", expected ", expected);
}

void read_json(std::string& member, const Json& value, std::string_view name, const std::string& where) {
  if (!value.is_string()) refuse(where, name, value, "a text");
  member = value.get<std::string>();
}
void read_json(bool& member, const Json& value, std::string_view name, const std::string& where) {
  if (!value.is_boolean()) refuse(where, name, value, "true or false");
  member = value.get<bool>();
}
void read_json(double& member, const Json& value, std::string_view name, const std::string& where) {
  if (value.is_null()) {
    member = std::numeric_limits<double>::quiet_NaN();
  } else if (value.is_number()) {
    member = value.get<double>();
  } else {
    refuse(where, name, value, "a number or null");
  }
}
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) void read_json(T& member, const Json& value, std::string_view name,
                                                const std::string& where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<T>::max())
    refuse(where, name, value, "a count");
  member = value.get<T>();
}
void read_json(std::vector<std::string>& member, const Json& value, std::string_view name,
               const std::string& where) {
  if (!value.is_array()) refuse(where, name, value, "a list of texts");
  member.clear();
  for (const Json& item : value) read_json(member.emplace_back(), item, name, where);
}
void read_json(std::vector<WatchedRecord>& member, const Json& value, std::string_view name,
               const std::string& where);
template <class T>
void read_json(std::optional<T>& member, const Json& value, std::string_view name, const std::string& where) {
  read_json(member.emplace(), value, name, where);
}

// Keys this version does not know are left alone: a report reads files of newer versions as far as it can.
template <class Record>
Record record_of(const Json& object, const std::string& where) {
  Record record;
  record.fields([&](std::string_view name, auto& member, std::string_view) {
    const auto found = object.find(name);
    if (found != object.end()) read_json(member, *found, name, where);
  });
  return record;
}

void read_json(std::vector<WatchedRecord>& member, const Json& value, std::string_view name,
               const std::string& where) {
  if (!value.is_array()) refuse(where, name, value, "a list of objects");
  member.clear();
  for (const Json& item : value) {
    if (!item.is_object()) refuse(where, name, item, "an object");
    member.push_back(record_of<WatchedRecord>(item, where));
  }
}

struct Line {
  std::string_view text;
  uint64_t begin = 0;
  std::string where;
};

// Whole lines only; `visit` returns false to stop.
template <class Visit>
void for_each_line(const Path& path, std::string_view content, const Visit& visit) {
  uint64_t begin = 0, number = 0;
  for (size_t end; (end = content.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    ++number;
    if (!visit(Line{content.substr(begin, end - begin), begin, path.string() + ":" + std::to_string(number)}))
      return;
  }
}

Json parse_line(const Line& line) {
  Json object = parse_json(line.text, line.where, 8);
  if (!object.is_object() || !object.contains("kind") || !object["kind"].is_string())
    fail(line.where, ": not a metrics record (an object with \"kind\")");
  return object;
}

// --- charts ---

void add_scalar(Scalars& out, std::string_view name, double value) { out.emplace_back(name, value); }
void add_scalar(Scalars&, std::string_view, const std::string&) {}
void add_scalar(Scalars&, std::string_view, const std::vector<std::string>&) {}
void add_scalar(Scalars& out, std::string_view name, const std::vector<WatchedRecord>& values) {
  for (const WatchedRecord& watched : values)
    if (watched.consecutive)
      add_scalar(out, std::string(name) + "/" + watched.name, static_cast<double>(*watched.consecutive));
}

template <class Record>
Scalars scalars(Record record) {
  Scalars out;
  record.fields([&](std::string_view name, auto& member, std::string_view) {
    if (name == "step" || name == "iteration" || name == "minibatch" || name == "unix_time") return;
    if (const auto* value = present(std::as_const(member))) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(*value)>>) {
        add_scalar(out, name, static_cast<double>(*value));
      } else {
        add_scalar(out, name, *value);
      }
    }
  });
  return out;
}

template <class Record>
void add_reference(std::ostream& out, std::string_view kind) {
  out << "| `kind: " << kind << "` | meaning |\n|---|---|\n";
  Record record;
  record.fields([&](std::string_view name, auto&, std::string_view meaning) {
    out << "| `" << name << "` | " << meaning << " |\n";
  });
}

}  // namespace

std::string metrics_line(const StepRecord& record) { return line_of("step", record); }
std::string metrics_line(const IterationRecord& record) { return line_of("iteration", record); }
Scalars scalars_of(const StepRecord& record) { return scalars(record); }
Scalars scalars_of(const IterationRecord& record) { return scalars(record); }

std::string metrics_reference_markdown() {
  std::ostringstream out;
  add_reference<StepRecord>(out, "step");
  out << "\n";
  add_reference<IterationRecord>(out, "iteration");
  return out.str();
}

Metrics read_metrics(const Path& path) {
  const MappedFile file(path);
  Metrics metrics;
  for_each_line(path, file.text(), [&](const Line& line) {
    const Json object = parse_line(line);
    const std::string kind = object["kind"];
    if (kind == "step") {
      metrics.open_steps.push_back(record_of<StepRecord>(object, line.where));
    } else if (kind == "iteration") {
      auto& record = metrics.iterations.emplace_back(record_of<IterationRecord>(object, line.where));
      record.steps = std::exchange(metrics.open_steps, {});
    } else {
      fail(line.where, ": kind is \"", kind, "\", expected \"step\" or \"iteration\"");
    }
    return true;
  });
  return metrics;
}

namespace {

void append_to_discarded(const Path& path, std::string_view lines) {
  AppendFile discarded(path.parent_path() / "metrics.discarded.jsonl");
  for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    discarded.append_unsynced(lines.substr(begin, end - begin));
  discarded.sync();
}

std::string text_of(const Path& path) { return std::filesystem::exists(path) ? read_file(path) : ""; }

// The first line of `kept` that `there` does not begin with, as file:line; empty where it begins with all of them.
std::string first_difference(const Path& path, const std::string& there, const std::string& kept) {
  const auto [differs, unused] = std::mismatch(kept.begin(), kept.end(), there.begin(), there.end());
  if (differs == kept.end()) return "";
  return path.string() + ":" + std::to_string(1 + std::count(kept.begin(), differs, '\n'));
}

}  // namespace

MetricsFile::MetricsFile(const Path& path) : file_(path), text_(text_of(path)) {}

void MetricsFile::append_line(const std::string& line) {
  file_.append(line);
  text_ += line + "\n";
}

std::string restore_metrics(const Path& path, const Path& copy) {
  const std::string there = text_of(path), kept = read_file(copy);
  const std::string place = first_difference(path, there, kept);
  if (place.empty()) return place;
  append_to_discarded(path, there);
  write_file_atomically(path, kept);
  return place;
}

std::string metrics_damage(const Path& path, const std::vector<CheckpointEntry>& checkpoints) {
  const std::string there = text_of(path);
  for (auto entry = checkpoints.rbegin(); entry != checkpoints.rend(); ++entry) {
    const Path copy = entry->path / kMetricsCopy;
    if (!std::filesystem::exists(copy)) continue;  // of an earlier version
    if (const std::string place = first_difference(path, there, read_file(copy)); !place.empty())
      return place + ": lost or changed, " + copy.string() + " holds another line";
  }
  return "";
}

std::string find_gap(const Metrics& metrics, uint64_t first_step, uint64_t step) {
  uint64_t last_step = first_step, last_iteration = 0;
  const auto missing = [](const char* what, uint64_t from, uint64_t to) {
    return std::string("no line of ") + what + " " + std::to_string(from) +
           (to > from ? " .. " + std::to_string(to) : "");
  };
  const auto visit = [&](const std::vector<StepRecord>& steps) -> std::string {
    for (const StepRecord& record : steps) {
      if (record.step != last_step + 1) return missing("step", last_step + 1, record.step - 1);
      last_step = record.step;
    }
    return "";
  };
  for (const IterationRecord& record : metrics.iterations) {
    if (std::string gap = visit(record.steps); !gap.empty()) return gap;
    if (record.iteration != last_iteration + 1)
      return missing("iteration", last_iteration + 1, record.iteration - 1);
    last_iteration = record.iteration;
  }
  if (std::string gap = visit(metrics.open_steps); !gap.empty()) return gap;
  return last_step == step ? "" : missing("step", last_step + 1, step);
}

uint64_t cut_metrics_back(const Path& path, uint64_t step) {
  if (!std::filesystem::exists(path)) return 0;
  std::string removed;
  uint64_t keep = 0, num_removed = 0;
  {
    const MappedFile file(path);
    keep = file.text().rfind('\n') + 1;  // npos + 1 = 0
    for_each_line(path, file.text(), [&](const Line& line) {
      const Json object = parse_line(line);
      if (object.contains("step") && object["step"].is_number_unsigned() &&
          object["step"].get<uint64_t>() <= step)
        return true;
      removed = file.text().substr(line.begin, keep - line.begin);
      keep = line.begin;
      return false;
    });
  }
  if (!removed.empty()) {
    append_to_discarded(path, removed);
    num_removed = static_cast<uint64_t>(std::count(removed.begin(), removed.end(), '\n'));
  }
  truncate_file(path, keep);
  return num_removed;
}

}  // namespace ropd::io
