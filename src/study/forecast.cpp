#include "study/forecast.h"

namespace ropd::study {

void Forecast::expect(const std::string& id, NodeKind kind, double estimated_seconds) {
  open_.try_emplace(id, Piece{kind, estimated_seconds});
}

void Forecast::made(const std::string& id, double seconds) {
  const auto piece = open_.find(id);
  if (piece == open_.end()) return;
  for (Sum* sum : {&by_kind_[piece->second.kind], &all_}) {
    sum->estimated += piece->second.estimated;
    sum->measured += seconds;
  }
  open_.erase(piece);
  ++num_made_;
}

void Forecast::forget(const std::string& id) { open_.erase(id); }

std::optional<double> Forecast::seconds_left() const {
  if (all_.estimated <= 0) return std::nullopt;
  double left = 0;
  for (const auto& [id, piece] : open_) {
    const auto kind = by_kind_.find(piece.kind);
    const Sum& known = kind != by_kind_.end() && kind->second.estimated > 0 ? kind->second : all_;
    left += piece.estimated * known.measured / known.estimated;
  }
  return left;
}

}  // namespace ropd::study
