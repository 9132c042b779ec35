// Lab models as ordinary Hugging Face directories: config.json (Qwen3 architecture, tied embeddings),
// generation_config.json, tokenizer.json (byte-level BPE without merges: every character is a token, \boxed{
// is an added token) and tokenizer_config.json (a chat template that is the bare problem). Weights are
// written by the training that makes the model.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "lab/world.h"
#include "records/model_config.h"

namespace ropd::lab {

// The teacher: width 128, 4 layers, 0.74 M parameters; the student: width 96, 3 layers, 0.31 M.
ModelConfig teacher_shape();
ModelConfig student_shape();

// QK-norm gains begin here and not at 1: with small heads unit gains bound the attention logits by sqrt(head
// size), too flat to copy.
inline constexpr float kInitialQkNormGain = 1.7f;

int64_t count_parameters(const ModelConfig& shape);

// A student of more parameters: width 112, 3 layers, 0.42 M; the teacher's shape, 0.74 M.
ModelConfig medium_student_shape();
ModelConfig large_student_shape();
// A teacher of another family: the medium shape over other_vocabulary().
ModelConfig second_teacher_shape();

// How a model numbers the world's tokens.
struct Vocabulary {
  int size = kVocabSize;
  std::array<Token, kVocabSize> ids;  // of the world's tokens
  std::string end_text, pad_text;     // of its special tokens
};
const Vocabulary& own_vocabulary();
// Other numbers, other special tokens, and six letters that the world does not write.
const Vocabulary& other_vocabulary();

// Writes the four files into `directory`, which is made if absent.
void write_lab_model_files(const Path& directory, const ModelConfig& shape,
                           const Vocabulary& vocabulary = own_vocabulary());

}  // namespace ropd::lab
