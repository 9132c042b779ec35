#include "report/page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/log.h"
#include "io/metrics_file.h"
#include "report/chart_files.h"
#include "report/html.h"
#include "report/samples_section.h"
#include "report/settings_section.h"
#include "report/style.h"
#include "report/table_html.h"
#include "report/tables.h"
#include "stats/scored_responses.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxDataCharacters = 40000;
constexpr size_t kNumSamples = 4;
// Enough for intervals whose ends move by a twentieth of a point between seeds.
constexpr stats::BootstrapConfig kBootstrap{.draws = 5000};

std::map<std::string, int> styles_of(const Comparison& comparison) {
  std::map<std::string, int> styles;
  for (const Method& method : comparison.methods) styles[method.label] = method.style;
  return styles;
}

std::string figure_html(const Figure& figure) {
  return std::visit(
      [&](const auto& chart) {
        return "<figure>\n<h3>" + escape_html(chart.title) + "</h3>\n" + to_svg(chart) + "\n<figcaption>" +
               escape_html(figure.caption) +
               "</figcaption>\n<details class=\"data\"><summary>Data</summary>\n<pre>" +
               escape_html(shorten(to_csv(chart), kMaxDataCharacters)) + "</pre></details>\n</figure>\n";
      },
      figure.chart);
}

std::string figures_html(const std::vector<Figure>& figures) {
  if (figures.empty()) return "";
  std::string html = "<div class=\"figures\">\n";
  for (const Figure& figure : figures) html += figure_html(figure);
  return html + "</div>\n";
}

std::string section(const std::string& heading, const std::string& introduction, const std::string& content) {
  return "<h2 id=\"" + slug(heading) + "\">" + escape_html(heading) + "</h2>\n" +
         (introduction.empty() ? "" : "<p>" + escape_html(introduction) + "</p>\n") + content;
}

// The tables of one set of questions, the differences with their intervals last.
std::vector<stats::Table> result_tables(const PageContent& content, size_t set_index) {
  const Comparison& comparison = *content.comparison;
  std::vector<stats::Table> tables = {headline_table(comparison, set_index)};
  const Analysis& analysis = content.analyses[set_index];
  const std::string end = set_index == 0 ? "" : "-" + std::to_string(set_index + 1);
  if (!analysis.accuracy.empty()) {
    tables.push_back(stats::curve_table(analysis.accuracy, kBootstrap));
    tables.back().id += end;
    tables.push_back(
        stats::benchmark_table(analysis.accuracy, analysis.accuracy.front().budgets.back(), kBootstrap));
    tables.back().id = "differences-by-benchmark" + end;
  }
  if (comparison.results[set_index].benchmarks.size() > 1)
    tables.push_back(benchmark_table(comparison, set_index));
  tables.push_back(measures_table(comparison, set_index));
  return tables;
}

std::vector<Figure> difference_figures(const PageContent& content, size_t set_index) {
  const Analysis& analysis = content.analyses[set_index];
  if (analysis.accuracy.empty()) return {};
  Figure figure{
      difference_chart(analysis.accuracy),
      "Each method against the one it is compared with. A bar that does not touch zero is a difference that "
      "other questions and runs would probably show too."};
  std::get<LineChart>(figure.chart).id =
      "difference" + (set_index == 0 ? "" : "-" + std::to_string(set_index + 1));
  return {figure};
}

std::string samples_section(const std::vector<SampleQuestion>& samples) {
  if (samples.empty()) return "";
  return section(
      "Samples",
      "A response of each model to the same queries, chosen by their place and not by their content.",
      marks_legend(samples) + samples_html(samples));
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
         kLightColours + "} }\n" + kChartStyle + kTokenStyle + kPageStyle + "</style>\n</head>\n";
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

std::string findings_html(const PageContent& content) {
  std::string html;
  for (const Analysis& analysis : content.analyses)
    for (const std::string& warning : analysis.warnings)
      html += "<p class=\"warning\"><strong>Settings differ:</strong> " + escape_html(shorten(warning, 400)) +
              ". A difference in results may come from that.</p>\n";
  if (content.findings.empty()) return html;
  html += "<ul class=\"findings\">\n";
  for (const std::string& sentence : content.findings) html += "<li>" + escape_html(sentence) + "</li>\n";
  return html + "</ul>\n";
}

// A list of the page's headings.
std::string contents_html(const std::string& body) {
  std::string list;
  constexpr std::string_view kBegin = "<h2 id=\"";
  for (size_t at = body.find(kBegin); at != std::string::npos; at = body.find(kBegin, at + 1)) {
    const size_t id = at + kBegin.size(), id_end = body.find('"', id), text = body.find('>', id_end) + 1;
    list += "<li><a href=\"#" + body.substr(id, id_end - id) + "\">" +
            body.substr(text, body.find("</h2>", text) - text) + "</a></li>\n";
  }
  return list.empty() ? "" : "<nav aria-label=\"Contents\"><ol>\n" + list + "</ol></nav>\n";
}

std::string body_html(const PageContent& content) {
  const Comparison& comparison = *content.comparison;
  const auto styles = styles_of(comparison);
  std::string html;
  for (size_t i = 0; i < comparison.results.size(); ++i) {
    const bool is_only = comparison.results.size() == 1;
    std::string tables;
    for (const stats::Table& table : result_tables(content, i)) tables += table_html(table, styles);
    html += section(is_only ? "Results" : "Results: " + comparison.results[i].name, "",
                    tables + figures_html(difference_figures(content, i)));
    const FigureGroup group = result_figures(comparison, i);
    html += section(group.heading, group.introduction, figures_html(group.figures));
  }
  if (const stats::Table compute = compute_table(comparison); !compute.rows.empty())
    html += section("Compute", "", table_html(compute, styles));
  html += alarms(comparison);
  for (const FigureGroup& group :
       {training_figures(comparison), trigger_figures(comparison), prefix_figures(comparison)})
    if (!group.figures.empty())
      html += section(group.heading, group.introduction, figures_html(group.figures));
  size_t number = 0;
  const auto diagnoses = diagnosis_figures(comparison);
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (!run->diagnosis) continue;
      std::string tables;
      for (const stats::Table& table : diagnosis_tables(*run->diagnosis, number))
        tables += table_html(table, styles);
      const FigureGroup& group = diagnoses[number++];
      const auto samples = diagnosis_samples(*run->diagnosis);
      html += section(group.heading + (number > 1 ? " " + std::to_string(number) : ""), group.introduction,
                      tables + figures_html(group.figures) + marks_legend(samples) + samples_html(samples));
    }
  return html + samples_section(content.samples) + setting_section(comparison) + config_section(comparison) +
         reproduce_section(comparison, {content.page, content.title}, content.files);
}

}  // namespace

std::vector<stats::Table> page_tables(const PageContent& content) {
  std::vector<stats::Table> tables;
  const auto add = [&](std::vector<stats::Table> more) {
    for (stats::Table& table : more)
      if (!table.rows.empty()) tables.push_back(std::move(table));
  };
  for (size_t i = 0; i < content.comparison->results.size(); ++i) add(result_tables(content, i));
  add({compute_table(*content.comparison)});
  size_t number = 0;
  for (const Method& method : content.comparison->methods)
    for (const RunData* run : method.runs)
      if (run->diagnosis) add(diagnosis_tables(*run->diagnosis, number++));
  return tables;
}

std::vector<FigureGroup> page_figures(const PageContent& content) {
  std::vector<FigureGroup> groups = make_figures(*content.comparison);
  for (size_t i = 0; i < content.comparison->results.size(); ++i)
    groups.push_back({.heading = "Results", .introduction = "", .figures = difference_figures(content, i)});
  return groups;
}

PageContent make_content(const Comparison& comparison, const std::string& title) {
  PageContent content{.title = title, .page = "", .files = "", .comparison = &comparison};
  for (const ResultSet& set : comparison.results)
    content.analyses.push_back(analyse(comparison, set, kBootstrap));
  content.findings = findings(comparison, content.analyses, kBootstrap);
  content.samples = compare_samples(comparison, kNumSamples);
  return content;
}

std::string render_page(const PageContent& content) {
  const std::string body = body_html(content);
  return head(content.title) + "<body>\n<main>\n<header>\n<h1>" + escape_html(content.title) + "</h1>\n" +
         findings_html(content) + "</header>\n" + contents_html(body) + body +
         "<footer>Made by ropd. One file, no scripts, no requests.</footer>\n</main>\n</body>\n</html>\n";
}

size_t write_report(std::span<const std::string> arguments, const Path& out, const std::string& title) {
  std::vector<RunData> runs;
  for (const std::string& argument : expand_arguments({arguments.begin(), arguments.end()}))
    runs.push_back(read_run(argument));
  for (const RunData& run : runs) {
    for (const EvaluationData& evaluation : run.evaluations)
      stats::check_scored_responses(evaluation.summary.path);
    if (const auto damage =
            io::metrics_damage(run.path / "metrics.jsonl", io::list_checkpoints(run.path / "checkpoints"));
        !damage.empty())
      log_warning(damage, "; the report shows the file as it is");
  }
  const Comparison comparison = compare_methods(runs);
  PageContent content = make_content(comparison, title);
  content.page = out.string();
  content.files = out.stem().string() + "_files";
  const Path directory = std::filesystem::absolute(out).parent_path() / content.files;
  size_t num_figures = 0;
  for (const FigureGroup& group : page_figures(content))
    for (const Figure& figure : group.figures) {
      std::visit([&](const auto& chart) { write_chart_files(directory, chart); }, figure.chart);
      ++num_figures;
    }
  for (const stats::Table& table : page_tables(content)) stats::write_table_files(directory, table);
  write_file_atomically(out, render_page(content));
  return num_figures;
}

}  // namespace ropd::report
