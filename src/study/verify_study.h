// Reads everything that the folder of a study keeps: what `ropd verify STUDY` tells.
#pragma once
#include "base/file.h"
#include "train/verify_run.h"

namespace ropd::study {

// Whether `ropd study` has worked in this folder.
bool is_study_folder(const Path& folder);

// Inputs, runs with the states they lead to, banks, prefixes, evaluations, diagnoses, times; of all studies that
// share the folder. Changes nothing.
train::Verification verify_study(const Path& folder);

}  // namespace ropd::study
