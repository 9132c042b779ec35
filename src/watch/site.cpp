#include "watch/site.h"

#include <algorithm>
#include <charconv>
#include <variant>

#include "base/error.h"
#include "base/visible_text.h"
#include "report/figures.h"
#include "report/methods.h"
#include "report/run_data.h"
#include "watch/assets.h"
#include "watch/responses.h"

namespace ropd::watch {
namespace {

constexpr size_t kMaxParameters = 32, kMaxRunsCompared = 8;
constexpr size_t kMaxKept = 64;
constexpr uint64_t kMaxKeptBytes = 32 << 20;
constexpr uint64_t kMaxSettingsBytes = 1 << 20;
constexpr size_t kMaxSettingsCharacters = 200'000, kMaxLabel = 60, kMaxProblem = 400;

std::optional<char> hexadecimal(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const auto byte = hexadecimal(text.substr(i + 1, 2));
      if (!byte) return std::nullopt;
      out += *byte;
      i += 2;
    }
  }
  return out;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Answer json_answer(const Json& json, int status = 200) {
  return {status, "application/json", std::make_shared<const std::string>(dumped(json))};
}

Answer refusal(int status, const std::string& text) { return json_answer({{"error", text}}, status); }

// False for what is no whole number; leaves `value` where the parameter is absent.
bool read_number(uint64_t& value, const Target& target, std::string_view name) {
  const std::string text = target.value(name);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return text.empty() || (error == std::errc() && end == text.data() + text.size());
}

std::optional<ResponseFilter> filter_of(const Target& target) {
  ResponseFilter filter{.text = target.value("text")};
  uint64_t iteration = 0;
  if (!read_number(filter.min_tokens, target, "min") || !read_number(filter.max_tokens, target, "max") ||
      !read_number(iteration, target, "iteration"))
    return std::nullopt;
  if (iteration > 0) filter.iteration = iteration;
  if (const std::string correct = target.value("correct"); !correct.empty())
    filter.correct = correct == "yes";
  if (const std::string finish = target.value("finish"); !finish.empty())
    filter.finish = finish == "eos" ? Finish::eos : Finish::length;
  return filter;
}

Json figure_json(const report::Figure& figure) {
  return std::visit(
      [&](const auto& chart) -> Json {
        return {{"id", chart.id},
                {"title", visible_text(chart.title)},
                {"caption", visible_text(figure.caption)},
                {"svg", report::to_svg(chart)}};
      },
      figure.chart);
}

Json charts(const std::vector<const RunSummary*>& runs) {
  Json json = {{"groups", Json::array()}, {"problems", Json::array()}};
  std::vector<report::RunData> read;
  for (const RunSummary* run : runs) {
    try {
      report::RunData data = report::read_run("run=" + run->path.string());
      data.label = visible_name(*run, kMaxLabel);
      read.push_back(std::move(data));
    } catch (const Error& error) {  // of one run; the others can be shown
      json["problems"].push_back(visible_text(error.what(), kMaxProblem));
    }
  }
  for (const report::FigureGroup& group : report::make_figures(report::compare_methods(read))) {
    Json figures = Json::array();
    for (const report::Figure& figure : group.figures) figures.push_back(figure_json(figure));
    json["groups"].push_back({{"heading", visible_text(group.heading)},
                              {"introduction", visible_text(group.introduction)},
                              {"figures", std::move(figures)}});
  }
  return json;
}

}  // namespace

std::string Target::value(std::string_view name) const {
  const auto all = values(name);
  return all.empty() ? "" : all.front();
}

std::vector<std::string> Target::values(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : query)
    if (key == name) found.push_back(value);
  return found;
}

std::optional<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  const size_t mark = text.find('?');
  Target target{.path = std::string(text.substr(0, mark)), .query = {}};
  std::string_view rest = mark == std::string_view::npos ? "" : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const size_t equal = part.find('=');
    auto name = decoded(part.substr(0, equal));
    auto value = decoded(equal == std::string_view::npos ? "" : part.substr(equal + 1));
    if (!name || !value || target.query.size() == kMaxParameters) return std::nullopt;
    target.query.emplace_back(std::move(*name), std::move(*value));
  }
  return target;
}

std::string Site::changes_since(uint64_t version) const {
  Json changes = {{"version", runs_.version()},
                  {"folder", visible_text(runs_.folder().string(), 400)},
                  {"runs", Json::array()},
                  {"studies", Json::array()}};
  for (const RunSummary& run : runs_.runs())
    if (run.version > version) changes["runs"].push_back(summary_json(run));
  for (const StudySummary& study : runs_.studies())
    if (study.version > version) changes["studies"].push_back(study_summary_json(study));
  if (runs_.membership_version() > version) {
    changes["ids"] = changes["study_ids"] = Json::array();
    for (const RunSummary& run : runs_.runs()) changes["ids"].push_back(run.id);
    for (const StudySummary& study : runs_.studies()) changes["study_ids"].push_back(study.id);
  }
  return dumped(changes);
}

template <class Make>
Answer Site::keep(const std::string& key, const Make& make) {
  const auto found = std::ranges::find(kept_, key, &Kept::key);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().answer;
  }
  kept_.push_front({key, make()});
  kept_bytes_ += kept_.front().answer.body->size();
  const Answer answer = kept_.front().answer;
  while (kept_.size() > kMaxKept || kept_bytes_ > kMaxKeptBytes) {
    kept_bytes_ -= kept_.back().answer.body->size();
    kept_.pop_back();
  }
  return answer;
}

Answer Site::answer(const Target& target) {
  try {
    if (const Asset* asset = find_asset(target.path)) return {200, asset->content_type, asset->body};
    if (target.path == "/api/runs")
      return {200, "application/json", std::make_shared<const std::string>(changes_since(0))};
    if (target.path == "/api/study") return answer_study(target.value("study"));
    const std::vector<std::string> ids = target.values("run");
    std::vector<const RunSummary*> runs;
    for (const std::string& id : ids) runs.push_back(runs_.find(id));
    const bool asks_for_runs =
        target.path == "/api/charts" || target.path == "/api/responses" || target.path == "/api/settings";
    if (!asks_for_runs) return refusal(404, "no such page");
    if (runs.empty() || runs.size() > kMaxRunsCompared) return refusal(400, "run: expected one to eight");
    if (!std::ranges::all_of(runs, [](const RunSummary* run) { return run != nullptr; }))
      return refusal(404, "no such run");
    if (target.path == "/api/charts") return answer_charts(runs);
    if (target.path == "/api/responses") return answer_responses(*runs.front(), target);
    const std::string settings = read_file(runs.front()->path / "config.yaml", kMaxSettingsBytes);
    return json_answer({{"text", visible_text(settings, kMaxSettingsCharacters)}});
  } catch (const Error& error) {  // the top of a request: the server goes on
    return refusal(500, visible_text(error.what(), kMaxProblem));
  }
}

Answer Site::answer_study(const std::string& id) {
  const StudySummary* study = runs_.find_study(id);
  if (!study) return refusal(404, "no such study");
  return json_answer(study_json(*study, [&](const Path& folder) {
    const auto found = std::ranges::find(runs_.runs(), folder, &RunSummary::path);
    return found == runs_.runs().end() ? std::string() : found->id;
  }));
}

Answer Site::answer_charts(const std::vector<const RunSummary*>& runs) {
  std::string key = "charts";
  for (const RunSummary* run : runs) key += "\n" + run->id + "\n" + run->metrics_stamp;
  return keep(key, [&] { return json_answer(charts(runs)); });
}

Answer Site::answer_responses(const RunSummary& run, const Target& target) {
  const auto filter = filter_of(target);
  if (!filter) return refusal(400, "min, max, iteration: expected whole numbers");
  std::string key = "responses\n" + run.samples_stamp;
  for (const auto& [name, value] : target.query) key += "\n" + name + "\n" + value;
  return keep(key, [&] { return json_answer(find_responses(run.path, *filter)); });
}

}  // namespace ropd::watch
