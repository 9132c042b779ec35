#include "train/teacher_translation.h"

#include <filesystem>

#include "base/error.h"

namespace ropd::train {

std::shared_ptr<const text::VocabularyMap> teacher_vocabulary(const Path& student_directory,
                                                              const ModelConfig& student,
                                                              const Path& teacher_directory,
                                                              const ModelConfig& teacher) {
  const auto has_tokenizer = [](const Path& directory) {
    return std::filesystem::exists(directory / "tokenizer.json");
  };
  if (!has_tokenizer(student_directory) || !has_tokenizer(teacher_directory)) {
    if (student.vocab_size != teacher.vocab_size)
      fail("student and teacher do not fit together: vocabularies of ", student.vocab_size, " and ",
           teacher.vocab_size, " entries, and without tokenizer.json in both folders ids cannot be mapped");
    return nullptr;
  }
  auto map =
      std::make_shared<text::VocabularyMap>(text::VocabularyMap::load(student_directory, teacher_directory));
  if (map->is_identity() && student.vocab_size <= teacher.vocab_size) return nullptr;
  map->check_usable();
  return map;
}

distill::TeacherTranslation translate(std::shared_ptr<const text::VocabularyMap> map,
                                      const ModelConfig& student, const ModelConfig& teacher,
                                      TeacherPrompt prompt_of) {
  distill::TeacherTranslation result;
  for (Token id = 0; id < student.vocab_size; ++id) {
    const auto mapped = map->teacher_id(id);
    result.teacher_id.push_back(mapped && *mapped < teacher.vocab_size ? *mapped : -1);
  }
  result.read = [map = std::move(map), prompt_of = std::move(prompt_of)](const Rollout& rollout) {
    auto aligned = map->align(rollout.response_ids);
    return distill::TeacherReading{map->is_identity() ? rollout.prompt_ids : prompt_of(rollout),
                                   std::move(aligned.teacher_ids), std::move(aligned.teacher_position)};
  };
  return result;
}

}  // namespace ropd::train
