#include "train/adapter_learner.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "io/model_path.h"

namespace ropd::train {

AdapterBase::AdapterBase(std::shared_ptr<const io::ModelDirectory> model)
    : directory(model), weights(model::map_base_weights(model)) {}

std::shared_ptr<const io::ModelDirectory> open_start(const std::string& model, const std::string& base,
                                                     const std::optional<AdapterSection>& section) {
  if (!section) return std::make_shared<const io::ModelDirectory>(model, base);
  if (io::is_adapter_directory(model))
    fail(model, ": is an adapter; to train it, name its base here and the adapter in adapter.path");
  if (!section->path) return std::make_shared<const io::ModelDirectory>(model, base);
  return std::make_shared<const io::ModelDirectory>(io::find_model(*section->path), model);
}

model::Adapter first_adapter(const io::ModelDirectory& start, const AdapterSection& section, uint64_t seed) {
  if (section.path) {
    start.check_base();
    return model::Adapter::load(*start.adapter());
  }
  model::Adapter adapter(start.config(), adapter_config(section));
  adapter.initialize(seed);
  return adapter;
}

AdapterLearner::AdapterLearner(AdapterBase base, model::Adapter adapter, LearnerConfig config,
                               comm::World& world)
    : FlatLearner(adapter.on(base.weights), adapter.values(), adapter.slots(), std::move(config), world),
      base_(std::move(base)),
      base_fingerprint_(io::base_fingerprint(base_.directory->tensors())),
      adapter_(std::move(adapter)) {}

void AdapterLearner::save_model(const Path& path, const std::string& description) const {
  io::save_adapter_directory(path,
                             {.adapter = adapter_.config(),
                              .base = std::filesystem::absolute(base_.directory->base_path()),
                              .fingerprint = base_fingerprint_,
                              .description = description,
                              .content = base_.directory->content()},
                             tensors());
}

bool AdapterLearner::load_model(const Path& path) {
  const io::AdapterDirectory saved(path, base_.weights.config);
  saved.require_base(base_.directory->tensors(), base_.directory->base_path());
  saved.require_base_content(base_.directory->content(), base_.directory->base_path());
  if (saved.matrices() != adapter_.matrices())
    fail(path.string(), ": another adapter than expected: its matrices, ranks or alpha differ");
  const auto loaded = model::Adapter::load(saved);
  std::copy(loaded.values().begin(), loaded.values().end(), adapter_.values().begin());
  return true;  // an adapter of ours is stored in f32
}

}  // namespace ropd::train
