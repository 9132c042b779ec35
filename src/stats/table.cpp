#include "stats/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"

namespace ropd::stats {
namespace {

std::string fixed(double value, int decimals, bool is_signed) {
  if (!std::isfinite(value)) return "-";
  char text[400];
  std::snprintf(text, sizeof text, is_signed ? "%+.*f" : "%.*f", decimals, value);
  const std::string shown = text;
  // "-0.0" is a rounding artefact, not a sign.
  const bool is_zero = shown.find_first_of("123456789") == std::string::npos;
  return is_zero && shown[0] == '-' ? (is_signed ? "+" : "") + shown.substr(1) : shown;
}

bool is_number_missing(const Cell& cell) { return cell.value && !std::isfinite(*cell.value); }

// Code points, so that "±" takes one column.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool to_right) {
  const std::string space(width > width_of(text) ? width - width_of(text) : 0, ' ');
  return to_right ? space + text : text + space;
}

// One line: names from files may hold anything.
std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : on_one_line(text)) {
    if (std::string("|\\`*_<>[]").find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string latex_text(const std::string& text) {
  std::string out;
  const std::string line = on_one_line(text);
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (std::string("&%$#_{}").find(c) != std::string::npos)
      out += std::string("\\") + c;
    else if (c == '\\')
      out += "\\textbackslash{}";
    else if (c == '~')
      out += "\\textasciitilde{}";
    else if (c == '^')
      out += "\\textasciicircum{}";
    else if (line.compare(i, 2, "±") == 0)
      out += "$\\pm$", ++i;
    else if (line.compare(i, 2, "τ") == 0)
      out += "$\\tau$", ++i;
    else if (line.compare(i, 2, "θ") == 0)
      out += "$\\theta$", ++i;
    else
      out += c;
  }
  return out;
}

const Cell& cell_at(const TableRow& row, size_t column) {
  static const Cell kEmpty;
  return column < row.cells.size() ? row.cells[column] : kEmpty;
}

template <class Predicate>
bool any_cell(const Table& table, size_t column, Predicate predicate) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const TableRow& row) { return predicate(cell_at(row, column)); });
}

}  // namespace

Cell text_cell(std::string text) { return {.text = std::move(text)}; }
Cell number_cell(double value, int decimals) { return {.value = value, .decimals = decimals}; }

std::string cell_text(const Cell& cell) {
  if (!cell.value) return cell.text;
  if (is_number_missing(cell)) return "-";
  std::string text = fixed(*cell.value, cell.decimals, cell.is_signed);
  if (cell.deviation) text += " ± " + fixed(*cell.deviation, cell.decimals, false);
  if (cell.interval)
    text += " [" + fixed(cell.interval->low, cell.decimals, cell.is_signed) + ", " +
            fixed(cell.interval->high, cell.decimals, cell.is_signed) + "]";
  return text + cell.mark;
}

std::string to_text(const Table& table) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = width_of(on_one_line(table.columns[c]));
    for (const TableRow& row : table.rows)
      width = std::max(width, width_of(on_one_line(cell_text(cell_at(row, c)))));
    widths.push_back(width);
  }
  const auto add_line = [&](std::string& text, const auto& cell) {
    std::string line;
    for (size_t c = 0; c < table.columns.size(); ++c)
      line += (c ? "  " : "") + padded(on_one_line(cell(c)), widths[c], c >= table.num_label_columns);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  std::string text = on_one_line(table.caption) + "\n";
  add_line(text, [&](size_t c) { return table.columns[c]; });
  for (const TableRow& row : table.rows) add_line(text, [&](size_t c) { return cell_text(cell_at(row, c)); });
  for (const std::string& note : table.notes) text += "  " + on_one_line(note) + "\n";
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text = markdown_text(table.caption) + "\n\n|", rule = "|";
  for (size_t c = 0; c < table.columns.size(); ++c) {
    text += " " + markdown_text(table.columns[c]) + " |";
    rule += c < table.num_label_columns ? "---|" : "---:|";
  }
  text += "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    text += "|";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Cell& cell = cell_at(row, c);
      const std::string shown = markdown_text(cell_text(cell));
      text += " " + (cell.is_best ? "**" + shown + "**" : shown) + " |";
    }
    text += "\n";
  }
  for (const std::string& note : table.notes) text += "\n" + markdown_text(note) + "\n";
  return text;
}

std::string to_latex(const Table& table) {
  const size_t num_labels = std::min(table.num_label_columns, table.columns.size());
  std::string text = "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\caption{" +
                     latex_text(table.caption) + "}\n\\label{tab:" + latex_text(table.id) +
                     "}\n\\begin{tabular}{" + std::string(num_labels, 'l') +
                     std::string(table.columns.size() - num_labels, 'r') + "}\n\\toprule\n";
  const auto add_line = [&](const auto& cell) {
    for (size_t c = 0; c < table.columns.size(); ++c) text += (c ? " & " : "") + cell(c);
    text += " \\\\\n";
  };
  add_line([&](size_t c) { return latex_text(table.columns[c]); });
  text += "\\midrule\n";
  bool was_reference = !table.rows.empty() && table.rows.front().is_reference;
  for (const TableRow& row : table.rows) {
    if (row.is_reference != was_reference) text += "\\midrule\n";
    was_reference = row.is_reference;
    add_line([&](size_t c) {
      const Cell& cell = cell_at(row, c);
      std::string shown = latex_text(cell_text(cell));
      // A minus sign, not a hyphen; labels keep their hyphens.
      if (cell.value)
        for (size_t i = shown.find('-'); i != std::string::npos; i = shown.find('-', i + 3))
          shown.replace(i, 1, "$-$");
      return cell.is_best ? "\\textbf{" + shown + "}" : shown;
    });
  }
  text += "\\bottomrule\n\\end{tabular}\n";
  for (const std::string& note : table.notes)
    text += "\n\\smallskip{\\footnotesize " + latex_text(note) + "}\n";
  return text + "\\end{table}\n";
}

std::string to_csv(const Table& table) {
  struct Extra {
    bool has_deviation, has_interval;
  };
  std::vector<Extra> extras;
  std::string text;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    extras.push_back({any_cell(table, c, [](const Cell& cell) { return cell.deviation.has_value(); }),
                      any_cell(table, c, [](const Cell& cell) { return cell.interval.has_value(); })});
    text += (c ? "," : "") + csv_field(table.columns[c]);
    if (extras[c].has_deviation) text += "," + csv_field(table.columns[c] + " SD");
    if (extras[c].has_interval)
      text += "," + csv_field(table.columns[c] + " low") + "," + csv_field(table.columns[c] + " high");
  }
  text += "\n";
  for (const TableRow& row : table.rows) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Cell& cell = cell_at(row, c);
      text += (c ? "," : "") + (cell.value ? csv_number(*cell.value) : csv_field(cell.text));
      if (extras[c].has_deviation) text += "," + csv_number(cell.deviation.value_or(NAN));
      if (extras[c].has_interval)
        text += "," + csv_number(cell.interval ? cell.interval->low : NAN) + "," +
                csv_number(cell.interval ? cell.interval->high : NAN);
    }
    text += "\n";
  }
  return text;
}

std::string render(const Table& table, TableFormat format) {
  switch (format) {
    case TableFormat::markdown:
      return to_markdown(table);
    case TableFormat::latex:
      return to_latex(table);
    case TableFormat::csv:
      return to_csv(table);
    case TableFormat::text:
      break;
  }
  return to_text(table);
}

TableFormat parse_table_format(const std::string& name) {
  if (name == "text") return TableFormat::text;
  if (name == "markdown") return TableFormat::markdown;
  if (name == "latex") return TableFormat::latex;
  if (name == "csv") return TableFormat::csv;
  fail("table format '", name, "', expected text, markdown, latex or csv");
}

void write_table_files(const Path& directory, const Table& table) {
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / (table.id + ".txt"), to_text(table));
  write_file_atomically(directory / (table.id + ".md"), to_markdown(table));
  write_file_atomically(directory / (table.id + ".tex"), to_latex(table));
  write_file_atomically(directory / (table.id + ".csv"), to_csv(table));
}

std::string csv_field(const std::string& text) {
  std::string line = on_one_line(text);
  if (!line.empty() && std::string("=+-@").find(line[0]) != std::string::npos) line.insert(0, " ");
  std::string out = "\"";
  for (const char c : line) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string csv_number(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace ropd::stats
