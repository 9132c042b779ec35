// Mixtures of sources: how many responses of an iteration each part gives, and in which order they stand.
// A ratio is [parts] whole numbers, responses from each part up to a factor; empty = equal numbers. Place i
// of a batch (from 0) goes to the part p that is farthest behind its share
//   ratio_p (i + 1) / sum - places it has so far          of equal ones the first part
// The pattern repeats after sum places, so consecutive responses of that number, or of a multiple, have the
// ratio exactly and others nearly; equal parts simply take turns. Integers only: no rounding.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "records/source.h"

namespace ropd::curriculum {

using Ratio = std::vector<uint64_t>;  // [parts]

constexpr uint64_t kMaxParts = 16, kMaxRatio = 1000;

// In lowest terms; equal numbers are the empty ratio.
Ratio reduced(Ratio ratio);

// The part of every place: [count]. parts counts where the ratio is empty. Fails when the numbers of a ratio
// are too large to count so many places by.
std::vector<uint32_t> interleave(const Ratio& ratio, size_t parts, uint64_t count);
// How many places each part gets: [parts].
std::vector<uint64_t> places_of_parts(const Ratio& ratio, size_t parts, uint64_t count);

// Shares that move in equal steps from those of `from` in iteration 0 to those of `to` in iteration
// length - 1; with a single iteration those of `from`. In lowest terms. Neither ratio is empty.
Ratio ratio_between(const Ratio& from, const Ratio& to, uint64_t iteration, uint64_t length);

}  // namespace ropd::curriculum
