#include "text/prompt_renderer.h"

#include <gtest/gtest.h>

#include "support/test_data.h"

namespace ropd::text {
namespace {

TEST(PromptRenderer, PutsPrefixAndSuffixAroundTheLastTurn) {
  ROPD_NEEDS_DATA();
  const auto renderer = PromptRenderer::load(test::data_directory() / "tokenizers/qwen3",
                                             {.prefix = "Q: ", .suffix = " Box it.", .thinking = false});
  const Query query{"q", {{"user", "1+1?"}}, "2"};
  EXPECT_EQ(renderer.render_text(query),
            "<|im_start|>user\nQ: 1+1? Box it.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(renderer.render_all({query, query})[1], renderer.tokenizer().encode(renderer.render_text(query)));
}

}  // namespace
}  // namespace ropd::text
