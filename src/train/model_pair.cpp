#include "train/model_pair.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "text/tokenizer_config.h"
#include "train/adapter_learner.h"

namespace ropd::train {
namespace {

bool has_tokenizer(const Path& directory) { return std::filesystem::exists(directory / "tokenizer.json"); }

std::string joined(const std::vector<Token>& ids) {
  std::string text;
  for (const Token id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
  return text.empty() ? "none" : text;
}

void check_vocabularies(const TrainConfig& config, ModelPair& pair, const text::PromptSettings& prompt) {
  pair.vocabulary_map = teacher_vocabulary(pair.student->text_path(), pair.student->config(),
                                           pair.teacher->text_path(), pair.teacher->config());
  if (!pair.vocabulary_map) return;
  pair.notes.push_back("teacher vocabulary: " + pair.vocabulary_map->describe());
  if (pair.vocabulary_map->is_identity()) return;
  if (objective_config(config, {}).needs_full_teacher())
    fail(
        "objective.kind compares whole distributions, but student and teacher have different tokenizers "
        "(use candidates)");
  pair.teacher_renderer = text::PromptRenderer::load(pair.teacher->text_path(), prompt);
}

// A checkpoint's model must be what this run trains.
void check_continued(const Path& model, const TrainConfig& config, const io::ModelDirectory& student) {
  if (io::is_adapter_directory(model) != config.adapter.has_value())
    fail("continue_from: ", model.string(), " holds ", config.adapter ? "no adapter" : "an adapter",
         ", but this run trains ", config.adapter ? "one (adapter)" : "every parameter (adapter: null)");
  if (!config.adapter)
    return io::require_same_model(io::ModelDirectory(model).config(), model.string(), student.config());
  const io::AdapterDirectory saved(model, student.config());
  saved.require_base(student.tensors(), student.base_path());
  saved.require_base_content(student.content(), student.base_path());
  const auto expected =
      student.adapter() ? student.adapter()->matrices()
                        : io::adapter_matrices(student.config(), adapter_config(*config.adapter), "adapter");
  if (saved.matrices() != expected)
    fail("continue_from: ", model.string(),
         " is another adapter than this run trains (adapter): its matrices, ranks or alpha differ");
}

// Base models and some fine-tuned ones end generation at <|endoftext|> alone, while their template ends turns
// with another token.
void note_end_of_turn(ModelPair& pair) {
  if (!pair.student_renderer || pair.eos_ids.empty()) return;
  const auto name = text::read_tokenizer_config(pair.student->text_path()).eos_token;
  if (!name) return;
  const auto ids = pair.student_renderer->tokenizer().encode(*name);
  if (ids.size() != 1 || std::ranges::find(pair.eos_ids, ids.front()) != pair.eos_ids.end()) return;
  pair.notes.push_back("the student's tokenizer names " + *name + " (" + std::to_string(ids.front()) +
                       ") as its end, but generation ends at " + joined(pair.eos_ids) +
                       " only: responses go on behind it (eos_token_id of generation_config.json)");
}

}  // namespace

std::shared_ptr<const io::ModelDirectory> open_teacher(const TrainConfig& config) {
  return std::make_shared<const io::ModelDirectory>(config.teacher, config.teacher_base);
}

ModelPair load_models(const TrainConfig& config) {
  ModelPair pair;
  pair.student = open_start(config.student, config.student_base, config.adapter);
  pair.student->check_base();
  pair.teacher = open_teacher(config);
  if (pair.student->config().is_moe())
    fail(config.student,
         ": mixture-of-experts models can be teachers but not students (no gradient through the router)");
  if (config.continue_from) check_continued(Path(*config.continue_from) / "model", config, *pair.student);
  const int64_t smallest = std::min(pair.student->config().vocab_size, pair.teacher->config().vocab_size);
  if (config.objective.top_k > smallest)
    fail("objective.top_k is ", config.objective.top_k, ", the smaller vocabulary has ", smallest,
         " entries");
  const text::PromptSettings prompt{config.data.prompt_prefix, config.data.prompt_suffix,
                                    config.data.thinking};
  if (const Path text = pair.student->text_path(); has_tokenizer(text) && text::ChatTemplate::exists(text))
    pair.student_renderer = text::PromptRenderer::load(text, prompt);
  if (needs_sampling(config) && !pair.student_renderer)
    fail(
        config.student,
        ": no tokenizer.json with a chat template, but a stage samples responses to queries (only runs whose "
        "stages all read banks from files need neither)");
  check_vocabularies(config, pair, prompt);
  pair.eos_ids = pair.student->generation().eos_ids;
  const auto& teacher_eos = pair.teacher->generation().eos_ids;
  if (pair.eos_ids.empty())
    pair.notes.push_back("the student names no EOS id: every response runs into the token limit");
  note_end_of_turn(pair);
  if (!pair.vocabulary_map && pair.eos_ids != teacher_eos)
    pair.notes.push_back("EOS ids differ: student " + joined(pair.eos_ids) + ", teacher " +
                         joined(teacher_eos));
  pair.teacher_weights = model::map_weights(pair.teacher);
  return pair;
}

std::optional<distill::TeacherTranslation> ModelPair::translation(
    std::function<const Query&(const std::string& query_id)> query_of) const {
  if (!vocabulary_map) return std::nullopt;
  return translate(vocabulary_map, student->config(), teacher->config(),
                   [this, query_of = std::move(query_of)](const Rollout& rollout) {
                     return teacher_renderer->render(query_of(rollout.query_id));
                   });
}

}  // namespace ropd::train
