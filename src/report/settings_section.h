// The parts of the page that say how runs were made: settings, resolved configurations, commands to repeat them.
#pragma once
#include <string>

#include "report/methods.h"

namespace ropd::report {

// Each begins with its heading; empty when there is nothing to say.
std::string setting_section(const Comparison& comparison);
std::string config_section(const Comparison& comparison);
// `report` is how this page was made; `files` is the folder of tables and figures beside it.
struct ReportCommand {
  std::string page;  // --out
  std::string title;
};
std::string reproduce_section(const Comparison& comparison, const ReportCommand& report,
                              const std::string& files);

// The commands as they can be pasted into a shell, one a line: every run and evaluation again, into a folder of its own
// beside the first, and then the report of those.
std::string reproduce_commands(const Comparison& comparison, const ReportCommand& report);

// A word for a shell: in single quotes unless it is plainly harmless.
std::string shell_word(const std::string& text);

}  // namespace ropd::report
