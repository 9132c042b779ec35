// How long what is left of some work will take. Every piece has an estimate that is right up to a factor of
// its kind; the factor is learned from the pieces that were made.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "study/graph.h"

namespace ropd::study {

class Forecast {
 public:
  // A piece that has to be made; known ones stay as they are.
  void expect(const std::string& id, NodeKind kind, double estimated_seconds);
  // It took so long; or it turned out that nobody makes it here.
  void made(const std::string& id, double seconds);
  void forget(const std::string& id);

  size_t num_left() const { return open_.size(); }
  size_t num_made() const { return num_made_; }
  // Nothing while nothing was measured.
  std::optional<double> seconds_left() const;

 private:
  struct Piece {
    NodeKind kind;
    double estimated = 0;
  };
  struct Sum {
    double estimated = 0, measured = 0;
  };
  std::map<std::string, Piece> open_;
  std::map<NodeKind, Sum> by_kind_;
  Sum all_;
  size_t num_made_ = 0;
};

}  // namespace ropd::study
