// A learner that trains a low-rank adapter on a frozen base (model/adapter.h): gradient, moments, statistics and
// checkpoints are of the adapter's parameters alone; the base stays mapped in the type it is stored in.
#pragma once
#include "io/save_model.h"
#include "model/adapter.h"
#include "train/adapter_section.h"
#include "train/full_learner.h"

namespace ropd::train {

// The frozen model below an adapter.
struct AdapterBase {
  std::shared_ptr<const io::ModelDirectory> directory;  // its own adapter, if it has one, does not count
  model::Weights weights;                               // without it

  explicit AdapterBase(std::shared_ptr<const io::ModelDirectory> model);
};

// The model that training starts from: `model` (an adapter on `base`, where nothing but the merged matrices is
// trained), or the adapter of `section.path` on it where one is named.
std::shared_ptr<const io::ModelDirectory> open_start(const std::string& model, const std::string& base,
                                                     const std::optional<AdapterSection>& section);
// The adapter that training starts with: that of `start`, or a new one by the settings and the seed.
model::Adapter first_adapter(const io::ModelDirectory& start, const AdapterSection& section, uint64_t seed);

class AdapterLearner final : public FlatLearner {
 public:
  AdapterLearner(AdapterBase base, model::Adapter adapter, LearnerConfig config,
                 comm::World& world = comm::solo_crew().world());
  // An adapter directory.
  void save_model(const Path& path, const std::string& description) const override;
  // Fails unless it is an adapter of the same matrices, ranks and scales on the same base.
  bool load_model(const Path& path) override;
  const model::Adapter& adapter() const { return adapter_; }

 private:
  const AdapterBase base_;
  const std::string base_fingerprint_;
  model::Adapter adapter_;
};

}  // namespace ropd::train
