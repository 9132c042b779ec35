#include "text/prompt_renderer.h"

#include "base/error.h"

namespace ropd::text {

PromptRenderer PromptRenderer::load(const Path& model_directory, PromptSettings settings) {
  return {Tokenizer::load(model_directory), ChatTemplate::load(model_directory), std::move(settings)};
}

std::string PromptRenderer::render_text(const Query& query) const {
  auto messages = query.messages;
  if (messages.empty()) fail("query '", query.id, "' has no messages");
  messages.back().content = settings_.prefix + messages.back().content + settings_.suffix;
  return template_.render(messages, {.add_generation_prompt = true, .enable_thinking = settings_.thinking});
}

std::vector<std::vector<Token>> PromptRenderer::render_all(const std::vector<Query>& queries) const {
  std::vector<std::vector<Token>> prompts(queries.size());
  std::vector<std::string> failures(queries.size());
#pragma omp parallel for schedule(dynamic, 64)
  for (size_t i = 0; i < queries.size(); ++i) {
    try {
      prompts[i] = render(queries[i]);
    } catch (const Error& error) {
      failures[i] = error.what();
    }
  }
  for (size_t i = 0; i < failures.size(); ++i)
    if (!failures[i].empty()) fail("query '", queries[i].id, "': ", failures[i]);
  return prompts;
}

}  // namespace ropd::text
