#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cann/hccl/addresses.h"
#include "cann/hccl/connection.h"
#include "cann/hccl/proof.h"
#include "hccl/hccl_types.h"

namespace aclnn_host::hccl {

// The most ranks of a communicator.
constexpr uint32_t kMostRanks = 32768;

// Where a meeting place is, and what its visitors prove.
struct Invitation {
  std::string local_name;  // for processes of its host; empty if this is none
  Address address;         // for others; port 0 if it has none
  std::string name;        // of the meeting
  Secret secret;
};

// What a rank brings to a meeting.
struct Attendance {
  std::string key;        // of the communicator
  std::string agreement;  // the same for all ranks
  uint32_t rank;
  uint32_t ranks;
  std::string words;  // what the others are to know of it
};

// Waits until all ranks of the communicator have come, and returns the words of each. Throws a
// Failure if they do not come in time, or differ.
std::vector<std::string> attend(const Invitation& to, const Attendance& attendance);

// The place where the ranks of a communicator, and later those of its parts, find one another. It
// belongs to the process that made the root information, in which a thread serves it.
class MeetingPlace {
 public:
  // Opens it for processes of this host under a name, and at the address `host` for others, if
  // there are tags to prove the secret over a network.
  explicit MeetingPlace(const std::string& host);
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  ~MeetingPlace();

  const Invitation& invitation() const noexcept { return invitation_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Somebody who has proved the secret; with what it brought, once that has come.
  struct Visitor {
    Visitor(Contact contact, Clock::time_point its_deadline);
    Connection connection;
    const Clock::time_point deadline;  // for what it brings
    std::string key;                   // of its group; empty until it has one
    uint32_t rank = 0;
  };

  // Ranks of one communicator that come together.
  struct Group {
    Group(std::string its_agreement, uint32_t its_ranks)
        : agreement(std::move(its_agreement)),
          ranks(its_ranks),
          visitors(its_ranks),
          words(its_ranks) {}
    // Nobody can come any more. Returns who has, and keeps no room for them.
    std::vector<Visitor*> close() {
      std::vector<std::string>().swap(words);
      return std::exchange(visitors, std::vector<Visitor*>());
    }

    std::string agreement;
    uint32_t ranks;
    std::vector<Visitor*> visitors;  // by rank; null for who has not come; none when it is closed
    std::vector<std::string> words;
    Clock::time_point deadline = Clock::time_point::max();
    std::string patience;  // which made the deadline
    std::string end;       // why nobody can come any more
    bool is_complete = false;
  };

  void serve() noexcept;
  int milliseconds_to_next_deadline() const;
  void welcome(Door& door);
  bool attend_to(Visitor& visitor);
  void take(Visitor& visitor, const Letter& letter);
  void complete(const std::string& key, Group& group);
  static void refuse(Visitor& visitor, HcclResult code, const std::string& text);
  void end(Group& group, HcclResult code, const std::string& text);
  void end_what_is_late();
  void leave(Visitor& visitor);

  const std::chrono::seconds patience_;
  Invitation invitation_;
  std::unique_ptr<Door> local_door_;
  std::unique_ptr<Door> network_door_;  // null without tags
  std::list<Visitor> visitors_;
  std::map<std::string, Group> groups_;  // by key
  Waker waker_;
  std::atomic<bool> is_closed_ = false;
  std::thread thread_;
};

}  // namespace aclnn_host::hccl
