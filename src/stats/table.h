// One table, written as text for a terminal, Markdown, LaTeX (booktabs) and CSV. A number keeps its exact
// value beside the way it is shown, so the CSV holds what the others round. Labels may come from run
// directories: each writer escapes what its format would interpret.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "stats/bootstrap.h"

namespace ropd::stats {

struct Cell {
  std::string text = {};                  // shown when there is no value
  std::optional<double> value = {};       // in the unit of its column
  std::optional<double> deviation = {};   // "± 0.7"
  std::optional<Interval> interval = {};  // "[low, high]"; its estimate is `value`
  int decimals = 1;
  bool is_signed = false;  // "+1.2"
  bool is_best = false;    // emphasised where the format can
  std::string mark = {};   // behind the number: "*"
};

Cell text_cell(std::string text);
Cell number_cell(double value, int decimals);

struct TableRow {
  std::vector<Cell> cells;    // [columns]
  bool is_reference = false;  // the teacher, the initial student: set apart, never best
};

struct Table {
  std::string id;       // a slug: file name and label
  std::string caption;  // one sentence, with unit
  std::vector<std::string> columns;
  size_t num_label_columns = 1;  // columns of text at the left; the others are numbers
  std::vector<TableRow> rows = {};
  std::vector<std::string> notes = {};  // below the table: runs, intervals, comparisons made
};

enum class TableFormat { text, markdown, latex, csv };

// What is shown of a cell, plain: "+1.2 ± 0.7 [-0.1, 2.5]*"; "-" for a number that is not there.
std::string cell_text(const Cell& cell);

std::string to_text(const Table& table);
std::string to_markdown(const Table& table);
std::string to_latex(const Table& table);
// Every number in full precision; a column with deviations or intervals is followed by columns for them.
std::string to_csv(const Table& table);
std::string render(const Table& table, TableFormat format);

// "text", "markdown", "latex" or "csv"; fails for anything else.
TableFormat parse_table_format(const std::string& name);

// Writes <id>.txt, <id>.md, <id>.tex and <id>.csv into the folder, which is made when absent.
void write_table_files(const Path& directory, const Table& table);

// A CSV field: one line, in quotes; a leading = + - @ is set off so that spreadsheets take no name for a
// formula.
std::string csv_field(const std::string& text);
// 17 significant digits; empty when not finite.
std::string csv_number(double value);

}  // namespace ropd::stats
