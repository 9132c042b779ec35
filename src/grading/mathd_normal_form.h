// Stage 1: the normal form of Hendrycks' MATH grader with MathQA's unit words; equal forms are equal answers.
// Deliberately lossy (spaces, one-letter units, "x=" vanish): the reference's false positives come from here.
#pragma once
#include <string>
#include <string_view>

namespace ropd::grading {

[[nodiscard]] std::string mathd_normal_form(std::string_view answer);

}  // namespace ropd::grading
