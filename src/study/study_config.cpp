#include "study/study_config.h"

#include <filesystem>
#include <set>

#include "base/error.h"

namespace ropd::study {
namespace {

template <class Item>
void check_names(const std::vector<Item>& items, const char* what, const ConfigPlace& place) {
  std::set<std::string> seen;
  for (const Item& item : items) {
    if (item.name.empty()) place.refuse({what}, ": an entry has no name");
    if (!seen.insert(item.name).second) place.refuse({what}, ": \"", item.name, "\" is there twice");
  }
}

// method, or method@value.
std::string method_part(const std::string& text) { return text.substr(0, text.find('@')); }

void check_cycles(const StudyConfig& config, const ConfigPlace& place) {
  for (const Method& method : config.methods) {
    std::string trail = method.name;
    std::set<std::string> seen = {method.name};
    const Method* at = &method;
    while (at->from) {
      const std::string next = at->from->method;
      trail += " -> " + next;
      if (!seen.insert(next).second) place.refuse({"methods"}, ": `from` goes round in a circle: ", trail);
      at = &config.methods[find_method(config, next, "methods: " + at->name + ".from")];
    }
  }
}

std::vector<std::vector<size_t>> combinations(const std::vector<Axis>& axes) {
  std::vector<std::vector<size_t>> result(1);
  for (const Axis& axis : axes) {
    std::vector<std::vector<size_t>> longer;
    for (const auto& chosen : result)
      for (size_t v = 0; v < axis.values.size(); ++v) {
        longer.push_back(chosen);
        longer.back().push_back(v);
      }
    result = std::move(longer);
  }
  return result;
}

Run make_run(const StudyFile& file, size_t method_index, const std::vector<size_t>& chosen) {
  const StudyConfig& study = file.config;
  const Method& method = study.methods[method_index];
  Run run{.method = method_index};
  run.label = method.name;
  std::vector<std::string> overrides = study.set;
  for (size_t a = 0; a < chosen.size(); ++a) {
    const AxisValue& value = study.axes[a].values[chosen[a]];
    overrides.insert(overrides.end(), value.set.begin(), value.set.end());
    run.values.push_back(value.name);
    run.label += ", " + study.axes[a].name + " " + value.name;
  }
  overrides.insert(overrides.end(), method.set.begin(), method.set.end());
  if (!method.stages.empty())
    overrides.push_back("curriculum.stages=" + write_value(config_detail::to_node(method.stages)));
  overrides.push_back("output=" + study.output);
  if (method.from) overrides.push_back("continue_from=" + method.from->method);  // known when it is trained
  const Path base = file.path.parent_path() / study.base;
  try {
    run.config = train::load_train_config(base, overrides);
  } catch (const Error& error) {
    fail(file.path.string(), ": ", run.label, ": ", error.what());
  }
  return run;
}

}  // namespace

size_t find_method(const StudyConfig& config, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (size_t i = 0; i < config.methods.size(); ++i) {
    if (config.methods[i].name == name) return i;
    names.push_back(config.methods[i].name);
  }
  const std::string nearest = nearest_name(name, names);
  fail(where, ": no method \"", name, "\"",
       nearest.empty() ? " in this study" : " (did you mean \"" + nearest + "\"?)");
}

void StudyConfig::validate(const ConfigPlace& place) const {
  for (const auto& [key, value] : {std::pair{"name", &name}, {"base", &base}, {"output", &output}})
    if (value->empty()) place.refuse({key}, " is required, but not given");
  if (methods.empty()) place.refuse({"methods"}, " is empty; expected at least one, e.g. {name: current}");
  check_names(methods, "methods", place);
  check_names(axes, "axes", place);
  check_names(evaluations, "evaluations", place);
  check_names(diagnoses, "diagnoses", place);
  for (const Axis& axis : axes) {
    if (axis.values.empty()) place.refuse({"axes"}, ": axis \"", axis.name, "\" has no values");
    check_names(axis.values, "axes", place);
  }
  const std::string where = place.where("");
  const auto prefix = [&](const std::string& text) { return where.empty() ? text : where + ": " + text; };
  check_cycles(*this, place);
  for (const EvaluationConfig& evaluation : evaluations) {
    if (evaluation.suite.empty())
      place.refuse({"evaluations"}, ": ", evaluation.name, " has no suite (eight, three or a YAML file)");
    for (const std::string& method : evaluation.methods)
      (void)find_method(*this, method, prefix("evaluations: " + evaluation.name));
  }
  for (const DiagnosisConfig& diagnosis : diagnoses) {
    if (diagnosis.sources.empty() || diagnosis.students.empty())
      place.refuse({"diagnoses"}, ": ", diagnosis.name, " needs at least one source and one student");
    for (const auto* states : {&diagnosis.sources, &diagnosis.students})
      for (const StateConfig& state : *states)
        if (!state.method.empty())
          (void)find_method(*this, state.method, prefix("diagnoses: " + diagnosis.name));
  }
  for (const ComparisonConfig& comparison : comparisons) {
    bool is_known = false;
    for (const EvaluationConfig& evaluation : evaluations)
      is_known |= evaluation.name == comparison.evaluation;
    if (!is_known)
      place.refuse({"comparisons"}, ": ", comparison.label, ": no evaluation \"", comparison.evaluation,
                   "\"");
    if (comparison.at.has_value() != comparison.minus.has_value())
      place.refuse({"comparisons"}, ": ", comparison.label, ": an interaction needs both at and minus");
    for (const std::string& side :
         {comparison.better, comparison.worse, comparison.at.value_or(""), comparison.minus.value_or("")})
      if (!side.empty())
        (void)find_method(*this, method_part(side), prefix("comparisons: " + comparison.label));
  }
}

StudyFile load_study(const Path& path, const std::vector<std::string>& overrides) {
  StudyFile file{.config = load_config<StudyConfig>(path, overrides), .path = path};
  const Path base = path.parent_path() / file.config.base;
  if (!std::filesystem::exists(base))
    fail(path.string(), ": base ", base.string(), " does not exist (it is looked for beside the study file)");
  return file;
}

std::vector<Run> expand_runs(const StudyFile& file) {
  const auto places = combinations(file.config.axes);
  std::vector<Run> runs;
  for (size_t m = 0; m < file.config.methods.size(); ++m)
    for (const auto& chosen : places) runs.push_back(make_run(file, m, chosen));
  for (Run& run : runs) {
    const auto& from = file.config.methods[run.method].from;
    if (!from) continue;
    const size_t parent = find_method(file.config, from->method, file.path.string());
    for (size_t i = 0; i < runs.size(); ++i)
      if (runs[i].method == parent && runs[i].values == run.values) run.from = i;
    const uint64_t last = runs[*run.from].config.train.iterations;
    if (from->iteration > last)
      fail(file.path.string(), ": ", run.label, ": continues ", from->method, " behind iteration ",
           from->iteration, ", which has ", last);
  }
  return runs;
}

}  // namespace ropd::study
