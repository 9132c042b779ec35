// Results of hand-written files; those of whole studies are read in study_test.cpp.
#include "study/results.h"

#include <gmock/gmock.h>

#include "base/sealed_json.h"
#include "support/tiny_world.h"

namespace ropd::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WrittenResults : public testing::Test {
 protected:
  const test::TemporaryDirectory directory;
  const Store store{directory.path()};
  StudyFile file;
  std::vector<study::Run> runs;
  Plan plan;
  WrittenResults() {
    file.config.methods = {{.name = "current"}};
    file.config.diagnoses = {{.name = "d", .sources = {{.name = "a"}}, .students = {{.name = "a"}}}};
    plan.diagnoses = {{.diagnosis = 0, .source = 0, .student = 0, .place = 0, .id = "cell"}};
    std::filesystem::create_directories(store.diagnosis("cell").parent_path());
  }
};

TEST_F(WrittenResults, OfADiagnosisAreReadBack) {
  write_file_atomically(store.diagnosis("cell"),
                        R"({"kl": 0.25, "less_likely": 0.75, "cumulative": [[-1.5, 0.5], [2.0, 1.0]],
 "position_kl": [[0.1, 0.4]], "response_less_likely": [null, 0.5],
 "probe": {"norms": [3.0, 4.0], "coordinates": [[1.0], [2.0]]}})");
  const Results results(file, runs, plan, store);
  const auto cells = results.cells(0, 0, 0);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0]->kl, 0.25);
  EXPECT_THAT(cells[0]->norms, ElementsAre(3, 4));
  EXPECT_FALSE(cells[0]->response_less_likely[0].has_value());
  EXPECT_EQ(cells[0]->cumulative[1].second, 1.0);
}

TEST_F(WrittenResults, ThatAreNotThereAreLeftOut) {
  const Results results(file, runs, plan, store);
  EXPECT_TRUE(results.cells(0, 0, 0).empty());
}

TEST_F(WrittenResults, OfAnotherKindAreNamed) {
  write_file_atomically(store.diagnosis("cell"), R"({"kl": "much"})");
  const Results results(file, runs, plan, store);
  EXPECT_THAT(test::error_of([&] { (void)results.cells(0, 0, 0); }), HasSubstr("cell.json: not a diagnosis"));
}

TEST_F(WrittenResults, ThatWereChangedAreRefused) {
  const Json cell = {{"kl", 0.25},
                     {"less_likely", 0.75},
                     {"cumulative", Json::array()},
                     {"position_kl", Json::array()},
                     {"response_less_likely", Json::array()}};
  std::string text = sealed(cell).dump();
  write_file_atomically(store.diagnosis("cell"), text);
  EXPECT_EQ(read_diagnosis(store.diagnosis("cell")).kl, 0.25);
  text.replace(text.find("0.25"), 4, "0.35");
  write_file_atomically(store.diagnosis("cell"), text);
  const Results results(file, runs, plan, store);
  EXPECT_THAT(test::error_of([&] { (void)results.cells(0, 0, 0); }),
              HasSubstr("cell.json: its content does not fit its checksum"));
}

}  // namespace
}  // namespace ropd::study
