// Questions as the ids a model reads: prefix and suffix around the last turn, chat template with generation
// prompt, tokenizer.
#pragma once
#include <string>
#include <vector>

#include "records/query.h"
#include "records/rollout.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ropd::text {

struct PromptSettings {
  std::string prefix;
  std::string suffix;
  bool thinking = false;
};

// Constant after construction; thread-safe.
class PromptRenderer {
 public:
  PromptRenderer(Tokenizer tokenizer, ChatTemplate chat_template, PromptSettings settings)
      : tokenizer_(std::move(tokenizer)),
        template_(std::move(chat_template)),
        settings_(std::move(settings)) {}
  static PromptRenderer load(const Path& model_directory, PromptSettings settings);

  [[nodiscard]] std::string render_text(const Query& query) const;
  [[nodiscard]] std::vector<Token> render(const Query& query) const {
    return tokenizer_.encode(render_text(query));
  }
  // All of them, in parallel; fails naming the first query that cannot be rendered.
  [[nodiscard]] std::vector<std::vector<Token>> render_all(const std::vector<Query>& queries) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ChatTemplate& chat_template() const { return template_; }

 private:
  Tokenizer tokenizer_;
  ChatTemplate template_;
  PromptSettings settings_;
};

}  // namespace ropd::text
