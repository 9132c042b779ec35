// ./run in a made-up machine: a PATH of its own with a package manager, a compiler driver and a user that the
// test invents, so that nothing is installed or built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "support/test_data.h"

namespace ropd {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunScript : public testing::Test {
 protected:
  struct Outcome {
    int exit_code = -1;
    std::string out, err;
  };

  RunScript() {
    std::filesystem::create_directories(tools());
    std::filesystem::create_directories(directory_ / "build");
    std::filesystem::copy_file(Path(ROPD_SOURCE_DIR) / "run", directory_ / "run");
    for (const char* tool : {"bash", "env", "sed", "grep", "dirname", "nproc"})
      std::filesystem::create_symlink(Path("/usr/bin") / tool, tools() / tool);
    put_tool("dpkg-query",
             "shift 3\nfor name; do case \" $MISSING \" in *\" $name \"*) ;; *) echo \"installed $name\";; "
             "esac; done");
    for (const char* tool : {"apt-get", "cmake", "ninja"})
      put_tool(tool, "echo \"" + std::string(tool) + " $*\" >> " + (directory_ / "calls").string());
    be_user(1000);
  }

  Path tools() const { return directory_ / "tools"; }
  void be_user(int id) { put_tool("id", "echo " + std::to_string(id)); }
  void put_tool(const std::string& name, const std::string& script) { put_program(tools() / name, script); }
  void put_program(const Path& path, const std::string& script) {
    write_file_atomically(path, "#!/bin/bash\n" + script + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::all);
  }
  void make_configured() { write_file_atomically(directory_ / "build/build.ninja", ""); }

  Outcome run(const std::string& arguments, const std::string& missing = "") {
    const std::string line = "PATH=" + tools().string() + " MISSING='" + missing + "' " +
                             (directory_ / "run").string() + " " + arguments + " </dev/null >" +
                             (directory_ / "out").string() + " 2>" + (directory_ / "err").string();
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(directory_ / "out"),
            read_file(directory_ / "err")};
  }
  std::string calls() const {
    return std::filesystem::exists(directory_ / "calls") ? read_file(directory_ / "calls") : "";
  }

  static std::string ninja_call(const std::string& targets) {
    return "ninja -C build -j " + std::to_string(std::thread::hardware_concurrency()) + targets + "\n";
  }

  test::TemporaryDirectory directory_;
};

TEST_F(RunScript, WithoutRightsPrintsTheCommandAndGivesTwo) {
  const auto outcome = run("build", "ninja-build libhwy-dev");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "run: missing packages: ninja-build libhwy-dev\n"
            "run: installing needs an administrator; ask for:\n"
            "  apt-get update && apt-get install -y --no-install-recommends ninja-build libhwy-dev\n");
  EXPECT_EQ(calls(), "");
}

TEST_F(RunScript, AsRootInstallsWhatIsMissingInOneStepAndBuilds) {
  be_user(0);
  const auto outcome = run("build", "ninja-build libhwy-dev");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(calls(),
            "apt-get update -q\n"
            "apt-get install -y -q --no-install-recommends ninja-build libhwy-dev\n"
            "cmake --preset release\n" +
                ninja_call(""));
}

TEST_F(RunScript, WithoutDebianSaysWhatIsNeeded) {
  std::filesystem::remove(tools() / "dpkg-query");
  const auto outcome = run("build");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("dpkg-query not found"));
  EXPECT_THAT(outcome.err, HasSubstr("ninja-build"));
}

TEST_F(RunScript, WithNothingToDoOnlyAsksNinjaAndStartsTheLaboratory) {
  make_configured();
  put_program(directory_ / "build/ropd", "echo ropd \"$@\"");
  const auto outcome = run("");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "ropd lab --out runs/lab\n");
  EXPECT_EQ(calls(), ninja_call(" ropd"));
}

TEST_F(RunScript, ABuildThatFailsStartsNothing) {
  make_configured();
  put_tool("ninja", "exit 1");
  put_program(directory_ / "build/ropd", "echo started");
  const auto outcome = run("");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, Not(HasSubstr("started")));
}

TEST_F(RunScript, WrongUsageListsTheJobs) {
  const auto outcome = run("nonsense");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("./run test"));
}

}  // namespace
}  // namespace ropd
