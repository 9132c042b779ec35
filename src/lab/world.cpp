#include "lab/world.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::lab {
namespace {

constexpr std::array<std::string_view, kVocabSize> kTokenTexts = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a",        "b",       "c",
    "d", "e", "f", "=", ";", ">", "#", "~", "}", "?", "\\boxed{", "<|end|>", "<|pad|>"};

// What a draw is for; part of the counter, so that problems, texts and lengths never share numbers.
enum class Stream : uint32_t { problem = 0, teacher_text = 1, text_choice = 2, curriculum = 3 };

// The uniform numbers of one item of a stream, in order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t index, Stream stream)
      : seed_(seed), index_{.key = index, .row = static_cast<uint32_t>(stream), .column = 0} {}
  double uniform() {
    const double value = random_uniform(seed_, Purpose::lab_world, index_);
    ++index_.column;
    return value;
  }
  bool chance(double probability) { return uniform() < probability; }
  // Uniform in 0..count-1.
  int below(int count) { return std::min(count - 1, static_cast<int>(uniform() * count)); }

 private:
  uint64_t seed_;
  RandomIndex index_;
};

Token token_of(char symbol) {
  for (size_t id = 0; id < kTokenTexts.size(); ++id)
    if (kTokenTexts[id].size() == 1 && kTokenTexts[id][0] == symbol) return static_cast<Token>(id);
  return -1;
}

// The growing response: tokens with their loss weights.
class Writer {
 public:
  explicit Writer(const Problem& problem) { example_.prompt_ids = encode(problem_text(problem)); }
  void token(Token id, bool is_forced = false) {
    example_.response_ids.push_back(id);
    example_.loss_weights.push_back(is_forced ? 0.0f : 1.0f);
  }
  void symbol(char c, bool is_forced = false) { token(token_of(c), is_forced); }
  void digit(int value, bool is_forced = false) { token(static_cast<Token>(value), is_forced); }
  void begin_pass(int start) {
    symbol('=');
    digit(start);
  }
  void end_pass(int result) {
    symbol('#');
    digit(result);
  }
  void box(int result, bool is_forced = false) {
    token(kBoxToken, is_forced);
    digit(result);
    symbol('}');
  }
  SftExample take() { return std::move(example_); }

 private:
  SftExample example_;
};

// One teacher text. The forced departures of this example are drawn at construction.
class TeacherText {
 public:
  TeacherText(const Problem& problem, const TeacherPolicy& policy, const Deviations& deviations, Draws draws)
      : problem_(problem), policy_(policy), deviations_(deviations), draws_(draws), writer_(problem) {
    num_groups_ = static_cast<int>(problem.operations.size()) / kGroupSize;
    if (draws_.chance(deviations_.short_start)) forced_short_ = 1 + draws_.below(num_groups_);
    if (draws_.chance(deviations_.slipping)) slip_ = deviations_.slip;
  }

  SftExample write() {
    int previous = -1;
    for (int pass = 1;; ++pass) {
      const int result = write_pass(pass == 1);
      if (close_pass(pass, result, previous)) return writer_.take();
      writer_.symbol('~');
      previous = result;
    }
  }

 private:
  // A result digit: the right value, or a wrong one that carries no loss. Returns what was written.
  int write_result(int right, double wrong_probability) {
    const bool is_wrong = wrong_probability > 0 && draws_.chance(wrong_probability);
    const int value = is_wrong ? (right + 1 + draws_.below(9)) % 10 : right;
    writer_.digit(value, is_wrong);
    return value;
  }

  int write_pass(bool is_first) {
    int value = problem_.start;
    writer_.begin_pass(value);
    for (int group = 0; group < num_groups_; ++group) {
      const bool in_start = is_first && group < forced_short_;
      const bool is_forced = in_start || (forced_short_ > 0 && draws_.chance(deviations_.short_later));
      const std::string_view operations =
          std::string_view(problem_.operations).substr(static_cast<size_t>(group) * kGroupSize, kGroupSize);
      if (!is_forced && draws_.chance(policy_.long_group))
        value = write_long(operations, value);
      else
        value = write_short(operations, value, is_forced,
                            in_start ? std::max(deviations_.short_start_wrong, slip_) : slip_);
    }
    writer_.end_pass(value);
    return value;
  }

  int write_long(std::string_view operations, int value) {
    for (const char operation : operations) {
      writer_.symbol(operation);
      writer_.symbol('=');
      value = write_result(apply_operation(operation, value), slip_);
      writer_.symbol(';');
    }
    return value;
  }

  int write_short(std::string_view operations, int value, bool is_forced, double wrong_probability) {
    for (size_t i = 0; i < operations.size(); ++i) {
      writer_.symbol(operations[i],
                     is_forced && i == 1);  // only the fork departs: what follows it is as the teacher would
      value = apply_operation(operations[i], value);
    }
    writer_.symbol('>');
    return write_result(value, wrong_probability);
  }

  // Box and end, or go on; true when the text is complete.
  bool close_pass(int pass, int result, int previous) {
    const bool is_verified = pass > 1 && result == previous;
    const bool is_last = pass >= policy_.max_passes;
    const bool is_forced = !is_verified && (is_last || draws_.chance(deviations_.premature_box));
    const double box_probability = is_verified ? policy_.box_when_agreed
                                   : pass == 1 ? policy_.box_after_first
                                               : policy_.box_when_disagreed;
    if (!is_forced && !is_last && !draws_.chance(box_probability)) return false;
    writer_.box(result, is_forced);
    if (!is_verified && !is_last && !draws_.chance(policy_.end_unverified)) return false;
    writer_.token(kEndToken, is_last && !is_verified);
    return true;
  }

  // constant after construction
  const Problem& problem_;
  const TeacherPolicy& policy_;
  const Deviations& deviations_;
  int num_groups_ = 0;
  int forced_short_ = 0;  // groups of the first pass that are forced short
  double slip_ = 0;       // probability of a wrong result
  // the text so far
  Draws draws_;
  Writer writer_;
};

void check_num_operations(int num_operations) {
  if (num_operations < kGroupSize || num_operations > kMaxOperations || num_operations % kGroupSize != 0)
    fail("lab problem with ", num_operations, " operations: expected a multiple of ", kGroupSize, " up to ",
         kMaxOperations);
}

}  // namespace

std::string_view token_text(Token token) {
  if (token < 0 || token >= kVocabSize) fail("lab token ", token, ": expected 0..", kVocabSize - 1);
  return kTokenTexts[static_cast<size_t>(token)];
}

int apply_operation(char operation, int digit) {
  switch (operation) {
    case 'a':
      return (digit + 1) % 10;
    case 'b':
      return (digit + 3) % 10;
    case 'c':
      return (digit + 8) % 10;
    case 'd':
      return digit * 3 % 10;
    case 'e':
      return digit * 7 % 10;
    case 'f':
      return 9 - digit;
  }
  fail("lab operation '", operation, "': expected a..f");
}

int solve(const Problem& problem) {
  int value = problem.start;
  for (const char operation : problem.operations) value = apply_operation(operation, value);
  return value;
}

std::string problem_text(const Problem& problem) {
  return std::to_string(problem.start) + problem.operations + "?";
}

Problem parse_problem(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_operation = [](char c) { return c >= 'a' && c <= 'f'; };
  const bool is_valid = text.size() >= 3 && text.size() <= kMaxOperations + 2 && is_digit(text.front()) &&
                        text.back() == '?' && std::all_of(text.begin() + 1, text.end() - 1, is_operation);
  if (!is_valid)
    fail("lab problem '", text.substr(0, 40), "': expected a digit, operations a..f and a question mark");
  return {.start = text.front() - '0', .operations = std::string(text.substr(1, text.size() - 2))};
}

Problem make_problem(uint64_t seed, uint64_t index, int num_operations) {
  check_num_operations(num_operations);
  Draws draws(seed, index, Stream::problem);
  Problem problem{.start = draws.below(10), .operations = {}};
  for (int i = 0; i < num_operations; ++i) problem.operations += static_cast<char>('a' + draws.below(6));
  return problem;
}

std::vector<Token> encode(std::string_view text) {
  std::vector<Token> ids;
  const std::string_view box = kTokenTexts[kBoxToken];
  for (size_t i = 0; i < text.size();) {
    const bool is_box = text.substr(i, box.size()) == box;
    const Token id = is_box ? kBoxToken : token_of(text[i]);
    if (id < 0)
      fail("lab text: character ", static_cast<int>(static_cast<unsigned char>(text[i])), " at ", i,
           " is no token");
    ids.push_back(id);
    i += is_box ? box.size() : 1;
  }
  return ids;
}

std::string decode(const std::vector<Token>& ids) {
  std::string text;
  for (const Token id : ids)
    if (id != kEndToken && id != kPadToken) text += token_text(id);
  return text;
}

SftExample teacher_example(uint64_t seed, uint64_t index, int num_operations, const TeacherPolicy& policy,
                           const Deviations& deviations) {
  const Problem problem = make_problem(seed, index, num_operations);
  return TeacherText(problem, policy, deviations, Draws(seed, index, Stream::teacher_text)).write();
}

SftExample short_example(uint64_t seed, uint64_t index, int num_operations) {
  const Problem problem = make_problem(seed, index, num_operations);
  Writer writer(problem);
  int value = problem.start;
  writer.begin_pass(value);
  for (size_t i = 0; i < problem.operations.size(); ++i) {
    writer.symbol(problem.operations[i]);
    value = apply_operation(problem.operations[i], value);
    if (i % kGroupSize == kGroupSize - 1) {
      writer.symbol('>');
      writer.digit(value);
    }
  }
  writer.end_pass(value);
  writer.box(value);
  writer.token(kEndToken);
  return writer.take();
}

SftExample initial_student_example(uint64_t seed, uint64_t index, int num_operations, double long_share) {
  const bool is_long = Draws(seed, index, Stream::text_choice).chance(long_share);
  return is_long ? teacher_example(seed, index, num_operations) : short_example(seed, index, num_operations);
}

int curriculum_operations(uint64_t seed, uint64_t index, double progress) {
  constexpr double kGrowth = 0.35;
  const double grown = std::clamp(progress / kGrowth, 0.0, 1.0);
  const int num_levels = 1 + static_cast<int>(grown * (kNumLevels - 1));
  return kGroupSize * (1 + Draws(seed, index, Stream::curriculum).below(num_levels));
}

ResponseStyle response_style(const std::vector<Token>& response_ids) {
  const auto count = [&](char symbol) {
    return static_cast<double>(std::count(response_ids.begin(), response_ids.end(), token_of(symbol)));
  };
  const double num_long = count(';') / kGroupSize, num_short = count('>');
  const double num_groups = num_long + num_short;
  return {.num_passes = response_ids.empty() ? 0 : 1 + static_cast<int>(count('~')),
          .long_share = num_groups > 0 ? num_long / num_groups : 0};
}

}  // namespace ropd::lab
