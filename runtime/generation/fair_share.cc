#include "runtime/generation/fair_share.h"

#include <algorithm>
#include <limits>

namespace weft {

FairShare::Member FairShare::Join(uint64_t client, uint64_t task,
                                  int64_t request, int64_t texts) {
  Member member;
  member.client_key = client;
  member.task_key = {client, task == 0,
                     task == 0 ? static_cast<uint64_t>(request) : task};
  if (clients_.count(client) == 0) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& other : clients_) {
      least = std::min(least, other.second.served);
    }
    const bool alone = clients_.empty();
    clients_[client].served = alone ? 0 : least;
  }
  member.client = &clients_[client];
  member.task = &tasks_[member.task_key];
  member.client->open += texts;
  member.task->open += texts;
  return member;
}

void FairShare::Leave(const Member& member) {
  if (--member.task->open == 0) tasks_.erase(member.task_key);
  if (--member.client->open == 0) clients_.erase(member.client_key);
}

bool FairShare::Precedes(const Member& a, const Member& b) {
  if (a.client->served != b.client->served) {
    return a.client->served < b.client->served;
  }
  if (a.task->served != b.task->served) return a.task->served < b.task->served;
  return a.task->open < b.task->open;
}

bool FairShare::MayReplace(const Member& waiting, const Member& running) {
  if (waiting.task == running.task || !Precedes(waiting, running)) return false;
  if (waiting.client != running.client) {
    return running.client->running > waiting.client->running &&
           running.client->served >= waiting.client->served + kTurnTokens;
  }
  return running.task->running >= waiting.task->running + 2 ||
         (waiting.task->open < running.task->open &&
          running.task->served >= waiting.task->served + kTurnTokens);
}

}  // namespace weft
