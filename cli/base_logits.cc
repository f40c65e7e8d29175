#include "cli/base_logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/first_largest.h"
#include "base/status.h"
#include "runtime/generation/logprobs.h"

namespace weft {
namespace {

constexpr char kMagic[] = "WEFTKLB2";
// Of files of earlier versions, which do not say what they were made with.
constexpr char kOldMagic[] = "WEFTKLB1";
constexpr size_t kHashBytes = 16;
// Where things stand in the header.
constexpr int64_t kVocabularyAt = 8, kContextAt = 16, kStrideAt = 24,
                  kRowsAt = 32, kTextAt = 40, kVocabularyHashAt = 56,
                  kHeaderBytes = 72;
constexpr int64_t kRowHeaderBytes = 12;
// Log-probabilities below this are as good as none.
constexpr double kLeast = -1000.0;

int64_t RowBytesOf(int64_t vocabulary) {
  return kRowHeaderBytes + 2 * vocabulary;
}

template <class T>
void Put(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof(value));
}

template <class T>
T Get(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

absl::StatusOr<BaseLogitsWriter> BaseLogitsWriter::Create(
    const std::string& path, const BaseRun& run) {
  WEFT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  uint8_t header[kHeaderBytes] = {};
  std::memcpy(header, kMagic, 8);
  Put(static_cast<uint32_t>(run.vocabulary), header + kVocabularyAt);
  Put(run.context, header + kContextAt);
  Put(run.stride, header + kStrideAt);
  std::memcpy(header + kTextAt, run.text_hash.data(),
              std::min(kHashBytes, run.text_hash.size()));
  std::memcpy(header + kVocabularyHashAt, run.vocabulary_hash.data(),
              std::min(kHashBytes, run.vocabulary_hash.size()));
  WEFT_RETURN_IF_ERROR(file.Write(0, header));
  return BaseLogitsWriter(std::move(file), kHeaderBytes);
}

absl::Status BaseLogitsWriter::Commit() {
  uint8_t rows[sizeof(rows_)];
  Put(rows_, rows);
  WEFT_RETURN_IF_ERROR(file_.Write(kRowsAt, rows));
  return file_.Commit();
}

absl::Status BaseLogitsWriter::Add(int32_t token,
                                   absl::Span<const float> logits) {
  WEFT_ASSIGN_OR_RETURN(const LogSoftmax softmax, LogSoftmax::Of(logits));
  const int32_t count = static_cast<int32_t>(logits.size());
  double largest = kLeast, least = 0.0;
  for (int32_t i = 0; i < count; ++i) {
    const double p = std::max(softmax.At(i), kLeast);
    largest = std::max(largest, p);
    least = std::min(least, p);
  }
  const float top = static_cast<float>(largest);
  const float step = static_cast<float>((largest - least) / 65535.0);
  row_.resize(static_cast<size_t>(RowBytesOf(count)));
  Put(token, row_.data());
  Put(top, row_.data() + 4);
  Put(step, row_.data() + 8);
  for (int32_t i = 0; i < count; ++i) {
    const double p = std::max(softmax.At(i), kLeast);
    const double steps = step > 0.0f ? std::round((largest - p) / step) : 0.0;
    Put(static_cast<uint16_t>(std::clamp(steps, 0.0, 65535.0)),
        row_.data() + kRowHeaderBytes + 2 * i);
  }
  WEFT_RETURN_IF_ERROR(file_.Write(offset_, row_));
  offset_ += static_cast<int64_t>(row_.size());
  ++rows_;
  return absl::OkStatus();
}

absl::StatusOr<BaseLogitsReader> BaseLogitsReader::Open(const std::string& path,
                                                        const BaseRun& run) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  const auto refuse = [&](absl::string_view what, absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", path, ": ", why,
                     ": make them with weft perplexity --kl-save FILE"));
  };
  const absl::Span<const uint8_t> bytes = file->bytes();
  const absl::string_view magic(reinterpret_cast<const char*>(bytes.data()),
                                std::min<size_t>(8, bytes.size()));
  if (magic == kOldMagic) {
    return refuse("base logits of an earlier version of weft",
                  "they do not say which text, context and stride they are of");
  }
  if (magic != kMagic) {
    return refuse("no base logits", "the file does not begin as they do");
  }
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size < kHeaderBytes) {
    return refuse("base logits are cut off",
                  absl::StrCat("the file has ", size, " bytes"));
  }
  const auto number = [&](int64_t at) {
    return Get<int64_t>(bytes.data() + at);
  };
  const auto differs = [&](absl::string_view of, absl::string_view what,
                           int64_t has, int64_t wanted) {
    return refuse(
        absl::StrCat("base logits of another ", of),
        absl::StrCat("they have ", what, " ", has, ", here it is ", wanted));
  };
  const auto same = [&](int64_t at, const std::string& hash) {
    return std::memcmp(bytes.data() + at, hash.data(),
                       std::min(kHashBytes, hash.size())) == 0;
  };
  const int64_t vocabulary = Get<uint32_t>(bytes.data() + kVocabularyAt);
  if (vocabulary != run.vocabulary) {
    return differs("model", "a vocabulary of", vocabulary, run.vocabulary);
  }
  if (!same(kVocabularyHashAt, run.vocabulary_hash)) {
    return refuse("base logits of another model", "its tokens are others");
  }
  if (!same(kTextAt, run.text_hash)) {
    return refuse("base logits of another text", "it has other characters");
  }
  if (number(kContextAt) != run.context) {
    return differs("context", "--context", number(kContextAt), run.context);
  }
  if (number(kStrideAt) != run.stride) {
    return differs("stride", "--stride", number(kStrideAt), run.stride);
  }
  const int64_t rows = number(kRowsAt), row = RowBytesOf(vocabulary);
  if (rows < 0 || rows > size / row + 1 || size != kHeaderBytes + rows * row) {
    return refuse("base logits are cut off or damaged",
                  absl::StrCat("the file has ", size, " bytes, of which ", rows,
                               " tokens take ", row, " each"));
  }
  return BaseLogitsReader(std::move(file), vocabulary, rows);
}

absl::Status BaseLogitsReader::OtherText() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "base logits of another text: ", file_->path(),
      ": give the text, the context and the stride that they were made with"));
}

absl::Status BaseLogitsReader::Compare(int32_t token,
                                       absl::Span<const float> logits) {
  const int64_t at = static_cast<int64_t>(divergences_.size());
  if (at >= rows_ || static_cast<int64_t>(logits.size()) != vocabulary_) {
    return OtherText();
  }
  const uint8_t* row =
      file_->bytes().data() + kHeaderBytes + at * RowBytesOf(vocabulary_);
  if (Get<int32_t>(row) != token) return OtherText();
  const float top = Get<float>(row + 4), step = Get<float>(row + 8);
  if (!std::isfinite(top) || !std::isfinite(step) || step < 0.0f) {
    return absl::InvalidArgumentError(
        absl::StrCat("damaged base logits: ", file_->path(),
                     ": make them again with weft perplexity --kl-save FILE"));
  }
  WEFT_ASSIGN_OR_RETURN(const LogSoftmax softmax, LogSoftmax::Of(logits));
  // Rounded, the base's probabilities no longer add up to 1.
  base_.resize(static_cast<size_t>(vocabulary_));
  double sum = 0.0;
  int64_t base_top = 0;
  for (int64_t i = 0; i < vocabulary_; ++i) {
    const uint16_t steps = Get<uint16_t>(row + kRowHeaderBytes + 2 * i);
    base_[static_cast<size_t>(i)] = -double{step} * steps;
    sum += std::exp(base_[static_cast<size_t>(i)]);
    if (base_[static_cast<size_t>(i)] > base_[static_cast<size_t>(base_top)]) {
      base_top = i;
    }
  }
  const double log_sum = std::log(sum);
  double divergence = 0.0;
  for (int64_t i = 0; i < vocabulary_; ++i) {
    const double base = base_[static_cast<size_t>(i)] - log_sum;
    const double other = std::max(softmax.At(static_cast<int32_t>(i)), kLeast);
    divergence += std::exp(base) * (base - other);
  }
  divergences_.push_back(divergence);
  const int64_t top_here = FirstLargest(logits);
  if (top_here == base_top) ++same_;
  return absl::OkStatus();
}

absl::StatusOr<Divergence> BaseLogitsReader::Result() {
  const int64_t count = static_cast<int64_t>(divergences_.size());
  if (count != rows_) return OtherText();
  Divergence result;
  for (double divergence : divergences_) {
    result.mean += divergence / static_cast<double>(count);
  }
  const int64_t place = std::min(count - 1, count * 99 / 100);
  std::nth_element(divergences_.begin(), divergences_.begin() + place,
                   divergences_.end());
  result.percentile99 = divergences_[static_cast<size_t>(place)];
  result.same_top = static_cast<double>(same_) / static_cast<double>(count);
  return result;
}

}  // namespace weft
