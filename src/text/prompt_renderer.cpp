#include "text/prompt_renderer.h"

#include "base/error.h"

#include "base/parallel.h"

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
  parallel_tasks(queries.size(), [&](size_t i, size_t) {
    try {
      prompts[i] = render(queries[i]);
    } catch (const Error& error) {
      fail("query '", queries[i].id, "': ", error.what());
    }
  });
  return prompts;
}

}  // namespace ropd::text
