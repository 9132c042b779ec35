// Student and teacher of a run: loaded, checked against each other, and ready to read prompts.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distill/scoring.h"
#include "io/model_directory.h"
#include "model/weights.h"
#include "text/prompt_renderer.h"
#include "train/teacher_translation.h"
#include "train/train_config.h"

namespace ropd::train {

// Constant after loading, shared by the parts of a run.
struct ModelPair {
  std::shared_ptr<const io::ModelDirectory> student;
  std::shared_ptr<const io::ModelDirectory> teacher;
  model::Weights teacher_weights;                             // mapped
  std::vector<Token> eos_ids;                                 // of the student
  std::optional<text::PromptRenderer> student_renderer;       // absent where the student has no tokenizer
  std::optional<text::PromptRenderer> teacher_renderer;       // when the teacher reads other ids
  std::shared_ptr<const text::VocabularyMap> vocabulary_map;  // likewise; else nullptr
  std::string student_content,
      teacher_content;             // content hashes of their files; empty where nobody holds them
  std::vector<std::string> notes;  // what a person should know, a sentence each

  // How the teacher reads rollouts; nothing when ids mean the same to both. `query_of` finds the query of a
  // rollout, which the teacher's own template needs.
  std::optional<distill::TeacherTranslation> translation(
      std::function<const Query&(const std::string& query_id)> query_of) const;
};

// The teacher's files, with those of its base where it is an adapter.
std::shared_ptr<const io::ModelDirectory> open_teacher(const TrainConfig& config);

// Fails, before weights are touched, when the two cannot work together: another vocabulary without a usable
// map, a student that cannot be trained, prompts that cannot be rendered.
ModelPair load_models(const TrainConfig& config);

}  // namespace ropd::train
