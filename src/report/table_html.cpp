#include "report/table_html.h"

#include <cmath>

#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxCellCharacters = 160;

std::string cell_html(const stats::Cell& cell) {
  if (!cell.value) return escape_html(shorten(cell.text, kMaxCellCharacters));
  std::string text =
      (cell.is_signed && *cell.value > 0 ? "+" : "") + format_number(*cell.value, cell.decimals);
  if (cell.is_best) text = "<span class=\"best\">" + text + "</span>";
  if (!std::isfinite(*cell.value)) return text;
  if (cell.deviation)
    text += " <span class=\"sd\">± " + format_number(*cell.deviation, cell.decimals) + "</span>";
  if (cell.interval)
    text += " <span class=\"sd\">" + format_number(cell.interval->low, cell.decimals) + " to " +
            format_number(cell.interval->high, cell.decimals) + "</span>";
  return text + escape_html(cell.mark);
}

}  // namespace

std::string table_html(const stats::Table& table, const std::map<std::string, int>& styles) {
  std::string html = "<div class=\"table\">\n<p class=\"caption\">" + escape_html(table.caption) +
                     ".</p>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" +
                     escape_html(shorten(table.caption, 100)) + "\"><table>\n<thead><tr>";
  for (size_t c = 0; c < table.columns.size(); ++c)
    html += std::string("<th scope=\"col\"") + (c < table.num_label_columns ? " class=\"text\"" : "") + ">" +
            escape_html(shorten(table.columns[c], 60)) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const stats::TableRow& row : table.rows) {
    html += row.is_reference ? "<tr class=\"reference\">" : "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const stats::Cell cell = c < row.cells.size() ? row.cells[c] : stats::Cell{};
      const auto style = styles.find(cell.text);
      const std::string key = c < table.num_label_columns && style != styles.end()
                                  ? "<span class=\"key k" + std::to_string(style->second) + "\"></span>"
                                  : "";
      if (c == 0)
        html += "<th scope=\"row\">" + key + cell_html(cell) + "</th>";
      else
        html += std::string(c < table.num_label_columns ? "<td class=\"text\">" : "<td>") + key +
                cell_html(cell) + "</td>";
    }
    html += "</tr>\n";
  }
  html += "</tbody>\n</table></div>\n";
  for (const std::string& note : table.notes) html += "<p class=\"note\">" + escape_html(note) + "</p>\n";
  return html + "<details class=\"data\"><summary>As LaTeX and CSV</summary>\n<pre>" +
         escape_html(stats::to_latex(table)) + "</pre>\n<pre>" + escape_html(stats::to_csv(table)) +
         "</pre></details>\n</div>\n";
}

}  // namespace ropd::report
