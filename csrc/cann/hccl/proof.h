#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace aclnn_host::hccl {

// Random bytes of the system. A communicator's secret travels in HcclRootInfo alone.
using Secret = std::array<char, 32>;

// What only a holder of the key can compute of some bytes: HMAC-SHA256.
using Tag = std::array<char, 32>;

Secret random_secret();

// A random text of hexadecimal digits.
std::string random_text();

// Why there are no tags on this machine; empty if there are. OpenSSL's libcrypto computes them. It
// is loaded on the first call, so that ranks of one host, which need no tags, need no OpenSSL.
const std::string& why_no_tags();
// Throws a Failure if there are none.
void expect_tags();

Tag tag_of(const Secret& key, std::span<const char> bytes);

// Compares in a time that says nothing about where two tags differ.
bool are_equal(const Tag& one, const Tag& other) noexcept;

// Whether the kernel tells this process's user from every other one. In a user namespace all users
// that it does not map have one number, which may be this process's, too (user_namespaces(7)).
bool is_user_known();

// Whether the process at the other side of a socket of this host is of the same user; by the
// kernel's word.
bool is_same_user(int socket);

}  // namespace aclnn_host::hccl
