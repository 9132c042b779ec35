// samples/iter-N.jsonl of a run and samples.jsonl of evaluations and diagnoses: one ResponseSample a line,
// few of them, bounded in size however long the responses are.
#pragma once
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "records/response_sample.h"

namespace ropd::io {

inline constexpr size_t kMaxSampleTokens = 4096;            // of a response that are written
inline constexpr size_t kMaxSampleTokensWithChoices = 256;  // of these with candidates
inline constexpr size_t kMaxSampleCandidates = 8;           // at a position

std::string sample_line(const ResponseSample& sample);  // without the newline

// Fails, naming `where`, for what is no sample. Numbers that are no log-probability are absent.
ResponseSample parse_sample(const Json& json, const std::string& where);

// Whole or not at all; makes the folder.
void write_samples(const Path& path, const std::vector<ResponseSample>& samples);
[[nodiscard]] std::vector<ResponseSample> read_samples(const Path& path);

}  // namespace ropd::io
