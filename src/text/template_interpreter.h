// Runs a parsed chat template. Work, output and recursion are bounded (TemplateMeter and below), so a
// template that loops for ever ends with an error that names the line.
#pragma once
#include <string>
#include <utility>

#include "text/template_syntax.h"
#include "text/template_value.h"

namespace ropd::text {

struct TemplateLimits {
  static constexpr size_t kMaxOutputBytes = size_t{64} << 20;
  static constexpr int kMaxRecursion = 500;  // of expressions, tags and macro calls together
};

// What the template prints with these variables set. `where` begins every error text.
std::string run_template(const StatementList& statements, TemplateDict variables, const std::string& where);

}  // namespace ropd::text
