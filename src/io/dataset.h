// Data files as queries: JSONL (.jsonl, .json with one object a line; also gzip or zstd) and parquet, the
// same fields in both.
//   prompt   messages [{role, content}] | prompt (text, or messages as verl writes them) | problem | question
//   answer   answer | reward_model.ground_truth (verl) | ground_truth | solution
//   id       id | extra_info.index (verl) | made from the prompt: "q-" and 16 hex digits of its SHA-256
// The first field present in each line above counts; messages that end with an assistant's turn (data for
// fine-tuning) are no prompt where there is another. An answer in GSM8K's form ends with "#### 72": what
// follows is the answer. Every error names the file and the line (row of a parquet file).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "records/query.h"

namespace ropd::io {

enum class DuplicateIds { refuse, keep };

struct Dataset {
  Path path;
  std::vector<Query> queries;
  std::vector<uint64_t> places;  // [queries] line in a JSONL file, row (from 1) in a parquet file
  uint64_t num_generated_ids = 0;
  bool is_parquet = false;

  // "file.jsonl:17" or "file.parquet row 17".
  std::string where(size_t index) const;
};

// Fails on the first row that is not a query, and on an id that occurs twice unless duplicates are kept
// (`ropd data prepare` removes them).
Dataset read_dataset(const Path& path, DuplicateIds duplicates = DuplicateIds::refuse);

// The same over JSONL text in memory; `name` stands for the file.
Dataset parse_jsonl_dataset(std::string_view text, const std::string& name,
                            DuplicateIds duplicates = DuplicateIds::refuse);

// One JSON object a line: {"id", "problem", "answer"}, or "messages" where the prompt is not one user turn.
// The file appears whole.
void write_queries(const Path& path, const std::vector<Query>& queries);

// The id given to a query without one; depends on roles and contents only.
std::string generated_id(const std::vector<Message>& messages);

// Fails where two queries share an id; `dataset` gives the places.
void check_unique_ids(const Dataset& dataset);

}  // namespace ropd::io
