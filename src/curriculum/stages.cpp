#include "curriculum/stages.h"

#include <algorithm>
#include <cassert>
#include <functional>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

void visit_plain_sources(const Source& source, const std::function<void(const Source&)>& visit) {
  if (source.kind != SourceKind::mix) return visit(source);
  for (const Source& part : source.of) visit_plain_sources(part, visit);
}

std::string stage_label(size_t index, const Stage& stage) {
  return stage.where + (stage.where.empty() ? "" : ": ") + "curriculum stage " + std::to_string(index + 1) +
         " (" + source_name(stage.source) + ")";
}

void check_source(const std::string& label, const Source& source, bool inside_mix) {
  if (source.kind == SourceKind::bank && source.path.empty())
    fail(label, ": source bank needs a path, the file with its rollouts");
  if (source.kind == SourceKind::recent && source.step == 0)
    fail(label, ": source recent needs a step > 0, got 0 (the student before training is source initial)");
  if (source.kind != SourceKind::mix) return;
  if (inside_mix) fail(label, ": a mix cannot contain a mix");
  if (source.of.size() < 2 || source.of.size() > kMaxParts)
    fail(label, ": a mix is of 2 to ", kMaxParts, " sources, got ", source.of.size());
  for (size_t i = 0; i < source.of.size(); ++i)
    for (size_t j = i + 1; j < source.of.size(); ++j)
      if (source.of[i] == source.of[j])
        fail(label, ": two parts of the mix are ", source_name(source.of[i]), "; name it once, with a ratio");
  for (const Source& part : source.of) check_source(label, part, true);
}

void check_ratio(const std::string& label, const char* name, const Ratio& ratio, const Source& source) {
  if (ratio.empty()) return;
  if (source.kind != SourceKind::mix) fail(label, ": takes no ", name, "; only a mix does");
  if (ratio.size() != source.of.size())
    fail(label, ": ", name, " has ", ratio.size(), " numbers, the mix ", source.of.size(), " parts");
  if (std::all_of(ratio.begin(), ratio.end(), [](uint64_t number) { return number == 0; }))
    fail(label, ": ", name, " is 0 for every part; some response must come from one");
  for (const uint64_t number : ratio)
    if (number > kMaxRatio) fail(label, ": ", name, " holds ", number, ", expected at most ", kMaxRatio);
}

// Facts of one stage that do not depend on the others.
void check_stage(const std::string& label, const Stage& stage) {
  check_source(label, stage.source, false);
  check_ratio(label, "ratio", stage.source.ratio, stage.source);
  check_ratio(label, "ratio_to", stage.ratio_to, stage.source);
  if (stage.iterations && stage.until_trigger)
    fail(label, ": has both iterations: ", *stage.iterations, " and until: trigger; a stage ends in one way");
  if (stage.iterations && *stage.iterations == 0) fail(label, ": iterations must be > 0, got 0");
  if (stage.until_trigger && stage.source.kind != SourceKind::current)
    fail(label,
         ": until: trigger needs source current; the trigger compares gradients on current-policy rollouts");
}

// A bank of the student at `step` must exist when a stage that begins at `earliest` (iterations done) wants
// it.
void check_recent(const std::string& label, const Source& source, uint64_t earliest,
                  const CurriculumSettings& settings) {
  if (source.step < settings.first_step)
    fail(label, ": recent step ", source.step, " lies before the first step of this run, ",
         settings.first_step, "; use {source: bank, path: ...} with the rollouts of that checkpoint");
  const uint64_t steps = source.step - settings.first_step;
  if (steps % settings.steps_per_iteration != 0)
    fail(label, ": recent step ", source.step,
         " is inside an iteration; a bank is frozen between iterations, every ", settings.steps_per_iteration,
         " steps");
  if (steps / settings.steps_per_iteration > earliest)
    fail(label, ": recent step ", source.step, " is iteration ", steps / settings.steps_per_iteration,
         ", but the stage may begin after ", earliest, " iterations");
}

}  // namespace

Source source_in_stage(const Stage& stage, uint64_t iteration, uint64_t length) {
  Source source = stage.source;
  if (stage.ratio_to.empty()) return source;
  const Ratio from = source.ratio.empty() ? Ratio(source.of.size(), 1) : source.ratio;
  source.ratio = ratio_between(from, stage.ratio_to, iteration, length);
  return source;
}

std::vector<uint64_t> freeze_steps(const std::vector<Stage>& stages) {
  std::vector<uint64_t> steps;
  for (const Stage& stage : stages)
    visit_plain_sources(stage.source, [&](const Source& source) {
      if (source.kind == SourceKind::recent) steps.push_back(source.step);
    });
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

Curriculum::Curriculum(std::vector<Stage> stages, const CurriculumSettings& settings,
                       std::unique_ptr<Trigger> trigger, std::vector<WatchedTrigger> watched)
    : stages_(std::move(stages)),
      settings_(settings),
      trigger_(std::move(trigger)),
      watched_(std::move(watched)) {
  if (stages_.empty())
    fail("curriculum.stages is empty; expected at least one stage, e.g. {source: current}");
  if (settings_.total_iterations == 0) fail("train.iterations must be > 0, got 0");
  assert(settings_.steps_per_iteration > 0);
  uint64_t earliest = 0;  // iterations done before this stage, at least
  size_t trigger_stage = stages_.size();
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    const std::string label = stage_label(i, stage);
    const bool is_last = i + 1 == stages_.size();
    check_stage(label, stage);
    visit_plain_sources(stage.source, [&](const Source& source) {
      if (source.kind == SourceKind::recent) check_recent(label, source, earliest, settings_);
    });
    if (earliest >= settings_.total_iterations)
      fail(label, ": begins after ", earliest, " iterations at the earliest, but train.iterations is ",
           settings_.total_iterations, ": it would never run");
    if (stage.until_trigger) {
      if (trigger_stage < stages_.size())
        fail(label, ": a second until: trigger; stage ", trigger_stage + 1,
             " has one already and the trigger is set once");
      if (is_last) fail(label, ": until: trigger needs a stage after it, e.g. {source: initial}");
      trigger_stage = i;
      earliest = trigger_->earliest_end(earliest);
    } else if (stage.iterations) {
      earliest += *stage.iterations;
      if (is_last && trigger_stage < stages_.size())
        fail(label, ": the last stage after a trigger must be open-ended; leave out its iterations");
      if (is_last && earliest != settings_.total_iterations)
        fail(label, ": the stages end after ", earliest, " iterations, train.iterations is ",
             settings_.total_iterations, "; make them equal or leave out the last stage's iterations");
    } else if (!is_last) {
      fail(label, ": has no end (iterations or until: trigger), so the stage after it would never run");
    }
  }
}

uint32_t Curriculum::stage_of(uint64_t iteration) const {
  assert(iteration >= 1 && iteration <= closed_iterations_ + 1);
  const auto after = std::upper_bound(stage_begins_.begin(), stage_begins_.end(), iteration);
  return static_cast<uint32_t>(after - stage_begins_.begin() - 1);
}

Source Curriculum::source_of(uint64_t iteration) const {
  const uint32_t index = stage_of(iteration);
  const uint64_t begin = stage_begins_[index];
  const uint64_t length = stages_[index].iterations.value_or(settings_.total_iterations + 1 - begin);
  return source_in_stage(stages_[index], iteration - begin, length);
}

bool Curriculum::can_watch() const {
  const bool others_need = settings_.watch_always || watched_need_gradients();
  for (const Stage& stage : stages_) {
    if (stage.until_trigger && trigger_->needs_gradients()) return true;
    if (others_need && stage.source.kind == SourceKind::current) return true;
  }
  return false;
}

bool Curriculum::watched_need_gradients() const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [](const WatchedTrigger& watched) { return watched.trigger->needs_gradients(); });
}

bool Curriculum::is_current() const {
  return !is_done() && stages_[next_stage()].source.kind == SourceKind::current;
}

bool Curriculum::is_judged() const {
  if (!is_current()) return false;
  if (settings_.watch_always) return true;
  return std::any_of(stages_.begin() + next_stage(), stages_.end(),
                     [](const Stage& stage) { return stage.until_trigger; });
}

bool Curriculum::is_watching() const {
  if (!is_current()) return false;
  return settings_.watch_always || watched_need_gradients() || (is_judged() && trigger_->needs_gradients());
}

TriggerRecord Curriculum::close_iteration(const Evidence& evidence) {
  assert(!is_done());
  const uint64_t iteration = closed_iterations_ + 1;
  const Stage& stage = stages_[next_stage()];
  TriggerRecord record;
  Evidence judged = evidence;
  judged.iteration = iteration;
  if (is_judged() || is_watching()) {
    const Comparison& gradients = evidence.gradients;
    record.within = gradients.within;
    record.distance = gradients.distance;
    record.noise = gradients.noise;
    record.note = gradients.note;
    if (gradients.is_made() && *gradients.noise > 0) record.ratio = *gradients.distance / *gradients.noise;
  }
  if (is_judged()) {
    judged.counts = stage.until_trigger;
    const Verdict verdict = trigger_->observe(judged);
    record.qualifies = verdict.qualifies;
    record.consecutive = verdict.consecutive;
    if (verdict.is_set && stage.until_trigger) tau_ = iteration;
  }
  record.tau = tau_;
  judged.counts = true;
  for (WatchedTrigger& watched : watched_) {
    WatchedRecord& seen = record.watched.emplace_back();
    seen.name = watched.name;
    if (is_current()) {
      const Verdict verdict = watched.trigger->observe(judged);
      seen.qualifies = verdict.qualifies;
      seen.consecutive = verdict.consecutive;
      if (verdict.is_set && !watched.tau) watched.tau = iteration;
    }
    seen.tau = watched.tau;
  }
  const bool ends = stage.until_trigger
                        ? tau_ == iteration
                        : stage.iterations && iteration + 1 - stage_begins_.back() == *stage.iterations;
  closed_iterations_ = iteration;
  if (ends && stage_begins_.size() < stages_.size()) stage_begins_.push_back(iteration + 1);
  return record;
}

CurriculumState Curriculum::state() const {
  CurriculumState state{closed_iterations_, stage_begins_, tau_, trigger_->save()};
  for (const WatchedTrigger& watched : watched_)
    state.watched.push_back({watched.trigger->save(), watched.tau});
  return state;
}

void Curriculum::restore(const CurriculumState& state) {
  const auto& begins = state.stage_begins;
  const bool is_ascending = std::is_sorted(begins.begin(), begins.end(), std::less_equal<>());
  if (state.closed_iterations > settings_.total_iterations || begins.empty() || begins.front() != 1 ||
      begins.size() > stages_.size() || !is_ascending || begins.back() > state.closed_iterations + 1)
    fail("saved curriculum (", state.closed_iterations, " iterations done, ", begins.size(),
         " stages entered) does not fit a run of ", settings_.total_iterations, " iterations in ",
         stages_.size(), " stages; was the config of the run changed?");
  for (size_t i = 0; i + 1 < begins.size(); ++i)
    if (stages_[i].iterations && begins[i + 1] - begins[i] != *stages_[i].iterations)
      fail("saved curriculum: stage ", i + 1, " took ", begins[i + 1] - begins[i],
           " iterations, the config says ", *stages_[i].iterations, "; was the config of the run changed?");
  if (state.watched.size() != watched_.size())
    fail("saved curriculum: holds ", state.watched.size(), " watched triggers, trigger.watched names ",
         watched_.size(), "; was the config of the run changed?");
  trigger_->restore(state.trigger);
  for (size_t i = 0; i < watched_.size(); ++i) {
    watched_[i].trigger->restore(state.watched[i].trigger);
    watched_[i].tau = state.watched[i].tau;
  }
  closed_iterations_ = state.closed_iterations;
  stage_begins_ = state.stage_begins;
  tau_ = state.tau;
}

bool Curriculum::uses_initial_bank() const {
  bool uses = false;
  for (const Stage& stage : stages_)
    visit_plain_sources(stage.source,
                        [&](const Source& source) { uses |= source.kind == SourceKind::initial; });
  return uses;
}

std::string Curriculum::describe() const {
  std::string text;
  for (size_t i = 0; i < stages_.size(); ++i) {
    text += (i ? ", then " : "") + source_name(stages_[i].source);
    for (size_t p = 0; p < stages_[i].ratio_to.size(); ++p)
      text += (p ? ":" : " to ") + std::to_string(stages_[i].ratio_to[p]);
    if (stages_[i].until_trigger) text += " until trigger";
    if (stages_[i].iterations) text += " x " + std::to_string(*stages_[i].iterations);
  }
  return text;
}

}  // namespace ropd::curriculum
