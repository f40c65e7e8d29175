#include "runtime/cache/prompt_files.h"

#include "base/status.h"

namespace weft {
namespace {

// What may wait to be written. States are large, and rare.
constexpr int kPages = 16;
constexpr int kStates = 2;

}  // namespace

int64_t PromptFiles::Bytes(int64_t page_bytes, int64_t slot_bytes) {
  const int64_t pages = PageStore::BytesFor(page_bytes, kPages);
  return slot_bytes == 0 ? pages
                         : pages + PageStore::BytesFor(slot_bytes, kStates);
}

int64_t PromptFiles::FileBytes(int64_t page_bytes, int64_t slot_bytes) {
  const int64_t page = PageStore::BytesFor(page_bytes, 0);
  return slot_bytes == 0 ? page : page + PageStore::BytesFor(slot_bytes, 0);
}

absl::StatusOr<std::unique_ptr<PromptFiles>> PromptFiles::Open(
    const Options& options) {
  std::unique_ptr<PromptFiles> files(new PromptFiles);
  WEFT_ASSIGN_OR_RETURN(files->folder_,
                        PageFolder::Open(options.folder, options.limit));
  PageStoreOptions store;
  store.folder = files->folder_;
  store.identity = options.identity;
  store.page_bytes = options.page_bytes;
  store.waiting = kPages;
  store.log = options.log;
  files->pages_ = std::make_unique<PageStore>(store);
  if (options.slot_bytes == 0) return files;
  store.identity = options.identity + " states";
  store.page_bytes = options.slot_bytes;
  store.waiting = kStates;
  files->states_ = std::make_unique<PageStore>(store);
  return files;
}

PromptFiles::Stats PromptFiles::GetStats() const {
  Stats stats;
  stats.bytes = folder_->bytes();
  for (const PageStore* store : {pages_.get(), states_.get()}) {
    if (store == nullptr) continue;
    const PageStore::Stats own = store->GetStats();
    stats.read += own.read;
    stats.written += own.written;
    stats.damaged += own.damaged;
  }
  return stats;
}

}  // namespace weft
