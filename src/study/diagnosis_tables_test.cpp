// Tables of hand-written diagnoses.
#include "study/diagnosis_tables.h"

#include <gmock/gmock.h>

#include "support/test_data.h"

namespace ropd::study {
namespace {

using testing::HasSubstr;

class DiagnosisTables : public testing::Test {
 protected:
  const test::TemporaryDirectory directory;
  const Store store{directory.path()};
  StudyFile file;
  std::vector<study::Run> runs;
  Plan plan;
  DiagnosisTables() {
    file.config.methods = {{.name = "current"}};
    file.config.diagnoses = {
        {.name = "d",
         .sources = {{.name = "a"}, {.name = "b"}},
         .students = {{.name = "a", .paper = {0.774, 0.624}}, {.name = "b"}},
         .probes = ProbesConfig{},
         .concentrations = {{.source = "a", .ranked_by = "a", .first = "b", .second = "a", .paper = {2.5}}}}};
    std::filesystem::create_directories(store.diagnosis("x").parent_path());
    // KL of students a, b on sources a, b.
    const double kl[2][2] = {{0.8, 0.6}, {0.5, 0.4}};
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j) {
        const std::string id = "cell" + std::to_string(2 * i + j), value = std::to_string(kl[i][j]);
        plan.diagnoses.push_back({.diagnosis = 0, .source = j, .student = i, .place = 0, .id = id});
        write_file_atomically(
            store.diagnosis(id),
            R"({"kl": )" + value +
                R"(, "less_likely": 0.9, "cumulative": [[-3.0, 0.2], [-1.0, 0.6], [0.5, 1.0]],
 "position_kl": [[)" +
                value + R"(]], "response_less_likely": [1.0],
 "probe": {"norms": [2.0, 4.0], "coordinates": [[1.0, 0.0], [0.0, )" +
                (j == 0 ? "1.0" : "-1.0") + "]]}}");
      }
  }
  std::string text() const {
    std::string all;
    const Results results(file, runs, plan, store);
    for (const stats::Table& table : diagnosis_tables(results, 0)) all += stats::to_text(table);
    return all;
  }
};

TEST_F(DiagnosisTables, ShowThePapersKlBesideOurs) {
  EXPECT_THAT(text(), testing::ContainsRegex("a +0\\.8000 +0\\.774 +0\\.6000 +0\\.624"));
}

// a -> b: 0.8 - 0.4 = (0.8 - 0.5) + (0.5 - 0.4).
TEST_F(DiagnosisTables, DecomposeTheChange) {
  EXPECT_THAT(text(), testing::ContainsRegex("a +b +0\\.4000 +0\\.3000 +0\\.1000"));
}

TEST_F(DiagnosisTables, ShowWhereTheLikelihoodChanged) {
  EXPECT_THAT(text(), testing::ContainsRegex("b +a +90\\.00 +-3\\.00 +-1\\.00 +0\\.50"));
}

TEST_F(DiagnosisTables, ShowConcentrationWithThePapersRow) {
  EXPECT_THAT(text(), HasSubstr("a, a: b, a"));
  EXPECT_THAT(text(), testing::ContainsRegex("paper +2\\.5000"));
}

// Student b: its own responses are source b; minibatch 1 agrees (1), minibatch 2 is opposite (-1): mean 0, SE 1.
TEST_F(DiagnosisTables, ShowNormsAndCosines) {
  EXPECT_THAT(text(), testing::ContainsRegex("b +a +3\\.000 +1\\.414 +0\\.000 +1\\.000"));
  EXPECT_THAT(text(), testing::ContainsRegex("b +b +3\\.000 +1\\.414 +- +-"));
}

}  // namespace
}  // namespace ropd::study
