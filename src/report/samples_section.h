// Responses side by side as a part of the page: every token marked by how far student and teacher disagree about it.
// A hand or a finger on a token shows its candidates at the foot of the window, by style alone; the strongest
// disagreements of each response also stand in a table, for keyboards, printers and readers of text.
#pragma once
#include <string>
#include <vector>

#include "report/samples.h"

namespace ropd::report {

// What the marks mean; empty when no response has any.
std::string marks_legend(const std::vector<SampleQuestion>& samples);

// The questions with their responses, without a heading.
std::string samples_html(const std::vector<SampleQuestion>& samples);

}  // namespace ropd::report
