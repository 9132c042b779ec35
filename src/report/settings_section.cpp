#include "report/settings_section.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "report/html.h"
#include "report/table_html.h"

namespace ropd::report {
namespace {

const RunData* first_configured(const Comparison& comparison) {
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs)
      if (!run->config.empty()) return run;
  return nullptr;
}

// "current until trigger, then initial"
std::string curriculum_text(const RunData& run) {
  std::string text;
  for (size_t stage = 0; stage < 32; ++stage) {
    const std::string prefix = "curriculum.stages[" + std::to_string(stage) + "].";
    const std::string source = run.setting(prefix + "source");
    if (source.empty()) break;
    const std::string until = run.setting(prefix + "until"), iterations = run.setting(prefix + "iterations");
    text += (stage ? ", then " : "") + source;
    if (!until.empty() && until != "null") text += " until " + until;
    if (!iterations.empty() && iterations != "null" && iterations != "0") text += " × " + iterations;
  }
  return text;
}

}  // namespace

std::string setting_section(const Comparison& comparison) {
  const RunData* run = first_configured(comparison);
  if (!run) return "";
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"student", {"student"}},
      {"teacher", {"teacher"}},
      {"queries", {"data.queries"}},
      {"iterations", {"train.iterations"}},
      {"responses per iteration", {"train.responses_per_iteration"}},
      {"minibatch", {"train.minibatch"}},
      {"learning rate", {"train.learning_rate"}},
      {"response limit, tokens", {"rollout.max_response_tokens"}},
      {"candidates per position", {"objective.top_k"}},
      {"precision (training, rollout)", {"train.precision", "rollout.precision"}},
      {"bank, responses", {"curriculum.bank.responses"}},
  };
  std::string list, table;
  for (const auto& [name, keys] : rows) {
    std::string value;
    for (const std::string& entry : keys)
      if (const std::string text = run->setting(entry); !text.empty())
        value += (value.empty() ? "" : ", ") + text;
    if (!value.empty())
      list += "<div><dt>" + name + "</dt><dd>" + escape_html(shorten(value, 200)) + "</dd></div>\n";
  }
  stats::Table curricula{.id = "curricula",
                         .caption = "Where the responses of each method come from",
                         .columns = {"method", "source of the responses", "seeds", "data orders"},
                         .num_label_columns = 4};
  for (const Method& method : comparison.methods) {
    const std::string curriculum = curriculum_text(*method.runs.front());
    if (curriculum.empty()) continue;
    std::string seeds, orders;
    for (const RunData* each : method.runs) {
      seeds += (seeds.empty() ? "" : ", ") + each->setting("seed");
      orders += (orders.empty() ? "" : ", ") + each->setting("data.order_seed");
    }
    curricula.rows.push_back({.cells = {stats::text_cell(method.label), stats::text_cell(curriculum),
                                        stats::text_cell(seeds), stats::text_cell(orders)}});
  }
  if (!curricula.rows.empty()) table = table_html(curricula);
  return "<h2 id=\"setting\">Setting</h2>\n<dl class=\"setting\">\n" + list + "</dl>\n" + table;
}

// The first run's file in full, then only what differs in the others.
std::string config_section(const Comparison& comparison) {
  const RunData* base = first_configured(comparison);
  if (!base) return "";
  std::string html = "<h2 id=\"config\">Resolved configuration</h2>\n<p>" + escape_html(base->label) +
                     ", as resolved before training:</p>\n<pre>" + escape_html(base->config_text) +
                     "</pre>\n";
  stats::Table differences{.id = "configurations",
                           .caption = "What the other runs set differently",
                           .columns = {"run", "key", "value"},
                           .num_label_columns = 3};
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (run == base || run->config.empty()) continue;
      std::set<std::string> keys;
      for (const auto* settings : {&base->config, &run->config})
        for (const auto& [name, value] : *settings) keys.insert(name);
      for (const std::string& name : keys) {
        const std::string theirs = run->setting(name);
        if (theirs != base->setting(name))
          differences.rows.push_back({.cells = {stats::text_cell(run->label), stats::text_cell(name),
                                                stats::text_cell(theirs.empty() ? "absent" : theirs)}});
      }
    }
  if (!differences.rows.empty()) html += table_html(differences);
  return html;
}

std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string("._/-=,:+").find(c) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

namespace {

Path with_suffix(const Path& path, const std::string& suffix) {
  Path clean = path;
  if (clean.filename().empty()) clean = clean.parent_path();  // a trailing slash
  return clean.parent_path() / (clean.filename().string() + suffix);
}

// What `ropd eval` was asked, with another model and folder; empty when that is not known.
std::string evaluation_command(const EvaluationData& evaluation, const std::string& model, const Path& out) {
  if (evaluation.setting("suite_file").empty()) return "";
  std::string budgets;
  for (const uint32_t budget : evaluation.summary.budgets)
    budgets += (budgets.empty() ? "" : ",") + std::to_string(budget);
  std::string command = "ropd eval --model " + shell_word(model) + " --budgets " + budgets;
  for (const auto& [option, key] : {std::pair{"--suite", "suite_file"},
                                    {"--data", "data"},
                                    {"--max-tokens", "max_tokens"},
                                    {"--temperature", "temperature"},
                                    {"--top-p", "top_p"},
                                    {"--seed", "seed"},
                                    {"--precision", "precision"}})
    command += std::string(" ") + option + " " + shell_word(evaluation.setting(key));
  return command + " --out " + shell_word(out.string()) + "\n";
}

}  // namespace

std::string reproduce_commands(const Comparison& comparison, const ReportCommand& report) {
  std::string commands, sources;
  std::set<Path> seen;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (!seen.insert(run->path).second) continue;
      // A folder that holds a run is never trained into again.
      const Path again = with_suffix(run->path, "-again");
      std::string own;
      if (!run->config.empty())
        own += "ropd train " + shell_word((run->path / "config.yaml").string()) + " " +
               shell_word("output=" + again.string()) + "\n";
      for (const EvaluationData& evaluation : run->evaluations) {
        if (evaluation.step) continue;                                           // training makes those
        const bool is_own = evaluation.summary.path.parent_path() == run->path;  // not below eval/
        own +=
            evaluation_command(evaluation, run->config.empty() ? evaluation.setting("model") : again.string(),
                               is_own ? again : again / "eval" / evaluation.name);
      }
      sources += " " + shell_word(method.label + "=" + (own.empty() ? run->path : again).string());
      commands += own;
    }
  return commands + "ropd report" + sources + " --title " + shell_word(report.title) + " --out " +
         shell_word(with_suffix(Path(report.page).replace_extension(), "-again.html").string()) + "\n";
}

std::string reproduce_section(const Comparison& comparison, const ReportCommand& report,
                              const std::string& files) {
  std::string facts;
  std::set<std::string> seen;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs)
      for (const auto& [name, value] : run->environment) {
        if (facts.size() > 20000 || !seen.insert(name + "=" + value).second) continue;
        facts += escape_html(shorten(name, 80)) + ": " + escape_html(shorten(value, 200)) + "\n";
      }
  std::string html =
      "<h2 id=\"reproduce\">How to reproduce</h2>\n<p>Build the revision named below with <code>./run "
      "build</code> and run "
      "this where the report was made, with <code>build</code> in the path. The same configuration and seed "
      "give the same "
      "numbers, also after an interruption.</p>\n<pre>" +
      escape_html(reproduce_commands(comparison, report)) +
      "</pre>\n<p>Every figure (SVG, CSV, gnuplot) and table (text, Markdown, LaTeX, CSV) was also written "
      "as a file into "
      "<code>" +
      escape_html(files) + "</code> beside this page; the page does not need them.</p>\n";
  if (!facts.empty()) html += "<details><summary>Environment</summary>\n<pre>" + facts + "</pre></details>\n";
  return html;
}

}  // namespace ropd::report
