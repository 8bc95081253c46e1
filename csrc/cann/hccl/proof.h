#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace aclnn_host::hccl {

// Random bytes from the system. Only HcclRootInfo contains a communicator's secret.
using Secret = std::array<char, 32>;

// An authentication tag: HMAC-SHA256.
using Tag = std::array<char, 32>;

Secret random_secret();

// Random hexadecimal digits.
std::string random_text();

// The reason why this machine cannot compute tags; empty if it can. OpenSSL's libcrypto computes
// them. It is loaded on the first call, so ranks on one host, which need no tags, do not need
// OpenSSL.
const std::string& why_no_tags();
// Throws a Failure if tags cannot be computed.
void expect_tags();

Tag tag_of(const Secret& key, std::span<const char> bytes);

// Compares in constant time, so that timing does not reveal where two tags differ.
bool are_equal(const Tag& one, const Tag& other) noexcept;

// True if the kernel can distinguish this process's user from every other. In a user namespace all
// unmapped users have the same number, which may also be this process's (user_namespaces(7)).
bool is_user_known();

// True if the peer process of a local socket runs as the same user, as the kernel reports.
bool is_same_user(int socket);

}  // namespace aclnn_host::hccl
