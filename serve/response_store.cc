#include "serve/response_store.h"

#include <iterator>
#include <utility>

namespace weft {

void ResponseStore::Erase(std::map<std::string, Kept>::iterator it) {
  bytes_ -= Bytes(it->second.entry);
  for (const std::string& item : it->second.entry.items) items_.erase(item);
  ages_.erase(it->second.age);
  entries_.erase(it);
}

void ResponseStore::Put(const std::string& id, Entry entry) {
  if (Bytes(entry) > kMostBytes) return;
  const absl::MutexLock lock(&mutex_);
  if (const auto it = entries_.find(id); it != entries_.end()) Erase(it);
  bytes_ += Bytes(entry);
  for (const std::string& item : entry.items) items_[item] = id;
  ages_.push_back(id);
  entries_[id] = {std::move(entry), std::prev(ages_.end())};
  while (entries_.size() > kMost || bytes_ > kMostBytes) {
    Erase(entries_.find(ages_.front()));
  }
}

absl::optional<ResponseStore::Entry> ResponseStore::Find(const std::string& id,
                                                         uint64_t client) {
  const absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.entry.client != client) {
    return absl::nullopt;
  }
  ages_.splice(ages_.end(), ages_, it->second.age);
  return it->second.entry;
}

absl::optional<ResponseStore::Entry> ResponseStore::FindItem(
    const std::string& item, uint64_t client) {
  std::string id;
  {
    const absl::MutexLock lock(&mutex_);
    const auto it = items_.find(item);
    if (it == items_.end()) return absl::nullopt;
    id = it->second;
  }
  return Find(id, client);
}

bool ResponseStore::Remove(const std::string& id, uint64_t client) {
  const absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.entry.client != client) return false;
  Erase(it);
  return true;
}

}  // namespace weft
