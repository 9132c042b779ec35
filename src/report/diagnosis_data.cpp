#include "report/diagnosis_data.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "io/sample_file.h"

namespace ropd::report {
namespace {

constexpr uint64_t kMaxDocumentBytes = uint64_t{64} << 20;
constexpr size_t kMaxNames = 64;

// Reads fields of one object. A number may be null (not finite); anything else that is no number is an error.
class Reader {
 public:
  Reader(const Json& object, const std::string& where) : object_(object), where_(where) {
    if (!object.is_object()) fail(where, ": expected an object, got ", object.type_name());
  }

  const Json& list(const char* name) const {
    static const Json kEmpty = Json::array();
    const auto found = object_.find(name);
    if (found == object_.end()) return kEmpty;
    if (!found->is_array()) fail(where_, ": \"", name, "\" is ", found->type_name(), ", expected a list");
    return *found;
  }
  std::string text(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end() || !found->is_string())
      fail(where_, ": \"", name, "\" is missing or not a text");
    return found->get<std::string>();
  }
  double number(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return std::numeric_limits<double>::quiet_NaN();
    return value(*found, name);
  }
  double value(const Json& json, const char* name) const {
    if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!json.is_number()) fail(where_, ": \"", name, "\" holds ", json.type_name(), ", expected a number");
    return json.get<double>();
  }
  std::array<double, 2> pair(const char* name) const {
    const Json& values = list(name);
    if (values.size() != 2) fail(where_, ": \"", name, "\" has ", values.size(), " numbers, expected two");
    return {value(values[0], name), value(values[1], name)};
  }
  std::vector<std::string> names(const char* name) const {
    std::vector<std::string> all;
    for (const Json& item : list(name)) {
      if (!item.is_string()) fail(where_, ": \"", name, "\" holds ", item.type_name(), ", expected texts");
      all.push_back(item.get<std::string>());
    }
    if (all.size() > kMaxNames) fail(where_, ": ", all.size(), " ", name, ", expected at most ", kMaxNames);
    return all;
  }

 private:
  const Json& object_;
  const std::string& where_;
};

std::vector<std::pair<double, double>> read_cumulative(const Reader& reader, const std::string& where) {
  std::vector<std::pair<double, double>> points;
  for (const Json& point : reader.list("cumulative")) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      fail(where, ": \"cumulative\" holds ", point.dump().substr(0, 60), ", expected [change, share]");
    points.emplace_back(point[0].get<double>(), point[1].get<double>());
  }
  return points;
}

void read_probes(DiagnosisData& data, const Reader& document, const std::string& where) {
  for (const Json& entry : document.list("probes")) {
    const Reader student(entry, where);
    const std::string name = student.text("student");
    for (const Json& line : student.list("norms")) {
      const Reader norm(line, where);
      data.norms.push_back({name, norm.text("source"), norm.number("minibatches"), norm.number("mean"),
                            norm.number("deviation")});
    }
    for (const Json& line : student.list("cosines")) {
      const Reader cosine(line, where);
      data.cosines.push_back({name, cosine.text("first"), cosine.text("second"), cosine.number("pairs"),
                              cosine.number("mean"), cosine.number("standard_error")});
    }
  }
}

}  // namespace

DiagnosisData read_diagnosis(const Path& file) {
  const std::string where = file.string();
  const Json json = parse_json(read_file(file, kMaxDocumentBytes), where);
  const Reader document(json, where);
  DiagnosisData data;
  data.label = std::filesystem::absolute(file).lexically_normal().parent_path().filename().string();
  data.students = document.names("students");
  data.sources = document.names("sources");
  for (const Json& row : document.list("kl")) {
    auto& values = data.kl.emplace_back();
    if (!row.is_array() || row.size() != data.sources.size())
      fail(where, ": a row of \"kl\" does not have ", data.sources.size(), " numbers");
    for (const Json& value : row) values.push_back(document.value(value, "kl"));
  }
  if (data.kl.size() != data.students.size())
    fail(where, ": \"kl\" has ", data.kl.size(), " rows for ", data.students.size(), " students");
  for (const Json& line : document.list("fit_and_shift")) {
    const Reader item(line, where);
    data.fit_and_shift.push_back({item.text("from"), item.text("to"), item.number("change"),
                                  item.number("fit"), item.number("shift")});
  }
  for (const Json& line : document.list("concentration")) {
    const Reader item(line, where);
    // Earlier versions ranked by the first student and did not say so.
    data.concentration.push_back(
        {item.text("source"), item.text(line.contains("rank_by") ? "rank_by" : "first"), item.text("first"),
         item.text("second"), item.pair("top_tenth"), item.pair("rest"),
         item.number("top_share_of_difference"), item.number("positions_first_lower"),
         item.number("responses_first_lower")});
  }
  for (const Json& line : document.list("likelihood")) {
    const Reader item(line, where);
    data.likelihood.push_back({item.text("source"), item.text("from"), item.text("to"),
                               item.number("less_likely"), read_cumulative(item, where)});
  }
  read_probes(data, document, where);
  if (const Path samples = file.parent_path() / "samples.jsonl"; std::filesystem::exists(samples))
    data.samples = io::read_samples(samples);
  return data;
}

}  // namespace ropd::report
