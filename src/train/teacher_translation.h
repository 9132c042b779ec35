// How a teacher reads a student's rollouts when ids do not mean the same to both (method.md section 8).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/file.h"
#include "distill/scoring.h"
#include "records/model_config.h"
#include "text/vocabulary_map.h"

namespace ropd::train {

// The map between two model directories; nullptr when every id of the student means the same to the teacher.
// Fails where ids cannot be mapped: vocabularies of different size without tokenizers, or too little in
// common.
std::shared_ptr<const text::VocabularyMap> teacher_vocabulary(const Path& student_directory,
                                                              const ModelConfig& student,
                                                              const Path& teacher_directory,
                                                              const ModelConfig& teacher);

// The teacher's own prompt for a rollout.
using TeacherPrompt = std::function<std::vector<Token>(const Rollout&)>;

// `prompt_of` is asked only where the tokenizers differ: with the same tokenizer (and a smaller head of the
// teacher) the recorded prompt serves.
distill::TeacherTranslation translate(std::shared_ptr<const text::VocabularyMap> map,
                                      const ModelConfig& student, const ModelConfig& teacher,
                                      TeacherPrompt prompt_of);

}  // namespace ropd::train
