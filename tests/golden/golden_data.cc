#include "tests/golden/golden_data.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/shared_data.h"

namespace weft {

std::string GoldenFolder(const std::string& set) {
  const std::string committed = absl::StrCat("tests/data/golden/", set, "/");
  const std::string all = absl::StrCat(
      SharedFolder("WEFT_GOLDEN_DIR", "golden", committed + "cases.json"), "/",
      set, "/");
  return std::ifstream(all + "cases.json").good() ? all : committed;
}

nlohmann::json ReadCases(const std::string& folder) {
  std::ifstream file(folder + "cases.json");
  return nlohmann::json::parse(file);
}

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.begin() + floats.size() * sizeof(float),
            reinterpret_cast<char*>(floats.data()));
  return floats;
}

void ErrorSums::Add(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    error += d * d;
    power += static_cast<double>(b[i]) * b[i];
  }
}

}  // namespace weft
