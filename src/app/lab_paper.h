// The paper's studies (studies/*.yaml) in miniature: the same methods, comparisons, tables and diagnoses on the
// laboratory's models, problems and budgets.
#pragma once
#include <string>
#include <vector>

#include "base/file.h"
#include "lab/study_files.h"
#include "study/study_config.h"

namespace ropd::app {

// The study as the laboratory runs it: its students and teachers for the paper's, budgets of 64 to 512 tokens
// for 4K to 32K, 1,408 queries for the full set, data orders as repetitions, and 1,920 responses an iteration
// where a trigger is judged (at 480 tiny ones it is near a coin toss, docs/log.md).
study::StudyConfig miniature_of(study::StudyConfig study, const lab::LabOptions& options);

struct PaperOptions {
  std::string only;  // the study of this name; empty = all
  bool is_dry = false;
  bool as_json = false;  // an object a study
};
// False after a stop request.
bool run_paper(const lab::LabOptions& options, const PaperOptions& paper);

}  // namespace ropd::app
