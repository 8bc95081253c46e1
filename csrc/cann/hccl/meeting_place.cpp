#include "cann/hccl/meeting_place.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include <c10/util/StringUtil.h>

#include "cann/hccl/hccl_guard.h"
#include "cann/hccl/names.h"
#include "cann/hccl/transport.h"

namespace aclnn_host::hccl {
namespace {

// The kinds of letters here: a rank joins; it receives the words of all ranks; it is refused.
enum Word : uint32_t { kCome, kAll, kRefusal };
constexpr size_t kLongestText = size_t{16} << 10;
constexpr size_t kLongestRequest = size_t{1} << 20;
constexpr size_t kLongestWords = 1024;
constexpr std::array<size_t, 1> kFromVisitors = {kLongestRequest};
constexpr std::array<size_t, 3> kFromPlace = {0, kMostRanks * (kLongestWords + sizeof(uint64_t)),
                                              kLongestText};

// The limit of communicators in one place that are incomplete or have failed.
constexpr size_t kMostGroups = 4096;

constexpr const char* kWayOut =
    "; its process has ended. If torch has restarted the ranks, its store gave them the root "
    "information of those before: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1";

// A rank waits this much longer than the place.
constexpr std::chrono::seconds kGrace{5};

uint64_t number_of(const std::string& text, uint64_t most) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number <= most) return number;
  throw Failure(HCCL_E_NETWORK, c10::str(text, " is no number from 0 to ", most));
}

// Connects to the place: by its name on the same host, otherwise by its address.
Contact come_to(const Invitation& to, uint32_t rank, const Deadline& deadline) {
  const std::string where = to.local_name.empty() ? to.address.text() : "this host";
  try {
    return to.local_name.empty() ? visit(to.address, to.secret, to.name, rank, deadline)
                                 : visit(to.local_name, to.secret, to.name, rank, deadline);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const auto* const system = dynamic_cast<const std::system_error*>(&error);
    const bool is_refused = system != nullptr && system->code() == std::errc::connection_refused;
    throw Failure(HCCL_E_TCP_CONNECT,
                  c10::str("cannot reach the rank that made rootInfo at ", where, ": ",
                           error.what(), is_refused ? kWayOut : ""));
  }
}

}  // namespace

std::vector<std::string> attend(const Invitation& to, const Attendance& attendance) {
  const auto patience = connect_timeout();
  Connection connection(come_to(to, attendance.rank, Deadline(milliseconds_of(patience))),
                        kFromPlace);
  const std::vector<char> request =
      joined({attendance.key, attendance.agreement, std::to_string(attendance.ranks),
              std::to_string(patience.count()), attendance.words});
  if (request.size() > kLongestRequest) {
    throw Failure(HCCL_E_PARA, "the list of ranks, or of root information, is too long");
  }
  connection.send(Letter(kCome, 0, std::span<const char>(request)));
  const Deadline deadline(milliseconds_of(patience + kGrace));
  std::optional<Letter> reply;
  const auto has_ended = [](const char* why) {
    return Failure(HCCL_E_REMOTE, c10::str("the rank that made rootInfo, where the others meet, "
                                           "has ended or cannot be reached: ",
                                           why));
  };
  try {
    while (!reply) {
      if (connection.is_broken()) throw has_ended("it has closed the connection");
      const short events = connection.flush() ? POLLIN : POLLIN | POLLOUT;
      wait_for(connection.file(), events, deadline);
      if (!connection.receive([&](Letter letter) { reply = std::move(letter); }) && !reply) {
        throw has_ended("it has closed the connection");
      }
    }
  } catch (const std::system_error& error) {
    throw has_ended(error.what());
  }
  if (reply->kind() == kAll) return parted(std::as_const(*reply).body(), attendance.ranks);
  const auto text = reply->body();
  throw Failure(result_of(reply->number()), std::string(text.begin(), text.end()));
}

MeetingPlace::Visitor::Visitor(Contact contact, Clock::time_point its_deadline)
    : connection(std::move(contact), kFromVisitors),
      deadline(its_deadline),
      rank(connection.rank()) {}

MeetingPlace::MeetingPlace(const std::string& host) : patience_(connect_timeout()) {
  invitation_.name = "hccl_" + random_text();
  invitation_.secret = random_secret();
  invitation_.local_name = "aclnn_torch/" + random_text();
  local_door_ = std::make_unique<Door>(listen_as(invitation_.local_name), invitation_.secret,
                                       invitation_.name);
  invitation_.address = {host, 0};
  if (why_no_tags().empty()) {
    File listener = listen_at(host);
    invitation_.address.port = port_of(listener);
    network_door_ =
        std::make_unique<Door>(std::move(listener), invitation_.secret, invitation_.name);
  }
  thread_ = std::thread([this] { serve(); });
}

MeetingPlace::~MeetingPlace() {
  is_closed_ = true;
  waker_.wake();
  thread_.join();
}

// The thread's main function. If memory is exhausted, a visitor is dropped, and the place goes on.
void MeetingPlace::serve() noexcept {
  std::vector<pollfd> files;
  while (!is_closed_) {
    try {
      files.clear();
      int timeout = milliseconds_to_next_deadline();
      waker_.watch(files);
      for (Door* const door : {local_door_.get(), network_door_.get()}) {
        if (door != nullptr) door->watch(files, timeout);
      }
      for (Visitor& visitor : visitors_) {
        const short more = visitor.connection.flush() ? 0 : POLLOUT;
        files.push_back({visitor.connection.file(), static_cast<short>(POLLIN | more), 0});
      }
      poll(files.data(), files.size(), timeout);
      for (Door* const door : {local_door_.get(), network_door_.get()}) {
        if (door != nullptr) welcome(*door);
      }
      for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
        const auto next = std::next(visitor);
        if (!attend_to(*visitor)) {
          leave(*visitor);
          visitors_.erase(visitor);
        }
        visitor = next;
      }
      end_what_is_late();
    } catch (...) {
      // The next iteration tries again.
    }
  }
}

int MeetingPlace::milliseconds_to_next_deadline() const {
  constexpr int64_t kMost = 60'000;
  int64_t least = kMost;
  const auto wait_for = [&](Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    least = std::clamp<int64_t>(left.count(), 0, least);
  };
  for (const auto& [key, group] : groups_) {
    if (!group.is_complete && group.end.empty()) wait_for(group.deadline);
  }
  for (const Visitor& visitor : visitors_) {
    if (visitor.key.empty()) wait_for(visitor.deadline);
  }
  return static_cast<int>(least);
}

void MeetingPlace::welcome(Door& door) {
  for (Contact& contact : door.admit()) {
    visitors_.emplace_back(std::move(contact), Clock::now() + patience_);
  }
}

// Returns false if the visitor is to be removed.
bool MeetingPlace::attend_to(Visitor& visitor) {
  try {
    const bool is_there =
        visitor.connection.receive([&](const Letter& letter) { take(visitor, letter); });
    const bool is_late = visitor.key.empty() && Clock::now() >= visitor.deadline;
    return is_there && !is_late && !visitor.connection.is_broken();
  } catch (const Failure& failure) {
    refuse(visitor, failure.code(), failure.what());
    return false;
  } catch (const std::bad_alloc&) {
    return false;  // the letters that were read are lost
  }
}

void MeetingPlace::take(Visitor& visitor, const Letter& letter) {
  if (!visitor.key.empty()) {
    throw Failure(HCCL_E_NETWORK, "a rank comes once on a connection");
  }
  const auto texts = parted(letter.body(), 5);
  const auto& [key, agreement, words] = std::tie(texts[0], texts[1], texts[4]);
  const auto ranks = static_cast<uint32_t>(number_of(texts[2], kMostRanks));
  const std::chrono::seconds patience(number_of(texts[3], std::numeric_limits<int32_t>::max()));
  if (key.empty() || words.size() > kLongestWords || visitor.rank >= ranks) {
    throw Failure(HCCL_E_NETWORK, "a rank without a key, with too many words, or of no such rank");
  }
  auto entry = groups_.find(key);
  if (entry == groups_.end()) {
    if (groups_.size() >= kMostGroups) {
      throw Failure(HCCL_E_UNAVAIL,
                    c10::str(kMostGroups, " communicators meet here, or failed to"));
    }
    entry = groups_.emplace(key, Group(agreement, ranks)).first;  // all of it, or an exception
  }
  Group& group = entry->second;
  if (group.agreement != agreement) {
    throw Failure(HCCL_E_PARA, "rootInfoList is not that of a rank that came before");
  }
  if (group.ranks != ranks) {
    throw Failure(HCCL_E_PARA, c10::str("nRanks is ", ranks, " for rank ", visitor.rank, " and ",
                                        group.ranks, " for one that came before"));
  }
  if (!group.end.empty()) throw Failure(HCCL_E_REMOTE, "the others have given up: " + group.end);
  if (group.is_complete || group.visitors[visitor.rank] != nullptr) {
    throw Failure(HCCL_E_PARA, c10::str("rank ", visitor.rank, " has joined already"));
  }
  visitor.key = key;
  group.visitors[visitor.rank] = &visitor;
  group.words[visitor.rank] = words;
  if (const auto deadline = Clock::now() + patience; deadline < group.deadline) {
    group.deadline = deadline;
    group.patience = std::to_string(patience.count());
  }
  if (std::ranges::find(group.visitors, nullptr) == group.visitors.end()) complete(key, group);
}

// Sends every rank the words of all. The key of a sub-communicator is not used again; that of the
// root information may be.
void MeetingPlace::complete(const std::string& key, Group& group) {
  const std::vector<char> all = joined(group.words);
  group.is_complete = true;
  for (Visitor* const visitor : group.close()) {
    visitor->connection.send(Letter(kAll, 0, std::span<const char>(all)));
  }
  if (key != invitation_.name) groups_.erase(key);
}

void MeetingPlace::refuse(Visitor& visitor, HcclResult code, const std::string& text) {
  visitor.connection.send(Letter(
      kRefusal, code, std::span<const char>(text).first(std::min(text.size(), kLongestText))));
}

// Ends the waiting of all ranks in the group.
void MeetingPlace::end(Group& group, HcclResult code, const std::string& text) {
  group.end = text;
  for (Visitor* const visitor : group.close()) {
    if (visitor != nullptr) refuse(*visitor, code, text);
  }
}

void MeetingPlace::end_what_is_late() {
  for (auto& [key, group] : groups_) {
    if (group.is_complete || !group.end.empty() || Clock::now() < group.deadline) continue;
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0; rank < group.ranks; ++rank) {
      if (group.visitors[rank] == nullptr) missing.push_back(rank);
    }
    end(group, HCCL_E_TIMEOUT,
        c10::str(text_of_ranks(missing), " of ", group.ranks, " did not come within ",
                 group.patience, " s (HCCL_CONNECT_TIMEOUT)"));
  }
}

// A visitor has disconnected, or is removed. A group that waits for it cannot become complete.
void MeetingPlace::leave(Visitor& visitor) {
  const auto found = groups_.find(visitor.key);
  if (found == groups_.end()) return;
  auto& waiting = found->second.visitors;
  if (visitor.rank >= waiting.size() || waiting[visitor.rank] != &visitor) return;
  waiting[visitor.rank] = nullptr;
  end(found->second, HCCL_E_REMOTE,
      c10::str("rank ", visitor.rank, " has ended before all ranks had come"));
}

}  // namespace aclnn_host::hccl
