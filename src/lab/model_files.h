// Lab models as ordinary Hugging Face directories: config.json (Qwen3 architecture, tied embeddings),
// generation_config.json, tokenizer.json (byte-level BPE without merges: every character is a token, \boxed{
// is an added token) and tokenizer_config.json (a chat template that is the bare problem). Weights are
// written by the training that makes the model.
#pragma once
#include <cstdint>

#include "base/file.h"
#include "records/model_config.h"

namespace ropd::lab {

// The teacher: width 128, 4 layers, 0.74 M parameters; the student: width 96, 3 layers, 0.31 M.
ModelConfig teacher_shape();
ModelConfig student_shape();

// QK-norm gains begin here and not at 1: with small heads unit gains bound the attention logits by sqrt(head
// size), too flat to copy.
inline constexpr float kInitialQkNormGain = 1.7f;

int64_t count_parameters(const ModelConfig& shape);

// Writes the four files into `directory`, which is made if absent.
void write_lab_model_files(const Path& directory, const ModelConfig& shape);

}  // namespace ropd::lab
