#include "report/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/chart_files.h"
#include "report/html.h"
#include "report/style.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxResponseCharacters = 2400;
constexpr size_t kNumSamples = 4;

std::string cell(const Spread& value, double scale, int decimals, bool is_best = false) {
  std::string text = format_number(value.mean * scale, decimals);
  if (is_best) text = "<span class=\"best\">" + text + "</span>";
  if (value.count > 1)
    text += " <span class=\"sd\">± " + format_number(value.deviation * scale, decimals) + "</span>";
  return "<td>" + text + "</td>";
}

std::string key(int style) {
  return "<span class=\"key\" style=\"background: var(--s" + std::to_string(style) + ")\"></span>";
}

std::string method_cell(const Method& method) {
  return "<th scope=\"row\">" + key(method.style) + escape_html(shorten(method.label, 60)) + "</th>";
}

// The caption stays outside the scrolling part, so that it wraps at the page's width.
std::string scrolling_table(const std::string& label, const std::string& table,
                            const std::string& caption = "") {
  return "<div class=\"table\">\n" + (caption.empty() ? "" : "<p class=\"caption\">" + caption + "</p>\n") +
         "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + escape_html(label) +
         "\"><table>\n" + table + "</table></div>\n</div>\n";
}

// "5, 7, none", or a dash for a method without any trigger statistics.
std::string tau_text(const Method& method) {
  // Only a curriculum that waits for the trigger has a tau of its own; others may carry the statistics of a
  // shared beginning, or stand for a run whose trigger never fired (the laboratory's R-OPD is then its
  // current-only).
  const auto waits = [](const RunData* run) {
    return (run->config.empty() && run->tau()) ||
           std::any_of(run->config.begin(), run->config.end(), [](const auto& entry) {
             return entry.first.ends_with(".until") && entry.second == "trigger";
           });
  };
  if (std::none_of(method.runs.begin(), method.runs.end(), waits)) return "–";
  std::string text;
  for (const RunData* run : method.runs)
    text += (text.empty() ? "" : ", ") +
            (waits(run) && run->tau() ? std::to_string(*run->tau()) : std::string("none"));
  return text;
}

std::string headline_table(const Comparison& comparison) {
  const auto& budgets = comparison.budgets;
  const bool has_spread = std::any_of(comparison.methods.begin(), comparison.methods.end(),
                                      [](const Method& method) { return method.runs.size() > 1; });
  std::vector<double> best(budgets.size(), -1);
  for (const Method& method : comparison.methods)
    for (size_t i = 0; !method.is_reference && i < budgets.size(); ++i)
      if (method.accuracy[i].count > 0) best[i] = std::max(best[i], method.accuracy[i].mean);
  const std::string caption =
      "Mean accuracy in per cent when responses are cut to each budget; mean length in tokens and share of "
      "responses at the cap, both at the "
      "longest budget; τ, the iteration that set the trigger." +
      std::string(has_spread ? " Means ± sample SD over runs." : "") + " Bold: best trained method.";
  std::string table = "<thead><tr class=\"span\"><th></th><th class=\"over\" colspan=\"" +
                      std::to_string(budgets.size()) +
                      "\">accuracy at budget</th><th></th><th></th><th></th></tr>\n<tr><th class=\"text\" "
                      "scope=\"col\">method</th>";
  for (const int64_t budget : budgets) table += "<th scope=\"col\">" + budget_name(budget) + "</th>";
  table +=
      "<th scope=\"col\">length</th><th scope=\"col\">at cap, %</th><th "
      "scope=\"col\">τ</th></tr></thead>\n<tbody>\n";
  for (const Method& method : comparison.methods) {
    if (!method.has_evaluation) continue;
    table +=
        std::string("<tr") + (method.is_reference ? " class=\"reference\"" : "") + ">" + method_cell(method);
    for (size_t i = 0; i < budgets.size(); ++i)
      table += cell(method.accuracy[i], 100, 1, !method.is_reference && method.accuracy[i].mean == best[i]);
    table += cell(method.length, 1, 0) + cell(method.at_cap, 100, 1) + "<td>" +
             escape_html(tau_text(method)) + "</td></tr>\n";
  }
  return scrolling_table("Accuracy of each method at each budget", table + "</tbody>\n", caption);
}

// "At 512 tokens: fixed 72.6 %, R-OPD 69.7 %, current 66.1 %. For comparison: teacher 86.1 %."
std::string ranking_sentence(const Comparison& comparison, size_t budget_index) {
  std::vector<const Method*> order;
  std::string references, trained;
  const auto entry = [&](const Method& method) {
    return "<span class=\"entry\">" + escape_html(shorten(method.label, 40)) + " <strong>" +
           format_number(100 * method.accuracy[budget_index].mean, 1) + " %</strong></span>";
  };
  for (const Method& method : comparison.methods)
    if (method.has_evaluation && method.accuracy[budget_index].count > 0) order.push_back(&method);
  std::stable_sort(order.begin(), order.end(), [&](const Method* a, const Method* b) {
    return a->accuracy[budget_index].mean > b->accuracy[budget_index].mean;
  });
  for (const Method* method : order) {
    std::string& list = method->is_reference ? references : trained;
    list += (list.empty() ? "" : ", ") + entry(*method);
  }
  if (trained.empty()) trained.swap(references);
  return "Right at " + budget_name(comparison.budgets[budget_index]) + " tokens: " + trained + "." +
         (references.empty() ? "" : " <span class=\"muted\">For comparison: " + references + ".</span>");
}

std::string benchmark_table(const Comparison& comparison) {
  std::vector<std::string> names;
  std::map<std::string, std::map<const Method*, std::vector<double>>> values;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (!run->evaluation) continue;
      for (const BenchmarkResult& benchmark : run->evaluation->benchmarks) {
        if (benchmark.accuracy.empty()) continue;
        if (!values.count(benchmark.name)) names.push_back(benchmark.name);
        values[benchmark.name][&method].push_back(benchmark.accuracy.back());
      }
    }
  if (names.size() < 2) return "";
  std::string table = "<thead><tr><th class=\"text\" scope=\"col\">method</th>";
  for (const std::string& name : names)
    table += "<th scope=\"col\">" + escape_html(shorten(name, 30)) + "</th>";
  table += "</tr></thead>\n<tbody>\n";
  for (const Method& method : comparison.methods) {
    if (!method.has_evaluation) continue;
    table +=
        std::string("<tr") + (method.is_reference ? " class=\"reference\"" : "") + ">" + method_cell(method);
    for (const std::string& name : names) table += cell(spread(values[name][&method]), 100, 1);
    table += "</tr>\n";
  }
  return scrolling_table("Accuracy by benchmark", table + "</tbody>\n",
                         "Accuracy in per cent at the longest budget, by benchmark.");
}

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
  for (const Method& method : comparison.methods) {
    const std::string curriculum = curriculum_text(*method.runs.front());
    if (curriculum.empty()) continue;
    std::string seeds;
    for (const RunData* each : method.runs) seeds += (seeds.empty() ? "" : ", ") + each->setting("seed");
    table += "<tr>" + method_cell(method) + "<td class=\"text\">" + escape_html(shorten(curriculum, 300)) +
             "</td><td class=\"text\">" + escape_html(shorten(seeds, 80)) + "</td></tr>\n";
  }
  if (!table.empty())
    table = scrolling_table("Curricula",
                            "<thead><tr><th class=\"text\" scope=\"col\">method</th><th class=\"text\" "
                            "scope=\"col\">source of the responses</th>"
                            "<th class=\"text\" scope=\"col\">seed</th></tr></thead>\n<tbody>\n" +
                                table + "</tbody>\n");
  return "<h2 id=\"setting\">Setting</h2>\n<dl class=\"setting\">\n" + list + "</dl>\n" + table;
}

std::string figure_html(const Figure& figure) {
  return std::visit(
      [&](const auto& chart) {
        return "<figure>\n<h3>" + escape_html(chart.title) + "</h3>\n" + to_svg(chart) + "\n<figcaption>" +
               escape_html(figure.caption) + " <a href=\"figures/" + chart.id +
               ".csv\">Data</a>, <a href=\"figures/" + chart.id +
               ".gp\">script</a>.</figcaption>\n</figure>\n";
      },
      figure.chart);
}

std::string response_html(const SampleResponse& response, const std::string& heading) {
  std::string meta =
      escape_html(shorten(heading, 60)) + " · " + std::to_string(response.num_tokens) + " tokens";
  if (response.is_cut) meta += " · cut at the limit";
  meta += response.boxed ? " · boxed " + escape_html(shorten(*response.boxed, 60)) : " · nothing boxed";
  // Equal texts are equal answers; other spellings would need the grader, so they get no verdict here.
  const bool is_right = response.boxed && !response.answer.empty() && *response.boxed == response.answer;
  return "<div><p class=\"meta\">" + meta + (is_right ? " · right" : "") + "</p><div class=\"response" +
         (is_right ? " right" : "") + "\" tabindex=\"0\">" +
         escape_html(shorten(response.text, kMaxResponseCharacters)) + "</div></div>\n";
}

std::string samples_section(const SampleComparison& samples) {
  if (samples.pairs.empty()) return "";
  std::string html =
      "<h2 id=\"samples\">Responses before and after</h2>\n<p>The first stored response of each model to the "
      "same queries, chosen by "
      "their place in the file and not by their content.</p>\n";
  for (const SamplePair& pair : samples.pairs) {
    const QueryKey& query = pair.before.query;
    const bool is_named = query.benchmark.empty() || query.query_id.starts_with(query.benchmark);
    html += "<h3>" +
            escape_html(shorten(is_named ? query.query_id : query.benchmark + ": " + query.query_id, 90)) +
            (pair.before.answer.empty() ? ""
                                        : " <span class=\"muted\">answer " +
                                              escape_html(shorten(pair.before.answer, 90)) + "</span>") +
            "</h3>\n<div class=\"pair\">\n" + response_html(pair.before, samples.before_name) +
            response_html(pair.after, samples.after_name) + "</div>\n";
  }
  return html;
}

// The first run's file in full, then only what differs in the others.
std::string config_section(const Comparison& comparison) {
  const RunData* base = first_configured(comparison);
  if (!base) return "";
  std::string html = "<h2 id=\"config\">Resolved configuration</h2>\n<p>" + escape_html(base->label) +
                     ", as resolved before training:</p>\n<pre>" + escape_html(base->config_text) +
                     "</pre>\n";
  std::string table;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (run == base || run->config.empty()) continue;
      std::set<std::string> keys;
      for (const auto* settings : {&base->config, &run->config})
        for (const auto& [name, value] : *settings) keys.insert(name);
      for (const std::string& name : keys) {
        const std::string theirs = run->setting(name);
        if (theirs == base->setting(name)) continue;
        table += "<tr><th scope=\"row\">" + escape_html(shorten(run->label, 60)) +
                 "</th><td class=\"text\"><code>" + escape_html(shorten(name, 100)) +
                 "</code></td><td class=\"text\"><code>" +
                 escape_html(theirs.empty() ? "absent" : shorten(theirs, 160)) + "</code></td></tr>\n";
      }
    }
  if (!table.empty())
    html += scrolling_table(
        "Differences between configurations",
        "<thead><tr><th class=\"text\" "
        "scope=\"col\">run</th><th class=\"text\" "
        "scope=\"col\">key</th><th class=\"text\" scope=\"col\">value</th></tr></thead>\n<tbody>\n" +
            table + "</tbody>\n",
        "What the other runs set differently.");
  return html;
}

// A word for a shell: in single quotes unless it is plainly harmless.
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

std::string reproduce_section(const PageContent& content) {
  std::string commands, facts;
  std::set<std::string> seen;
  for (const Method& method : content.comparison->methods)
    for (const RunData* run : method.runs) {
      if (!run->config.empty())
        commands += "ropd train " + shell_word((run->path / "config.yaml").string()) + "\n";
      for (const auto& [name, value] : run->environment) {
        if (facts.size() > 20000 || !seen.insert(name + "=" + value).second) continue;
        facts += "<tr><th scope=\"row\">" + escape_html(shorten(name, 80)) + "</th><td class=\"text\">" +
                 escape_html(shorten(value, 200)) + "</td></tr>\n";
      }
    }
  std::string html =
      "<h2 id=\"reproduce\">How to reproduce</h2>\n<p>Build the revision named below with <code>./run "
      "build</code>. The same configuration and seed "
      "give the same numbers, also after an interruption; choose another <code>output</code> to keep the old "
      "run. Each figure’s data (CSV), "
      "gnuplot script and SVG lie in <code>figures/</code> beside this file.</p>\n<pre>" +
      escape_html(commands + content.command) + "</pre>\n";
  if (!facts.empty())
    html += "<details><summary>Environment</summary>\n" +
            scrolling_table("Environment", "<tbody>\n" + facts + "</tbody>\n") + "</details>\n";
  return html;
}

std::string head(const std::string& title) {
  // The policy makes the promise of the page checkable: the browser itself refuses scripts and every request.
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; img-src data:\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escape_html(title) + "</title>\n<style>\n:root {" + kLightColours +
         "}\n@media (prefers-color-scheme: dark) { :root {" + kDarkColours + "} }\n@media print { :root {" +
         kLightColours + "} }\n" + kChartStyle + kPageStyle + "</style>\n</head>\n";
}

std::string alarms(const Comparison& comparison) {
  std::string items;
  size_t count = 0;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs)
      for (const IterationRecord& record : run->iterations)
        for (const std::string& alarm : record.alarms)
          if (++count <= 20)
            items += "<li>" + escape_html(shorten(method.label, 40)) + ", iteration " +
                     std::to_string(record.iteration) + ": " + escape_html(shorten(alarm, 300)) + "</li>\n";
  if (items.empty()) return "";
  return "<h2 id=\"alarms\">Alarms</h2>\n<p>" + std::to_string(count) +
         (count == 1 ? " alarm was" : " alarms were") + " raised in training" +
         (count > 20 ? "; the first 20:" : ":") + "</p>\n<ul>\n" + items + "</ul>\n";
}

}  // namespace

std::string render_page(const PageContent& content) {
  const Comparison& comparison = *content.comparison;
  std::string html =
      head(content.title) + "<body>\n<main>\n<header>\n<h1>" + escape_html(content.title) + "</h1>\n";
  const bool has_evaluations = !comparison.budgets.empty();
  if (has_evaluations) {
    html += "<p class=\"lead\">" + ranking_sentence(comparison, comparison.budgets.size() - 1) + "</p>\n";
    if (comparison.budgets.size() > 1)
      html += "<p class=\"lead\">" + ranking_sentence(comparison, 0) + "</p>\n";
  }
  html += "</header>\n";
  if (has_evaluations)
    html += "<h2 id=\"results\">Results</h2>\n<div class=\"tables\">\n" + headline_table(comparison) +
            benchmark_table(comparison) + "</div>\n";
  html += setting_section(comparison);
  for (const FigureGroup& group : content.figures) {
    html += "<h2 id=\"" + slug(group.heading) + "\">" + escape_html(group.heading) + "</h2>\n";
    if (!group.introduction.empty()) html += "<p>" + escape_html(group.introduction) + "</p>\n";
    html += "<div class=\"figures\">\n";
    for (const Figure& figure : group.figures) html += figure_html(figure);
    html += "</div>\n";
  }
  html += alarms(comparison) + samples_section(content.samples) + config_section(comparison) +
          reproduce_section(content);
  return html +
         "<footer>Made by ropd. One file, no scripts, no requests.</footer>\n</main>\n</body>\n</html>\n";
}

size_t write_report(std::span<const std::string> runs, const Path& out, const std::string& title) {
  std::vector<RunData> data;
  std::string command = "ropd report";
  for (const std::string& argument : runs) {
    data.push_back(read_run(argument));
    command += " " + shell_word(argument);
  }
  const Comparison comparison = compare_methods(data);
  PageContent content{.title = title,
                      .command = command + " --out " + shell_word(out.string()),
                      .comparison = &comparison,
                      .figures = make_figures(comparison),
                      .samples = compare_samples(comparison, kNumSamples)};
  const Path directory = std::filesystem::absolute(out).parent_path();
  size_t num_figures = 0;
  for (const FigureGroup& group : content.figures)
    for (const Figure& figure : group.figures) {
      std::visit([&](const auto& chart) { write_chart_files(directory / "figures", chart); }, figure.chart);
      ++num_figures;
    }
  write_file_atomically(out, render_page(content));
  return num_figures;
}

}  // namespace ropd::report
