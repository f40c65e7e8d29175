// Where a control group's folder is: /proc/self/cgroup gives the group's path
// inside its hierarchy, /proc/self/mountinfo where (a part of) the hierarchy is
// mounted (man cgroups(7), proc(5)).
#include "runtime/machine/system_files.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

bool Lists(absl::string_view comma_separated, absl::string_view name) {
  for (const absl::string_view part : absl::StrSplit(comma_separated, ',')) {
    if (part == name) return true;
  }
  return false;
}

// Where `group` lies below a mount whose top is `mount_root` of the hierarchy,
// and every folder from there up to the mount itself.
std::vector<std::string> FoldersUpwards(const std::string& mount_point,
                                        absl::string_view mount_root,
                                        absl::string_view group) {
  // A container often sees its own group as the mount's root, or a path that
  // begins outside of what is mounted: then the mount is the group.
  if (mount_root != "/") {
    const bool below = absl::ConsumePrefix(&group, mount_root) &&
                       (group.empty() || group[0] == '/');
    if (!below) group = "";
  }
  if (absl::StrContains(group, "..")) group = "";
  std::vector<std::string> folders;
  while (group.size() > 1) {
    folders.push_back(absl::StrCat(mount_point, group));
    group = group.substr(0, group.rfind('/'));
  }
  folders.push_back(mount_point);
  return folders;
}

}  // namespace

std::optional<std::string> ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  return text.str();
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const auto text = ReadSystemFile(path);
  int64_t number = 0;
  if (!text || !absl::SimpleAtoi(*text, &number)) return std::nullopt;
  return number;
}

std::optional<int64_t> ReadField(const std::string& path,
                                 absl::string_view key) {
  const auto text = ReadSystemFile(path);
  if (!text) return std::nullopt;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() >= 2 && absl::StripSuffix(words[0], ":") == key &&
        absl::SimpleAtoi(words[1], &number)) {
      return number;
    }
  }
  return std::nullopt;
}

CgroupFolders FindCgroup(const std::string& root,
                         absl::string_view controller) {
  CgroupFolders folders;
  const auto groups = ReadSystemFile(root + "/proc/self/cgroup");
  const auto mounts = ReadSystemFile(root + "/proc/self/mountinfo");
  if (!groups || !mounts) return folders;
  std::optional<std::string> group_v1, group_v2;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n')) {
    // hierarchy:controllers:path; version 2 is "0::path".
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      group_v2 = std::string(parts[2]);
    } else if (Lists(parts[1], controller)) {
      group_v1 = std::string(parts[2]);
    }
  }
  for (const absl::string_view line : absl::StrSplit(*mounts, '\n')) {
    // ... root mount-point options [optional fields] - type source
    // super-options
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<absl::string_view> left =
        absl::StrSplit(halves.first, ' ', absl::SkipEmpty());
    const std::vector<absl::string_view> right =
        absl::StrSplit(halves.second, ' ', absl::SkipEmpty());
    if (left.size() < 5 || right.size() < 3) continue;
    const std::string mount_point = absl::StrCat(root, left[4]);
    if (group_v2 && right[0] == "cgroup2" && folders.v2.empty()) {
      folders.v2 = FoldersUpwards(mount_point, left[3], *group_v2);
    } else if (group_v1 && right[0] == "cgroup" && folders.v1.empty() &&
               Lists(right[2], controller)) {
      folders.v1 = FoldersUpwards(mount_point, left[3], *group_v1);
    }
  }
  return folders;
}

}  // namespace weft
