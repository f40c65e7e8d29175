// Whose turn it is: a share of the model for every client, and of the client's
// for each of its tasks (what one HTTP request asked for), however many others
// they brought.
//
// Idea: count what each has had, in tokens that ran, and let the one begin that
// has had least (Sheng et al., "Fairness in Serving Large Language Models",
// 2024). Who comes new, or again, begins at what the least served of the others
// has had, so that nobody saves up turns. Of tasks that had equally much, those
// of few texts go first, then older ones: a small request does not stand behind
// large ones that came at the same time.
//
// A text that has had its turn (kTurnTokens at least) gives its slot up to one
// that deserves it more. Between clients that goes on for as long as they
// compete; within a client only where a task holds several slots, or is larger:
// equal tasks are not exchanged for each other, since that would gain nothing.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

namespace weft {

class FairShare {
 public:
  // What a text may run before it gives way to others, and by how much they
  // must be behind.
  static constexpr int64_t kTurnTokens = 32;

  struct Account {
    int64_t served = 0;   // tokens that ran
    int64_t running = 0;  // texts with a slot
    int64_t open = 0;     // texts that have not ended
  };

  // Where a request is accounted; valid between Join and the last Leave.
  struct Member {
    Account* client = nullptr;
    Account* task = nullptr;
    uint64_t client_key = 0;
    std::tuple<uint64_t, bool, uint64_t> task_key;
  };

  // A request of so many texts. `task` 0: `request` alone.
  Member Join(uint64_t client, uint64_t task, int64_t request, int64_t texts);
  // One of its texts has ended.
  void Leave(const Member& member);

  static void Started(const Member& member) { Count(member, 1); }
  static void Stopped(const Member& member) { Count(member, -1); }
  static void Served(const Member& member, int64_t tokens) {
    member.client->served += tokens;
    member.task->served += tokens;
  }

  // Whether a text of `a` is to begin before one of `b`; neither: the older.
  static bool Precedes(const Member& a, const Member& b);
  // Whether a text of `waiting` may take the slot of one of `running`, which
  // has had its turn.
  static bool MayReplace(const Member& waiting, const Member& running);

 private:
  static void Count(const Member& member, int64_t change) {
    member.client->running += change;
    member.task->running += change;
  }

  std::map<uint64_t, Account> clients_;
  std::map<std::tuple<uint64_t, bool, uint64_t>, Account> tasks_;
};

}  // namespace weft
