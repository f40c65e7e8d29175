#include "cli/filter_process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace weft {
namespace {

TEST(FilterThrough, GivesWhatTheProgramWrote) {
  absl::StatusOr<std::string> out = FilterThrough({"tr", "a-z", "A-Z"}, "weft");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "WEFT");
  out = FilterThrough({"cat"}, "");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "");
}

TEST(FilterThrough, MoreThanPipesHoldInBothDirections) {
  std::string text(3 << 20, 'x');
  for (size_t i = 0; i < text.size(); i += 100) text[i] = '\n';
  const absl::StatusOr<std::string> out = FilterThrough({"cat"}, text);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out == text, true);
}

TEST(FilterThrough, MuchOnStandardErrorIsNoDeadlock) {
  const absl::StatusOr<std::string> out =
      FilterThrough({"sh", "-c", "tee /dev/stderr"}, std::string(1 << 20, 'x'));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->size(), 1u << 20);
}

TEST(FilterThrough, AProgramNeedNotReadAll) {
  signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<std::string> out =
      FilterThrough({"head", "-c", "3"}, std::string(1 << 20, 'x'));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "xxx");
}

TEST(FilterThrough, NoSuchProgram) {
  const absl::Status status =
      FilterThrough({"weft-has-no-such-program"}, "x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_NE(status.message().find("weft-has-no-such-program"),
            std::string::npos);
}

TEST(FilterThrough, FailuresAreTold) {
  absl::Status status =
      FilterThrough({"sh", "-c", "echo bad line 3 >&2; echo more >&2; exit 4"},
                    "x")
          .status();
  EXPECT_EQ(status.message(), "program failed: sh: exit code 4: bad line 3");
  status = FilterThrough({"sh", "-c", "kill -9 $$"}, "x").status();
  EXPECT_EQ(status.message(), "program failed: sh: signal 9");
}

TEST(FilterThrough, TheProgramGetsArgumentsAsTheyAre) {
  const absl::StatusOr<std::string> out =
      FilterThrough({"printf", "%s", "$(id); `id` *"}, "");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, "$(id); `id` *");
}

}  // namespace
}  // namespace weft
